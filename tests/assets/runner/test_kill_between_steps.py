"""`run`, killed with -9 after each event that its history keeps, and begun again.

Products, checks and database are those of a run that nobody stopped. A tenth of the moments, drawn
by a seed; all of them with `make test-long`.
"""

import os
import random
import shutil
import signal
import subprocess
import sys

import pytest
from dagster import DagsterInstance

from decon_assets.graph import GRAPH
from tests.assets.test_integrity import products_of

# As `decon-assets run` is, but killed after so many of these events; it says how many there were.
PROGRAM = """
import os, signal, sys
from dagster import DagsterEventType, DagsterInstance
from decon_assets.cli.main import main

KINDS = (
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.STEP_SUCCESS,
    DagsterEventType.RUN_SUCCESS,
)
last, n = int(sys.argv[1]), 0
keep = DagsterInstance.handle_new_event


def kept(self, event, **options):
    global n
    keep(self, event, **options)
    if event.is_dagster_event and event.dagster_event_type in KINDS:
        n += 1
        if n == last:
            os.kill(os.getpid(), signal.SIGKILL)


DagsterInstance.handle_new_event = kept
code = main(["run", "--workers", "1"])
print(f"events: {n}")
sys.exit(code)
"""


def run(world, home, last=0):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(last)],
        env={**os.environ, "DAGSTER_HOME": str(home), "DECON_CONFIG": str(world.config_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def checks_of(home):
    """The last result of each check."""
    with DagsterInstance.from_config(str(home)) as instance:
        keys = [spec.key for one in GRAPH.checks for spec in one.check_specs]
        records = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: records[key].status.value for key in keys if key in records}


def begin_anew(world, home):
    for folder in (world.store.root, home):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def undisturbed(world, tmp_path):
    """The world, and what a run makes of it that nobody stops."""
    world.write_config()
    home = tmp_path / "home"
    begin_anew(world, home)
    done = run(world, home)
    assert done.returncode == 0, done.stderr
    n_events = int(done.stdout.rpartition("events: ")[2])
    return home, n_events, products_of(world.store), checks_of(home)


def test_killed_between_two_steps_and_begun_again_it_comes_to_the_same(world, undisturbed):
    home, n_events, products, checks = undisturbed
    assert len(checks) > 15
    assert {*checks.values()} == {"SUCCEEDED"}
    moments = range(1, n_events + 1)
    if not os.environ.get("DECON_WHOLE_SESSION"):
        moments = sorted(random.Random(9).sample(moments, -(-n_events // 10)))
    for last in moments:
        begin_anew(world, home)
        assert run(world, home, last).returncode == -signal.SIGKILL
        again = run(world, home)
        assert again.returncode == 0, (last, again.stderr)
        assert checks_of(home) == checks, last
        assert products_of(world.store) == products, last
