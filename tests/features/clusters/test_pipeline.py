"""A pipeline on Slurm, as typed; `test_url_store.py` has one on Ray."""

import shutil
import signal
import subprocess
import sys

import pytest

from decon_assets.instance.home import ensure_home
from tests.features.clusters.conftest import files_of, wait_for
from tests.finished_world import DATA, copy_finished_world
from tests.long_runs import only_in_long_runs

pytestmark = pytest.mark.clusters

# A sample world is too small for a cluster.
_PROGRAM = """
import sys
from decon_core.features.blends import build as blends
from decon_core.execution import jobs
from decon_core.report import gather
from decon_assets.cli.main import main

jobs._BYTES_PER_WORKER = blends._TOKENS_PER_WORKER = gather._SCAN_RESULTS_PER_WORKER = 1
sys.exit(main(sys.argv[1:]))
"""
# Not the same in two places, or at two times.
_OWN = ("checks", "packs", "report", "study/study.duckdb", "study/study.json")


def command(config, *arguments):
    return [sys.executable, "-c", _PROGRAM, *arguments, "--config", str(config)]


def copy_of_data(folder):
    shutil.copytree(DATA, folder / "data", ignore=shutil.ignore_patterns(".d*", "__pycache__"))
    return folder / "data" / "decon.toml"


def store_files(config):
    files = files_of(config.parent / ".decon")
    return {name: content for name, content in files.items() if not name.startswith(_OWN)}


MIXTURES = """
[[mixture]]
name = "decontaminated"
[[mixture]]
name = "control"
take = "control"
control_of = "decontaminated"
[[blend]]
name = "stream"
of = "decontaminated"
"""


def run_on(cluster, config, home):
    """Run a configuration on Slurm; what it says."""
    config.write_text(f'{config.read_text()}\n[execution.slurm]\nmemory = "500M"\narray_size = 3\n')
    done = subprocess.run(
        command(config, "run", "--verbose", "--engine", "slurm"),
        env={**cluster.environment, "DAGSTER_HOME": str(ensure_home(home))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@only_in_long_runs("test_url_store.py has a pipeline on Ray, test_slurm.py scans on Slurm")
def test_a_world_is_the_same_on_a_cluster(cluster, world, tmp_path):
    world.mixtures = MIXTURES
    world.write_config()
    shutil.copytree(world.folder, tmp_path / "there")
    world.run()
    said = run_on(cluster, tmp_path / "there" / "decon.toml", tmp_path / "home")
    assert "Slurm job " in said
    assert_same_files(tmp_path / "there" / "decon.toml", store_files(world.config_path))


def assert_same_files(config, expected):
    found = store_files(config)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


@only_in_long_runs("takes two minutes, most of them waiting for Slurm")
def test_the_sample_world_is_the_same_on_a_cluster(cluster, tmp_path):
    expected = store_files(copy_finished_world(tmp_path / "here"))
    config = copy_of_data(tmp_path / "there")
    said = run_on(cluster, config, tmp_path / "home")
    assert " done, 0 failed, 0 requeued" in said
    assert "Slurm job " in said
    assert_same_files(config, expected)


_BY_SIGTERM = pytest.param(
    signal.SIGTERM, marks=only_in_long_runs("test_slurm.py ends a process by this signal")
)


@pytest.mark.parametrize("number", [signal.SIGINT, _BY_SIGTERM])
def test_a_dagster_run_that_is_ended_cancels_its_tasks_and_no_others(
    cluster, world, tmp_path, number
):
    other = cluster.run(
        "sbatch", "--parsable", "--nodes=3", "--exclusive", f"--output={tmp_path}/other",
        "--job-name=other", "--wrap", "sleep 300",
    ).strip()  # fmt: skip
    world.write_config()

    def names():
        return cluster.run("squeue", "--noheader", "--format=%j").split()

    environment = {**cluster.environment, "DAGSTER_HOME": str(ensure_home(tmp_path / "home"))}
    with subprocess.Popen(
        command(world.config_path, "run", "--engine", "slurm"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        wait_for(lambda: "decon" in names() or process.poll() is not None)
        process.send_signal(number)
        output, _ = process.communicate()
    assert process.returncode, output
    assert names() == ["other"], output
    cluster.run("scancel", other)
