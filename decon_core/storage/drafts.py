"""Names of drafts and locks, and the removal of those whose process died.

A draft's name begins with a dot and contains its process. A draft of a process on this machine is
removed as soon as the process is dead, one of another machine after a day.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from decon_core.errors import InputError, Problem

_DAY_SECONDS = 86_400
_OWNED = re.compile(r"\.([0-9a-f]{12})-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]{8}(\.tmp|\.old)(\.|$)")
_UNOWNED = re.compile(r"^\..+\.tmp$")  # names of transfers to a URL


def draft_name(name: str) -> str:
    """Return a hidden, unique file name that contains machine, process and its start time."""
    process = f"{_machine()}-{os.getpid():x}-{_own_start_time():x}"  # ids are reused
    return f".{name}.{process}-{uuid4().hex[:8]}.tmp"


def remove(path: Path) -> None:
    """Delete a file or a folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return a digest of host name, boot and process namespace."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256(" ".join(parts).encode()).hexdigest()[:12]


@lru_cache(maxsize=1)
def _own_start_time() -> int:
    """Return when this process started. The system takes 0.5 ms to tell, for each draft."""
    return _start_time(os.getpid()) or 0


os.register_at_fork(after_in_child=_own_start_time.cache_clear)


def _start_time(process: int) -> int | None:
    """Return when a process started, in clock ticks; None if there is no such process.

    Without /proc the start time is unknown: 0 for a living process.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


def sweep(draft: Path) -> None:
    """Remove a draft of a dead process, or a day-old draft of another machine."""
    # Another process was quicker, or the draft belongs to another user.
    with suppress(FileNotFoundError, PermissionError):
        if owner := _OWNED.search(draft.name):
            process, start = int(owner[2], 16), int(owner[3], 16)
            is_ours = owner[1] == _machine()
            is_abandoned = _start_time(process) != start if is_ours else _is_old(draft)
        else:
            is_abandoned = bool(_UNOWNED.search(draft.name)) and _is_old(draft)
        if is_abandoned:
            remove(draft)


def _is_old(draft: Path) -> bool:
    return time.time() - draft.stat().st_mtime > _DAY_SECONDS


def sweep_beside(folder: Path) -> None:
    """Remove drafts of dead processes directly in a folder that may hold a user's files."""
    for draft in folder.glob(".*"):
        if _OWNED.search(draft.name):
            sweep(draft)


def sweep_lock(path: Path) -> None:
    """Remove a lock file that no process holds."""
    with suppress(OSError), path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same_file(path, file.fileno()):
            path.unlink()


# Not `filelock`: it leaves the file of a lock behind, one for every shard that was ever scanned;
# and on a file system without locks it falls back to files that outlive a killed process.
@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, and delete the file afterwards."""
    while True:
        with path.open("w") as file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_same_file(path, file.fileno()):
                continue  # the previous holder deleted the file meanwhile
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


@contextmanager
def locked_or_refused(path: Path, holder: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; raise InputError if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            failure = f"{holder} is running"
            raise InputError(Problem("", failure, remedy="wait for it to finish")) from None
        yield


def _is_same_file(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
