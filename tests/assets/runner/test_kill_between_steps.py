"""`run` of the sample world, killed with -9 between any two of its steps, and begun again.

Products, checks and database are those of a run that nobody stopped. One of the moments, drawn
by a seed, in a part of it; all moments in all of it with `make test-long`.
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
from decon_core.config.load import load_config
from decon_core.storage.store import Store
from tests.assets.test_integrity import products_of
from tests.long_runs import IS_LONG
from tests.test_sample_world import copy_of_data

pytestmark = pytest.mark.kills

# As `decon-assets run` is, but killed when the work of a step, a check or a run is done, before the
# history says so; it prints how many of these moments there were.
PROGRAM = """
import os, signal, sys
from dagster import DagsterEventType, DagsterInstance
from decon_assets.cli.main import main

KINDS = (
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.STEP_SUCCESS,
    DagsterEventType.RUN_SUCCESS,
)
moment, n = int(sys.argv[1]), 0
keep = DagsterInstance.handle_new_event


def kept(self, event, **options):
    global n
    if event.is_dagster_event and event.dagster_event_type in KINDS:
        n += 1
        if n == moment:
            os.kill(os.getpid(), signal.SIGKILL)
    keep(self, event, **options)


DagsterInstance.handle_new_event = kept
code = main(["run", "--workers", "1"])
print(f"moments: {n}")
sys.exit(code)
"""


def run(config, home, moment=0):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(moment)],
        env={**os.environ, "DAGSTER_HOME": str(home), "DECON_CONFIG": str(config)},
        capture_output=True,
        text=True,
        check=False,
    )


def last_results(home):
    """The last result of each check."""
    with DagsterInstance.from_config(str(home)) as instance:
        keys = [spec.key for asset_check in GRAPH.checks for spec in asset_check.check_specs]
        records = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: records[key].status.value for key in keys if key in records}


def test_killed_between_two_steps_and_begun_again_it_comes_to_the_same(tmp_path):
    config = copy_of_data(tmp_path / "data", with_one_shard_each=not IS_LONG)
    if not IS_LONG:  # one mixture, and no feature
        before, _, _ = config.read_text().partition("# Variants of the corpus")
        config.write_text(f'{before}[[mixture]]\nname = "decontaminated"\n')
    home = tmp_path / "home"
    store = Store(load_config(config).store)
    undisturbed = run(config, home)
    assert undisturbed.returncode == 0, undisturbed.stderr
    products, results = products_of(store), last_results(home)
    assert len(results) > 15
    assert {*results.values()} == {"SUCCEEDED"}
    n_moments = int(undisturbed.stdout.rpartition("moments: ")[2])
    assert n_moments > 40
    moments = range(1, n_moments + 1)
    if not IS_LONG:
        moments = random.Random(9).sample(moments, 1)
    for moment in moments:
        shutil.rmtree(store.root)
        shutil.rmtree(home)
        assert run(config, home, moment).returncode == -signal.SIGKILL
        again = run(config, home)
        assert again.returncode == 0, (moment, again.stderr)
        assert last_results(home) == results, moment
        assert products_of(store) == products, moment
