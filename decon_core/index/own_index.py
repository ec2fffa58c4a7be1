"""An index that one detector makes for itself, stored as arrays beside the joined index.

Built once for a set of benchmark versions and a scan fingerprint, and memory-mapped by every
worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from decon_core.benchmarks.records import Version, load_records
from decon_core.errors import DamagedError
from decon_core.index.joined_index import search_name
from decon_core.storage.store import Store
from decon_core.storage.tables import Array, map_arrays, write_arrays

Rows = list[dict[str, Any]]
# Makes the arrays from the records of each benchmark.
Build = Callable[[Sequence[Rows]], Mapping[str, Array]]


def open_own_index(
    store: Store,
    versions: Sequence[Version],
    detector: str,
    build: Build,
    *,
    columns: Sequence[str],
    scan: str,
) -> dict[str, Any]:
    """Memory-map the index of a detector; build it first if it does not exist or is damaged."""
    path = store.search(scan, f"{search_name(versions)}-{detector}")
    for _ in range(2):  # another process may delete the file meanwhile
        try:
            arrays, _ = map_arrays(path)
            with suppress(FileNotFoundError):
                os.utime(path)  # recently used: the oldest are deleted first
            return arrays
        except (FileNotFoundError, DamagedError):
            path.unlink(missing_ok=True)
        write_arrays(path, build([_rows(store, version, columns) for version in versions]))
    return map_arrays(path)[0]


def _rows(store: Store, version: Version, columns: Sequence[str]) -> Rows:
    rows: Rows = load_records(store, version, columns=columns).to_pylist()
    return rows
