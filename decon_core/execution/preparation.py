"""Prepares a machine for jobs once: kernels are compiled by one process, the others wait."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Prepare = Callable[[Any], None]


def prepare_machine(prepare: Prepare, job: Any) -> None:
    """Prepare this process for jobs such as `job`, while no other one on the machine does it first.

    The first process holds the lock alone. Those that come meanwhile wait for it, then find its
    work in a cache, and go on side by side.
    """
    path = Path(tempfile.gettempdir()) / f"decon-prepare-{os.getuid()}.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        except OSError:
            pass  # no locks here: each process prepares by itself
        prepare(job)
    finally:
        with suppress(OSError):
            os.close(file)
