"""The oracle shares no code with what it tests."""

import ast
from pathlib import Path

import pytest

# Settings, and tables of facts: which characters look alike, which names entities have.
SHARED = {"decon_core.config.rounding", "decon_core.config.policy", "decon_core.text.characters"}


@pytest.mark.parametrize(
    "name", ["calibration", "code", "decon", "other_detectors", "similarity", "text"]
)
def test_the_oracle_imports_settings_and_tables_and_no_code_of_the_stages(name):
    ours, tests = modules_of(name)
    assert ours <= SHARED
    assert tests <= {"tests.oracle.text"}


@pytest.mark.parametrize("name", ["alignment", "reworded"])
def test_where_words_and_numbers_are_given_it_imports_only_these(name):
    ours, tests = modules_of(name)
    assert {module for module in ours if not module.startswith("decon_core.text.")} == set()
    assert not tests


def modules_of(name):
    """Return what an oracle imports of the program, and of the tests."""
    tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    ours = {module for module in modules if module.split(".")[0] in ("decon_core", "decon_assets")}
    return ours, {module for module in modules if module.startswith("tests.")}
