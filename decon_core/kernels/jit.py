"""How every kernel is compiled: one object decides all options, and where machine code is kept."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_kept() -> bool:
    """Whether machine code outlives the process.

    Numba keeps it beside the source or in the user's cache folder, and stops with an error where it
    can write to neither, as in a container of another user. Then a folder for temporary files must
    do; without even that, each process compiles anew.
    """
    if numba.config.CACHE_DIR or _can_write(Path(__file__).parent / "__pycache__"):
        return True
    folder = Path(tempfile.gettempdir()) / f"decon-kernels-{_user()}"
    if not _can_write(folder):
        return False
    numba.config.CACHE_DIR = str(folder)
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, in a container
        return "nobody"


# No fastmath: sums are taken in a stated order, to the last bit. Threads must be able to run side
# by side, so the interpreter's lock is let go.
_compile = numba.njit(cache=_is_kept(), nogil=True, error_model="numpy", boundscheck=False)


def kernel(function: Kernel) -> Kernel:
    """A loop over arrays, compiled at its first call."""
    compiled: Kernel = _compile(function)
    return compiled
