"""How every kernel is compiled: one object decides all options, and where machine code is kept.

Importing a kernel costs nothing. Numba (half a second) is imported when the first one is called,
and compiles it then, or loads what an earlier process compiled.
"""

from __future__ import annotations

import getpass
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_PREFIX = "kernels-"
_MONTH_SECONDS = 30 * 86_400


def kernel(function: Kernel) -> Kernel:
    """A loop over arrays, compiled at its first call."""
    return cast("Kernel", _NotYetCompiled(function, is_inlined=False))


def inlined(function: Kernel) -> Kernel:
    """A part of a kernel, compiled as if it stood there.

    Numba compiles what a kernel calls, and what that calls, once more with every caller; for long
    functions that take many arrays this halves the time.
    """
    return cast("Kernel", _NotYetCompiled(function, is_inlined=True))


def prefetch(array: npt.NDArray[np.generic], at: int) -> None:
    """Have the processor fetch what stands at a place, and go on meanwhile. Nothing changes by it.

    In a kernel one instruction; here, for kernels that run as plain Python, none.
    """


def is_new(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel that was called was compiled for it, and kept where others will find it."""
    stats = getattr(kernel, "stats", None)  # plain Python has none
    return bool(stats and stats.cache_path and stats.cache_misses)


def is_ready(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel was called in this process."""
    return bool(getattr(kernel, "signatures", ()))


class _NotYetCompiled:
    """Stands in for a kernel until it, or another one of its file, is called."""

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        self.function = function
        self.is_inlined = is_inlined
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        names: dict[str, Any] = self.function.__globals__
        # All of a file at once: a compiled kernel can call compiled ones only.
        for name, value in [*names.items()]:
            if isinstance(value, _NotYetCompiled):
                names[name] = _compiler(is_inlined=value.is_inlined)(value.function)
        return names[self.function.__name__](*arguments)


@lru_cache(maxsize=2)
def _compiler(*, is_inlined: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    import numba

    _teach_prefetch()
    # No fastmath: sums are taken in a stated order, to the last bit. Threads run side by side, so
    # the interpreter's lock is let go.
    return cast(
        "Callable[[Callable[..., Any]], Callable[..., Any]]",
        numba.njit(
            cache=_find_place(numba.config) and not is_inlined,
            nogil=True,
            error_model="numpy",
            inline="always" if is_inlined else "never",
        ),
    )


@lru_cache(maxsize=1)
def _teach_prefetch() -> None:
    """Tell numba what `prefetch` is: it has no way of its own to ask for it."""
    import numba.extending
    from llvmlite import ir
    from numba import types

    extending: Any = numba.extending  # its types do not know what an intrinsic becomes
    for_reading, for_good, data = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))
    address = ir.IntType(8).as_pointer()
    name = "llvm.prefetch.p0"
    form = ir.FunctionType(ir.VoidType(), [address, *[ir.IntType(32)] * 3])

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba says nothing of its decorators
    def fetch(_: Any, array: Any, at: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            first = context.make_array(signature.args[0])(context, builder, values[0]).data
            place = builder.bitcast(builder.gep(first, [values[1]]), address)
            known = builder.module.globals
            fetching = known.get(name) or ir.Function(builder.module, form, name)
            builder.call(fetching, [place, for_reading, for_good, data])
            return context.get_dummy_value()

        return types.void(array, at), emit

    @extending.overload(prefetch, inline="always")  # type: ignore[untyped-decorator] # as above
    def _(array: Any, at: Any) -> Any:  # noqa: ARG001 - numba compares the names of the two
        def implementation(array: Any, at: Any) -> Any:
            fetch(array, at)

        return implementation


def _find_place(config: Any) -> bool:
    """Whether machine code can be kept for other processes; sets the folder that numba keeps it in.

    The first that can be written to of NUMBA_CACHE_DIR, the folder beside the source, the user's
    cache folder, and a private folder for temporary files; without any, each process compiles.
    """
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"
    given = [Path(config.CACHE_DIR)] if config.CACHE_DIR else [_HERE / "__pycache__", users]
    temporary = Path(tempfile.gettempdir()) / f"decon-kernels-{_user()}"
    root = next(filter(_can_write, given), temporary)
    if root == temporary and not _is_our_own(temporary):
        return False
    own = root / f"{_PREFIX}{_digest_of_sources()}"
    own.mkdir(exist_ok=True)
    os.utime(own)
    _remove_unused(root, keep=own)
    config.CACHE_DIR = str(own)
    return True


def _digest_of_sources() -> str:
    """A digest of all kernels.

    Numba looks at the source of the kernel that is called, and not at kernels and tuples of other
    files that it uses: after an edit there it would load machine code of before, or fail to.
    """
    content = b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py")))
    return sha256(content).hexdigest()[:16]


def _remove_unused(root: Path, *, keep: Path) -> None:
    """Remove the machine code of other versions that no process has asked for in a month."""
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder != keep and time.time() - folder.stat().st_mtime > _MONTH_SECONDS:
                shutil.rmtree(folder)


def _is_our_own(folder: Path) -> bool:
    """Whether nobody else could have put code there: it would be run."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    is_private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022
    return is_private and status.st_uid == os.getuid() and _can_write(folder)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, in a container
        return "nobody"
