"""Fills a grid of many partitions, and measures Dagster's share of the time and its pages.

All steps are commands in separate processes, as users run them. Costs are computed from the events
that the runs recorded.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.grid_world import GridSizes, add_benchmark, make_world
from bench.history import Cost, cost_since
from bench.pages import seconds_until_shown, why_no_pages
from bench.table import machine
from decon_core.errors import InputError, Problem

POSTGRES_VARIABLE = "DECON_BENCH_POSTGRES"
_BATCH = "DAGSTER_EVENT_BATCH_SIZE"

_INTRODUCTION = """\
This page shows how much time Dagster takes for many partitions. The tables were made with
`python -m bench --grid`. The texts are synthetic and as small as possible, so that Dagster's share
of the time is as large as possible. Each step is one command in a separate process, and its time
includes process start-up. *Processor* is the CPU time of all processes of a step.
*Work* is the time inside assets and checks: reading, scanning and writing. *Dagster* is the
remaining time of a run; nearly all of it is spent storing events (planned, started, materialized).
*Rest* is start-up, registration and planning."""
_PACK_SECONDS = 30.0
_POLICY_CORPUS = (100, 10_000)  # benchmarks and shards, to project to
_POLICY_PACKS = (1, 8, 64, 256)
_DOTS = "Materialized ("

Say = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """A command and its cost."""

    name: str
    seconds: float
    processor_seconds: float
    costs: Mapping[str, Cost]  # by asset

    @property
    def cost(self) -> Cost:
        return sum(self.costs.values(), Cost())


@dataclass
class Grid:
    """A generated corpus, its Dagster home, and the measurements."""

    folder: Path
    sizes: GridSizes
    postgres: str | None
    say: Say
    steps: list[Step] = field(default_factory=list)
    pages: dict[str, tuple[float, float]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "DAGSTER_HOME": str(self.home),
            "DECON_CONFIG": str(self.folder / "world" / "decon.toml"),
        }
        return own | ({POSTGRES_VARIABLE: self.postgres} if self.postgres else {})


def measure_grid(folder: Path, sizes: GridSizes, *, postgres: str | None, say: Say) -> str:
    """Fill a grid, add a benchmark and open the pages; return a page of Markdown."""
    grid = Grid(folder, sizes, postgres, say)
    say(f"making {sizes.n_benchmarks} benchmarks and {sizes.n_shards_in_all:,} shards …")
    make_world(folder / "world", sizes)
    _make_home(grid)
    _step(grid, "first backfill", ["backfill", "--missing"])
    _step(grid, "then mixtures and report", ["run"])
    _step(grid, "nothing to do: `run`", ["run"])
    _step(grid, "nothing to do: `backfill`", ["backfill", "--missing"])
    _step(grid, "`status`", ["status"])
    name = add_benchmark(folder / "world", sizes)
    _step(grid, "one more benchmark: `--dry-run`", ["backfill", "--benchmark", name, "--dry-run"])
    _step(grid, "one more benchmark", ["backfill", "--benchmark", name])
    _look_at_pages(grid)
    return markdown(grid)


def _make_home(grid: Grid) -> None:
    """Make the Dagster home as the command line does; a Postgres database must be empty."""
    from dagster import DagsterInstance

    from decon_assets.instance.home import ensure_home

    ensure_home(grid.home)
    if not grid.postgres:
        return
    settings = grid.home / "dagster.yaml"
    storage = f"storage:\n  postgres:\n    postgres_url: {{env: {POSTGRES_VARIABLE}}}\n"
    settings.write_text(storage + settings.read_text())
    os.environ[POSTGRES_VARIABLE] = grid.postgres
    with DagsterInstance.from_config(str(grid.home)) as instance:
        if n_runs := instance.get_runs_count():
            found = f"a history of {n_runs} runs"
            raise InputError(Problem("--postgres", found, "an empty database, as it is filled"))


def _step(grid: Grid, name: str, command: Sequence[str]) -> None:
    """Run a command; record its time and the events of its runs."""
    from dagster import DagsterInstance

    grid.say(f"{name} …")
    started, used = time.monotonic(), _processor_seconds()
    program = str(Path(sys.executable).with_name("decon-assets"))
    done = subprocess.run(
        [program, *command],
        env={**os.environ, **grid.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode not in {0, 1} or (done.returncode == 1 and command[0] != "status"):
        raise InputError(Problem(name, f"exit code {done.returncode}", "0", done.stdout[-2000:]))
    with DagsterInstance.from_config(str(grid.home)) as instance:
        costs = cost_since(instance, grid.known)
        grid.known |= {run.run_id for run in instance.get_runs()}
    grid.steps.append(Step(name, seconds, _processor_seconds() - used, costs))
    cost = grid.steps[-1].cost
    grid.say(f"  {seconds:.1f} s, {cost.n_runs} runs, {cost.n_partitions} partitions")


def _processor_seconds() -> float:
    """Return the processor time of all commands so far: other programs do not change it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _look_at_pages(grid: Grid) -> None:
    if why := why_no_pages():
        grid.say(f"pages are not looked at: {why}")
        return
    grid.say("pages …")
    grid.pages = seconds_until_shown(
        {
            "the asset": ("/assets/scan", "Description"),
            "its grid of partitions": ("/assets/scan?view=partitions", _DOTS),
            "the graph of assets": ("/asset-groups", "products"),
            "runs": ("/runs", "Success"),
        },
        grid.environment,
        grid.folder / "webserver.log",
    )


def markdown(grid: Grid) -> str:
    """Return the measurements as a page."""
    parts = [
        "# A grid of many partitions",
        _INTRODUCTION,
        machine({}),
        _world(grid),
        "## Commands",
        _steps_table(grid),
        "## The store",
        _files_table(grid),
        "## By asset, for the first two commands",
        _assets_table(grid.steps[:2]),
        "## Extrapolation to longer scans of a pack",
        *_projection(grid),
    ]
    if grid.pages:
        parts += ["## Pages, in Chromium", _pages_table(grid.pages)]
    return "\n\n".join(parts) + "\n"


def _world(grid: Grid) -> str:
    sizes = grid.sizes
    return (
        f"{sizes.n_benchmarks} benchmarks and {sizes.n_packs:,} packs of {sizes.n_shards} shards: "
        f"{sizes.n_partitions:,} partitions, {sizes.n_shards_in_all:,} shards, "
        f"{_corpus_mb(grid):.0f} MB. Dagster's events are stored in {_storage(grid)}."
    )


def _storage(grid: Grid) -> str:
    name = "Postgres" if grid.postgres else "SQLite"
    at_once = int(os.environ.get(_BATCH) or 0)
    return f"{name}, {f'{at_once:,} at a time' if at_once else 'one by one'}"


def _corpus_mb(grid: Grid) -> float:
    return sum(p.stat().st_size for p in (grid.folder / "world/corpus").iterdir()) / 1e6


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    lines.insert(1, f"|---{'|---:' * (len(header) - 1)}|")
    return "\n".join(lines)


def _steps_table(grid: Grid) -> str:
    megabytes_per_shard = _corpus_mb(grid) / grid.sizes.n_shards_in_all
    rows = []
    for step in grid.steps:
        cost = step.cost
        rest = step.seconds - cost.work_seconds - cost.dagster_seconds
        rows.append(
            (
                step.name,
                f"{step.seconds:.1f}",
                f"{step.processor_seconds:.1f}",
                f"{cost.work_seconds:.1f}",
                f"{cost.dagster_seconds:.1f}",
                f"{rest:.1f}",
                f"{cost.dagster_seconds / step.seconds:.0%}",
                f"{cost.n_runs:,}",
                f"{cost.n_partitions:,}",
                f"{cost.n_events:,}",
                f"{cost.n_shards_read:,}",
                f"{cost.n_shards_read * megabytes_per_shard:.1f}",
            )
        )
    header = ("", "seconds", "processor", "work", "Dagster", "rest", "Dagster's share")
    return _table((*header, "runs", "partitions", "events", "shards read", "MB read"), rows)


def _assets_table(steps: Sequence[Step]) -> str:
    costs: dict[str, Cost] = {}
    for step in steps:
        for asset, cost in step.costs.items():
            costs[asset] = costs.get(asset, Cost()) + cost
    rows = [
        (
            f"`{asset}`",
            f"{cost.n_runs:,}",
            f"{cost.n_partitions:,}",
            f"{cost.n_events:,}",
            f"{cost.work_seconds:.1f}",
            f"{cost.dagster_seconds:.1f}",
            f"{_ms_per_partition(cost):.1f}",
        )
        for asset, cost in sorted(costs.items(), key=lambda item: -item[1].n_partitions)
    ]
    return _table(("", "runs", "partitions", "events", "work", "Dagster", "ms per partition"), rows)


def _files_table(grid: Grid) -> str:
    """Return the numbers and sizes of files in each folder of the store."""
    rows = []
    n_all = n_bytes_all = 0
    for folder in sorted(
        path for path in (grid.folder / "world/.decon").iterdir() if path.is_dir()
    ):
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        n_all, n_bytes_all = n_all + len(sizes), n_bytes_all + sum(sizes)
        rows.append((f"`{folder.name}`", f"{len(sizes):,}", f"{sum(sizes) / 1e6:,.1f}"))
    rows.append(("all", f"{n_all:,}", f"{n_bytes_all / 1e6:,.1f}"))
    return _table(("", "files", "MB"), rows)


def _ms_per_partition(cost: Cost) -> float:
    return 1e3 * cost.dagster_seconds / max(cost.n_partitions, 1)


def _projection(grid: Grid) -> list[str]:
    """Project the measured Dagster time per partition to packs of more text."""
    first = grid.steps[0].costs.get("scan", Cost())
    later = grid.steps[-1].costs.get("scan", Cost())
    benchmarks = grid.sizes.n_benchmarks
    seconds = _ms_per_partition(first) / 1e3
    whole = benchmarks * seconds / (_PACK_SECONDS + benchmarks * seconds)
    alone = _ms_per_partition(later) / 1e3
    told = (
        f"If scanning a pack takes {_PACK_SECONDS:.0f} s, Dagster adds "
        f"{benchmarks * seconds:.2f} s for the {benchmarks} partitions of the pack "
        f"({whole:.1%} of the time). "
        "A benchmark that is added later has one partition per pack, for which Dagster adds "
        f"{alone:.2f} s ({alone / (_PACK_SECONDS + alone):.1%}). Dagster takes less than a tenth "
        f"of the time if scanning a pack takes {9 * benchmarks * seconds:.1f} s or more."
    )
    n_benchmarks, n_shards = _POLICY_CORPUS
    rows = []
    for pack_shards in _POLICY_PACKS:
        partitions = n_benchmarks * -(-n_shards // pack_shards)
        rows.append((f"{pack_shards}", f"{partitions:,}", f"{partitions * seconds / 60:.1f}"))
    sizes = f"{n_benchmarks} benchmarks and {n_shards:,} shards, by pack size"
    scaled = f"The table shows Dagster's time for {sizes}:"
    return [told, scaled, _table(("`pack_shards`", "partitions", "minutes in Dagster"), rows)]


def _pages_table(pages: Mapping[str, tuple[float, float]]) -> str:
    rows = [(name, f"{first:.1f}", f"{again:.1f}") for name, (first, again) in pages.items()]
    return _table(("seconds until it is shown", "first time", "again"), rows)
