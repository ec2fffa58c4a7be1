"""The files and rows of scan results, which are joined with those of other shards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.scan.scan_results import COUNTED, ScanResults
from decon_core.storage.store import Store


def scan_result_path(store: Store, scan: str, shard: str, version: str) -> Path:
    """The file that has the matches of a shard with a benchmark version."""
    return ScanResults(store, scan).folder(shard, version).scan_result(version)


def counts_path(store: Store, scan: str, shard: str, version: str) -> Path:
    """The file that has its counts of n-grams, or an answer of the sketch."""
    return ScanResults(store, scan).folder(shard, version).counts(version)


def scan_result_rows(store: Store, scan: str, shard: str, version: str) -> list[dict[str, Any]]:
    """The matches of a shard with a benchmark version, in the order of the scan result."""
    rows: list[dict[str, Any]] = ScanResults(store, scan).matches([shard], version).to_pylist()
    return rows


def ledgers_path(store: Store, scan: str, shard: str) -> Path:
    """The file that has the ledger of a shard."""
    return store.ledgers(scan, ScanResults(store, scan).where_read(shard).name)


def what_was_read(store: Store, scan: str, shard: str) -> tuple[object, list[dict[str, Any]]]:
    """The ledger and the documents of a shard."""
    results = ScanResults(store, scan)
    return results.ledger(shard), results.documents(shard).to_pylist()


def as_read(files: Mapping[str, bytes]) -> dict[str, object]:
    """What scans wrote, with the rows of all counts of n-grams: their files depend on the runs."""
    rows: list[str] = []
    for name, content in files.items():
        if name.endswith(COUNTED):
            rows += map(str, pq.read_table(pa.BufferReader(content)).to_pylist())
    others = {name: content for name, content in files.items() if not name.endswith(COUNTED)}
    return {**others, "counts": sorted(rows)}
