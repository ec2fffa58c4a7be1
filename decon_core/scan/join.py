"""Writes scan results: a worker those of one shard, and the scan joins those of a pack.

A worker leaves what it read of its shard, and the scan results for all benchmarks of the scan:

    unjoined/<scan>/<shard>/
      ledger.json            counts, and the rows that could not be read
      documents.parquet      the documents
      <digest of versions>/
        matches.parquet      the matches, by benchmark version
        grams.parquet        the counts of n-grams; and, as metadata, the versions

When no shard of a pack is left to scan, its results are joined (`scan_results.py`) and these files
removed. A scan that is interrupted before that leaves them, and the next one joins them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.errors import DamagedError
from decon_core.scan.scan_results import (
    ANSWERED,
    COUNTED,
    Answer,
    Joined,
    Ledger,
    ScanResults,
    digest_of,
)
from decon_core.schemas import DOCUMENTS, GRAM_COUNTS, MATCHES
from decon_core.storage.drafts import locked, remove
from decon_core.storage.files import (
    atomic_files,
    atomic_path,
    names_in,
    read_json,
    sealed_json,
    write_json,
)
from decon_core.storage.store import Store
from decon_core.storage.tables import about_in, no_rows, open_parquet, write_table_draft

_VERSION = pa.field("version", pa.string(), nullable=False)
_MATCHES = pa.schema([_VERSION, *MATCHES])
_COUNTS = pa.schema([field for field in GRAM_COUNTS if field.name != "shard"])

_MATCHES_FILE, _COUNTS_FILE = "matches.parquet", "grams.parquet"

_ROWS_AT_ONCE = 250_000  # rows in memory while scan results are joined


# Matches of a shard with a version, and its counts of n-grams; none if the sketch answered.
ScanResult = tuple[pa.Table, pa.Table | None]


def write_unjoined(
    store: Store,
    scan: str,
    shard: str,
    results: Mapping[str, ScanResult],
    *,
    answer: Answer | None = None,
) -> None:
    """Write the scan results of a shard by version, and the sketch's answer, if there is any."""
    if not results:
        return
    folder = store.unjoined(scan) / shard / digest_of(results)
    matches = {version: matched for version, (matched, _) in results.items()}
    counts = {version: counted for version, (_, counted) in results.items() if counted is not None}
    # Not synced: the next scan notices damage, and scans the shard again.
    with atomic_path(folder, is_synced=False) as draft:
        draft.mkdir(parents=True)
        write_table_draft(draft / _MATCHES_FILE, [_together(matches, _MATCHES)], _MATCHES)
        about = {"versions": sorted(results), "answer": answer}
        write_table_draft(draft / _COUNTS_FILE, [_together(counts, _COUNTS)], _COUNTS, about=about)


def _together(tables: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """Return the rows of all versions in one table."""
    labelled = [
        pa.table(
            {
                "version": pa.repeat(pa.scalar(version), table.num_rows),
                **{name: table[name] for name in schema.names if name != "version"},
            },
            schema=schema,
        )
        for version, table in sorted(tables.items())
        if table.num_rows
    ]
    return pa.concat_tables([no_rows(schema), *labelled])


@dataclass(frozen=True, eq=False)
class Unjoined:
    """The scan results of a shard for some versions, not joined yet."""

    folder: Path
    shard: str
    versions: frozenset[str]
    answer: Answer | None  # answer of the sketch; None: the shard was scanned in full


def unjoined_of(
    store: Store, scan: str, shard: str, *, removes_damaged: bool = True
) -> Iterator[Unjoined]:
    """Yield what workers wrote of a shard. Damaged files are removed: the shard is scanned again.

    They are damaged if the machine failed while it wrote them.
    """
    of_shard = store.unjoined(scan) / shard
    for name in sorted(names_in(of_shard)):
        if "." in name:  # a draft, the ledger, or the documents
            continue
        folder = of_shard / name
        try:
            open_parquet(folder / _MATCHES_FILE)
            about = about_in(open_parquet(folder / _COUNTS_FILE).metadata)
        except (DamagedError, FileNotFoundError):
            if removes_damaged:
                remove(folder)
            continue
        yield Unjoined(folder, shard, frozenset(about["versions"]), about["answer"])


def unjoined_versions(
    store: Store, scan: str, shard: str, *, needs_counts: bool, removes_damaged: bool = True
) -> set[str]:
    """Return the versions of a shard's scan results that are not joined yet."""
    parts = unjoined_of(store, scan, shard, removes_damaged=removes_damaged)
    return {
        version for part in parts if not (part.answer and needs_counts) for version in part.versions
    }


def _unjoined_ledger(store: Store, scan: str, shard: str) -> Ledger | None:
    """Return the ledger that a worker wrote of a shard with its documents. Damage is removed."""
    paths = store.unjoined_ledger(scan, shard), store.unjoined_documents(scan, shard)
    try:
        open_parquet(paths[1])
        ledger: Ledger = read_json(paths[0])
    except FileNotFoundError:
        return None
    except DamagedError:
        for path in paths:
            remove(path)
        return None
    return ledger


def is_read(results: ScanResults, shard: str) -> bool:
    """Return whether there are ledger and documents of a shard, joined or not."""
    if results.is_read(shard):
        return True
    return _unjoined_ledger(results.store, results.scan, shard) is not None


def join_scan_results(
    store: Store, scan: str, shards: Sequence[str], versions: Collection[str]
) -> list[str]:
    """Join what workers wrote of the shards of a pack, if it has any of these versions.

    Returns the names of the folders of joined scan results that were written.
    """
    store.drafts.mkdir(parents=True, exist_ok=True)
    shards = sorted({*shards})
    with locked(store.drafts / f".{scan}-{digest_of(shards)}.lock"):
        parts = [
            part
            for shard in shards
            for part in unjoined_of(store, scan, shard)
            if not part.versions.isdisjoint(versions)
        ]
        written = {_join_readings(store, scan, shards)} - {""}
        for joined, of_folder in _by_folder(parts):
            written.add(_write_folder(store, scan, joined, of_folder))
        for part in parts:
            remove(part.folder)
        results = ScanResults(store, scan)
        for shard in filter(results.is_read, shards):
            remove(store.unjoined_ledger(scan, shard))
            remove(store.unjoined_documents(scan, shard))
            with suppress(OSError):  # another scan of this shard left its results here
                (store.unjoined(scan) / shard).rmdir()
    return sorted(written)


def _join_readings(store: Store, scan: str, shards: Sequence[str]) -> str:
    """Join ledgers and documents of the shards that have none; return the name of the folder."""
    results = ScanResults(store, scan)
    unread = [shard for shard in shards if not results.is_read(shard)]
    ledgers = {shard: of for shard in unread if (of := _unjoined_ledger(store, scan, shard))}
    if not ledgers:
        return ""
    name = _folder_of(store, scan, [*ledgers])
    with atomic_files() as draft_of:
        tables = (
            file.read_row_group(group).cast(DOCUMENTS)
            for file in (open_parquet(store.unjoined_documents(scan, shard)) for shard in ledgers)
            for group in range(file.metadata.num_row_groups)
        )
        write_table_draft(draft_of(store.documents(scan, name)), tables, DOCUMENTS)
        draft_of(store.ledgers(scan, name)).write_bytes(sealed_json(ledgers))
    return name


def _folder_of(store: Store, scan: str, shards: Sequence[str]) -> str:
    """Return the name of the folder of these shards, which lists them."""
    name = digest_of(shards)
    if not (path := store.joined_shards(scan, name)).is_file():
        write_json(path, {"shards": [*shards]})
    return name


# The part with the results of each shard.
_Parts = tuple[Unjoined, ...]


def _by_folder(
    parts: Sequence[Unjoined],
) -> Iterator[tuple[tuple[str, ...], dict[_Parts, list[str]]]]:
    """Yield the shards of each new folder, and its versions by the parts that have the results.

    If a shard has several parts with a version, one that was scanned in full is taken.
    """
    chosen: defaultdict[str, dict[str, Unjoined]] = defaultdict(dict)
    for part in parts:
        for version in part.versions:
            known = chosen[version].get(part.shard)
            if known is None or (known.answer and not part.answer):
                chosen[version][part.shard] = part
    folders: defaultdict[tuple[str, ...], dict[_Parts, list[str]]] = defaultdict(dict)
    for version, of_shard in sorted(chosen.items()):
        shards = tuple(sorted(of_shard))
        of_parts = tuple(of_shard[shard] for shard in shards)
        folders[shards].setdefault(of_parts, []).append(version)
    yield from sorted(folders.items(), key=lambda folder: folder[0])


def _write_folder(
    store: Store, scan: str, shards: Sequence[str], versions_of: Mapping[_Parts, Sequence[str]]
) -> str:
    name = _folder_of(store, scan, shards)
    folder = store.joined(scan, name)
    # Counts can be left of versions whose scan results were damaged and removed.
    counted = Joined(store, scan, name, {}).counts_of(COUNTED)
    with atomic_files() as draft_of:
        for parts, of_parts in versions_of.items():
            if versions := [version for version in of_parts if version not in counted]:
                answers = {part.shard: part.answer for part in parts if part.answer}
                ending = ANSWERED if answers else COUNTED
                draft = draft_of(folder / f"{digest_of(versions)}{ending}")
                counts = _by_version(parts, versions, _COUNTS_FILE, _COUNTS, GRAM_COUNTS)
                rows = chain.from_iterable(tables for _, tables in counts)
                about = {"versions": versions, "answers": answers}
                write_table_draft(draft, rows, GRAM_COUNTS, about=about)
        # Scan results are renamed after their counts: they mark that both exist.
        for parts, of_parts in versions_of.items():
            for version, tables in _by_version(parts, of_parts, _MATCHES_FILE, _MATCHES, MATCHES):
                draft = draft_of(store.scan_result(scan, name, version))
                write_table_draft(draft, tables, MATCHES)
    return name


def _by_version(
    parts: _Parts,
    all_versions: Sequence[str],
    file_name: str,
    schema: pa.Schema,
    joined: pa.Schema,
) -> Iterator[tuple[str, Iterable[pa.Table]]]:
    """Yield each version with its rows by shard; of some versions at a time, to bound memory.

    If it is only one version, its rows are read shard by shard.

    Counts get the number of their shard: its position among those of the parts.
    """

    import polars as pl
    import pyarrow.compute as pc

    opened = ((part, open_parquet(part.folder / file_name)) for part in parts)
    files = {part: file for part, file in opened if file.metadata.num_rows}
    positions = {part: position for position, part in enumerate(parts)}
    n_rows = sum(file.metadata.num_rows for file in files.values())
    n_batches = max(1, min(-(-n_rows // _ROWS_AT_ONCE), len(all_versions)))
    has_names = "shard" in schema.names
    empty = no_rows(schema)
    if not has_names:
        empty = empty.append_column("shard", pa.array([], pa.uint32()))

    def rows_of(part: Unjoined, file: pq.ParquetFile, versions: Collection[str]) -> pa.Table:
        rows = file.read().cast(schema)
        if len(versions) < len(part.versions):
            rows = rows.filter(pc.is_in(rows["version"], pa.array([*versions], pa.string())))
        if not has_names:
            position = pa.scalar(positions[part], pa.uint32())
            rows = rows.append_column("shard", pa.repeat(position, rows.num_rows))
        return rows

    for number in range(n_batches):
        versions = all_versions[number::n_batches]
        tables = (rows_of(part, file, versions) for part, file in files.items())
        if len(versions) == 1:
            yield versions[0], (table.select(joined.names).cast(joined) for table in tables)
            continue
        # Sorted and converted at once: version by version takes several times as long.
        frame = pl.DataFrame(pa.concat_tables([empty, *tables])).sort(
            "version", maintain_order=True
        )
        sizes = dict(frame.group_by("version", maintain_order=True).len().iter_rows())
        table = frame.select(joined.names).to_arrow().cast(joined)
        first = 0
        for version in versions:
            n = sizes.get(version, 0)
            yield version, [table.slice(first, n)]
            first += n
