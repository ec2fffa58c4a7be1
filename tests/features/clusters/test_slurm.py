"""Jobs on a real Slurm: the same bytes as here, lost nodes, jobs that kill their workers."""

import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from decon_core.errors import CorpusError, EngineError
from decon_core.execution.jobs import run_jobs
from tests.core.execution.jobs import Job, double, results_of
from tests.features.clusters.conftest import wait_for
from tests.features.clusters.slurm_cluster import NODES, n_idle
from tests.long_runs import only_in_long_runs

pytestmark = pytest.mark.clusters


def run(jobs, engine):
    return run_jobs(
        double, jobs, workers=1, engine=engine, name_of=lambda one: f"shard-{one.number}"
    )


def queued(cluster):
    """States of all tasks of this project that have not ended."""
    lines = cluster.run("squeue", "--noheader", "--array", "--name=decon", "--format=%i %T").split(
        "\n"
    )
    return dict(line.split() for line in lines if line)


@pytest.fixture(autouse=True)
def all_nodes_up(cluster):
    wait_for(lambda: n_idle(cluster) == len(NODES))


def test_a_store_is_the_same_byte_for_byte_when_a_node_is_lost(
    cluster, slurm, corpus, local_files, monkeypatch, caplog
):
    monkeypatch.setattr("decon_core.execution.jobs._BYTES_PER_WORKER", 1)
    engine = slurm(array_size=3)
    killed, costs = [], {}

    def kill_a_node(n_done, *_):
        if n_done >= 3 and not killed:  # early: the task on it must not end by itself
            killed.append(
                cluster.run("squeue", "--noheader", "--states=RUNNING", "--format=%N").split()[0]
            )
            cluster.kill_node(killed[0])

    try:
        files = corpus.make("slurm", engine=engine, on_progress=kill_a_node, costs=costs)
    finally:
        for name in killed:
            cluster.start_node(name)
    assert killed
    assert files.keys() == local_files.keys()
    assert files == local_files
    lost = [one for one in caplog.messages if "NODE_FAIL" in one]
    assert lost, caplog.messages
    assert killed[0] in lost[0]
    assert costs.keys() == {pack.name for pack in corpus.packs}
    logs = {Path(log) for cost in costs.values() for log in cost.logs}
    assert {log.parent.name for log in logs} == {"logs"}
    assert all(cost.core_seconds > 0 and cost.n_bytes for cost in costs.values())


def test_results_failures_and_counts_of_jobs(slurm, tmp_path):
    jobs = [Job(number) for number in range(12)]
    jobs[3], jobs[7] = Job(3, does="refuse"), Job(7, does="fail")
    engine = slurm(jobs_per_task=4)
    progress = []
    done = run_jobs(double, jobs, workers=1, engine=engine, on_advance=progress.append)
    found = results_of(done)
    assert str(found.pop(3)) == "job 3: found a refusal; expected a number"
    assert isinstance(found.pop(7), ZeroDivisionError)
    assert found == {job.number: 2 * job.number for job in jobs if not job.does}
    assert progress[-1] == 100
    assert str(engine.counts).startswith("Slurm job ")
    assert str(engine.counts).endswith("0 queued, 0 running, 10 done, 2 failed, 0 requeued")
    assert not [*(tmp_path / "drafts").iterdir()]  # nothing is left of a run
    assert not [*(tmp_path / "logs").iterdir()]


@pytest.mark.parametrize("death", ["be killed", "kill the task"])
def test_a_job_that_kills_its_worker_or_its_task_is_named_and_others_go_on(slurm, tmp_path, death):
    jobs = [Job(number, tmp_path) for number in range(8)]
    jobs[1] = Job(1, tmp_path, death)
    engine = slurm(jobs_per_task=4, cpus_per_task=2)
    found = results_of(run(jobs, engine))
    error = found.pop(1)
    assert found == {number: 2 * number for number in (0, *range(2, 8))}
    assert isinstance(error, CorpusError)
    assert "shard-1: workers died 3 times" in str(error)
    log = Path(re.search(r"worker log: (\S+)", str(error))[1])
    assert log.parent == tmp_path / "logs"
    assert log.is_file()
    assert len(jobs[1].began.read_text().splitlines()) == 3
    assert (engine.counts.n_done, engine.counts.n_failed) == (7, 1)


def test_preempted_jobs_run_again_and_are_not_blamed(cluster, slurm, tmp_path, caplog):
    jobs = [Job(number, tmp_path, "wait") for number in range(3)]
    engine = slurm(partition="low", jobs_per_task=1, cpus_per_task=2)
    n_preempted = 0

    def preempt(_):
        """Take all nodes when all jobs run, as often as a job may die; then let them end."""
        nonlocal n_preempted
        counts = engine.counts
        if n_preempted < 3 and (counts.n_running, counts.n_requeued) == (3, 3 * n_preempted):
            n_preempted += 1
            cluster.run(
                "sbatch", "--partition=high", "--nodes=3", "--exclusive", "--job-name=other",
                f"--output={tmp_path}/high", "--wrap", "sleep 0",
            )  # fmt: skip
        if counts.n_requeued == 9:
            jobs[0].gate.touch()

    done = run_jobs(double, jobs, workers=1, engine=engine, on_advance=preempt)
    assert results_of(done) == {0: 0, 1: 2, 2: 4}
    assert sum("PREEMPTED" in one for one in caplog.messages) == 9


def test_closing_the_iterator_cancels_its_tasks_and_no_others(cluster, slurm, tmp_path):
    other = cluster.run(
        "sbatch", "--parsable", f"--output={tmp_path}/other", "--job-name=decon", "--wrap",
        "sleep 100",
    ).strip()  # fmt: skip
    jobs = [Job(0), *(Job(number, tmp_path, "wait") for number in range(1, 6))]
    with closing(run(jobs, slurm(jobs_per_task=1))) as done:
        assert next(done)[0].number == 0
        assert len(queued(cluster)) > 1
    assert {*queued(cluster)} == {other}
    cluster.run("scancel", other)


_PROGRAM = """
import sys
from pathlib import Path
from decon_core.features.clusters.settings import Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from decon_core.execution.jobs import run_jobs
from tests.core.execution.jobs import Job, double

folder = Path(sys.argv[1])
engine = SlurmEngine(Slurm(jobs_per_task=1, memory="500M"), folder / "drafts", folder / "logs")
jobs = [Job(number, folder, "wait") for number in range(4)]
for _ in run_jobs(double, jobs, workers=1, engine=engine):
    pass
"""


_BY_CTRL_C = pytest.param(
    signal.SIGINT, marks=only_in_long_runs("test_pipeline.py ends a run by this signal")
)


@pytest.mark.parametrize("number", [signal.SIGTERM, _BY_CTRL_C])
def test_a_process_that_is_ended_cancels_its_tasks(cluster, slurm, tmp_path, number):
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        wait_for(lambda: Job(0, tmp_path).began.exists())
        assert queued(cluster)
        process.send_signal(number)
        process.communicate()
    assert process.returncode in (128 + number, -number, 1)
    assert not queued(cluster)


def test_tasks_that_cannot_start_end_the_run_with_their_log(slurm):
    engine = slurm(jobs_per_task=1, setup=("echo no such module >&2", "exit 3"))
    with pytest.raises(EngineError, match="before their first job") as caught:
        results_of(run([Job(0), Job(1), Job(2)], engine))
    assert "no such module" in str(caught.value)


def test_a_setting_that_slurm_refuses_is_named(slurm):
    with pytest.raises(EngineError, match=r"(?s)invalid partition.*\[execution.slurm\]"):
        results_of(run([Job(0)], slurm(partition="no-such")))


def test_cancelled_tasks_end_the_run(cluster, slurm, tmp_path):
    jobs = [Job(number, tmp_path, "wait") for number in range(2)]

    def cancel(_):
        if jobs[0].began.exists() and (left := queued(cluster)):
            cluster.run("scancel", *left)

    done = run_jobs(double, jobs, workers=1, engine=slurm(jobs_per_task=1), on_advance=cancel)
    with pytest.raises(EngineError, match="cancelled"):
        results_of(done)
