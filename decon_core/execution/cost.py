"""What jobs over shards cost: processor time, bytes and memory, and where they ran."""

from __future__ import annotations

import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What processes spent on shards. Of several machines, all are named."""

    core_seconds: float = 0.0
    n_bytes: int = 0  # bytes of shards, approximately
    peak_bytes: int = 0  # the most memory that one process had so far
    nodes: frozenset[str] = frozenset()
    logs: frozenset[str] = frozenset()  # files to which the processes write their errors

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.core_seconds + other.core_seconds,
            self.n_bytes + other.n_bytes,
            max(self.peak_bytes, other.peak_bytes),
            self.nodes | other.nodes,
            self.logs | other.logs,
        )


def cost_since(started: float, n_bytes: int) -> Cost:
    """Return what this process spent since `started`, a value of `time.process_time`."""
    return Cost(
        time.process_time() - started,
        n_bytes,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        frozenset([platform.node()]),
        frozenset(filter(None, [log_file()])),
    )


def log_file() -> str:
    """Return the file to which this process writes its errors; empty if it is not a file."""
    try:
        path = Path("/proc/self/fd/2").readlink()
    except OSError:
        return ""
    return str(path) if path.is_file() else ""
