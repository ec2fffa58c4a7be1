"""A report held to the store that it tells of, its tables to each other, and all of it to today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from decon_core.blends.build import Blender
from decon_core.config.load import Showing
from decon_core.errors import Problem
from decon_core.mixtures.build import Builder
from decon_core.mixtures.manifest import MANIFEST, REMOVED_FILE
from decon_core.report.build import is_current
from decon_core.report.gather import run_table
from decon_core.report.open import opened, rows_of
from decon_core.scan.tiles import gaps_of
from decon_core.storage.store import read_json, read_parquet
from decon_core.wording import counted

_AGAIN = "materialize `report`: `decon-assets run`"
_DAMAGED = "delete the report, and `decon-assets run` makes it again"
_GONE = "`decon-assets run` builds it"

_ITEMS = """
    SELECT benchmark, any_value(b.version) AS version, any_value(b.n_items) AS n_said,
           count(i.split) AS n_items
    FROM benchmarks b FULL JOIN items i USING (benchmark) GROUP BY benchmark
"""

_SHARDS = "SELECT pack, shard_name, shard FROM shards"
_NOT_SCANNED = "SELECT pack, shard_name, benchmarks FROM not_scanned"

_SHARES = """
    SELECT mixture, pack, list_sort(list([shard_name, n_documents_in::TEXT, n_documents_out::TEXT]))
           AS shards
    FROM mixtures GROUP BY mixture, pack
"""

_REMOVED = "SELECT mixture, source, count(*) AS n FROM removed GROUP BY mixture, source"

_COUNTED = ("n_matches", "n_pairs", "n_leaks")
_MATCHES = """
    SELECT benchmark, sum(n)::BIGINT AS n_matches, count(*) AS n_pairs,
           count(*) FILTER (is_leak) AS n_leaks
    FROM (
        SELECT benchmark, count(*) AS n, bool_or(is_contaminated) AS is_leak FROM matches
        GROUP BY source, pack, shard_name, row, benchmark, split, instance_index
    )
    GROUP BY benchmark
"""
_DECISIONS = """
    SELECT benchmark, sum(n_matches)::BIGINT AS n_matches, count(*) AS n_pairs,
           count(*) FILTER (is_contaminated) AS n_leaks
    FROM decisions GROUP BY benchmark
"""
_DOCUMENTS = """
    SELECT coalesce(sum(n_found_items), 0)::BIGINT AS n_found,
           coalesce(sum(n_leaked_items), 0)::BIGINT AS n_leaks,
           (SELECT count(*) FROM decisions) AS n_pairs,
           (SELECT count(*) FROM decisions WHERE is_contaminated) AS n_decided
    FROM documents
"""

_SETTINGS = {
    "scan_fingerprint": "the scan's settings or the idf snapshot",
    "thresholds": "the thresholds",
    "verdicts": "the verdicts",
    "snippets": "whether texts of the corpus are shown",
}
_STANDING = """
    SELECT 'mixture' AS what, mixture AS name, pack, bool_and(is_current) AS is_current
    FROM mixtures GROUP BY mixture, pack
    UNION ALL SELECT 'blend', blend, NULL, is_current FROM blends
"""

_TODAYS = {True: "made from what is there", False: "made from something else, or gone"}

Named = Mapping[tuple[str, ...], Any]


def faults_of_report(builder: Builder) -> Iterator[Problem]:
    """Of a store's report: what of today's products it lacks, and where it contradicts itself."""
    with opened(builder.store.report) as connection:
        yield from _of_benchmarks(builder, connection)
        yield from _of_shards(builder, connection)
        yield from _of_shares(builder, connection)
        yield from _of_removed(builder, connection)
        yield from _of_matches(connection)


def moved_since_report(blender: Blender, showing: Showing) -> Iterator[Problem]:
    """What is no longer as it was when the report was made, of all that it tells of."""
    if is_current(blender, showing):
        return
    told = [*_moved(blender, showing)]
    yield from told
    if not told:
        path = str(blender.builder.store.report)
        yield Problem(path, "other products, or another form", "today's", _AGAIN)


def _moved(blender: Blender, showing: Showing) -> Iterator[Problem]:
    builder = blender.builder
    with opened(builder.store.report) as connection:
        yield from _of_settings(builder, showing, connection)
        yield from _of_benchmarks(builder, connection)
        yield from _of_shards(builder, connection)
        yield from _of_standing(blender, connection)


def _of_settings(
    builder: Builder, showing: Showing, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    now = run_table(builder.reader, showing, "").to_pylist()[0]
    for row in rows_of(connection, "FROM runs"):
        for name, what in _SETTINGS.items():
            if row[name] != now[name]:
                yield Problem(what, f"report of {row[name]}", f"{now[name]}, as today", _AGAIN)


def _of_standing(blender: Blender, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    builder = blender.builder
    stands: dict[tuple[str, str, str | None], bool] = {
        ("mixture", one.name, pack.name): builder.is_current(one, pack)
        for one in builder.mixtures
        for pack in builder.packs
    }
    stands |= {("blend", one.name, None): blender.is_current(one) for one in blender.blends}
    for row in rows_of(connection, _STANDING):
        name = row["what"], row["name"], row["pack"]
        if row["is_current"] != stands.get(name, False):
            states = (_TODAYS[row["is_current"]], _TODAYS[stands.get(name, False)])
            yield Problem(" ".join(filter(None, name)), *states, _AGAIN)


def _of_benchmarks(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    told: Named = {
        (row["benchmark"],): f"{counted(row['n_items'], 'item')} of version {row['version']}"
        if row["n_items"] == row["n_said"]
        else f"{counted(row['n_items'], 'item')}, of {row['n_said']} that it says there are"
        for row in rows_of(connection, _ITEMS)
    }
    there: Named = {
        (one.benchmark,): f"{counted(one.n_items, 'item')} of version {one.fingerprint}"
        for one in builder.versions
    }
    yield from _unlike("items", told, there)


def _of_shards(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    told: dict[tuple[str, ...], str] = {
        (row["pack"], row["shard_name"]): f"shard {row['shard']}"
        for row in rows_of(connection, _SHARDS)
    }
    for row in rows_of(connection, _NOT_SCANNED):
        name = row["pack"], row["shard_name"]
        told[name] = _partly(told.get(name), row["benchmarks"])
    there: dict[tuple[str, ...], str] = {
        (pack.name, shard.name): f"shard {shard.fingerprint}" for pack, shard in builder.shards
    }
    for one in gaps_of(builder.store, builder.packs, builder.versions, builder.reader.scan):
        name = one.pack.name, one.shard.name
        there[name] = _partly(there[name] if one.is_read else None, one.lacking)
    yield from _unlike("shards", told, there)


def _partly(read: str | None, lacking: Sequence[str]) -> str:
    """A shard that was not scanned against all benchmarks."""
    return f"{read}, not scanned against {', '.join(lacking)}" if read else "not scanned"


def _of_shares(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """A pack's share of a mixture is told with its shards, or is not there."""
    told: Named = {
        (row["mixture"], row["pack"]): row["shards"] for row in rows_of(connection, _SHARES)
    }
    there = _shares(builder)
    asked = {(one.name, pack.name) for one in builder.mixtures for pack in builder.packs}
    for name in sorted(asked | told.keys()):
        where = "mixtures: " + ", ".join(name)
        if name in told and name not in there:
            yield Problem(where, "a share that is gone", "what the report tells of", _GONE)
        elif name not in there:
            yield Problem(where, "not built", "a share of every pack", _GONE)
        elif told.get(name, []) != there[name]:
            found = f"{counted(len(told.get(name, [])), 'shard')}, or other counts"
            expected = f"{len(there[name])}, counted as in its manifest"
            yield Problem(where, found, expected, _AGAIN)


def _shares(builder: Builder) -> dict[tuple[str, ...], Any]:
    """What the manifests say of each shard: documents in, documents out."""
    counts = "n_documents_in", "n_documents_out"
    return {
        (one.name, pack.name): sorted(
            [shard["shard"], *(str(shard[name]) for name in counts)]
            for shard in read_json(path)["shards"]
        )
        for one in builder.mixtures
        for pack in builder.packs
        if (path := builder.store.mixture(one.name, pack.name) / MANIFEST).is_file()
    }


def _of_removed(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    told: Named = {
        (row["mixture"], row["source"]): counted(row["n"], "row")
        for row in rows_of(connection, _REMOVED)
    }
    counts: dict[tuple[str, ...], int] = {}
    for one in builder.mixtures:
        for pack in builder.packs:
            path = builder.store.mixture(one.name, pack.name) / REMOVED_FILE
            name = one.name, pack.source.name
            n_rows = read_parquet(path, columns=["row"]).num_rows if path.is_file() else 0
            counts[name] = counts.get(name, 0) + n_rows
    there: Named = {name: counted(n, "row") for name, n in counts.items() if n}
    yield from _unlike("removed", told, there)


def _of_matches(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """What was made from the matches when the report was, against what stands there."""
    matches, decided = (_counts(connection, query) for query in (_MATCHES, _DECISIONS))
    yield from _unlike("matches", matches, decided, remedy=_DAMAGED)
    (row,) = rows_of(connection, _DOCUMENTS)
    found, expected = (row["n_found"], row["n_leaks"]), (row["n_pairs"], row["n_decided"])
    if found != expected:
        told, asked = ("{} pairs, {} leaks".format(*one) for one in (found, expected))
        yield Problem("documents", told, asked, _DAMAGED)


def _counts(connection: duckdb.DuckDBPyConnection, query: str) -> Named:
    told = "{} matches, {} pairs, {} leaks"
    return {
        (row["benchmark"],): told.format(*(row[name] for name in _COUNTED))
        for row in rows_of(connection, query)
    }


def _unlike(what: str, told: Named, there: Named, *, remedy: str = _AGAIN) -> Iterator[Problem]:
    for name in sorted(told.keys() | there.keys()):
        found, expected = told.get(name, "none"), there.get(name, "none")
        if found != expected:
            yield Problem(f"{what}: {', '.join(name)}", str(found), str(expected), remedy)
