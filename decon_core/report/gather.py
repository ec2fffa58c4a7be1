"""Read the report's tables from the store: benchmarks, items, shards, matches and products."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.named import named_rows
from decon_core.benchmarks.records import load_records, recorded_revision
from decon_core.config.load import Report
from decon_core.corpus.packs import Pack
from decon_core.decisions.common_ngrams import common_made_from, current_common
from decon_core.decisions.judging import may_prove
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.not_read import NOTHING_UNREAD, Account
from decon_core.decisions.verdicts import Verdicts
from decon_core.decisions.visibility import (
    ONLY_REVIEW,
    checkable_by_others,
    visibility_table,
)
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import run_jobs, wanted_workers
from decon_core.execution.local import LOCAL
from decon_core.index.parts import index_fingerprint, open_part
from decon_core.index.term_weights import read_current
from decon_core.mixtures.builder import Builder
from decon_core.report.tables import TABLES, beside, table_of
from decon_core.scan.coverage import Gap, missing_by_shard
from decon_core.scan.scan_results import with_text
from decon_core.schemas import COMMON, REMOVED
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet

_PROGRAM = f"decon-assets {version_of('decon-assets')}"

Row = dict[str, Any]

_ITEM = ["benchmark", "split", "instance_index"]

# Reading a scan result takes half a millisecond, starting a worker two seconds.
_SHARDS_PER_JOB = 200
_SCAN_RESULTS_PER_WORKER = 5_000

_LONGEST_EXTRA = 200  # characters; longer texts are no categories


def small_tables(
    reader: MatchReader,
    packs: Sequence[Pack],
    gaps: Sequence[Gap] = (),
    not_read: Account = NOTHING_UNREAD,
) -> dict[str, pa.Table]:
    """Return the tables that fit in memory: benchmarks, items, shards and what was read of them.

    `gaps`: the shards that were not scanned against every benchmark.
    """
    store, versions = reader.store, reader.versions
    names = [version.benchmark for version in versions]
    visible = visibility_table(store, versions, reader.policy)
    common = COMMON.empty_table()
    if common_in_report(reader, packs, gaps):
        common = current_common(store, reader.scan, reader.policy)[1]
    rows = {
        "benchmarks": _benchmarks(reader, gaps),
        "not_scanned": [
            {
                "source": gap.pack.source.name,
                "pack": gap.pack.name,
                "shard_name": gap.shard.name,
                "path": gap.shard.path,
                "benchmarks": [*gap.lacking],
                "reason": gap.reason,
                "remedy": gap.cause.remedy,
            }
            for gap in gaps
        ],
        "checkable_by_others": [
            {"benchmark": benchmark, "detector": name, "n_items": n}
            for benchmark, counts in sorted(
                checkable_by_others(store, versions, reader.policy).items()
            )
            for name, n in sorted(counts.items())
        ],
        "not_read": [row._asdict() for row in not_read.rows],
        **_shards(reader, packs, _unread(gaps), names),
    }
    return {
        "items": _items(reader, visible),
        "visibility": visible,
        "common_ngrams": common,
        **{name: table_of(name, rows_of_table) for name, rows_of_table in rows.items()},
    }


def common_in_report(reader: MatchReader, packs: Sequence[Pack], gaps: Sequence[Gap]) -> str:
    """Return the fingerprint of the list of common n-grams in a report; empty if it has none."""
    missing = missing_by_shard(gaps)
    return common_made_from(
        reader.store, packs, reader.versions, reader.policy, reader.scan, missing
    )


def _unread(gaps: Iterable[Gap]) -> set[tuple[str, str]]:
    """Return pack and name of the shards that were not scanned at all."""
    return {(gap.pack.name, gap.shard.name) for gap in gaps if not gap.is_read}


def _benchmarks(reader: MatchReader, gaps: Iterable[Gap]) -> list[Row]:
    n_not_scanned = Counter(name for gap in gaps for name in gap.lacking)
    members = read_current(reader.store)["members"]
    index = index_fingerprint(reader.store, reader.policy)
    return [
        {
            "benchmark": version.benchmark,
            "version": version.fingerprint,
            "revision": recorded_revision(reader.store, version.benchmark),
            "n_items": version.n_items,
            "n_records": version.n_records,
            "n_indexed_records": int(open_part(reader.store, version, index).entries.records.size),
            "is_in_term_weights": members.get(version.benchmark) == version.fingerprint,
            "thresholds": json.dumps(reader.policy.for_benchmark(version.benchmark).thresholds),
            "n_shards_not_scanned": n_not_scanned[version.benchmark],
        }
        for version in reader.versions
    ]


def _items(reader: MatchReader, visible: pa.Table) -> pa.Table:
    import polars as pl

    columns = [
        *_ITEM,
        "sub_index",
        "choice_index",
        "config",
        "question",
        "answer",
        "fingerprint",
        "extras",
    ]
    begins_another = (pl.col("sub_index") > 0) & (pl.col("choice_index").fill_null(0) == 0)
    items = pl.concat(
        # One benchmark at a time: a question is repeated in each record of its item.
        pl.DataFrame(load_records(reader.store, version, columns=columns))
        .group_by(_ITEM, maintain_order=True)
        .agg(
            pl.col("config", "question").first(),
            pl.col("question").filter(begins_another).alias("other_questions"),
            (pl.col("answer").fill_null("") != "").any().alias("has_answer"),
            pl.col("fingerprint").alias("fingerprints"),
            pl.len().cast(pl.Int64).alias("n_records"),
            pl.col("extras").first(),
        )
        for version in reader.versions
    ).with_columns(pl.col("extras").map_elements(_short_extras, return_dtype=pl.String))
    # The reason is that of the first detector in the policy's order.
    proves = may_prove(reader.policy)
    reason = pl.col("reason").drop_nulls().first().fill_null(ONLY_REVIEW)
    why_not = (
        pl.DataFrame(visible)
        .group_by(_ITEM)
        .agg((pl.col("is_visible") & proves).any().alias("is_indexed"), reason)
        .with_columns(
            pl.when(~pl.col("is_indexed")).then(pl.col("reason")).alias("why_not_indexed")
        )
    )
    joined = items.join(why_not, on=_ITEM, how="left", maintain_order="left")
    schema = TABLES["items"].schema
    return joined.select(schema.names).to_arrow().cast(schema)


def _short_extras(extras: str) -> str | None:
    """Return the fields by which items may be grouped; programs and lists stay in the records."""
    kept = {
        name: value
        for name, value in json.loads(extras).items()
        if isinstance(value, bool | int | float)
        or (isinstance(value, str) and len(value) <= _LONGEST_EXTRA)
    }
    return json.dumps(kept, ensure_ascii=False, sort_keys=True) if kept else None


def _shards(
    reader: MatchReader,
    packs: Iterable[Pack],
    not_scanned: Collection[tuple[str, str]],
    searched: Collection[str],
) -> dict[str, list[Row]]:
    """Return rows of the tables that the ledgers of shards fill."""
    names = "shards", "unreadable", "row_origins", "invalid_utf8"
    rows: dict[str, list[Row]] = {name: [] for name in names}
    for pack in packs:
        for shard in pack.shards:
            if (pack.name, shard.name) in not_scanned:
                continue
            ledger = reader.ledger(shard)
            place = {"source": pack.source.name, "shard_name": shard.name}
            # A sample has a fingerprint of its own, and is compared with the whole shard.
            content = None if shard.sample else shard.fingerprint
            about: Row = {"pack": pack.name, "path": shard.path, "shard": content}
            for name in ("unreadable", "invalid_utf8"):
                rows[name] += [{**place, **row} for row in ledger[name]]
                about[f"n_{name}"] = len(ledger[name])
            rows["row_origins"] += [{**place, **row} for row in named_rows(ledger, searched)]
            rows["shards"].append({**ledger, **with_text(ledger), **place, **about})
    return rows


@dataclass(frozen=True)
class _Job:
    """Shards of one source, and the file to which their matches are written."""

    reader: MatchReader
    source: str
    shards: tuple[tuple[str, str, str], ...]  # pack, name, fingerprint
    path: Path
    missing: Mapping[str, frozenset[str]]  # benchmarks without a scan result, by shard fingerprint


def write_matches(
    reader: MatchReader,
    packs: Sequence[Pack],
    folder: Path,
    gaps: Sequence[Gap] = (),
    *,
    engine: Engine = LOCAL,
) -> list[Path]:
    """Write the matches of all shards to Parquet files; return these, by source and shard name."""
    folder.mkdir(parents=True)
    unread, missing = _unread(gaps), missing_by_shard(gaps)
    shards = sorted(
        (pack.source.name, shard.name, pack.name, shard.fingerprint)
        for pack in packs
        for shard in pack.shards
        if (pack.name, shard.name) not in unread
    )
    jobs: list[_Job] = []
    for source, group in groupby(shards, key=lambda shard: shard[0]):
        of_source = [(pack, name, fingerprint) for _, name, pack, fingerprint in group]
        for at in range(0, len(of_source), _SHARDS_PER_JOB):
            batch = tuple(of_source[at : at + _SHARDS_PER_JOB])
            path = folder / f"{len(jobs):05}.parquet"
            missing_of_batch = {key: missing[key] for _, _, key in batch if key in missing}
            jobs.append(_Job(reader, source, batch, path, missing_of_batch))
    n_scan_results = sum(len(job.shards) for job in jobs) * len(reader.versions)
    workers = min(
        engine.most_workers(wanted_workers()), len(jobs), n_scan_results // _SCAN_RESULTS_PER_WORKER
    )
    done = run_jobs(_write, jobs, workers=workers, engine=engine, name_of=lambda job: str(job.path))
    for _, future in done:
        future.result()
    return [job.path for job in jobs]


def _write(job: _Job) -> None:
    reader, schema = job.reader, TABLES["matches"].schema
    all_fingerprints = [fingerprint for *_, fingerprint in job.shards]
    n_at_once = reader.n_shards_at_once(all_fingerprints, reader.versions, job.missing)
    with pq.ParquetWriter(job.path, schema, compression="zstd") as writer:
        for at in range(0, len(job.shards), n_at_once):
            writer.write_table(_matches(job, job.shards[at : at + n_at_once]).cast(schema))


def _matches(job: _Job, shards: Sequence[tuple[str, str, str]]) -> pa.Table:
    import polars as pl

    packs, names, fingerprints = zip(*shards, strict=True)
    entries = job.reader.entries_of_shards(
        [*dict.fromkeys(fingerprints)],  # shards with the same bytes share a scan result
        job.reader.versions,
        source=job.source,
        is_swept=True,
        lacking=job.missing,
    )
    places = pl.DataFrame({"pack": packs, "shard_name": names, "shard": fingerprints})
    matches = places.join(pl.DataFrame(entries), on="shard", maintain_order="left_right")
    named = matches.with_columns(pl.lit(job.source).alias("source"))
    return named.select(TABLES["matches"].schema.names).to_arrow()


def mixture_tables(builder: Builder, showing: Report) -> tuple[dict[str, pa.Table], int]:
    """Return the tables of mixtures, and the number of shards without current mixtures.

    The second counts all shards of every pack for which any mixture is missing or out of date.
    """
    import pyarrow.compute as pc

    accounts: list[Row] = []
    removed_rows = [TABLES["removed"].schema.empty_table()]
    n_without_mixture = 0
    current_packs = {mixture.name: builder.current_packs(mixture) for mixture in builder.mixtures}
    for pack in builder.packs:
        current = {name: pack.name in packs for name, packs in current_packs.items()}
        n_without_mixture += 0 if all(current.values()) else len(pack.shards)
        for name, is_current in current.items():
            path = builder.store.mixture_manifest(name, pack.name)
            if not path.is_file():
                continue
            place = {"mixture": name, "source": pack.source.name, "is_current": is_current}
            accounts += [
                {**shard, **place, "pack": pack.name, "shard_name": shard["shard"]}
                for shard in read_json(path)["shards"]
            ]
            rows = read_parquet(builder.store.removed(name, pack.name), schema=REMOVED)
            removed_rows.append(beside("removed", place, rows))
    removed = pa.concat_tables(removed_rows)
    if not showing.has_snippets:
        # A detail may quote a field of the row: a license may be any text.
        at = removed.schema.get_field_index("detail")
        is_of_row = pc.is_in(removed["why"], pa.array(["license", "unreadable", "invalid_utf8"]))
        detail = pc.if_else(is_of_row, pa.scalar(None, pa.string()), removed["detail"])
        removed = removed.set_column(at, removed.schema.field(at), detail)
    labels = [
        {"source": source, "label": label, "value": value}
        for source, labels in sorted(builder.labels.items())
        for label, value in sorted(labels.items())
    ]
    tables = {
        "mixtures": table_of("mixtures", accounts),
        "removed": removed,
        "source_labels": table_of("source_labels", labels),
    }
    return tables, n_without_mixture


def verdict_table(verdicts: Verdicts, matched_texts: pa.Table) -> pa.Table:
    """Return the verdicts, and whether this scan found their matched texts."""
    found = {*matched_texts["text_id"].to_pylist()}
    rows = [
        dict(asdict(said), text_id=text, said_by=said.by, said_at=said.at, is_found=text in found)
        for text, said in sorted(verdicts.by_text.items())
    ]
    return table_of("verdicts", rows)


def run_table(
    reader: MatchReader, showing: Report, state: str, gaps: Sequence[Gap] = ()
) -> pa.Table:
    """Return the one row of `runs`."""
    policy = reader.policy
    row = {
        "state": state,
        "scan_fingerprint": reader.scan,
        "term_weights": read_current(reader.store)["fingerprint"],
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": showing.has_snippets,
        "n_shards_not_scanned": len(gaps),
        "verdicts": reader.verdicts.digest,
        "made_by": _PROGRAM,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "policy": json.dumps(asdict(policy), sort_keys=True, ensure_ascii=False),
    }
    return table_of("runs", [row])
