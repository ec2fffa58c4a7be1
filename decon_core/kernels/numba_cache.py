"""Tell Numba where the machine code of kernels is. Numba imports this file when it needs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from numba.core.caching import _CacheLocator

from decon_core.kernels import machine_code


class KernelLocator(_CacheLocator):
    """The place of one kernel in the folder of these sources.

    Numba's own locators put the path of the source into the name of the folder, so that it is of no
    use to another installation.
    """

    def __init__(self, folder: Path, first_line: int) -> None:
        self._folder = folder
        self._first_line = first_line

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        folder = machine_code.place_of(Path(py_file))
        return cls(folder, py_func.__code__.co_firstlineno) if folder else None

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""  # the folder is for one version of the sources

    def get_disambiguator(self) -> str:
        return str(self._first_line)
