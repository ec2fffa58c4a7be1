"""`run` of the sample world, ended between any two of its steps, and begun again.

Products, checks and database are those of a run that nobody stopped. One run leaves copies of its
store and its history at a tenth of the moments, drawn by a seed (all with `make test-long`): what a
process that is killed there leaves behind. At the first of these moments one is killed.
"""

import os
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
from tests.test_sample_world import copy_of_data

pytestmark = pytest.mark.kills

# As `decon-assets run` is, but copied or killed when the work of a step, a check or a run is done,
# before the history says so; it prints how many of these moments there were.
PROGRAM = """
import os, random, shutil, signal, sys
from pathlib import Path
from dagster import DagsterEventType, DagsterInstance
from decon_assets.cli.main import main

KINDS = (
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.STEP_SUCCESS,
    DagsterEventType.RUN_SUCCESS,
)
act, argument, *folders = sys.argv[1:]
n, draw = 0, random.Random(9)
keep = DagsterInstance.handle_new_event


def kept(self, event, **options):
    global n
    if event.is_dagster_event and event.dagster_event_type in KINDS:
        n += 1
        if act == "copy" and draw.random() < float(argument):
            for folder in map(Path, folders):
                shutil.copytree(folder, folder.with_name(f"{folder.name}-{n}"), symlinks=True)
        if act == "kill" and n == int(argument):
            os.kill(os.getpid(), signal.SIGKILL)
    keep(self, event, **options)


DagsterInstance.handle_new_event = kept
code = main(["run", "--workers", "1"])
print(f"moments: {n}")
sys.exit(code)
"""


def run(config, home, *arguments):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments or ("finish", ""))],
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


def moments_of(home):
    """Those that have a copy of the home."""
    return sorted(int(path.name.rpartition("-")[2]) for path in home.parent.glob("home-*"))


def files_in(folder):
    """Names of files; those of drafts and locks begin with a dot."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder) for path in paths if not path.name.startswith(".")}


def test_ended_between_two_steps_and_begun_again_it_comes_to_the_same(tmp_path):
    config, home = copy_of_data(tmp_path / "data"), tmp_path / "home"
    store = Store(load_config(config).store)
    places = (store.root, home)
    share = 1 if os.environ.get("DECON_WHOLE_SESSION") else 0.1
    undisturbed = run(config, home, "copy", share, *places)
    assert undisturbed.returncode == 0, undisturbed.stderr
    products, results = products_of(store), last_results(home)
    assert len(results) > 15
    assert {*results.values()} == {"SUCCEEDED"}
    n_moments = int(undisturbed.stdout.rpartition("moments: ")[2])
    assert n_moments > 40
    moments = moments_of(home)
    assert len(moments) >= n_moments * share / 2
    copies = {
        moment: [one.with_name(f"{one.name}-{moment}") for one in places] for moment in moments
    }

    def goes_on_from(moment):
        again = run(config, home)
        assert again.returncode == 0, (moment, again.stderr)
        assert last_results(home) == results, moment
        assert products_of(store) == products, moment

    def clear():
        for place in places:
            shutil.rmtree(place)

    for moment in moments:
        clear()
        for place, copy in zip(places, copies[moment], strict=True):
            shutil.copytree(copy, place, symlinks=True)
        goes_on_from(moment)
    clear()
    assert run(config, home, "kill", moments[0]).returncode == -signal.SIGKILL
    assert files_in(store.root) == files_in(copies[moments[0]][0])  # a copy is what a kill leaves
    goes_on_from(moments[0])
