"""Jobs on a real Ray cluster; `test_url_store.py` has lost nodes, and stores of the same bytes."""

import os
import signal
import subprocess
import sys
from contextlib import closing, suppress

import pytest

from decon_core.errors import CorpusError, EngineError
from decon_core.execution.jobs import run_jobs
from decon_core.features.clusters import ray_cluster
from decon_core.features.clusters.ray_cluster import RayEngine
from decon_core.features.clusters.settings import Ray
from tests.core.execution.jobs import Job, double, results_of
from tests.features.clusters.conftest import wait_for

# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.clusters,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture
def engine(ray_nodes):
    return RayEngine(Ray(address=ray_nodes.address))


def run(jobs, engine, **options):
    return run_jobs(double, jobs, workers=1, engine=engine, name_of=name_of, **options)


def name_of(job):
    return f"shard-{job.number}"


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_failures_and_counts_of_jobs(ray_nodes, engine, caplog):
    caplog.set_level("INFO")
    jobs = [Job(number) for number in range(12)]
    jobs[3], jobs[7] = Job(3, does="refuse"), Job(7, does="fail")
    progress = []
    found = results_of(run(jobs, engine, on_advance=progress.append))
    assert str(found.pop(3)) == "job 3: found a refusal; expected a number"
    assert isinstance(found.pop(7), ZeroDivisionError)
    assert found == {job.number: 2 * job.number for job in jobs if not job.does}
    assert progress[-1] == 100
    assert str(engine.counts) == "0 queued, 0 running, 10 done, 2 failed, 0 requeued"
    assert f"Ray at {ray_nodes.address}: 12 jobs" in caplog.messages


class Board(ray_cluster.ProgressBoard):
    """Tells where it is, and ends on demand."""

    def node(self):
        import ray

        return ray.get_runtime_context().get_node_id()

    def die(self):
        os._exit(1)


def test_progress_is_collected_beside_the_submitter_and_on_after_the_collector_died(
    engine, monkeypatch
):
    import ray

    results_of(run([Job(0)], engine))  # connects
    monkeypatch.setattr(ray_cluster, "ProgressBoard", Board)
    boards = [ray_cluster._progress_board(ray) for _ in range(2)]
    here = ray.get_runtime_context().get_node_id()
    assert {*ray.get([board.node.remote() for board in boards])} == {here}
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(boards[0].die.remote())

    def is_back():
        with suppress(ray.exceptions.RayActorError):
            return ray.get(boards[0].take.remote()) == []

    wait_for(is_back)


def test_a_runtime_environment_that_cannot_be_set_up_is_named(
    ray_nodes, engine, tmp_path, monkeypatch
):
    import ray

    # Not one that ends while it is cancelled: Ray may abort this process then.
    waiting = Job(1, tmp_path, "wait")
    results_of(run([Job(0)], engine))  # connects

    def fail(*_, **__):
        raise ray.exceptions.RuntimeEnvSetupError("Traceback\nRuntimeError: no such package")

    with monkeypatch.context() as patch:
        patch.setattr("ray.get", fail)
        with pytest.raises(EngineError, match=r"runtime_env: found RuntimeError: no such package"):
            results_of(run([waiting], engine))

    def refuse(**_):
        raise ValueError("directory /nowhere must exist")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", refuse)
    wrong = RayEngine(Ray(address=ray_nodes.address, runtime_env={"working_dir": "/nowhere"}))
    with pytest.raises(EngineError, match=r"/nowhere must exist.*or correct runtime_env there"):
        results_of(run([Job(0)], wrong))


class SeenError(Exception):
    """The engine has looked at its tasks."""


def test_tasks_that_no_node_can_run_are_announced(ray_nodes, caplog):
    def stop(_):
        raise SeenError

    settings = Ray(address=ray_nodes.address, cpus=8, memory=10**15, resources={"scan": 1})
    with pytest.raises(SeenError):
        results_of(run([Job(0)], RayEngine(settings), on_advance=stop))
    assert (
        "no node of the Ray cluster has the resources that a task requests (CPU 8, memory 1"
        in caplog.text
    )
    assert ", scan 1): jobs wait until such a node joins" in caplog.text


def test_a_job_that_kills_its_worker_is_named_and_others_go_on(engine, tmp_path):
    jobs = [Job(number, tmp_path) for number in range(6)]
    jobs[1] = Job(1, tmp_path, "be killed")
    found = results_of(run(jobs, engine))
    error = found.pop(1)
    assert found == {number: 2 * number for number in (0, *range(2, 6))}
    assert isinstance(error, CorpusError)
    assert "shard-1: workers died 3 times" in str(error)
    assert "/logs/worker-" in str(error)
    assert len(jobs[1].began.read_text().splitlines()) == 3
    assert (engine.counts.n_done, engine.counts.n_failed) == (5, 1)


def test_closing_the_iterator_cancels_its_tasks_also_those_that_ray_forgets(
    engine, tmp_path, monkeypatch
):
    import ray

    cancel, forgotten = ray.cancel, []

    def forgetful_cancel(reference, **options):
        if len(forgotten) < 5:
            forgotten.append(reference)
        else:
            cancel(reference, **options)

    monkeypatch.setattr("ray.cancel", forgetful_cancel)
    jobs = [Job(0), *(Job(number, tmp_path, "wait") for number in range(1, 6))]
    with closing(run(jobs, engine)) as done:
        assert next(done)[0].number == 0
        wait_for(lambda: any(job.pids for job in jobs[1:]))
    assert len(forgotten) == 5
    wait_for(lambda: not any(is_running(pid) for job in jobs[1:] for pid in job.pids))
    assert results_of(run([Job(7)], engine)) == {7: 14}  # the cluster is free again


_PROGRAM = """
import sys
from pathlib import Path
from decon_core.features.clusters.settings import Ray
from decon_core.execution.jobs import run_jobs
from decon_core.features.clusters.ray_cluster import RayEngine
from tests.core.execution.jobs import Job, double

jobs = [Job(number, Path(sys.argv[1]), "wait") for number in range(4)]
for _ in run_jobs(double, jobs, workers=1, engine=RayEngine(Ray())):
    pass
"""


def test_a_process_that_is_ended_cancels_its_tasks(ray_nodes, tmp_path):
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    environment = {**os.environ, "RAY_ADDRESS": ray_nodes.address}
    job = Job(0, tmp_path)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        wait_for(lambda: job.pids)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    # Ray changes the exit code if the signal arrives while it waits.
    assert process.returncode in (128 + signal.SIGTERM, 1), errors
    wait_for(lambda: not any(map(is_running, job.pids)))
