"""Everything that was found, decided and removed, as one DuckDB file.

Built whole from tiles, ledgers and manifests, and swapped in: a reader sees the old report or the
new one. Tables are facts, views answer questions; both say in the database itself what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.blending.build import ITEMS_FILE, Blender
from decon_core.blends import Blend
from decon_core.common import current_common, has_common
from decon_core.corpus import Pack
from decon_core.errors import MissingError, Problem
from decon_core.idf import read_current
from decon_core.index import index_fingerprint, open_part
from decon_core.indexability import indexability
from decon_core.mixtures.build import MANIFEST, REMOVED_FILE, Builder, require_scanned
from decon_core.mixtures.choice import Sight
from decon_core.policy import Policy
from decon_core.records import Version, load_records
from decon_core.schemas import BLEND_ITEMS, COMMON, ENTRIES, INDEXABILITY, REMOVED
from decon_core.store import Store, aside, read_json
from decon_core.tiles import scan_fingerprint
from decon_core.variants import DEFAULT, Mixture
from decon_core.verdicts import NO_VERDICTS, Verdicts

_ACCOUNT = (
    *("n_documents_in", "n_documents_out", "n_bytes_in", "n_bytes_out"),
    *("n_tokens_in", "n_tokens_out", "n_cut", "n_unreadable_left_out"),
)

_TOTALS = (
    *("n_documents", "n_tokens", "n_drawn", "n_drawn_tokens", "n_replaced"),
    *("n_replaced_tokens", "n_test_texts", "n_test_tokens"),
)
_OF_SOURCE = ("n_documents", "n_tokens", "passes")  # of the mixture, and over all phases

_TABLES: Mapping[str, tuple[str, pa.Schema]] = {
    "benchmarks": (
        "One row per benchmark: the version that was scanned for, and what could be indexed",
        pa.schema(
            [
                ("benchmark", pa.string()),
                ("version", pa.string()),
                ("n_items", pa.int64()),
                ("n_records", pa.int64()),
                ("n_indexed_records", pa.int64()),
                ("is_in_idf_snapshot", pa.bool_()),
            ]
        ),
    ),
    "items": (
        "One row per benchmark row (instance); is_indexed is false when no chosen rule can see it",
        pa.schema(
            [
                ("benchmark", pa.string()),
                ("config", pa.string()),
                ("split", pa.string()),
                ("instance_index", pa.int64()),
                ("question", pa.string()),
                ("has_answer", pa.bool_()),
                ("fingerprints", pa.list_(pa.string())),
                ("n_records", pa.int64()),
                ("is_indexed", pa.bool_()),
                ("why_not_indexed", pa.string()),
            ]
        ),
    ),
    "indexability": (
        "One row per item and chosen rule: whether the rule could find it in any document, why not",
        INDEXABILITY,
    ),
    "common_ngrams": (
        "One row per source and n-gram of a benchmark that many of its documents hold",
        COMMON,
    ),
    "shards": (
        "One row per shard of the corpus: what was read of it",
        pa.schema(
            [
                ("source", pa.string()),
                ("pack", pa.string()),
                ("shard_name", pa.string()),
                ("path", pa.string()),
                ("shard", pa.string()),
                ("n_rows", pa.int64()),
                ("n_documents", pa.int64()),
                ("n_characters", pa.int64()),
                ("n_too_short", pa.int64()),
                ("n_unreadable", pa.int64()),
            ]
        ),
    ),
    "unreadable": (
        "One row per row of a shard that could not be read, with its place and the reason",
        pa.schema(
            [
                ("source", pa.string()),
                ("shard_name", pa.string()),
                ("row", pa.int64()),
                ("offset", pa.int64()),
                ("reason", pa.string()),
                ("detail", pa.string()),
            ]
        ),
    ),
    "matches": (
        "One row per document, item and place where it was found, down to the evidence floor",
        pa.schema(
            [
                ("source", pa.string()),
                ("pack", pa.string()),
                ("shard_name", pa.string()),
                *ENTRIES,
            ]
        ),
    ),
    "mixtures": (
        "One row per shard of each mixture; not is_current: its inputs are no longer today's",
        pa.schema(
            [
                ("mixture", pa.string()),
                ("pack", pa.string()),
                ("source", pa.string()),
                ("shard_name", pa.string()),
                ("is_current", pa.bool_()),
                *((name, pa.int64()) for name in _ACCOUNT),
            ]
        ),
    ),
    "removed": (
        "One row per document that a mixture leaves out, or cuts something out of, and reason",
        pa.schema(
            [
                ("mixture", pa.string()),
                ("source", pa.string()),
                ("is_current", pa.bool_()),
                ("shard_name", pa.string()),
                *list(REMOVED)[1:],
            ]
        ),
    ),
    "blends": (
        "One row per blend: texts drawn, replaced by test items, and written",
        pa.schema(
            [
                ("blend", pa.string()),
                ("mixture", pa.string()),
                ("is_current", pa.bool_()),
                *((name, pa.int64()) for name in _TOTALS),
            ]
        ),
    ),
    "blend_sources": (
        "One row per blend, phase and source: what was drawn, and how often the source went by",
        pa.schema(
            [
                ("blend", pa.string()),
                ("is_current", pa.bool_()),
                ("phase", pa.int64()),
                ("source", pa.string()),
                ("n_drawn", pa.int64()),
                ("n_drawn_tokens", pa.int64()),
                ("share_of_tokens", pa.float64()),
                ("n_documents", pa.int64()),
                ("n_tokens", pa.int64()),
                ("passes", pa.float64()),
            ]
        ),
    ),
    "blend_items": (
        "One row per blend, contamination and item: whether it is in the blend, and how often",
        pa.schema([("blend", pa.string()), ("is_current", pa.bool_()), *BLEND_ITEMS]),
    ),
    "runs": (
        "One row: the settings this report was made with",
        pa.schema(
            [
                ("state", pa.string()),
                ("scan_fingerprint", pa.string()),
                ("idf_snapshot", pa.string()),
                ("threshold", pa.float64()),
                ("policy", pa.string()),
            ]
        ),
    ),
}

_VIEWS = Path(__file__).with_name("report_views.sql")


@dataclass(frozen=True)
class ReportSummary:
    """The headline of a report."""

    n_items: int
    n_leaked: int
    n_matches: int  # pairs of item and document
    n_contaminated_documents: int
    n_unreadable: int
    n_shards_without_mixture: int  # that lack one, or have one that is no longer today's


def build_report(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    mixtures: Sequence[Mixture] = (DEFAULT,),
    blends: Sequence[Blend] = (),
    verdicts: Verdicts = NO_VERDICTS,
) -> ReportSummary:
    """Gather everything into a new database, and put it in the place of the old one."""
    if not packs:
        raise MissingError(
            Problem("corpus", "no registered pack", "at least one", "`decon-assets register`")
        )
    scan = scan_fingerprint(store, policy)
    index = index_fingerprint(store, policy)
    sight = Sight(store, tuple(versions), policy, scan, verdicts)
    for pack in packs:
        require_scanned(sight, pack, versions)
    builder = Builder(
        store, tuple(packs), tuple(versions), policy, tuple(mixtures), verdicts=verdicts
    )
    blender = Blender(builder, tuple(blends))
    accounts, removed, n_lacking = _mixtures(builder)
    of_blends, of_sources, blend_items = _blends(blender)
    seen = indexability(store, versions, policy)
    tables = {
        "benchmarks": _benchmarks(store, versions, index),
        "items": _items(store, versions, seen),
        "shards": _shards(store, packs, scan),
        "unreadable": _unreadable(store, packs, scan),
        "mixtures": accounts,
        "blends": of_blends,
        "blend_sources": of_sources,
        "runs": _runs(blender),
    }
    matches = _matches(sight, packs)
    common = COMMON.empty_table()
    if has_common(store, packs, versions, policy, scan):
        common = current_common(store, scan, policy)[1]
    with aside(store.report) as draft, duckdb.connect(str(draft)) as connection:
        for name, rows in tables.items():
            _load(connection, name, pa.Table.from_pylist(rows, schema=_TABLES[name][1]))
        _load(connection, "removed", removed)
        _load(connection, "blend_items", blend_items)
        _load(connection, "indexability", seen)
        _load(connection, "common_ngrams", common)
        _load(connection, "matches", matches)
        connection.execute(_VIEWS.read_text(encoding="utf-8"))
        return _summary(connection, n_lacking)


def _load(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    connection.register("incoming", rows)
    connection.execute(f"CREATE TABLE {name} AS FROM incoming")
    connection.unregister("incoming")
    comment = _TABLES[name][0].replace("'", "''")
    connection.execute(f"COMMENT ON TABLE {name} IS '{comment}'")


def _summary(connection: duckdb.DuckDBPyConnection, n_lacking: int) -> ReportSummary:
    row = connection.execute(
        """
        SELECT (SELECT count(*) FROM items),
               (SELECT count(*) FROM item_status WHERE status = 'leaked'),
               (SELECT coalesce(sum(n_documents), 0)::BIGINT FROM item_status),
               (SELECT count(DISTINCT (source, shard_name, row))
                FROM matches WHERE is_contaminated),
               (SELECT count(*) FROM unreadable)
        """
    ).fetchone()
    return ReportSummary(*(*(row or (0,) * 5), n_lacking))


def _benchmarks(store: Store, versions: Iterable[Version], index: str) -> list[dict[str, Any]]:
    members = read_current(store)["members"]
    rows = []
    for version in versions:
        part = open_part(store, version, index)
        rows.append(
            {
                "benchmark": version.benchmark,
                "version": version.fingerprint,
                "n_items": version.n_items,
                "n_records": version.n_records,
                "n_indexed_records": int(part.entries.records.size),
                "is_in_idf_snapshot": members.get(version.benchmark) == version.fingerprint,
            }
        )
    return rows


def _items(store: Store, versions: Iterable[Version], seen: pa.Table) -> list[dict[str, Any]]:
    # Of several rules that cannot see an item, the first one that the policy names says why.
    why_not: dict[tuple[str, str, int], str | None] = {}
    names = ("benchmark", "split", "instance_index")
    for row in seen.to_pylist():
        name = row["benchmark"], row["split"], row["instance_index"]
        reason = why_not.setdefault(name, row["reason"])
        why_not[name] = None if row["is_visible"] else reason
    items: dict[tuple[str, str, int], dict[str, Any]] = {}
    columns = [*names, "config", "question", "answer", "fingerprint"]
    for version in versions:
        for record in load_records(store, version, columns=columns).to_pylist():
            name = record["benchmark"], record["split"], record["instance_index"]
            answer, fingerprint = record.pop("answer"), record.pop("fingerprint")
            nothing_yet = {"n_records": 0, "has_answer": False, "fingerprints": []}
            item = items.setdefault(name, {**record, **nothing_yet})
            item["n_records"] += 1
            item["has_answer"] |= bool(answer)
            item["fingerprints"].append(fingerprint)
            item["why_not_indexed"] = why_not[name]
            item["is_indexed"] = why_not[name] is None
    return [*items.values()]


def _shards(store: Store, packs: Iterable[Pack], scan: str) -> list[dict[str, Any]]:
    rows = []
    for pack in packs:
        for shard in pack.shards:
            ledger = read_json(store.ledger(scan, shard.fingerprint))
            rows.append(
                {
                    "source": pack.source.name,
                    "pack": pack.name,
                    "shard_name": shard.name,
                    "path": shard.path,
                    "shard": shard.fingerprint,
                    "n_unreadable": len(ledger["unreadable"]),
                    **{
                        name: ledger[name]
                        for name in ("n_rows", "n_documents", "n_characters", "n_too_short")
                    },
                }
            )
    return rows


def _unreadable(store: Store, packs: Iterable[Pack], scan: str) -> list[dict[str, Any]]:
    return [
        {"source": pack.source.name, "shard_name": shard.name, **row}
        for pack in packs
        for shard in pack.shards
        for row in read_json(store.ledger(scan, shard.fingerprint))["unreadable"]
    ]


def _matches(sight: Sight, packs: Iterable[Pack]) -> pa.Table:
    schema = _TABLES["matches"][1]
    tables = [schema.empty_table()]
    for pack in packs:
        for shard in pack.shards:
            found = sight.entries(shard, sight.versions, source=pack.source.name)
            places = {"source": pack.source.name, "pack": pack.name, "shard_name": shard.name}
            for at, (name, value) in enumerate(places.items()):
                column = pa.repeat(pa.scalar(value), found.num_rows)
                found = found.add_column(at, name, column)
            tables.append(found.cast(schema))
    return pa.concat_tables(tables)


def _mixtures(builder: Builder) -> tuple[list[dict[str, Any]], pa.Table, int]:
    """Per shard of every mixture that was built its account; what they leave out.

    And how many shards are in packs of which not every mixture is today's.
    """
    accounts: list[dict[str, Any]] = []
    removed = [_TABLES["removed"][1].empty_table()]
    n_lacking = 0
    for pack in builder.packs:
        standing = []
        for mixture in builder.mixtures:
            folder = builder.store.mixture(mixture.name, pack.name)
            is_today = builder.stands(mixture, pack)
            standing.append(is_today)
            if not (folder / MANIFEST).is_file():
                continue
            place = {
                "mixture": mixture.name,
                "source": pack.source.name,
                "is_current": is_today,
            }
            for shard in read_json(folder / MANIFEST)["shards"]:
                counts = {name: shard[name] for name in _ACCOUNT}
                named = {"pack": pack.name, "shard_name": shard["shard"]}
                accounts.append({**place, **named, **counts})
            rows = pq.read_table(folder / REMOVED_FILE, schema=REMOVED)
            columns = [pa.repeat(pa.scalar(value), rows.num_rows) for value in place.values()]
            removed.append(pa.table([*columns, *rows.columns], schema=removed[0].schema))
        n_lacking += 0 if all(standing) else len(pack.shards)
    return accounts, pa.concat_tables(removed), n_lacking


def _blends(blender: Blender) -> tuple[list[dict[str, Any]], list[dict[str, Any]], pa.Table]:
    """Of every blend that was built its totals, what it has of each source, and its test items."""
    totals: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = []
    items = [_TABLES["blend_items"][1].empty_table()]
    for blend in blender.blends:
        folder = blender.builder.store.blend(blend.name)
        if not (folder / MANIFEST).is_file():
            continue
        manifest = read_json(folder / MANIFEST)
        named = {"blend": blend.name, "is_current": blender.stands(blend)}
        totals.append({**named, "mixture": manifest["mixture"]["name"], **manifest["totals"]})
        there = {source["source"]: source for source in manifest["sources"]}
        for phase in manifest["phases"]:
            for drawn in phase["sources"]:
                about = {name: there[drawn["source"]][name] for name in _OF_SOURCE}
                sources.append({**named, "phase": phase["phase"], **about, **drawn})
        rows = pq.read_table(folder / ITEMS_FILE, schema=BLEND_ITEMS)
        columns = [pa.repeat(pa.scalar(value), rows.num_rows) for value in named.values()]
        items.append(pa.table([*columns, *rows.columns], schema=items[0].schema))
    return totals, sources, pa.concat_tables(items)


def is_current(blender: Blender) -> bool:
    """Whether there is a report, and it was made from these very packs, versions and settings."""
    store = blender.builder.store
    if not store.report.is_file() or not store.current_snapshot.is_file():
        return False
    try:
        with duckdb.connect(str(store.report), read_only=True) as connection:
            (state,) = connection.execute("SELECT state FROM runs").fetchone() or (None,)
    except duckdb.Error:
        return False  # damaged, of an older form, or held open by somebody: nobody can tell
    return bool(state == _state(blender))


def _state(blender: Blender) -> str:
    """What a report says something about: all that is asked for, and which of it stands."""
    builder = blender.builder
    asked = [
        builder.fingerprint(mixture, pack) for pack in builder.packs for mixture in builder.mixtures
    ]
    asked += [blender.fingerprint(blend) for blend in blender.blends]
    versions = [f"{one.benchmark} {one.fingerprint}" for one in builder.versions]
    settings = json.dumps(sorted(builder.policy.thresholds.items()))
    shards = [shard.fingerprint for pack in builder.packs for shard in pack.shards]
    value = [
        _form(),
        builder.sight.scan,
        settings,
        builder.verdicts.digest,
        *sorted(versions),
        *sorted(shards),
        *sorted(asked),
    ]
    return sha256(" ".join(value).encode()).hexdigest()[:16]


def _form() -> str:
    """Which tables and views there are: a report that lacks one is no longer today's."""
    tables = [
        f"{name} {about} {schema.remove_metadata()}" for name, (about, schema) in _TABLES.items()
    ]
    return sha256("\n".join([*tables, _VIEWS.read_text(encoding="utf-8")]).encode()).hexdigest()


def _runs(blender: Blender) -> list[dict[str, Any]]:
    builder = blender.builder
    policy = builder.policy
    return [
        {
            "state": _state(blender),
            "scan_fingerprint": builder.sight.scan,
            "idf_snapshot": read_current(builder.store)["fingerprint"],
            "threshold": policy.contamination_score_threshold,
            "policy": json.dumps(asdict(policy), sort_keys=True, ensure_ascii=False),
        }
    ]
