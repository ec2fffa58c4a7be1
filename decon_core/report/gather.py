"""What the store says, as facts for a database: benchmarks and items, shards, matches, products."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version as version_of
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.blending.build import ITEMS_FILE, Blender
from decon_core.common import current_common, has_common
from decon_core.config import Showing
from decon_core.corpus import Pack
from decon_core.idf import read_current
from decon_core.index import index_fingerprint, open_part
from decon_core.indexability import indexability
from decon_core.leaks import entries_of_shards
from decon_core.mixtures.build import Builder
from decon_core.mixtures.choice import Sight
from decon_core.mixtures.standing import MANIFEST, REMOVED_FILE
from decon_core.records import Version, load_records
from decon_core.report.tables import ACCOUNT, TABLES
from decon_core.schemas import BLEND_ITEMS, COMMON, REMOVED
from decon_core.store import Store, read_json
from decon_core.verdicts import Verdicts
from decon_core.workers import run_jobs, wanted_workers

_PROGRAM = f"decon-assets {version_of('decon-assets')}"

_OF_SOURCE = ("n_documents", "n_tokens", "passes")  # of the mixture, and over all phases
_ITEM = ["benchmark", "split", "instance_index"]
_COUNTED = ("n_rows", "n_documents", "n_characters", "n_too_short")

# A tile takes half a millisecond to be read among others, a worker two seconds to start.
_SHARDS_PER_JOB = 200
_TILES_PER_WORKER = 5_000


def at_hand(sight: Sight, packs: Sequence[Pack]) -> dict[str, pa.Table]:
    """Everything that is small: benchmarks, items, shards, and what was read of them."""
    store, versions = sight.store, sight.versions
    seen = indexability(store, versions, sight.policy)
    common = COMMON.empty_table()
    if has_common(store, packs, versions, sight.policy, sight.scan):
        common = current_common(store, sight.scan, sight.policy)[1]
    shards, unreadable = _shards(store, packs, sight.scan)
    return {
        "benchmarks": _table("benchmarks", _benchmarks(sight)),
        "items": _items(store, versions, seen),
        "indexability": seen,
        "common_ngrams": common,
        "shards": _table("shards", shards),
        "unreadable": _table("unreadable", unreadable),
    }


def _table(name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TABLES[name].schema)


def _benchmarks(sight: Sight) -> list[dict[str, Any]]:
    members = read_current(sight.store)["members"]
    index = index_fingerprint(sight.store, sight.policy)
    rows = []
    for version in sight.versions:
        part = open_part(sight.store, version, index)
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


def _items(store: Store, versions: Iterable[Version], seen: pa.Table) -> pa.Table:
    columns = [*_ITEM, "config", "question", "answer", "fingerprint"]
    records = pa.concat_tables([load_records(store, one, columns=columns) for one in versions])
    items = (
        pl.DataFrame(records)
        .group_by(_ITEM, maintain_order=True)
        .agg(
            pl.col("config", "question").first(),
            (pl.col("answer").fill_null("") != "").any().alias("has_answer"),
            pl.col("fingerprint").alias("fingerprints"),
            pl.len().cast(pl.Int64).alias("n_records"),
        )
    )
    # Of several rules that cannot see an item, the first one that the policy names says why.
    why_not = (
        pl.DataFrame(seen)
        .group_by(_ITEM)
        .agg(
            pl.col("is_visible").any().alias("is_indexed"),
            pl.col("reason").first().alias("why_not_indexed"),
        )
        .with_columns(pl.when(~pl.col("is_indexed")).then(pl.col("why_not_indexed")))
    )
    joined = items.join(why_not, on=_ITEM, how="left", maintain_order="left")
    schema = TABLES["items"].schema
    return joined.select(schema.names).to_arrow().cast(schema)


def _shards(
    store: Store, packs: Iterable[Pack], scan: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was read of every shard, and the rows that could not be."""
    shards, unreadable = [], []
    for pack in packs:
        for shard in pack.shards:
            ledger = read_json(store.ledger(scan, shard.fingerprint))
            place = {"source": pack.source.name, "shard_name": shard.name}
            about = {"pack": pack.name, "path": shard.path, "shard": shard.fingerprint}
            counts = {name: ledger[name] for name in _COUNTED}
            n_unreadable = len(ledger["unreadable"])
            shards.append({**place, **about, **counts, "n_unreadable": n_unreadable})
            unreadable += [{**place, **row} for row in ledger["unreadable"]]
    return shards, unreadable


# Matches ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """Shards of one source, and the file that their matches go to."""

    sight: Sight
    source: str
    shards: tuple[tuple[str, str, str], ...]  # pack, name, fingerprint
    path: Path


def write_matches(sight: Sight, packs: Sequence[Pack], folder: Path) -> list[Path]:
    """The matches of all shards, in Parquet files whose order is that of source and shard."""
    folder.mkdir(parents=True)
    jobs = [*_jobs(sight, packs, folder)]
    n_tiles = sum(len(job.shards) for job in jobs) * len(sight.versions)
    workers = min(wanted_workers(), len(jobs), n_tiles // _TILES_PER_WORKER)
    for _, future in run_jobs(_write, jobs, workers=workers, on_advance=lambda _: None):
        future.result()
    return [job.path for job in jobs]


def _jobs(sight: Sight, packs: Sequence[Pack], folder: Path) -> Iterator[_Job]:
    shards = sorted(
        (pack.source.name, shard.name, pack.name, shard.fingerprint)
        for pack in packs
        for shard in pack.shards
    )
    n = 0
    for source, group in groupby(shards, key=lambda shard: shard[0]):
        of_source = [(pack, name, fingerprint) for _, name, pack, fingerprint in group]
        for at in range(0, len(of_source), _SHARDS_PER_JOB):
            path = folder / f"{n:05}.parquet"
            yield _Job(sight, source, tuple(of_source[at : at + _SHARDS_PER_JOB]), path)
            n += 1


def _write(job: _Job) -> None:
    sight = job.sight
    found = entries_of_shards(
        sight.store,
        [*dict.fromkeys(fingerprint for _, _, fingerprint in job.shards)],
        sight.versions,
        sight.policy,
        sight.scan,
        source=job.source,
        verdicts=sight.verdicts,
        is_swept=True,
    )
    # Two shards may have the same bytes, and then one tile.
    packs, names, fingerprints = zip(*job.shards, strict=True)
    places = pl.DataFrame({"pack": packs, "shard_name": names, "shard": fingerprints})
    frame = places.join(pl.DataFrame(found), on="shard", maintain_order="left_right")
    schema = TABLES["matches"].schema
    named = frame.with_columns(pl.lit(job.source).alias("source")).select(schema.names)
    pq.write_table(named.to_arrow().cast(schema), job.path, compression="zstd")


# Products -----------------------------------------------------------------------------------------


def products(blender: Blender, showing: Showing) -> tuple[dict[str, pa.Table], int]:
    """What every mixture and blend holds, and what it leaves out.

    And how many shards are in packs of which not every mixture is today's.
    """
    accounts, removed, n_lacking = _mixtures(blender.builder)
    if not showing.snippets:
        removed = _without_fields(removed)
    blends, sources, items = _blends(blender)
    tables = {
        "mixtures": _table("mixtures", accounts),
        "removed": removed,
        "blends": _table("blends", blends),
        "blend_sources": _table("blend_sources", sources),
        "blend_items": items,
    }
    return tables, n_lacking


def _without_fields(removed: pa.Table) -> pa.Table:
    """Without what stood in a field of a row: a license may be any text."""
    at = removed.schema.get_field_index("detail")
    is_of_row = pc.is_in(removed["why"], pa.array(["license", "unreadable"]))
    detail = pc.if_else(is_of_row, pa.scalar(None, pa.string()), removed["detail"])
    return removed.set_column(at, removed.schema.field(at), detail)


def _mixtures(builder: Builder) -> tuple[list[dict[str, Any]], pa.Table, int]:
    accounts: list[dict[str, Any]] = []
    removed = [TABLES["removed"].schema.empty_table()]
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
                counts = {name: shard[name] for name in ACCOUNT}
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
    items = [TABLES["blend_items"].schema.empty_table()]
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


def said(verdicts: Verdicts, pairs: pa.Table) -> pa.Table:
    """What people said, and whether it is about anything that was found."""
    found = {*pairs["pair"].to_pylist()}
    rows = [
        {
            "pair": one.pair,
            "verdict": one.verdict,
            "note": one.note,
            "said_by": one.by,
            "said_at": one.at,
            "is_found": one.pair in found,
        }
        for _, one in sorted(verdicts.by_pair.items())
    ]
    return _table("verdicts", rows)


def settings(sight: Sight, showing: Showing, state: str) -> pa.Table:
    """The one row of `runs`."""
    policy = sight.policy
    row = {
        "state": state,
        "scan_fingerprint": sight.scan,
        "idf_snapshot": read_current(sight.store)["fingerprint"],
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": showing.snippets,
        "verdicts": sight.verdicts.digest,
        "made_by": _PROGRAM,
        "policy": json.dumps(asdict(policy), sort_keys=True, ensure_ascii=False),
    }
    return _table("runs", [row])
