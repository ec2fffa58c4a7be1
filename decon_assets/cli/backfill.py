"""`decon-assets backfill`: make missing scan results of all or some benchmarks and packs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from pathlib import Path

from dagster import AssetKey, DagsterInstance

from decon_assets.assets.metadata import RATE, SECONDS
from decon_assets.cli.pipeline import stage_lines
from decon_assets.cli.serve import export_engine, export_workers
from decon_assets.instance.home import home_for, open_instance, tags_of_command
from decon_assets.partitions import MOST_PARTITIONS
from decon_assets.run_requests import Materialized, unscanned_or_unknown
from decon_assets.terminal.options import (
    ConfigPath,
    EngineOption,
    Retire,
    Verbose,
    Workers,
    flag,
    option,
    repeatable,
)
from decon_assets.terminal.output import say, say_table, warn
from decon_core.benchmarks.records import Version
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.registration import PARTITION_SECONDS, require_most_there
from decon_core.errors import ConfigError, Problem
from decon_core.execution.choice import require_engine
from decon_core.planner import Plan, unscanned
from decon_core.scan.answers import why_unbounded
from decon_core.wording import counted

_ASSUMED_MB_PER_SECOND = 30.0
_LEAST_SECONDS = 10  # of a scan whose rate tells that of others: starting takes a few


def backfill(
    *,
    benchmark: list[str] = repeatable("only benchmarks with this name or pattern", "NAME"),
    pack: list[str] = repeatable("only packs with this name or pattern", "NAME"),
    missing: bool = flag("--missing", "scan everything missing, for every benchmark and pack"),
    dry_run: bool = flag("--dry-run", "print what would be read, and how long it would take"),
    partitions_per_run: int = option(
        f"maximum number of partitions per run (default {MOST_PARTITIONS})",
        "N",
        default=MOST_PARTITIONS,
    ),
    retire: Retire = False,
    verbose: Verbose = False,
    workers: Workers = None,
    engine: EngineOption = None,
    config: ConfigPath,
) -> int:
    """Scan packs against benchmarks for which they have no scan results yet.

    Use it to scan a new benchmark or pack step by step, in partitions of one pack and one benchmark
    each. The command first registers benchmarks and packs, and builds missing records and indexes.
    It reads each shard once, for all benchmarks that the shard has not been scanned against.
    Existing scan results are kept, so a stopped backfill resumes where it left off. Afterwards, use
    `decon-assets run` to update the mixtures and the report.

    Examples:
      decon-assets backfill --missing --dry-run          what is missing, and how long it would take
      decon-assets backfill --benchmark mmlu_pro         a new benchmark
      decon-assets backfill --benchmark 'mmlu*' --pack 'web-*'
      decon-assets backfill --missing --partitions-per-run 200

    To do the same in the UI, open the asset `scan` and choose "Materialize", then "missing
    partitions only".
    """
    if not (benchmark or pack or missing):
        warn("choose what to scan: --benchmark NAME, --pack NAME, or --missing for all")
        return 2
    if partitions_per_run < 1:
        warn(f"--partitions-per-run must be 1 or more, not {partitions_per_run}")
        return 2
    export_engine(engine)
    settings = load_config(config)
    require_engine(settings.tables)  # fail before a history is created

    def wanted(plan: Plan, known: Materialized) -> Mapping[str, Collection[str]]:
        benchmarks, packs = _chosen_of(plan, benchmark, pack)
        unscanned = unscanned_or_unknown(plan, known)
        return {name: unscanned.get(name, set()) & benchmarks for name in packs}

    if dry_run:
        _say_cost(config, benchmark, pack, may_retire=retire)
        return 0
    from decon_assets.instance.cost import cost_line
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    export_workers(workers)
    with open_instance(home_for(config)) as instance:
        tags = {
            **tags_of_command("backfill", settings.policy),
            "decon/benchmarks": ", ".join(benchmark) or "all",
            "decon/packs": ", ".join(pack) or "all",
        }
        lines = stage_lines(is_verbose=verbose)
        pipeline = Pipeline(config, instance, say, lines=lines, tags=tags)
        try:
            n_runs = pipeline.scan(wanted, most_partitions=partitions_per_run, may_retire=retire)
        except PipelineError as error:
            warn(error)
            return 1
        cost = cost_line(instance)
    say(counted(n_runs, "run") if n_runs else "nothing is missing")
    say(cost)
    say("run `decon-assets run` to update the mixtures and the report")
    return 0


def _chosen_of(
    plan: Plan, benchmark: Collection[str], pack: Collection[str]
) -> tuple[set[str], set[str]]:
    """Return the names of the benchmarks and packs that the patterns select."""
    names = [each.name for each in plan.packs]
    return _chosen("benchmark", plan.benchmarks, benchmark), _chosen("pack", names, pack)


def _chosen(kind: str, names: Collection[str], patterns: Collection[str]) -> set[str]:
    """Return the names that match any pattern, or all without patterns."""
    if not patterns:
        return set(names)
    ConfigError.raise_for(
        Problem(f"--{kind} {pattern}", f"no {kind} matches", f"one of {', '.join(names)}")
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    )
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


# Dry run ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _BeforeIndexing(Plan):
    """A plan of what a backfill registers; records and indexes may still be missing."""

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        """The packs as they will be after a registration."""
        return tuple(self.changes.current)

    @cached_property
    def versions(self) -> list[Version]:
        """The benchmarks whose index is current, so that existing scan results count."""
        if not self.store.current_snapshot.is_file():
            return []
        stale = self.stale_benchmarks
        return [version for version in self.indexed_versions if version.benchmark not in stale]


def _say_cost(
    path: Path, benchmark: Collection[str], pack: Collection[str], *, may_retire: bool
) -> None:
    """Print what a backfill would read; it changes nothing and raises the backfill's errors."""
    config = load_config(path)
    plan = _BeforeIndexing(config, open_store(config))
    if not may_retire:
        require_most_there(plan.changes, plan.store)
    benchmarks, packs = _chosen_of(plan, benchmark, pack)
    missing: defaultdict[str, list[tuple[str, Shard]]] = defaultdict(list)
    for name, of_pack, shard in unscanned(plan):
        if name in benchmarks and of_pack in packs:
            missing[name].append((of_pack, shard))
    if not missing:
        say("nothing to scan")
        return
    rows: list[tuple[object, ...]] = []
    partitions: list[str] = []  # the pack of each
    for name, places in sorted(missing.items()):
        n_shards, n_bytes = _to_read(places)
        of_name = {of_pack for of_pack, _ in places}
        partitions += of_name
        rows.append((name, len(of_name), n_shards, round(n_bytes / 1e6, 1)))
    say_table(("benchmark", "packs", "shards", "MB on disk"), rows)
    n_packs = counted(len({*partitions}), "pack")
    say(f"\n{counted(len(partitions), 'partition')} in {n_packs}")
    n_shards, n_bytes = _to_read(chain.from_iterable(missing.values()))
    known_rate = _last_rate(home_for(path))
    rate = known_rate or _ASSUMED_MB_PER_SECOND
    assumed = f"assumed: no scan has taken {_LEAST_SECONDS} s yet"
    source = "rate of the last scan" if known_rate else assumed
    say(f"full scan: {counted(n_shards, 'shard')}, read once, {n_bytes / 1e6:.1f} MB on disk")
    say(f"  {_duration(n_bytes / 1e6 / rate)} at {rate:.1f} MB/s ({source})")
    if plan.config.sketch:
        why = why_unbounded(plan.config.policy)
        of_sketch = f"is not used: {why}" if why else "excludes blocks, so less may be read"
        say(f"  the sketch {of_sketch}")
    logging = _duration(len(partitions) * PARTITION_SECONDS)
    say(f"logging Dagster events: {logging} at {PARTITION_SECONDS * 1000:.0f} ms per partition")
    if new := plan.changes.new:
        say(f"not registered yet: {counted(len(new), 'new shard')}")


def _to_read(places: Iterable[tuple[str, Shard]]) -> tuple[int, int]:
    """Return the number of shards and their bytes, counting identical shards once."""
    sizes = {shard.fingerprint: shard.n_bytes for _, shard in places}
    return len(sizes), sum(sizes.values())


def _last_rate(home: Path) -> float | None:
    """Return the megabytes per second of the last scan that was not short."""
    if not (home / "dagster.yaml").is_file():
        return None
    with DagsterInstance.from_config(str(home)) as instance:
        scans = instance.fetch_materializations(AssetKey("scan"), limit=MOST_PARTITIONS).records
    for record in scans:
        event = record.asset_materialization
        if event and RATE in event.metadata:
            rate, seconds = (event.metadata[name].value for name in (RATE, SECONDS))
            is_long = isinstance(seconds, int | float) and seconds >= _LEAST_SECONDS
            if is_long and isinstance(rate, int | float) and rate > 0:
                return float(rate)
    return None


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
