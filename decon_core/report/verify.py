"""Compare a report with the store, with current inputs, and with the report before it.

Its tables are also compared with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import duckdb

from decon_core.config.load import Report
from decon_core.config.rounding import exceeds
from decon_core.errors import Problem
from decon_core.mixtures.builder import Builder
from decon_core.report.build import is_current
from decon_core.report.gather import run_table
from decon_core.report.open import opened, queries_in, rows_of
from decon_core.report.tables import REBUILD, ReportAddition, state_changed
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet
from decon_core.wording import counted, first_of, percent

_DAMAGED = "Delete the report and run `decon-assets run`"
_BUILD = "Run `decon-assets run` to build it"

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))
_SETTINGS = {
    "scan_fingerprint": "the scan's settings, the term weights or the version of decon-assets",
    "thresholds": "the thresholds",
    "verdicts": "the verdicts",
    "snippets": "the setting `report.snippets`",
}

ByName = Mapping[tuple[str, ...], Any]


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    return rows_of(connection, _QUERIES[query])


def faults_of_report(builder: Builder) -> Iterator[Problem]:
    """Yield where the report differs from the store, and where its tables contradict each other."""
    with opened(builder.store.report) as connection:
        for compare in (_compare_items, _compare_shards, _compare_mixtures, _compare_removed):
            yield from compare(builder, connection)
        yield from _compare_matches(connection)


def moved_since_report(
    builder: Builder, showing: Report, *, additions: Sequence[ReportAddition] = ()
) -> Iterator[Problem]:
    """Yield the inputs and products that changed since the report was built."""
    if is_current(builder, showing, additions=additions):
        return
    with opened(builder.store.report) as connection:
        settings = [*_changed_settings(builder, showing, connection)]
        is_same_scan = all(change.where != _SETTINGS["scan_fingerprint"] for change in settings)
        changes = [
            *settings,
            *_changed_acceptance(builder, connection),
            *_compare_items(builder, connection),
            # By other settings, no shard has been scanned yet.
            *(_compare_shards(builder, connection) if is_same_scan else ()),
            *_changed_mixtures(builder, connection),
            *(change for addition in additions for change in addition.changes(connection)),
        ]
    path = str(builder.store.report)
    other = Problem(path, "built for other products, tables or settings than now", remedy=REBUILD)
    yield from changes or [other]


def _changed_settings(
    builder: Builder, showing: Report, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    now = run_table(builder.reader, showing, "").to_pylist()[0]
    for row in rows_of(connection, "FROM runs"):
        for name, what in _SETTINGS.items():
            if row[name] != now[name]:
                failure = f"{row[name]} in the report, {now[name]} now"
                yield Problem(what, failure, remedy=REBUILD)


def _changed_acceptance(
    builder: Builder, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Yield the fields whose text was accepted as unread by another setting than today, or none."""
    now = {(row.source, row.place, row.path): row.accepted_by for row in builder.not_read.rows}
    changes: dict[tuple[str, str, str], None] = {}
    for row in _rows(connection, "unread"):
        key, before = (row["source"], row["shard_name"], row["path"]), row["accepted_by"]
        if key in now and before != now[key]:
            ways = (f"accepted by `{by}`" if by else "not accepted" for by in (before, now[key]))
            changes[row["source"], row["path"], " in the report, ".join(ways)] = None
    for source, path, change in changes:
        where = f"source {source!r}: text in `{path}`, which is not read"
        yield Problem(where, f"{change} now", remedy=REBUILD)


def _changed_mixtures(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    current = {mixture.name: builder.current_packs(mixture) for mixture in builder.mixtures}
    changed: dict[tuple[str, bool], list[str]] = {}
    for row in _rows(connection, "is_current"):
        if row["is_current"] != (row["pack"] in current.get(row["mixture"], ())):
            changed.setdefault((row["mixture"], row["is_current"]), []).append(row["pack"])
    for (mixture, was_current), packs in changed.items():
        name = f"mixture {mixture} {first_of(packs)}"
        yield state_changed(name, was_current, not was_current)


def _compare_items(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    in_report: ByName = {
        (row["benchmark"],): f"{counted(row['n_items'], 'item')} of version {row['version']}"
        if row["n_items"] == row["n_declared"]
        else f"{counted(row['n_items'], 'item')}, but {row['n_declared']} in table `benchmarks`"
        for row in _rows(connection, "items")
    }
    in_store: ByName = {
        (version.benchmark,): f"{counted(version.n_items, 'item')} of version {version.fingerprint}"
        for version in builder.versions
    }
    yield from _differences("items", in_report, in_store)


def _compare_shards(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    in_report: dict[tuple[str, ...], str] = {
        (row["pack"], row["shard_name"]): f"shard {row['shard']}"
        for row in _rows(connection, "shards")
    }
    for row in _rows(connection, "not_scanned"):
        name = row["pack"], row["shard_name"]
        in_report[name] = _partly(in_report.get(name), row["benchmarks"])
    in_store: dict[tuple[str, ...], str] = {
        (pack.name, shard.name): f"shard {shard.fingerprint}" for pack, shard in builder.shards
    }
    for gap in builder.gaps:
        name = gap.pack.name, gap.shard.name
        in_store[name] = _partly(in_store[name] if gap.is_read else None, gap.lacking)
    yield from _differences("shards", in_report, in_store)


def _partly(shard: str | None, benchmarks: Sequence[str]) -> str:
    """Describe a shard that was not scanned against these benchmarks; None: against any."""
    return f"{shard}, not scanned against {', '.join(benchmarks)}" if shard else "not scanned"


def _compare_mixtures(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Compare the shards and counts of every mixture and pack with the manifests."""
    in_report: ByName = {
        (row["mixture"], row["pack"]): row["shards"] for row in _rows(connection, "shares")
    }
    columns = "shard", "n_documents_in", "n_documents_out"
    in_store: dict[tuple[str, ...], list[list[str]]] = {}
    mixtures = [mixture.name for mixture in builder.mixtures]
    configured = dict.fromkeys(product(mixtures, [pack.name for pack in builder.packs]))
    for mixture, pack in configured:
        path = builder.store.mixture_manifest(mixture, pack)
        if path.is_file() and builder.store.mixture(mixture, pack).is_dir():
            shards = read_json(path)["shards"]
            in_store[mixture, pack] = sorted([str(row[name]) for name in columns] for row in shards)
    for name in sorted({*configured, *in_report}):
        where = "mixtures: " + ", ".join(name)
        if name in in_report and name not in in_store:
            found = "the files that the report lists are not in the store"
            yield Problem(where, found, remedy=_BUILD)
        elif name not in in_store:
            yield Problem(where, "not built", remedy=_BUILD)
        elif in_report.get(name, []) != in_store[name]:
            found = f"{counted(len(in_report.get(name, [])), 'shard')}, or different counts"
            expected = f"{len(in_store[name])}, with the counts of its manifest"
            yield Problem(where, found, expected, REBUILD)


def _compare_removed(builder: Builder, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    in_report: ByName = {
        (row["mixture"], row["source"]): counted(row["n"], "row")
        for row in _rows(connection, "removed")
    }
    counts: Counter[tuple[str, ...]] = Counter()
    for mixture, pack in product(builder.mixtures, builder.packs):
        path = builder.store.removed(mixture.name, pack.name)
        if path.is_file():
            counts[mixture.name, pack.source.name] += read_parquet(path, columns=["row"]).num_rows
    in_store: ByName = {name: counted(n, "row") for name, n in counts.items() if n}
    yield from _differences("removed", in_report, in_store)


def _compare_matches(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Compare the tables derived from `matches` with `matches` and with each other."""
    counts: list[ByName] = [
        {(row["benchmark"],): row["counts"] for row in _rows(connection, name)}
        for name in ("matches", "findings")
    ]
    places = "in `matches`", "in `findings`"
    yield from _differences("matches", *counts, places=places, remedy=_DAMAGED)
    (row,) = _rows(connection, "documents")
    if row["found"] != row["expected"]:
        yield Problem("documents", row["found"], row["expected"], _DAMAGED)


def _differences(
    what: str,
    in_report: ByName,
    in_store: ByName,
    *,
    places: tuple[str, str] = ("in the report", "now"),
    remedy: str = REBUILD,
) -> Iterator[Problem]:
    for name in sorted(in_report.keys() | in_store.keys()):
        found, expected = in_report.get(name, "none"), in_store.get(name, "none")
        if found != expected:
            where = f"{what}: {', '.join(name)}"
            yield Problem(where, f"{found} {places[0]}, {expected} {places[1]}", remedy=remedy)


_CHANGES = {
    "is_incomplete": "the scanned shards (one of the two reports is incomplete)",
    "is_other_scan": "the scan's settings or the term weights",
    "is_other_policy": "the policy",
    "is_other_verdicts": "the verdicts",
    "is_other_version": "the benchmark itself",
}
_UNEXPLAINED = "settings and benchmark are unchanged: check the shards that were added or removed"


def drift_of(report: Path, most: float) -> tuple[list[Problem], int]:
    """Return the benchmarks whose leak rate moved since the report that this one replaced.

    `most`: the largest difference of two rates that is not a problem. Also returns how many
    benchmarks were compared: 0 without an earlier report.
    """
    with opened(report) as connection:
        rows = rows_of(connection, "FROM rate_changes")
    problems = []
    for row in rows:
        if not exceeds(abs(row["leak_rate"] - row["rate_before"]), most):
            continue
        why = [text for column, text in _CHANGES.items() if row[column]]
        remedy = f"changed since: {', '.join(why)}" if why else _UNEXPLAINED
        rate, before = percent(row["leak_rate"]), percent(row["rate_before"])
        found = f"{rate} of {row['n_checkable']} checkable items leaked"
        expected = f"{before} ± {percent(most)}"
        problems.append(Problem(row["benchmark"], found, expected, remedy))
    return problems, len(rows)
