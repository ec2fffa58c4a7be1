"""Numba's cache of one kernel, in the folder of these sources.

This imports Numba: to be imported only where a kernel is compiled or loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.runtime.nrt import rtsys

from decon_core.kernels import machine_code


class _Place(_CacheLocator):
    """The place of a kernel.

    Numba's own locators put the path of the source into the name of the folder, so that it is of no
    use to another installation.
    """

    def __init__(self, folder: Path, first_line: int) -> None:
        self._folder = folder
        self._first_line = first_line

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Place | None:  # noqa: ARG003 - named by Numba
        folder = machine_code.folder_of(py_func)
        return cls(folder, py_func.__code__.co_firstlineno) if folder else None

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""  # the folder is for one version of the sources

    def get_disambiguator(self) -> str:
        return str(self._first_line)


class _Entries(CompileResultCacheImpl):
    _locator_classes = (_Place,)


class _KernelCache(FunctionCache):
    _impl_class = _Entries

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel without what Numba sets up to compile kernels: a quarter of a second."""
        rtsys.initialize(target_context)  # kernels allocate memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call] # Numba's


def keep(dispatcher: Any) -> None:
    """Load a kernel from the folder if it is there, and save it there otherwise.

    This is what Numba's `cache=True` does with its own cache.
    """
    cache: Any = _KernelCache
    dispatcher._cache = cache(dispatcher.py_func)  # noqa: SLF001 - no public way
