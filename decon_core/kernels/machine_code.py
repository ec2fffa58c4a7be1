"""Keep the machine code of kernels: in which folder, and for which processors.

A folder is for one version of the sources, of Python and of Numba, and for one level of
processors. Nothing in it says where it lies, so it can be shipped: in a wheel (`kernels/compiled`),
in an image, on a disk that nodes share.
"""

from __future__ import annotations

import getpass
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.hidden import hidden

_HERE = Path(__file__).parent
SHIPPED = _HERE / "compiled"  # filled by `make wheel` and `make setup`

_PREFIX = "kernels-"
_MONTH_SECONDS = 30 * 86_400

# The processors of Intel and AMD that have AVX2. Code for exactly one model is of no use on another
# one, and was no faster on the one that was measured (docs/engine.md, "The first run").
_LEVEL = "x86-64-v3"
_FEATURES_OF_LEVEL = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


@lru_cache(maxsize=1)
def prepare() -> Path | None:
    """Set up Numba; return the folder of these kernels, None if none can be written.

    Without one, each process compiles again. Functions of others, too, are compiled for the level
    of processors from then on, unless Numba has compiled one before.
    """
    with hidden("scipy"):  # Numba only asks for its version
        import numba

    config: Any = numba.config
    if config.CPU_NAME is None and _has_level():
        config.CPU_NAME, config.CPU_FEATURES = _LEVEL, ""
    return _find_folder(config)


def folder_of(function: Callable[..., Any]) -> Path | None:
    """Return the folder of a kernel; None if it is not kept."""
    folder, source = prepare(), Path(function.__code__.co_filename)
    if folder is None or not source.is_relative_to(_HERE):
        return None
    return folder / source.parent.relative_to(_HERE)


def is_kept(function: Callable[..., Any]) -> bool:
    """Return whether the folder has a kernel, maybe for arguments of other types."""
    folder = prepare()
    if folder is None:
        return False
    line = function.__code__.co_firstlineno
    return f"{function.__qualname__}-{line}" in _names_in(folder)


def kept_in(folder: Path) -> Iterator[Path]:
    """Yield the files with machine code: one for each kernel and the types of its arguments."""
    yield from folder.rglob("*.nbc")


@lru_cache(maxsize=1)
def _names_in(folder: Path) -> frozenset[str]:
    """Return the names and lines of the kernels that a folder has when it is first asked."""
    # Numba names them so: clusters.find-120.py311.nbi
    names = (path.name.partition(".")[2] for path in folder.rglob("*.nbi"))
    return frozenset(name.rsplit(".", 2)[0] for name in names)


def _has_level() -> bool:
    from llvmlite import binding

    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell
        return False
    return all(map(features.get, _FEATURES_OF_LEVEL))


def _find_folder(config: Any) -> Path | None:
    """Make a folder in the first writable one of those that can hold machine code.

    These are NUMBA_CACHE_DIR, or else the folder beside the source and the user's cache folder; the
    last one is a private temporary folder. One that was shipped is copied: what it lacks is added.
    """
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"
    given = [Path(config.CACHE_DIR)] if config.CACHE_DIR else [_HERE / "__pycache__", users]
    temporary = Path(tempfile.gettempdir()) / f"decon-kernels-{_user()}"
    root = next(filter(_can_write, given), temporary)
    if root == temporary and not _is_private(temporary):
        return None
    own = root / f"{_PREFIX}{_digest(config)}"
    for shipped in (folder / own.name for folder in (*given, SHIPPED) if folder != root):
        if shipped.is_dir() and not own.exists():
            _copy(shipped, own)
    own.mkdir(exist_ok=True)
    os.utime(own)
    _remove_unused(root, keep=own)
    return own


def _copy(shipped: Path, own: Path) -> None:
    with tempfile.TemporaryDirectory(dir=own.parent) as draft, suppress(OSError):
        # Another process may have made the folder meanwhile.
        shutil.copytree(shipped, Path(draft) / own.name).rename(own)


def _digest(config: Any) -> str:
    """Return a digest of all kernel files, and of what else machine code depends on.

    Numba checks only the file of the kernel that is called. After an edit of another file that the
    kernel uses, it would load outdated machine code, or fail to load it.
    """
    import numba
    from llvmlite import binding

    processor = config.CPU_NAME or binding.get_host_cpu_name(), config.CPU_FEATURES
    made_by = sys.implementation.cache_tag, numba.__version__, binding.get_process_triple()
    sources = (path.read_bytes() for path in sorted(_HERE.rglob("*.py")))
    content = b"".join((repr((*made_by, *processor)).encode(), *sources))
    return sha256(content).hexdigest()[:16]


def _remove_unused(root: Path, *, keep: Path) -> None:
    """Remove the machine code of other versions that was not used for a month."""
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder != keep and time.time() - folder.stat().st_mtime > _MONTH_SECONDS:
                shutil.rmtree(folder)


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write to a folder: its code is executed."""
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
    except (KeyError, OSError):  # a user id without a name, in a container
        return "nobody"
