"""Save and load normalized records: one immutable table per version of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from decon_core.errors import MissingError, Problem
from decon_core.schemas import RECORDS
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet, write_parquet


@dataclass(frozen=True)
class Version:
    """A version of a benchmark: name, hash of the content, number of records and items."""

    benchmark: str
    fingerprint: str
    n_records: int
    n_items: int


class NotCovered(NamedTuple):
    """A benchmark that was asked for and is not searched for, and why."""

    benchmark: str
    reason: str
    is_refused: bool = False  # it is not available to anyone


def fingerprint_of_records(table: pa.Table) -> str:
    """Return a hash of the content, independent of files, compression and library versions."""
    # Imported late: takes 50 ms, which commands that only read records do without.
    import pyarrow.compute as pc

    digest = sha256()
    for column in table.cast(RECORDS).itercolumns():
        digest.update(column.is_valid().cast(pa.uint8()).to_numpy())
        if pa.types.is_string(column.type):
            texts = column.fill_null("")
            digest.update(pc.binary_length(texts).to_numpy())
            for chunk in filter(len, texts.chunks):
                digest.update(_utf8_of(chunk))
        else:
            digest.update(column.cast(pa.int64()).fill_null(0).to_numpy())
    return digest.hexdigest()[:16]


def _utf8_of(texts: pa.StringArray) -> pa.Buffer | bytes:
    """Return the bytes of all texts, which an Arrow array stores one after the other."""
    _, edges, content = texts.buffers()
    start, stop = np.frombuffer(edges, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return (content or b"")[start:stop]


def save_records(
    store: Store, benchmark: str, table: pa.Table, *, origin: str = "", revision: str = ""
) -> Version:
    """Save records as the current version.

    `origin`: the fingerprint of recipe and files. `revision`: of the downloaded dataset.
    """
    items = table.group_by(["split", "instance_index"]).aggregate([])
    version = Version(benchmark, fingerprint_of_records(table), table.num_rows, items.num_rows)
    write_parquet(store.records(benchmark, version.fingerprint), table)
    splits = table["split"].value_counts().to_pylist()
    current = {
        "version": version.fingerprint,
        "origin": origin,
        "revision": revision,
        "n_records": version.n_records,
        "n_items": version.n_items,
        "splits": {split["values"]: split["counts"] for split in splits},
    }
    write_json(store.current_records(benchmark), current)
    return version


def _current(store: Store, benchmark: str) -> dict[str, Any]:
    """Return what was saved about the current version; {} if there is none."""
    path = store.current_records(benchmark)
    value: dict[str, Any] = read_json(path) if path.is_file() else {}
    return value


def current_version(store: Store, benchmark: str) -> Version:
    """Return the current version of a benchmark. Raises `MissingError` if there is none."""
    value = _current(store, benchmark)
    if not value:
        remedy = "Run `decon-assets run`, or materialize the `records` asset for this benchmark"
        where, found = f"benchmark {benchmark!r}", "no normalized records"
        path = store.current_records(benchmark)
        raise MissingError(Problem(where, found, str(path), remedy))
    return Version(benchmark, value["version"], value["n_records"], value["n_items"])


def recorded_origin(store: Store, benchmark: str) -> str | None:
    """Return the fingerprint of recipe and files of the current records, or None without any."""
    value = _current(store, benchmark)
    is_there = value and store.records(benchmark, value["version"]).is_file()
    return str(value["origin"]) if is_there else None


def recorded_revision(store: Store, benchmark: str) -> str | None:
    """Return the revision of the downloaded dataset; None if it is not one, or unknown."""
    return _current(store, benchmark).get("revision") or None


def load_records(
    store: Store, version: Version, *, columns: Sequence[str] | None = None
) -> pa.Table:
    path = store.records(version.benchmark, version.fingerprint)
    return read_parquet(path, schema=RECORDS, columns=columns)


@dataclass(frozen=True)
class StoredRecords:
    """The records of one version, loaded when they are asked for."""

    store: Store
    version: Version

    def table(self, columns: Sequence[str]) -> pa.Table:
        return load_records(self.store, self.version, columns=columns)
