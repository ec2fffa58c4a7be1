"""`decon-assets backfill`: scan the missing cells of all or some benchmarks and packs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from decon_assets.cli.command import Command, Say, add_config, add_workers
from decon_assets.cli.terminal.tables import text_table
from decon_assets.cli.world import add_retire, add_verbose, export_workers, stage_lines
from decon_core.config.load import load_config
from decon_core.errors import ConfigError, Problem
from decon_core.wording import counted

DESCRIPTION = """\
Scan the cells of the grid (packs by benchmarks) that have no tile. Benchmarks and packs are
registered first, and missing records and indexes are built. Each shard is read once for all the
benchmarks that it was not scanned for. Existing tiles are kept, so a backfill that was stopped
continues where it was. `decon-assets run` then updates mixtures and the report.
"""

EPILOG = """\
examples:
  decon-assets backfill --missing --dry-run          what is missing, and how long it would take
  decon-assets backfill --benchmark mmlu_pro         a new benchmark
  decon-assets backfill --benchmark 'mmlu*' --pack 'web-*'
  decon-assets backfill --missing --cells-per-run 200

The same in the UI: asset `scan`, "Materialize", "missing partitions only".
"""

_ASSUMED_MB_PER_SECOND = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from decon_assets.partitions import MOST_CELLS

    parser.add_argument(
        "--benchmark",
        action="append",
        metavar="NAME",
        help="only this benchmark, or those that a pattern fits; may be repeated",
    )
    parser.add_argument(
        "--pack",
        action="append",
        metavar="NAME",
        help="only this pack, or those that a pattern fits; may be repeated",
    )
    parser.add_argument(
        "--missing", action="store_true", help="all missing cells, of every benchmark and pack"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be read, and how long it would take",
    )
    parser.add_argument(
        "--cells-per-run",
        type=int,
        default=MOST_CELLS,
        metavar="N",
        help=f"cells per run, at most (default {MOST_CELLS})",
    )


def backfill(options: argparse.Namespace, say: Say) -> int:
    """Run the command and return its exit code."""
    if not (options.benchmark or options.pack or options.missing):
        sys.stderr.write("choose cells: --benchmark NAME, --pack NAME, or --missing for all\n")
        return 2
    if options.cells_per_run < 1:
        sys.stderr.write(f"--cells-per-run: {options.cells_per_run} is not 1 or more\n")
        return 2
    load_config(options.config)  # fail before a history is created beside a missing file
    return _estimate(options, say) if options.dry_run else _scan(options, say)


def _scan(options: argparse.Namespace, say: Say) -> int:
    export_workers(options)
    from decon_assets.instance.home import home_for, open_instance
    from decon_assets.planning import State, unscanned_or_unknown
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    def wanted(state: State) -> Mapping[str, Collection[str]]:
        benchmarks = _chosen("benchmark", state.benchmarks, options.benchmark)
        packs = _chosen("pack", [pack.name for pack in state.packs], options.pack)
        missing = unscanned_or_unknown(state)
        return {pack: missing.get(pack, set()) & benchmarks for pack in packs}

    with open_instance(home_for(options.config)) as instance:
        try:
            n_runs = Pipeline(options.config, instance, say, lines=stage_lines(options, say)).scan(
                wanted, most_cells=options.cells_per_run, may_retire=options.retire
            )
        except PipelineError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    say(counted(n_runs, "run") if n_runs else "nothing is missing")
    say("`decon-assets run` updates mixtures and report")
    return 0


def _estimate(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.cli.cost import cost_of
    from decon_core.inventory import CELL_SECONDS

    config = load_config(options.config)
    cost = cost_of(
        config,
        home=_home(options.config),
        chosen=lambda kind, names: _chosen(
            kind, names, options.benchmark if kind == "benchmark" else options.pack
        ),
        most_cells=options.cells_per_run,
        may_retire=options.retire,
    )
    if not cost.n_cells:
        say("nothing is missing")
        return 0
    rate = cost.mb_per_second or _ASSUMED_MB_PER_SECOND
    source = "rate of the last scan" if cost.mb_per_second else "assumed: nothing was scanned yet"
    reading, logging = cost.n_bytes / 1e6 / rate, cost.n_cells * CELL_SECONDS
    say(
        text_table(
            ("benchmark", "packs", "shards", "MB on disk"),
            [(name, *counts) for name, counts in cost.by_benchmark.items()],
        )
    )
    say("")
    say(
        f"{counted(cost.n_cells, 'cell')} in {counted(cost.n_packs, 'pack')}, "
        f"{counted(cost.n_runs, 'run')}"
    )
    say(f"{counted(cost.n_shards, 'shard')} to read once, {cost.n_bytes / 1e6:.1f} MB on disk")
    say(f"reading: {_duration(reading)} at {rate:.1f} MB/s ({source})")
    say(f"Dagster's events: {_duration(logging)} at {CELL_SECONDS * 1000:.0f} ms per cell")
    for note in cost.notes:
        say(note)
    return 0


def _home(config: Path) -> Path:
    from decon_assets.instance.home import home_for

    return home_for(config)


def _chosen(kind: str, names: Collection[str], patterns: Collection[str] | None) -> set[str]:
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


COMMAND = Command(
    backfill, (add_arguments, add_retire, add_verbose, add_workers, add_config), DESCRIPTION, EPILOG
)
