"""`decon-assets backfill`: scan the missing cells of all or some benchmarks and packs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from decon_assets.cli.options import ConfigPath, Retire, Verbose, Workers, flag, option, repeatable
from decon_assets.cli.pipeline import stage_lines
from decon_assets.cli.serve import export_workers
from decon_assets.cli.terminal.output import say, say_table, warn
from decon_assets.partitions import MOST_CELLS
from decon_core.config.load import load_config
from decon_core.errors import ConfigError, Problem
from decon_core.wording import counted

_ASSUMED_MB_PER_SECOND = 30.0


def backfill(
    *,
    benchmark: list[str] = repeatable("only this benchmark, or those that a pattern fits", "NAME"),
    pack: list[str] = repeatable("only this pack, or those that a pattern fits", "NAME"),
    missing: bool = flag("--missing", "all missing cells, of every benchmark and pack"),
    dry_run: bool = flag("--dry-run", "print what would be read, and how long it would take"),
    cells_per_run: int = option(
        f"cells per run, at most (default {MOST_CELLS})", "N", default=MOST_CELLS
    ),
    retire: Retire = False,
    verbose: Verbose = False,
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Scan the cells of the grid (packs by benchmarks) that have no tile.

    Use it to scan a new benchmark or pack step by step. Benchmarks and packs are registered first,
    and missing records and indexes are built. Each shard is read once for all the benchmarks that
    it was not scanned for. Existing tiles are kept, so a backfill that was stopped continues where
    it was. `decon-assets run` then updates mixtures and the report.

    Examples:
      decon-assets backfill --missing --dry-run          what is missing, and how long it would take
      decon-assets backfill --benchmark mmlu_pro         a new benchmark
      decon-assets backfill --benchmark 'mmlu*' --pack 'web-*'
      decon-assets backfill --missing --cells-per-run 200

    The same in the UI: asset `scan`, "Materialize", "missing partitions only".
    """
    if not (benchmark or pack or missing):
        warn("choose cells: --benchmark NAME, --pack NAME, or --missing for all")
        return 2
    if cells_per_run < 1:
        warn(f"--cells-per-run: {cells_per_run} is not 1 or more")
        return 2
    load_config(config)  # fail before a history is created beside a missing file
    patterns = {"benchmark": benchmark, "pack": pack}
    if dry_run:
        _say_cost(config, patterns, most_cells=cells_per_run, may_retire=retire)
        return 0
    from decon_assets.instance.home import home_for, open_instance
    from decon_assets.planning import State, unscanned_or_unknown
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    def wanted(state: State) -> Mapping[str, Collection[str]]:
        benchmarks = _chosen("benchmark", state.benchmarks, benchmark)
        packs = _chosen("pack", [one.name for one in state.packs], pack)
        unscanned = unscanned_or_unknown(state)
        return {name: unscanned.get(name, set()) & benchmarks for name in packs}

    export_workers(workers)
    with open_instance(home_for(config)) as instance:
        pipeline = Pipeline(config, instance, say, lines=stage_lines(is_verbose=verbose))
        try:
            n_runs = pipeline.scan(wanted, most_cells=cells_per_run, may_retire=retire)
        except PipelineError as error:
            warn(error)
            return 1
    say(counted(n_runs, "run") if n_runs else "nothing is missing")
    say("`decon-assets run` updates mixtures and report")
    return 0


def _say_cost(
    config: Path,
    patterns: Mapping[str, Collection[str]],
    *,
    most_cells: int,
    may_retire: bool,
) -> None:
    from decon_assets.cli.cost import cost_of
    from decon_assets.instance.home import home_for
    from decon_core.inventory import CELL_SECONDS

    cost = cost_of(
        load_config(config),
        home=home_for(config),
        chosen=lambda kind, names: _chosen(kind, names, patterns[kind]),
        most_cells=most_cells,
        may_retire=may_retire,
    )
    if not cost.n_cells:
        say("nothing is missing")
        return
    rate = cost.mb_per_second or _ASSUMED_MB_PER_SECOND
    source = "rate of the last scan" if cost.mb_per_second else "assumed: nothing was scanned yet"
    reading, logging = cost.n_bytes / 1e6 / rate, cost.n_cells * CELL_SECONDS
    say_table(
        ("benchmark", "packs", "shards", "MB on disk"),
        [(name, *counts) for name, counts in cost.by_benchmark.items()],
    )
    n_cells, n_packs = counted(cost.n_cells, "cell"), counted(cost.n_packs, "pack")
    say(f"\n{n_cells} in {n_packs}, {counted(cost.n_runs, 'run')}")
    say(f"{counted(cost.n_shards, 'shard')} to read once, {cost.n_bytes / 1e6:.1f} MB on disk")
    say(f"reading: {_duration(reading)} at {rate:.1f} MB/s ({source})")
    say(f"Dagster's events: {_duration(logging)} at {CELL_SECONDS * 1000:.0f} ms per cell")
    for note in cost.notes:
        say(note)


def _chosen(kind: str, names: Collection[str], patterns: Collection[str]) -> set[str]:
    """Return the names that match any pattern, or all without patterns."""
    if not patterns:
        return set(names)
    problems = [
        Problem(f"--{kind} {pattern}", f"matches no {kind}", f"one of {', '.join(names)}")
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if problems:
        raise ConfigError(problems)
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
