"""Modules that are kept out of a process."""

import sys
from importlib import import_module

import pytest

from decon_core.hidden import hidden


def test_hidden_module_cannot_be_imported_until_the_block_ends(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with hidden("colorsys"), pytest.raises(ModuleNotFoundError):
        import_module("colorsys")
    assert import_module("colorsys").__name__ == "colorsys"


def test_module_that_was_imported_before_stays_importable_in_the_block():
    import_module("colorsys")
    with hidden("colorsys"):
        assert import_module("colorsys").__name__ == "colorsys"
