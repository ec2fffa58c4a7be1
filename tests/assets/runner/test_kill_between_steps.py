"""`run`, killed with -9 between any two of its steps, and begun again.

Products, checks and database are those of a run that nobody stopped. One of the moments, drawn
by a seed, in a small world; all moments in the sample world with `make test-long`.
"""

import random
import shutil
import signal
import subprocess
import sys

import pytest
from dagster import DagsterEventType, DagsterInstance

from decon_assets.cli.main import main
from decon_assets.graph import GRAPH
from decon_core.config.load import load_config
from decon_core.storage.store import Store
from tests.assets.test_integrity import products_of
from tests.long_runs import IS_LONG
from tests.test_sample_world import copy_of_data

pytestmark = pytest.mark.kills

# When the work of a step, a check or a run is done.
MOMENTS = {
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.STEP_SUCCESS,
    DagsterEventType.RUN_SUCCESS,
}
# As `decon-assets run` is, but killed at one of these moments, before the history says so.
PROGRAM = f"""
import os, signal, sys
from dagster import DagsterInstance
from decon_assets.cli.main import main

kinds, moment, n = {[kind.name for kind in MOMENTS]}, int(sys.argv[1]), 0
keep = DagsterInstance.handle_new_event


def kept(self, event, **options):
    global n
    if event.is_dagster_event and event.dagster_event_type.name in kinds:
        n += 1
        if n == moment:
            os.kill(os.getpid(), signal.SIGKILL)
    keep(self, event, **options)


DagsterInstance.handle_new_event = kept
sys.exit(main(["run", "--workers", "1"]))
"""


def run(moment=0):
    """Run in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, str(moment)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def count_moments(home):
    with DagsterInstance.from_config(str(home)) as instance:
        runs = [run.run_id for run in instance.get_runs()]
        return sum(len(instance.all_logs(run_id, of_type=MOMENTS)) for run_id in runs)


def last_results(home):
    """The last result of each check."""
    with DagsterInstance.from_config(str(home)) as instance:
        keys = [spec.key for asset_check in GRAPH.checks for spec in asset_check.check_specs]
        records = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: records[key].status.value for key in keys if key in records}


def test_killed_between_two_steps_and_begun_again_it_comes_to_the_same(
    world, tmp_path, monkeypatch
):
    world.write_config()
    config = copy_of_data(tmp_path / "data") if IS_LONG else world.config_path
    home = tmp_path / "home"
    store = Store(load_config(config).store)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("DECON_CONFIG", str(config))
    assert main(["run", "--workers", "1"]) == 0
    products, results = products_of(store), last_results(home)
    assert len(results) > 15
    assert {*results.values()} == {"SUCCEEDED"}
    n_moments = count_moments(home)
    assert n_moments > 40
    moments = range(1, n_moments + 1)
    if not IS_LONG:
        moments = random.Random(9).sample(moments, 1)
    for moment in moments:
        shutil.rmtree(store.root)
        shutil.rmtree(home)
        assert run(moment).returncode == -signal.SIGKILL
        again = run()
        assert again.returncode == 0, (moment, again.stderr)
        assert last_results(home) == results, moment
        assert products_of(store) == products, moment
