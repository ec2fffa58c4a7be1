"""Hides installed modules that a library would import although they are not needed here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _Finder(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname in self._names:
            raise ModuleNotFoundError(name=fullname)
        return None


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Let imports in the block find none of these modules, unless they were imported before."""
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
