"""Assets of benchmarks: normalized records, the frozen term weights, index parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetExecutionContext, AssetKey
from dagster import Config as RunConfig
from pydantic import Field

from decon_assets.assets.check_results import report_for_other_asset, result_of
from decon_assets.assets.inputs import benchmark_files
from decon_assets.assets.metadata import Metadata, PartitionReporter, preview, record_preview
from decon_assets.assets.stage import stage
from decon_assets.partitions import all_of, benchmarks, sorted_keys
from decon_core.schemas import COLUMNS
from decon_core.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.config.load import Config
    from decon_core.storage.store import Store

GROUP = "benchmarks"


@stage(
    missing="decon_core.planner:missing_records",
    is_required=True,
    priority=5,
    deps=[benchmark_files],
    partitions_def=benchmarks,
    group=GROUP,
    kind="parquet",
    schema=COLUMNS["RECORDS"],
)
def records(context: AssetExecutionContext, config: Config, store: Store) -> None:
    """Normalized records of a benchmark: question, answer and passage, one row per record.

    Every version of a benchmark has its own table. A benchmark is stale if its recipe or one of
    its files changed since it was normalized.
    """
    from decon_core.benchmarks.configured import benchmark_of
    from decon_core.benchmarks.records import save_records
    from decon_core.index import term_weights as weights

    reporter = PartitionReporter(context)
    n_items = 0
    for name in sorted_keys(context):
        benchmark = benchmark_of(config, name)
        # Before reading, so that a file that changes in between makes the records stale.
        origin = benchmark.origin()
        table, revision = benchmark.fetched()
        version = save_records(store, name, table, origin=origin, revision=revision)
        size = counted(version.n_items, "item")
        context.log.debug(f"{name}: {size}, version {version.fingerprint}")
        n_items += version.n_items
        metadata = {
            "dagster/row_count": version.n_records,
            "items": version.n_items,
            "splits": preview(_splits(table)),
            "version": version.fingerprint,
            "preview": record_preview(table),
        }
        reporter.report(name, metadata)
    if store.current_snapshot.is_file():
        # A changed benchmark does not rematerialize the snapshot, so its check would not run.
        result = result_of(weights.outdated_members(store), is_warning=True)
        asset = AssetKey([*context.asset_key.path[:-1], "term_weights"])
        report_for_other_asset(context, asset, "snapshot_is_of_todays_versions", result)
    n_benchmarks = counted(len(context.partition_keys), "benchmark")
    context.log.info(f"{n_benchmarks}, {counted(n_items, 'item')}")


def _splits(table: pa.Table) -> list[dict[str, object]]:
    """Count items and records of each split."""
    counts = table.group_by("split", use_threads=False).aggregate(
        [("instance_index", "count_distinct"), ("question", "count")]
    )
    return [
        {"split": row["split"], "items": row["instance_index_count_distinct"], "records": n}
        for row in counts.to_pylist()
        if (n := row["question_count"])
    ]


class FreezeConfig(RunConfig):
    """Run configuration of `term_weights`."""

    refreeze: bool = Field(
        default=False,
        description="Count again even if a snapshot exists. This changes every score: all "
        "indexes, scans, mixtures and the report must be rebuilt.",
    )


@stage(
    missing="decon_core.planner:needs_snapshot",
    remarks="decon_core.planner:outdated_in_snapshot",
    is_required=True,
    priority=5,
    deps=[all_of(records)],
    run_config=FreezeConfig,
    group=GROUP,
    kind="arrow",
    schema=COLUMNS["FREQUENCIES"],
)
def term_weights(context: AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """Frozen document frequencies of all n-grams, from which idf weights are computed.

    They are counted once over the benchmarks in `term_weights.benchmarks` (default: all). They do
    not change when a benchmark is added or changed, so the scores of other benchmarks stay the
    same.
    Materializing this asset again keeps the snapshot unless `refreeze` is set.
    """
    from decon_core.benchmarks.configured import benchmarks_of
    from decon_core.benchmarks.records import current_version
    from decon_core.index import term_weights as weights

    members = config.term_weights.benchmarks or tuple(benchmarks_of(config))
    refreeze = context.op_execution_context.op_config["refreeze"]
    if refreeze or not store.current_snapshot.is_file():
        versions = [current_version(store, name) for name in members]
        if not refreeze:
            weights.require_no_other(store, versions, config.policy)
        before = (
            weights.current_snapshot_fingerprint(store) if store.current_snapshot.is_file() else ""
        )
        frozen = weights.freeze(store, versions, config.policy)
        names = ", ".join(f"{version.benchmark} {version.fingerprint}" for version in versions)
        state = f"frozen {frozen.fingerprint}"
        if before:
            is_same = before == frozen.fingerprint
            change = "unchanged" if is_same else f"instead of {before}"
            state = f"frozen again: {frozen.fingerprint}, {change}"
        context.log.debug(f"{state}; counted from {names}")
    else:
        weights.current_snapshot(store, config.policy)  # raises if counted under other settings
        weights.require_frozen_from(store, config.term_weights.benchmarks)
        state = "existing snapshot kept"
        context.log.debug("keeping the existing snapshot (set `refreeze` to count again)")
    outdated = weights.outdated_members(store)
    for problem in outdated:
        context.log.warning(str(problem))
    snapshot = weights.read_current(store)
    members, n_records = snapshot["members"], counted(snapshot["n_records"], "record")
    context.log.info(f"{state}, from {counted(len(members), 'benchmark')}, {n_records}")
    return {
        "fingerprint": snapshot["fingerprint"],
        "records": snapshot["n_records"],
        "members": preview([{"benchmark": k, "version": v} for k, v in members.items()]),
        "members_of_other_versions": len(outdated),
    }


@stage(
    missing="decon_core.planner:missing_index_parts",
    unmet="decon_core.decisions.visibility:required_shortfalls",
    is_required=True,
    priority=5,
    deps=[records, term_weights],
    partitions_def=benchmarks,
    group=GROUP,
    kind="arrow",
    schema=COLUMNS["INDEX"],
    origins={
        column.name: ("records", column.name.partition(".")[0])
        for column in COLUMNS["INDEX"]
        if "." in column.name
    },
)
def index(context: AssetExecutionContext, config: Config, store: Store) -> None:
    """Index of a benchmark for the scan: tokens and document frequencies of its records.

    Records that cannot be indexed, such as very short ones, are counted in `dropped` by reason.
    """
    from decon_core.benchmarks.records import current_version
    from decon_core.decisions.visibility import visibilities
    from decon_core.index.parts import build_part, index_fingerprint
    from decon_core.index.term_weights import current_snapshot

    snapshot = current_snapshot(store, config.policy)
    versions = [current_version(store, name) for name in sorted_keys(context)]
    parts = {}
    for version in versions:
        name = version.benchmark
        part = parts[name] = build_part(store, version, snapshot, config.policy)
        context.log.debug(
            f"{name}: {part.n_indexed} of {counted(version.n_records, 'record')} indexed"
        )
        if not part.n_indexed:
            context.log.warning(f"{name}: no record can be checked; dropped: {part.dropped}")
    reporter = PartitionReporter(context)
    visible = visibilities(store, versions, config.policy)  # one call for all benchmarks
    fingerprint = index_fingerprint(store, config.policy)
    for version in versions:
        dropped = dict(parts[version.benchmark].dropped)
        rows = [row.as_row for row in visible if row.benchmark == version.benchmark]
        metadata = {
            "dagster/row_count": version.n_records,
            "indexed_records": version.n_records - sum(dropped.values()),
            "dropped": dropped,
            "can be checked": preview(rows),
            "version": version.fingerprint,
            "index": fingerprint,
        }
        reporter.report(version.benchmark, metadata)
    n_records = counted(sum(version.n_records for version in versions), "record")
    n_indexed = sum(part.n_indexed for part in parts.values())
    context.log.info(f"{counted(len(versions), 'benchmark')}, {n_indexed:,} of {n_records} indexed")
