"""Find faults in existing files of a store: records, scan results, clean benchmarks, sketches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from functools import reduce
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.benchmarks.records import Version, current_version, fingerprint_of_records
from decon_core.corpus.packs import FILES, Pack, changed_files
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, open_pack_sketch
from decon_core.errors import DamagedError, DeconError, Problem
from decon_core.mixtures.clean_evals import MANIFEST, TABLES_FOLDER
from decon_core.scan.scan_results import Joined, ScanResults, digest_of
from decon_core.schemas import DOCUMENTS, GRAM_COUNTS, MATCHES, RECORDS
from decon_core.storage import verification
from decon_core.storage.checksums import map_verified
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import has_no_rows, no_rows
from decon_core.wording import counted

_AGAIN = "delete it, and `decon-assets run` rebuilds it"
_SCAN_AGAIN = "delete the folder, and `decon-assets run` scans its shards again"

_TEXTS = ("question", "answer", "passage")
_MAX_LISTED = 3


def changed_faults_of_records(store: Store, benchmarks: Sequence[str]) -> verification.Inspection:
    """Inspect the records of benchmarks that changed since the last inspection."""
    stamps = {
        name: verification.stamp_of_files(path.parent, path.name)
        for name in benchmarks
        if (path := store.current_records(name)).is_file()
    }
    return verification.inspect_changed(
        store, "records", stamps, lambda name: _faults_of_records(store, name)
    )


def _faults_of_records(store: Store, benchmark: str) -> Iterator[Problem]:
    """Yield the faults of a benchmark's current records: columns, counts, rows, content hash."""
    try:
        version = current_version(store, benchmark)
    except DeconError as error:
        yield from error.problems
        return
    path = store.records(benchmark, version.fingerprint)
    table = _read(path, RECORDS)
    if isinstance(table, Problem):
        yield table
        return
    items = table.group_by(["split", "instance_index"]).aggregate([])
    n_found = table.num_rows, items.num_rows
    if n_found != (version.n_records, version.n_items):
        expected = f"{version.n_records} and {version.n_items}, as saved"
        yield Problem(str(path), "{} records of {} items".format(*n_found), expected, _AGAIN)
    if others := sorted({*table["benchmark"].unique().to_pylist()} - {version.benchmark}):
        yield Problem(str(path), f"records of {', '.join(others)}", version.benchmark, _AGAIN)
    yield from _faults_of_rows(path, table)
    content = fingerprint_of_records(table)
    if content != version.fingerprint:
        found = f"its content has the hash {content} instead of {version.fingerprint}"
        yield Problem(str(path), found, remedy=_AGAIN)


def _faults_of_rows(path: Path, table: pa.Table) -> Iterator[Problem]:
    """Yield records without a text, and numbers that two items have."""
    texts = (pc.utf8_trim_whitespace(pc.fill_null(table[name], "")) for name in _TEXTS)
    is_blank = reduce(pc.and_, (pc.equal(text, "") for text in texts))
    if rows := np.flatnonzero(is_blank).tolist():
        listed = ", ".join(map(str, rows[:_MAX_LISTED]))
        rest = " and others" if len(rows) > _MAX_LISTED else ""
        found = f"{counted(len(rows), 'record')} without any text: rows {listed}{rest}"
        yield Problem(str(path), found, remedy="check the recipe and the raw rows")
    # The records of an item are consecutive: a number that comes again is that of another item.
    names = zip(table["split"].to_pylist(), table["instance_index"].to_pylist(), strict=True)
    n_runs = Counter(name for name, _ in groupby(names))
    if twice := [f"{split} {number}" for (split, number), n in n_runs.items() if n > 1]:
        listed = ", ".join(twice[:_MAX_LISTED])
        found = f"{counted(len(twice), 'item number')} used for two items: {listed}"
        yield Problem(str(path), found, remedy=_AGAIN)


def changed_faults_of_scan(
    store: Store, packs: Sequence[Pack], versions: Sequence[Version], scan: str
) -> verification.Inspection:
    """Inspect the ledgers and scan results that are new or changed, with the problems of each pack.

    The number of matches of each scan result is noted when it is first found intact, because
    missing rows cannot be detected from the scan result alone.
    """
    packs_of: defaultdict[str, set[str]] = defaultdict(set)
    for pack in packs:
        for shard in pack.shards:
            packs_of[shard.fingerprint].add(pack.name)
    folders = {
        folder.name: folder
        for folder in ScanResults(store, scan).folders
        if not packs_of.keys().isdisjoint(folder.shards)
    }
    asked = [scan, *sorted(version.fingerprint for version in versions)]
    digest = sha256(" ".join(asked).encode()).hexdigest()[:16]
    stamps = {
        name: [digest, verification.digest_of_files(store.joined(scan, name))] for name in folders
    }
    note = store.verification_note(f"matches-{scan}")
    first = verification.read_note(note)
    before = deepcopy(first)

    def faults(name: str) -> Iterator[Problem]:
        return _faults_of_folder(folders[name], versions, first.setdefault(name, {}), note)

    def groups_of(name: str) -> set[str]:
        packs = [packs_of.get(shard, ()) for shard in folders[name].shards]
        return set().union(*packs)

    found = verification.inspect_changed(store, "scan_results", stamps, faults, groups_of=groups_of)
    first = {name: results for name, results in first.items() if results}
    if first != before:
        write_json(note, {"form": verification.FORM, "right": first})
    return found


def _faults_of_folder(
    folder: Joined, versions: Sequence[Version], first: dict[str, int], note: Path
) -> Iterator[Problem]:
    """Yield the faults of a folder of joined scan results.

    `first`: the noted number of matches of each intact scan result; those of new ones are added.
    """
    if digest_of(folder.shards) != folder.name:
        path = folder.store.joined_shards(folder.scan, folder.name)
        yield Problem(str(path), "other shards", "the shards it is named after", _SCAN_AGAIN)
    yield from _faults_of_ledgers(folder)
    there = folder.counted.keys() | folder.answered.keys()
    there_of_these = [version for version in versions if version.fingerprint in there]
    for version in there_of_these:
        yield from _faults_of_scan_result(folder, version, first, note)
    for path in sorted({folder.counts(version.fingerprint) for version in there_of_these}):
        if isinstance(fault := _read(path, GRAM_COUNTS, columns=[]), Problem):
            yield fault


# Rows that a ledger lists, by the name of the inspection: its field, what was found, and expected.
_LISTED_ROWS = {
    "rows": ("unreadable", "{reason}", "a document"),
    "utf8": ("invalid_utf8", "bytes that are not UTF-8 ({detail})", "UTF-8"),
}


def changed_rows(
    store: Store, packs: Sequence[Pack], scan: str, *, what: Literal["rows", "utf8"]
) -> verification.Inspection:
    """Inspect new and faulty ledgers for rows that could not be read, or not as UTF-8, by pack.

    A backfill calls this after each run, when few of its 5,000 ledgers are new.
    """
    field, found, expected = _LISTED_ROWS[what]
    shards = {f"{pack.name}/{shard.name}": shard for pack in packs for shard in pack.shards}
    results = ScanResults(store, scan)
    stamps: dict[str, verification.Stamp] = {}
    for name, shard in shards.items():
        if results.is_read(shard.fingerprint):
            status = store.ledgers(scan, results.where_read(shard.fingerprint).name).stat()
            stamps[name] = [scan, shard.fingerprint, status.st_size, status.st_mtime_ns]

    def faults(name: str) -> Iterator[Problem]:
        for row in results.ledger(shards[name].fingerprint)[field]:
            where = f"{shards[name].name}: row {row['row']}"
            yield Problem(where, found.format_map(row), expected)

    return verification.inspect_changed(
        store, what, stamps, faults, groups_of=lambda name: [name.partition("/")[0]]
    )


def _faults_of_ledgers(folder: Joined) -> Iterator[Problem]:
    store, scan, name = folder.store, folder.scan, folder.name
    path, documents = store.ledgers(scan, name), store.documents(scan, name)
    if not path.is_file():
        if documents.is_file():
            expected = "ledgers of the rows read"
            yield Problem(str(documents), "documents without ledgers", expected, _SCAN_AGAIN)
        return  # results in another folder, or not scanned: reported elsewhere
    n_expected = 0
    try:
        ledgers = read_json(path)
        for shard in folder.shards:
            ledger, where = ledgers[shard], f"{path}: {shard}"
            n_rows, n_documents = ledger["n_rows"], ledger["n_documents"]
            n_expected, n_unreadable = n_expected + n_documents, len(ledger["unreadable"])
            if ledger["shard"] != shard:
                yield Problem(where, f"a ledger of shard {ledger['shard']}", shard, _SCAN_AGAIN)
            if n_rows != n_documents + n_unreadable:
                found = f"{counted(n_rows, 'row')}: {counted(n_documents, 'document')}"
                found += f" and {n_unreadable} unreadable"
                yield Problem(where, found, "rows = documents + unreadable", _SCAN_AGAIN)
    except (DeconError, KeyError, TypeError) as error:
        yield Problem(str(path), f"invalid ledgers ({error})", "readable ones", _SCAN_AGAIN)
        return
    table = _read(documents, DOCUMENTS, columns=["row"])
    if isinstance(table, Problem):
        yield table
    elif table.num_rows != n_expected:
        found = counted(table.num_rows, "document")
        yield Problem(str(documents), found, f"{n_expected}, as in the ledgers", _SCAN_AGAIN)


def _faults_of_scan_result(
    folder: Joined, version: Version, first: dict[str, int], note: Path
) -> Iterator[Problem]:
    path = folder.scan_result(version.fingerprint)
    table = _read(path, MATCHES, columns=["shard", "benchmark", "record"])
    if isinstance(table, Problem):
        yield table
        return
    problems = []
    if others := sorted({*table["shard"].unique().to_pylist()} - {*folder.shards}):
        expected = f"shards in {folder.store.joined_shards(folder.scan, folder.name)}"
        found = f"matches of shard {others[0]}"
        problems.append(Problem(str(path), found, expected, _SCAN_AGAIN))
    if others := sorted({*table["benchmark"].unique().to_pylist()} - {version.benchmark}):
        found = f"matches of benchmark {others[0]}"
        problems.append(Problem(str(path), found, version.benchmark, _SCAN_AGAIN))
    if table.num_rows and pc.max(table["record"]).as_py() >= version.n_records:
        found = "matches of records that the benchmark does not have"
        expected = f"records below {version.n_records}"
        problems.append(Problem(str(path), found, expected, _SCAN_AGAIN))
    yield from problems
    known = first.get(version.fingerprint, table.num_rows)
    if table.num_rows != known:
        remedy = f"{_SCAN_AGAIN}; if the number does not change, delete {note} as well"
        yield Problem(str(path), f"{table.num_rows} matches", f"{known}, as first seen", remedy)
    elif table.num_rows and not problems:  # most scan results have none: keeps the note short
        first[version.fingerprint] = table.num_rows


def _read(
    path: Path, schema: pa.Schema, *, columns: Collection[str] | None = None
) -> pa.Table | Problem:
    """Read a table; return a problem if that fails."""
    if not path.is_file():
        return Problem(str(path), "the file is missing", remedy=_AGAIN)
    try:
        if has_no_rows(path, schema):
            return no_rows(schema)
        with pq.ParquetFile(pa.BufferReader(map_verified(path))) as file:
            found = file.schema_arrow
            if not found.equals(schema):
                names = [field.name for field in schema if field not in list(found)]
                names += [name for name in found.names if name not in schema.names]
                found = f"its columns differ from the schema: {', '.join(names)}"
                return Problem(str(path), found)
            return file.read(columns=None if columns is None else [*columns])
    except DamagedError as error:
        return error.problems[0]
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        return Problem(str(path), f"the file cannot be read ({reason})", remedy=_AGAIN)


_ITEM = ("split", "instance_index")
_BUILD_AGAIN = "delete the folder, and `decon-assets run` builds it again"


def faults_of_clean_benchmark(store: Store, benchmark: str) -> Iterator[Problem]:
    """Check files and items of a clean benchmark against its manifest. Nothing if there is none."""
    folder = store.clean_benchmark(benchmark)
    if not (folder / MANIFEST).is_file():
        return
    manifest = read_json(folder / MANIFEST)
    yield from changed_files(folder, manifest[FILES])
    table = folder / TABLES_FOLDER / f"{benchmark}.parquet"
    if not table.is_file():
        return
    left = {*pl.read_parquet(table, columns=[*_ITEM]).unique().rows()}
    removed = {tuple(item[name] for name in _ITEM) for item in manifest["removed"]}
    if both := left & removed:
        found = f"{len(both):,} items that leaked, the first {min(both)}"
        yield Problem(str(table), found, "none of them", _BUILD_AGAIN)
    unknown = {tuple(item[name] for name in _ITEM) for item in manifest["not_checkable"]}
    if not unknown <= left or len(unknown) != manifest["n_items_not_checkable"]:
        found = f"{len(unknown & left):,} of the items that cannot be found"
        expected = f"{manifest['n_items_not_checkable']:,}"
        yield Problem(str(table), found, expected, _BUILD_AGAIN)
    if len(left) + len(removed) != manifest["n_items"] or len(left) != manifest["n_items_left"]:
        found = f"{len(left):,} items, and {len(removed):,} removed"
        yield Problem(str(table), found, f"{manifest['n_items']:,} together", _BUILD_AGAIN)


def faults_of_sketch(store: Store, sketch: str, packs: Sequence[Pack]) -> Iterator[Problem]:
    """Open all sketches of packs: each must cover its shards."""
    for pack in packs:
        if has_pack_sketch(store, sketch, pack):
            try:
                open_pack_sketch(store, sketch, pack)
            except DamagedError as error:
                yield from error.problems
