"""Numba's cache of one kernel, in the folder of these sources.

This imports Numba: to be imported only where a kernel is compiled or loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
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


class _Library(JITCodeLibrary):
    """Loaded machine code; its bitcode is read when a kernel that calls it is compiled.

    Numba reads it at once, and lists all its symbols: half of the time to load a kernel.
    """

    _bitcode = b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> _Library:
        name, _, (machine_code, bitcode) = state
        library: Any = cls(codegen, name)
        library._bitcode = bitcode  # noqa: SLF001 - its own
        library.enable_object_caching()
        library._set_compiled_object(machine_code)  # noqa: SLF001 - as Numba does
        library._finalize_final_module()  # noqa: SLF001 - as Numba does
        return library

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self._bitcode)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        return self._codegen._engine.get_function_address(name)  # noqa: SLF001 - no public way


class _Entries(CompileResultCacheImpl):
    _locator_classes = (_Place,)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        codegen = target_context.codegen()
        codegen._library_class, usual = _Library, codegen._library_class  # noqa: SLF001 - no public way
        try:
            return super().rebuild(target_context, payload)  # type: ignore[no-untyped-call] # Numba's
        finally:
            codegen._library_class = usual  # noqa: SLF001 - no public way


class _KernelCache(FunctionCache):
    _impl_class = _Entries
    prepare: Callable[[], None]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel without what Numba sets up to compile kernels: a quarter of a second."""
        rtsys.initialize(target_context)  # kernels allocate memory
        with self._guard_against_spurious_io_errors():
            loaded = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call] # Numba's
        if loaded is None:
            self.prepare()
        return loaded


def keep(dispatcher: Any, prepare: Callable[[], None]) -> None:
    """Load a kernel from the folder if it is there, and otherwise compile it and save it there.

    This is what Numba's `cache=True` does with its own cache. `prepare` is called before compiling.
    """
    make: Any = _KernelCache
    dispatcher._cache = cache = make(dispatcher.py_func)  # noqa: SLF001 - no public way
    cache.prepare = prepare
    # It would look for extensions of Numba in all installed packages.
    dispatcher._compilation_chain_init_hook = lambda: None  # noqa: SLF001 - no public way
