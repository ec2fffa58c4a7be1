"""Killed with -9 in the midst of it, begun again: the same bytes, and nothing finished twice.

Two moments here; $DECON_KILLS says how many, where there is time for more.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from dagster import AssetKey, DagsterInstance
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    PartitionBackfill,
)
from dagster._core.utils import make_new_backfill_id

from decon_assets.definitions import build_definitions
from decon_assets.instance.home import ensure_home
from decon_assets.runner.pipeline import Pipeline
from tests.long_runs import only_in_long_runs
from tests.scan_result_files import as_read
from tests.waiting import wait_until

pytestmark = pytest.mark.kills

N_KILLS = int(os.environ.get("DECON_KILLS", "2"))
N_DAEMON_KILLS = max(N_KILLS // 2, 1)  # each begins with the start of a daemon
N_SHARDS = 24

# As `decon-assets` is, but with workers for shards as small as these.
PROGRAM = """
import sys, decon_core.execution.jobs
decon_core.execution.jobs._BYTES_PER_WORKER = 1
from decon_assets.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def grid(empty_world):
    """Three benchmarks, 24 shards, and what a run that nobody disturbs makes of them."""
    world = empty_world
    items = [world.add_benchmark(name) for name in ("harbor", "ledger", "orchard")]
    for number in range(N_SHARDS):
        world.add_shard(f"s{number:02}", leaks=[items[number % 3][number % 5]], n_documents=40)
    world.snapshot = ["harbor", "ledger", "orchard"]
    world.start(until="scan")
    undisturbed = scan_results_below(world.folder)
    shutil.rmtree(world.store.root)
    return world, undisturbed


def scan_results_below(folder: Path) -> dict[str, object]:
    """What scans made. Locks, and drafts of those who were killed, begin with a dot."""
    root = folder / ".decon" / "scan_results"
    return as_read(
        {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
    )


def start(world, *arguments: str, home: Path, log: IO[str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "DAGSTER_HOME": str(home), "DECON_CONFIG": str(world.config_path)},
        stdout=log or subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ledgers(world) -> dict[Path, int]:
    """Shards that were finished, each a pack of its own, and when they were."""
    found = {}
    for path in (world.store.root / "scan_results").glob("*/*/ledgers.json"):
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_mtime_ns
    return found


def wait_for_ledgers(world, n_wanted: int, process: subprocess.Popen[str]) -> bool:
    """Look often: files appear every few milliseconds."""
    return wait_until(
        lambda: len(ledgers(world)) >= n_wanted, process, n_looks=150_000, pause=0.002
    )


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Its processes that scan, not those that keep books for it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def kill(process: subprocess.Popen[str], victim: str, rng: random.Random) -> None:
    with suppress(ProcessLookupError):
        workers = workers_of(process) if victim == "worker" else []
        os.kill(rng.choice(workers) if workers else process.pid, signal.SIGKILL)


def test_killed_at_random_moments_and_begun_again_it_comes_to_the_same_bytes(grid, tmp_path):
    world, undisturbed = grid
    home, rng = tmp_path / "home", random.Random(7)
    finished: dict[Path, int] = {}
    n_midway = 0
    for number in range(N_KILLS):
        # When all is scanned already, Dagster is being told of it: also a moment.
        wanted = min(len(finished) + rng.randint(1, 2 * N_SHARDS // (N_KILLS + 1)), N_SHARDS)
        process = start(world, "backfill", "--missing", "--workers", "2", home=home)
        wait_for_ledgers(world, wanted, process)
        if len(ledgers(world)) == N_SHARDS:
            time.sleep(rng.random())
        finished |= ledgers(world)
        kill(process, ("run", "worker")[number % 2], rng)
        process.communicate()
        n_midway += 0 < len(finished) < N_SHARDS
    assert n_midway
    last = start(world, "backfill", "--missing", home=home)
    said, _ = last.communicate()
    assert last.returncode == 0, said
    assert scan_results_below(world.folder) == undisturbed
    now = ledgers(world)
    assert {path: now[path] for path in finished} == finished


def ask_for_the_grid(world, instance: DagsterInstance) -> None:
    """As the button in the UI does, unless that was done before and is not through."""
    if any(one.status not in BULK_ACTION_TERMINAL_STATUSES for one in instance.get_backfills()):
        return
    definitions = build_definitions(config_path=str(world.config_path))
    backfill = PartitionBackfill.from_asset_partitions(
        backfill_id=make_new_backfill_id(),
        asset_graph=definitions.resolve_asset_graph(),
        partition_names=None,
        asset_selection=[AssetKey("scan")],
        backfill_timestamp=time.time(),
        tags={},
        dynamic_partitions_store=instance,
        all_partitions=True,
        title=None,
        description=None,
        run_config=None,
    )
    instance.add_backfill(backfill)


def has_ended_well(instance: DagsterInstance) -> bool:
    """Whether the grid is filled: by the last that was asked for, or again, where one gave up."""
    return instance.get_backfills()[0].status is BulkActionStatus.COMPLETED_SUCCESS


@only_in_long_runs("takes a minute and a half, most of it waiting for daemons")
def test_a_daemon_killed_in_a_backfill_of_the_ui_is_taken_over_by_the_next(grid, tmp_path):
    world, undisturbed = grid
    home, rng = ensure_home(tmp_path / "home"), random.Random(11)
    finished: dict[Path, int] = {}
    n_midway = 0
    with (
        DagsterInstance.from_config(str(home)) as instance,
        (tmp_path / "daemon.log").open("w") as log,
    ):
        pipeline = Pipeline(world.config_path, instance, lambda _: None)
        pipeline.scan(lambda *_: {}, most_partitions=1000)
        for number in range(N_DAEMON_KILLS):
            ask_for_the_grid(world, instance)
            more = rng.randint(1, 2 * N_SHARDS // (N_DAEMON_KILLS + 1))
            wanted = min(len(finished) + more, N_SHARDS - 1)
            daemon = start(world, "daemon", home=home, log=log)
            assert wait_for_ledgers(world, wanted, daemon), log.name
            if number % 2:  # alone: the run goes on for a while, and the next daemon begins it anew
                os.kill(daemon.pid, signal.SIGKILL)
            else:  # and all that it started: a power cut
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
            finished |= ledgers(world)
            n_midway += 0 < len(finished) < N_SHARDS
        assert n_midway
        daemon = start(world, "daemon", home=home, log=log)

        def has_ended() -> bool:
            if not has_ended_well(instance):
                ask_for_the_grid(world, instance)
                return False
            return True

        wait_until(has_ended, daemon, n_looks=900, pause=1)
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
        assert has_ended_well(instance), log.name
    assert scan_results_below(world.folder) == undisturbed
    now = ledgers(world)
    assert {path: now[path] for path in finished} == finished


@only_in_long_runs("tests/assets/cli/test_backfill.py scans twice at once in one store")
def test_two_backfills_at_once_read_no_shard_twice_and_make_the_same_bytes(grid, tmp_path):
    world, undisturbed = grid
    both = [
        start(world, "backfill", *choice, home=tmp_path / f"home-{number}")
        for number, choice in enumerate(
            (
                ("--benchmark", "harbor", "--benchmark", "ledger"),
                ("--benchmark", "ledger", "--benchmark", "orchard"),
            )
        )
    ]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert scan_results_below(world.folder) == undisturbed
    n_read = [sum(map(int, re.findall(r"read (\d+) shards?, wrote", text))) for text in said]
    assert sum(n_read) == N_SHARDS
