"""Writes scan results: a worker those of one shard, and the scan joins those of a pack.

A worker leaves the scan results of its shard for all benchmarks of the scan together:

    unjoined/<scan>/<shard>/<digest of versions>/
      matches.parquet    the matches, by benchmark version
      grams.parquet      the counts of n-grams; and, as metadata, the versions

When no shard of a pack is left to scan, its results are joined (`scan_results.py`) and these files
removed. A scan that is interrupted before that leaves them, and the next one joins them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.errors import DamagedError
from decon_core.scan.scan_results import Answer, digest_of_shards
from decon_core.schemas import GRAM_COUNTS, MATCHES
from decon_core.storage.drafts import locked, remove
from decon_core.storage.files import atomic_files, atomic_path, names_in, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows, open_parquet, read_about, write_table_draft

_VERSION = pa.field("version", pa.string(), nullable=False)
_MATCHES = pa.schema([_VERSION, *MATCHES])
_COUNTS = pa.schema([_VERSION, *(field for field in GRAM_COUNTS if field.name != "shard")])

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
    digest = sha256(" ".join(sorted(results)).encode()).hexdigest()[:16]
    folder = store.unjoined(scan) / shard / digest
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


def unjoined_of(store: Store, scan: str, shard: str) -> Iterator[Unjoined]:
    """Yield what workers wrote of a shard. Damaged files are removed: the shard is scanned again.

    They are damaged if the machine failed while it wrote them.
    """
    of_shard = store.unjoined(scan) / shard
    for name in sorted(names_in(of_shard)):
        if name.startswith("."):
            continue
        folder = of_shard / name
        try:
            open_parquet(folder / _MATCHES_FILE)
            about = read_about(folder / _COUNTS_FILE)
        except (DamagedError, FileNotFoundError):
            remove(folder)
            continue
        yield Unjoined(folder, shard, frozenset(about["versions"]), about["answer"])


def unjoined_versions(store: Store, scan: str, shard: str, *, needs_counts: bool) -> set[str]:
    """Return the versions of a shard's scan results that are not joined yet."""
    parts = unjoined_of(store, scan, shard)
    return {
        version for part in parts if not (part.answer and needs_counts) for version in part.versions
    }


def join_scan_results(
    store: Store, scan: str, shards: Sequence[str], versions: Collection[str]
) -> list[str]:
    """Join what workers wrote of the shards of a pack, if it has any of these versions.

    Returns the names of the folders of joined scan results that were written.
    """
    store.drafts.mkdir(parents=True, exist_ok=True)
    name = digest_of_shards(shards)
    with locked(store.drafts / f".{scan}-{name}.lock"):
        parts = [
            part
            for shard in sorted({*shards})
            for part in unjoined_of(store, scan, shard)
            if not part.versions.isdisjoint(versions)
        ]
        written = [
            _write_folder(store, scan, joined, of_folder) for joined, of_folder in _by_folder(parts)
        ]
        for part in parts:
            remove(part.folder)
            with suppress(OSError):  # another scan of this shard left its results here
                part.folder.parent.rmdir()
    return written


def _by_folder(
    parts: Sequence[Unjoined],
) -> Iterator[tuple[tuple[str, ...], dict[str, list[Unjoined]]]]:
    """Yield the shards of each new folder, and its versions with the parts that have the results.

    A version has a part for each shard: if there are several, one that was scanned in full.
    """
    chosen: defaultdict[str, dict[str, Unjoined]] = defaultdict(dict)
    for part in parts:
        for version in part.versions:
            known = chosen[version].get(part.shard)
            if known is None or (known.answer and not part.answer):
                chosen[version][part.shard] = part
    folders: defaultdict[tuple[str, ...], dict[str, list[Unjoined]]] = defaultdict(dict)
    for version, of_shard in sorted(chosen.items()):
        shards = tuple(sorted(of_shard))
        folders[shards][version] = [of_shard[shard] for shard in shards]
    yield from sorted(folders.items())


def _write_folder(
    store: Store, scan: str, shards: Sequence[str], parts: Mapping[str, Sequence[Unjoined]]
) -> str:
    name = digest_of_shards(shards)
    if not (path := store.joined_shards(scan, name)).is_file():
        write_json(path, {"shards": [*shards]})
    with atomic_files() as draft_of:
        for version, rows in _by_version(parts, _COUNTS_FILE, _COUNTS, GRAM_COUNTS):
            answers = {part.shard: part.answer for part in parts[version] if part.answer}
            path_of = store.answered if answers else store.gram_counts
            draft = draft_of(path_of(scan, name, version))
            write_table_draft(draft, rows, GRAM_COUNTS, about=answers or None)
        # Scan results are renamed after their counts: they mark that both exist.
        for version, rows in _by_version(parts, _MATCHES_FILE, _MATCHES, MATCHES):
            write_table_draft(draft_of(store.scan_result(scan, name, version)), rows, MATCHES)
    for version in parts:
        if store.gram_counts(scan, name, version).is_file():
            store.answered(scan, name, version).unlink(missing_ok=True)
    return name


def _by_version(
    parts: Mapping[str, Sequence[Unjoined]], file_name: str, schema: pa.Schema, joined: pa.Schema
) -> Iterator[tuple[str, Iterable[pa.Table]]]:
    """Yield each version with its rows by shard; of some versions at a time, to bound memory.

    If it is only one version, its rows are read shard by shard.

    Counts get the number of their shard: its position among those of the version.
    """
    versions_of: defaultdict[Unjoined, set[str]] = defaultdict(set)
    for version, of_version in parts.items():
        for part in of_version:
            versions_of[part].add(version)
    shards = sorted({part.shard for part in versions_of})
    in_order = sorted(versions_of, key=lambda part: part.shard)  # whenever a part was written
    opened = ((part, open_parquet(part.folder / file_name)) for part in in_order)
    files = {part: file for part, file in opened if file.metadata.num_rows}
    n_rows = sum(file.metadata.num_rows for file in files.values())
    n_batches = max(1, min(-(-n_rows // _ROWS_AT_ONCE), len(parts)))
    has_names = "shard" in schema.names
    empty = no_rows(schema)
    if not has_names:
        empty = empty.append_column("shard", pa.array([], pa.uint32()))

    def rows_of(part: Unjoined, file: pq.ParquetFile, versions: Collection[str]) -> pa.Table:
        rows = file.read().cast(schema)
        if len(versions) < len(part.versions):
            rows = rows.filter(pc.is_in(rows["version"], pa.array([*versions], pa.string())))
        if not has_names:
            position = pa.scalar(shards.index(part.shard), pa.uint32())
            rows = rows.append_column("shard", pa.repeat(position, rows.num_rows))
        return rows

    for number in range(n_batches):
        versions = sorted(parts)[number::n_batches]
        tables = (
            rows_of(part, file, versions_of[part].intersection(versions))
            for part, file in files.items()
        )
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
