"""Assets of the scan: the sketch, matches of packs with benchmarks, and common n-grams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.benchmarks import index
from decon_assets.assets.check_results import (
    inspect_ledgers,
    inspect_self_tests,
    report_before_failure,
)
from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import (
    ITEM,
    RATE,
    SECONDS,
    Metadata,
    PartitionReporter,
    cost_metadata,
    pictures,
    preview,
    same,
)
from decon_assets.assets.stage import stage
from decon_assets.instance.cost import tag_cost
from decon_assets.partitions import (
    BENCHMARK,
    PACK,
    all_of,
    by_dimension,
    pack_and_other,
    packs,
    scan_grid,
    sorted_keys,
)
from decon_core.errors import CorpusError, Problem, collecting
from decon_core.schemas import COLUMNS
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.corpus.packs import Pack
    from decon_core.decisions.match_reader import MatchReader
    from decon_core.execution.jobs import Cost
    from decon_core.planner import Plan
    from decon_core.scan.scanner import ScanSummary
    from decon_core.storage.store import Store

GROUP = "scan"
_SKETCH_TABLE = "[sketch]"

_SECONDS_BETWEEN_LOG_LINES = 10.0
_MAX_NGRAMS_SHOWN = 20
_MAX_SHARDS_PLOTTED = 500
_TEXTS = ("question", "answer", "passage")
_COMMON_COLUMNS = ["source", "benchmark", "text", "n_documents"]


@stage(
    missing="decon_core.planner:unsketched_packs",
    deps=[corpus],
    partitions_def=packs,
    pool="scan",  # it uses all cores
    group=GROUP,
    kind="binary",
    table=_SKETCH_TABLE,
)
def sketch(context: dg.AssetExecutionContext, config: Config, store: Store) -> None:
    """Filters of all n-grams in each pack, one filter per block of documents.

    The asset is built only if decon.toml has a [sketch] table. The same pass over the shards also
    scans them against all benchmarks that have an index. A scan of a benchmark that is added later
    then reads only blocks that may contain a match.
    """
    from decon_core.corpus.registration import packs_of
    from decon_core.corpus.sketch.pack_sketch import build_pack_sketch, has_pack_sketch
    from decon_core.execution.choice import open_engine
    from decon_core.execution.jobs import Cost, wanted_workers
    from decon_core.planner import Plan
    from decon_core.scan.scanner import scan_packs

    reporter = PartitionReporter(context)
    keys = sorted_keys(context)
    if config.sketch is None:  # "Materialize all" includes it
        for key in keys:
            reporter.report(key, {"sketch": f"off: decon.toml has no {_SKETCH_TABLE} table"})
        return
    plan = Plan(config, store)
    chosen = packs_of(store, keys)
    todo = [pack for pack in chosen if not has_pack_sketch(store, plan.sketch, pack)]
    costs: dict[str, Cost] = {}
    try:
        scan_packs(
            store,
            todo,
            [],
            config.policy,
            workers=wanted_workers(),
            engine=open_engine(config.tables, store, store_url=config.kept),
            along=plan.known_versions,
            sketch=config.sketch,
            fill_sketch=True,
            costs=costs,
        )
    except CorpusError as error:  # a failure of `scan`, which reads these shards as well
        for problem in error.problems:
            context.log.warning(f"not in the sketch: {problem}")
    finally:
        tag_cost(context, sum(costs.values(), Cost()))
    for pack in todo:
        build_pack_sketch(store, plan.sketch, pack)
    context.log.info(
        f"{counted(len(todo), 'pack')} sketched, {len(keys) - len(todo)} already existed"
    )
    for pack in chosen:
        if reporter.is_full:
            break
        reporter.report(pack.name, _sketch_size(store, plan.sketch, pack))


def _sketch_size(store: Store, fingerprint: str, pack: Pack) -> dict[str, object]:
    """Return the size of a pack's sketch."""
    from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, open_pack_sketch

    n_bytes = sum(shard.n_bytes for shard in pack.shards)
    if not has_pack_sketch(store, fingerprint, pack):
        return {"sketch": "missing: a shard could not be read", "fingerprint": fingerprint}
    opened = open_pack_sketch(store, fingerprint, pack)
    size = opened.path.stat().st_size
    return {
        "blocks": int(opened.log2_bits.size),
        "megabytes": round(size / 1e6, 3),
        "share_of_shards": round(size / max(n_bytes, 1), 4),
        "fingerprint": fingerprint,
    }


@stage(
    missing="decon_core.planner:unscanned_benchmarks",
    deps=[
        by_dimension(index, BENCHMARK),
        by_dimension(corpus, PACK),
        by_dimension(sketch, PACK),
    ],
    partitions_def=scan_grid,
    pool="scan",  # limits concurrent runs: each one uses all cores
    group=GROUP,
    kind="parquet",
    schema=COLUMNS["MATCHES"],
    origins={
        **same("records", *ITEM, "config", "is_correct", "fingerprint"),
        **{f"{text}_overlap": ("index", f"{text}.tokens") for text in _TEXTS},
        "question_tokens": ("index", "question.offsets"),
        "matched": ("index", "question.df_offsets"),
    },
)
def scan(context: dg.AssetExecutionContext, config: Config, store: Store) -> None:
    """Matches of every shard with every benchmark, stored as scan results.

    A scan result holds the matches of one shard with one benchmark version; existing scan results
    are kept. A shard that has to be read is scanned against all benchmarks that have an index, so
    it is read only once, however Dagster splits a backfill into runs. With a sketch, only blocks
    that may contain a match are read. A partition without an index fails and never counts as clean.
    The other partitions are still scanned.
    """
    from decon_core.corpus.registration import packs_of
    from decon_core.execution.jobs import Cost
    from decon_core.planner import Plan
    from decon_core.scan.scanner import ScanSummary

    plan, total = Plan(config, store), ScanSummary()
    problems: list[Problem] = []
    costs: dict[str, Cost] = {}  # keyed by pack
    try:
        for benchmarks, names in _groups(context).items():
            with collecting(problems, CorpusError):
                total += _scan_group(context, plan, packs_of(store, names), benchmarks, costs)
    finally:  # a run that was stopped or failed has a cost as well
        tag_cost(context, sum(costs.values(), Cost()))
    if problems:
        report_before_failure(
            context,
            _complete_partitions(context, plan),
            self_tests_pass=inspect_self_tests(plan),
            ledger_is_complete=inspect_ledgers(plan),
        )
        raise CorpusError(dict.fromkeys([*problems, *_without_rows(context, plan)]))
    _describe(context, plan, total, costs)


def _without_rows(context: dg.AssetExecutionContext, plan: Plan) -> Iterator[Problem]:
    """Yield the problems of shards that were read and have no readable row, as `scan` does."""
    from decon_core.decisions.match_reader import MatchReader
    from decon_core.decisions.not_read import gaps_without_rows

    chosen = {pack_and_other(scan_grid, key)[0] for key in context.partition_keys}
    reader = MatchReader(plan.store, (), plan.config.policy, plan.scan)
    packs = [pack for pack in plan.packs if pack.name in chosen]
    yield from (gap.cause for gap in gaps_without_rows(reader, packs))


def _complete_partitions(context: dg.AssetExecutionContext, plan: Plan) -> list[str]:
    """Return the partitions of a failing run that have all their scan results."""
    from decon_core.benchmarks.records import current_version
    from decon_core.scan.coverage import missing_scan_results

    packs = {pack.name: pack for pack in plan.packs}
    complete = []
    for key in sorted_keys(context):
        pack, benchmark = pack_and_other(scan_grid, key)
        missing = missing_scan_results(
            plan.scan_results,
            [packs[pack]],
            [current_version(plan.store, benchmark)],
            needs_counts=plan.config.policy.leave_out_common,
        )
        if not missing:
            complete.append(key)
    return complete


def _groups(context: dg.AssetExecutionContext) -> dict[tuple[str, ...], list[str]]:
    """Return the packs of a run by the benchmarks that are requested for them."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for pack, benchmark in (pack_and_other(scan_grid, key) for key in context.partition_keys):
        wanted[pack].add(benchmark)
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for pack in sorted(wanted):
        groups[tuple(sorted(wanted[pack]))].append(pack)
    return groups


def _scan_group(
    context: dg.AssetExecutionContext,
    plan: Plan,
    packs: list[Pack],
    benchmarks: Collection[str],
    costs: dict[str, Cost],
) -> ScanSummary:
    from decon_core.benchmarks.records import current_version
    from decon_core.execution.choice import open_engine
    from decon_core.execution.jobs import wanted_workers
    from decon_core.scan.scanner import scan_packs

    config, store = plan.config, plan.store
    logged_at = -_SECONDS_BETWEEN_LOG_LINES
    engine = open_engine(config.tables, store, store_url=config.kept)

    def log_progress(
        n_done: int, n_shards: int, n_bytes: int, n_bytes_total: int, seconds: float
    ) -> None:
        nonlocal logged_at
        if n_done < n_shards and seconds - logged_at < _SECONDS_BETWEEN_LOG_LINES:
            return
        parts = []
        if n_bytes:
            rate = n_bytes / max(seconds, 1e-9)
            left = (n_bytes_total - n_bytes) / rate
            parts.append(f"{rate / 1e6:.2f} MB/s (size on disk), {left:.0f} s left")
        if engine.is_remote and engine.counts.n_jobs:
            parts.append(str(engine.counts))
        if parts:
            logged_at = seconds
            context.log.debug(f"shard {n_done} of {n_shards}: {'; '.join(parts)}")

    return scan_packs(
        store,
        packs,
        [current_version(store, name) for name in benchmarks],
        config.policy,
        workers=wanted_workers(),
        engine=engine,
        on_progress=log_progress,
        along=[version for version in plan.known_versions if version.benchmark not in benchmarks],
        sketch=config.sketch,
        costs=costs,
    )


def _describe(
    context: dg.AssetExecutionContext,
    plan: Plan,
    total: ScanSummary,
    costs: Mapping[str, Cost],
) -> None:
    from decon_core.benchmarks.records import current_version
    from decon_core.decisions.match_reader import MatchReader
    from decon_core.execution.jobs import Cost
    from decon_core.scan.answers import why_unbounded
    from decon_core.scan.coverage import scanned_counts

    config, store = plan.config, plan.store
    run = {
        "run_shards_read": total.n_shards_read,
        "run_scan_results_written": total.n_scan_results_written,
        "run_scan_results_already_there": total.n_scan_results_present,
        SECONDS: round(total.seconds, 1),
        **cost_metadata("run", sum(costs.values(), Cost())),
        RATE: round(total.n_bytes / 1e6 / max(total.seconds, 1e-9), 3),
    }
    if config.sketch:
        run |= {
            "run_blocks_excluded": total.n_blocks_excluded,
            "run_blocks_read": total.n_blocks_read,
            "run_sketch_bytes_read": total.n_sketch_bytes,
        }
    n_read = counted(total.n_shards_read, "shard")
    n_written = counted(total.n_scan_results_written, "scan result")
    context.log.info(
        f"read {n_read}, wrote {n_written}, {total.n_scan_results_present} already existed"
    )
    if n_blocks := total.n_blocks_excluded + total.n_blocks_read:
        context.log.info(
            f"the sketch rules out a match in {total.n_blocks_excluded} of {n_blocks} blocks"
        )
    elif config.sketch and (why := why_unbounded(config.policy)):
        context.log.info(f"the sketch was not used: {why}")
    packs = {pack.name: pack for pack in plan.packs}
    keys = sorted_keys(context)
    pairs = [pack_and_other(scan_grid, key) for key in keys]
    scanned = [packs[name] for name in dict.fromkeys(pack for pack, _ in pairs)]
    plot = _plot_of_scores(plan, scanned, {benchmark for _, benchmark in pairs})
    reporter = PartitionReporter(context)
    # One partition of each pack comes first, as not all may be reported.
    by_benchmark = sorted(zip(keys, pairs, strict=True), key=lambda entry: entry[1][::-1])
    for key, (pack, benchmark) in by_benchmark:
        if reporter.is_full:
            break
        version = current_version(store, benchmark)
        reader = MatchReader(store, (version,), config.policy, plan.scan)
        counts = scanned_counts(packs[pack], version, plan.scan_results)
        leaked = _leaked_items(reader, packs[pack])
        reporter.report(key, {**leaked, **counts, **_pack_cost(costs.get(pack)), **run, **plot})
        plot = {}


def _pack_cost(cost: Cost | None) -> Metadata:
    """Return what reading a pack for all benchmarks cost, and the logs; nothing if it was not."""
    if cost is None:
        return {}
    # Slurm's logs of what went well are removed; the folders of other nodes cannot be seen.
    paths = [Path(log) for log in sorted(cost.logs)]
    logs = [str(path) for path in paths if path.is_file() or not path.parent.is_dir()]
    return {**cost_metadata("pack", cost), **({"pack_logs": ", ".join(logs)} if logs else {})}


def _leaked_items(reader: MatchReader, pack: Pack) -> dict[str, int]:
    """Count the items that leaked into a pack by their scores; verdicts are applied by the report.

    No count if the policy leaves out common n-grams: these are known only after the whole scan.
    """
    if reader.policy.leave_out_common:
        return {}
    shards = [shard.fingerprint for shard in pack.shards]
    entries = reader.entries_of_shards(shards, reader.versions, source=pack.source.name)
    leaked = entries.filter(entries["is_contaminated"]).group_by(["split", "instance_index"])
    return {"leaked_items_before_review": leaked.aggregate([]).num_rows}


def _plot_of_scores(
    plan: Plan, packs: Collection[Pack], benchmarks: Collection[str]
) -> dict[str, dg.MetadataValue]:
    """Plot the scores of a run's matches; nothing for a large run, as it reads all scan results."""
    if sum(len(pack.shards) for pack in packs) > _MAX_SHARDS_PLOTTED:
        return {}
    from decon_core.benchmarks.records import current_version
    from decon_core.decisions.match_reader import MatchReader
    from decon_core.decisions.score_bins import score_bins
    from decon_core.report.html.charts import scores

    policy = plan.config.policy
    versions = [current_version(plan.store, name) for name in sorted(benchmarks)]
    reader = MatchReader(plan.store, tuple(versions), policy, plan.scan)
    charts = [
        replace(scores([*bins], policy.threshold_of(name)), title=f"Matches by score: {name}")
        for name, bins in groupby(score_bins(reader, packs, versions), itemgetter("detector"))
    ]
    return {"scores": pictures(charts)} if charts else {}


@stage(
    missing="decon_core.planner:needs_common_ngrams",
    deps=[all_of(scan)],
    group=GROUP,
    kind="parquet",
    schema=COLUMNS["COMMON"],
    origins={"benchmark": ("records", "benchmark"), "text": ("records", "question")},
)
def common_ngrams(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """Benchmark n-grams that occur in too many documents of a source to be evidence of a leak.

    With `leave_out_common` in the policy, these n-grams are ignored when leaks are decided. The
    counts do not include shards that could not be read, or benchmarks that were scanned with the
    sketch.
    """
    from decon_core.decisions.common_ngrams import freeze_common
    from decon_core.decisions.match_reader import MatchReader, require_scanned
    from decon_core.index.parts import index_fingerprint
    from decon_core.planner import Plan
    from decon_core.scan.coverage import gaps_of, uncounted

    plan = Plan(config, store)
    packs, versions, policy = plan.packs, plan.current_versions, config.policy
    reader = MatchReader(store, tuple(versions), policy, plan.scan)
    gaps = gaps_of(plan.scan_results, packs, versions)
    # A later scan would change the counts.
    waiting = dict.fromkeys(gap.pack for gap in gaps if not gap.is_refused)
    require_scanned(reader, [*waiting], versions)
    index = index_fingerprint(store, policy)
    missing = uncounted(plan.scan_results, packs, versions)
    table = freeze_common(
        store, packs, versions, policy, index=index, scan=plan.scan, missing=missing
    )
    most = table.sort_by([("share", "descending")]).slice(0, _MAX_NGRAMS_SHOWN)
    context.log.info(f"{table.num_rows} common n-grams")
    return {
        "dagster/row_count": table.num_rows,
        "share": config.policy.common_share,
        "are_left_out": config.policy.leave_out_common,
        "most_common": preview(most.select(_COMMON_COLUMNS).to_pylist()),
    }
