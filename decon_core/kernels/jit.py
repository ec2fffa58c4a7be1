"""Compile kernels: one place for all compiler options.

Importing a kernel is cheap. Numba (half a second) is imported at the first call of a kernel, which
compiles it or loads it from the cache. A kernel that takes longer to compile than a small input
takes in plain Python (`entry`) is compiled when the inputs are worth it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from decon_core.kernels import instructions, machine_code

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_STEP_SECONDS = 1e-6  # time of an innermost loop in plain Python


def kernel(function: Kernel) -> Kernel:
    """Mark a function as a kernel, compiled at its first call."""
    return cast("Kernel", _NotYetCompiled(function, is_inlined=False))


def entry(*, compile_seconds: float, steps: Callable[..., int]) -> Callable[[Kernel], Kernel]:
    """Mark a kernel that runs as plain Python until compiling it takes less time.

    `steps`, called with the arguments, returns about how many times the innermost loops will run.
    A kernel in the cache is loaded at once. Other kernels must not call it: in them it would be
    compiled for each.
    """

    def mark(function: Kernel) -> Kernel:
        return cast("Kernel", _Entry(function, compile_seconds=compile_seconds, steps=steps))

    return mark


def is_worth_compiling(
    kernel: Callable[..., Any], n_bytes: int, *, seconds_per_byte: float
) -> bool:
    """Return whether to call an `entry`, or another function that takes so long for a byte."""
    entered = cast("_Entry", kernel)
    if not entered.is_little(round(n_bytes * seconds_per_byte / _STEP_SECONDS)):
        return True
    entered.spend(n_bytes * seconds_per_byte)
    return False


def are_compiled_at_once() -> bool:
    return _Entry.are_at_once


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Compile every kernel at its first call within the block, however small its input is."""
    before, _Entry.are_at_once = _Entry.are_at_once, True
    try:
        yield
    finally:
        _Entry.are_at_once = before


def inlined(function: Kernel) -> Kernel:
    """Mark a function as part of a kernel, inlined at each call.

    Numba compiles the functions that a kernel calls again with every caller; for long functions
    with many array parameters, inlining halves the compile time.
    """
    return cast("Kernel", _NotYetCompiled(function, is_inlined=True))


def is_new(kernel: Callable[..., Any]) -> bool:
    """Return whether the last call of a kernel compiled it and stored it in the cache."""
    stats = getattr(kernel, "stats", None)  # plain Python has none
    return bool(stats and stats.cache_path and stats.cache_misses)


def is_ready(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel was called in this process."""
    return bool(getattr(kernel, "signatures", ()))


class _NotYetCompiled:
    """Placeholder of a kernel until it, or a kernel of a file that names it, is called."""

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        self.function = function
        self.is_inlined = is_inlined
        self._is_kept = False  # then it is prepared only if it is not in the cache
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        return self._ready(*arguments)

    @cached_property
    def _ready(self) -> Callable[..., Any]:
        ready = self.compiled
        if not self._is_kept:
            self._prepare()
        return ready

    def _prepare(self) -> None:
        """Make the kernels that it calls ready to be compiled with it."""
        _replace_placeholders(self.function.__globals__)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        ready = _compiler(is_inlined=self.is_inlined)(self.function)
        is_plain = ready is self.function  # NUMBA_DISABLE_JIT
        if not is_plain and not self.is_inlined and machine_code.folder_of(self.function):
            from decon_core.kernels import numba_cache

            numba_cache.keep(ready, self._prepare)
            self._is_kept = True
        return ready

    @property
    def signatures(self) -> Any:
        return getattr(self.__dict__.get("compiled"), "signatures", ())

    @property
    def stats(self) -> Any:
        return getattr(self.__dict__.get("compiled"), "stats", None)


class _Entry(_NotYetCompiled):
    """A kernel that is called by Python only; its name in its module is never replaced."""

    are_at_once = False

    def __init__(
        self, function: Callable[..., Any], *, compile_seconds: float, steps: Callable[..., int]
    ) -> None:
        super().__init__(function, is_inlined=False)
        self._seconds_left = compile_seconds
        self._steps = steps

    def __call__(self, *arguments: Any) -> Any:
        if not self.is_little(self._steps(*arguments)):
            return self._ready(*arguments)
        started = time.thread_time()
        with np.errstate(over="ignore"):  # hashes wrap around
            result = plain(self.function)(*arguments)
        self.spend(time.thread_time() - started)
        return result

    def spend(self, seconds: float) -> None:
        self._seconds_left -= seconds

    def is_little(self, n_steps: int) -> bool:
        """Return whether to run so many steps in plain Python."""
        if _Entry.are_at_once or "compiled" in self.__dict__ or self._is_cached:
            return False
        return n_steps * _STEP_SECONDS <= self._seconds_left

    @cached_property
    def _is_cached(self) -> bool:
        """Return whether the cache has the kernel, maybe for arguments of other types."""
        return machine_code.is_kept(self.function)


def plain(kernel: Kernel) -> Kernel:
    """Return a kernel as plain Python, like the kernels that it calls."""
    function = _function_of(kernel) or kernel
    if function not in _plain:
        code, names = function.__code__, dict(function.__globals__)
        _plain[function] = FunctionType(code, names, function.__name__, function.__defaults__)
        for name in code.co_names:
            if called := _function_of(names.get(name)):
                names[name] = plain(called)
    return cast("Kernel", _plain[function])


def _function_of(kernel: Any) -> Any:
    """Return the function of which a kernel is made; None if it is none."""
    if isinstance(kernel, _NotYetCompiled):
        return kernel.function
    return getattr(kernel, "py_func", None)  # compiled already


_plain: dict[Any, Callable[..., Any]] = {}


def _replace_placeholders(names: dict[str, Any]) -> None:
    """Compile all kernels that a file names, and those that their files name.

    A compiled kernel can only call compiled ones.
    """
    placeholders = {name: value for name, value in names.items() if type(value) is _NotYetCompiled}
    names.update({name: placeholder.compiled for name, placeholder in placeholders.items()})
    for placeholder in placeholders.values():
        _replace_placeholders(placeholder.function.__globals__)


@lru_cache(maxsize=2)
def _compiler(*, is_inlined: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    machine_code.prepare()
    import numba

    instructions.register()
    # No fastmath: sums have a defined order, to the last bit. nogil: threads run in parallel.
    return cast(
        "Callable[[Callable[..., Any]], Callable[..., Any]]",
        numba.njit(
            nogil=True,
            error_model="numpy",
            inline="always" if is_inlined else "never",
        ),
    )
