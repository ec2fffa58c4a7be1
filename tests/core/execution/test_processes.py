"""Worker processes: results, failures, deaths, and the end of the iterator."""

import os
from contextlib import closing
from pickle import PicklingError

import pytest

from decon_core.errors import CorpusError, EngineError
from decon_core.execution import processes
from decon_core.execution.jobs import run_jobs
from decon_core.execution.local import LocalEngine
from tests.core.execution.jobs import Job, double, note_preparation, results_of


def name_of(job):
    return f"shard-{job.number}"


def test_results_come_with_their_jobs_and_progress_adds_up():
    jobs = [Job(number) for number in range(7)]
    progress = []
    engine = LocalEngine()
    found = results_of(run_jobs(double, jobs, workers=2, engine=engine, on_advance=progress.append))
    assert found == {number: 2 * number for number in range(7)}
    assert progress[-1] == 70
    assert progress == sorted(progress)
    counts = engine.counts
    assert (counts.n_done, counts.n_failed, counts.n_queued, counts.n_running) == (7, 0, 0, 0)


def test_exceptions_of_jobs_are_in_their_futures_and_others_go_on():
    jobs = [Job(0), Job(1, does="refuse"), Job(2, does="fail"), Job(3)]
    found = results_of(run_jobs(double, jobs, workers=2))
    assert (found[0], found[3]) == (0, 6)
    assert str(found[1]) == "job 1: found a refusal; expected a number"
    assert isinstance(found[2], ZeroDivisionError)
    assert "in double" in found[2].__notes__[0]  # the traceback of the worker


@pytest.mark.parametrize("death", ["die", "be killed"])
def test_a_job_that_kills_its_worker_three_times_is_named_and_others_go_on(tmp_path, death):
    jobs = [Job(number) for number in range(6)]
    jobs[2] = Job(2, tmp_path, death)
    engine = LocalEngine()
    found = results_of(run_jobs(double, jobs, workers=2, engine=engine, name_of=name_of))
    error = found.pop(2)
    assert found == {number: 2 * number for number in (0, 1, 3, 4, 5)}
    assert isinstance(error, CorpusError)
    assert "shard-2: workers died 3 times" in str(error)
    assert ("SIGKILL" if death == "be killed" else "exit code 9") in str(error)
    assert len(jobs[2].began.read_text().splitlines()) == 3
    assert (engine.counts.n_done, engine.counts.n_failed, engine.counts.n_requeued) == (5, 1, 2)


def test_closing_the_iterator_stops_the_workers(tmp_path):
    jobs = [Job(0), Job(1, tmp_path, "wait"), Job(2, tmp_path, "wait")]
    with closing(run_jobs(double, jobs, workers=3)) as done:
        next(done)
    for job in jobs[1:]:
        for pid in job.pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def test_workers_that_cannot_start_are_no_fault_of_a_job(monkeypatch):
    monkeypatch.setattr(processes, "_work", os.abort)  # not what a process expects
    with pytest.raises(EngineError, match="before their first job"):
        results_of(run_jobs(double, [Job(0), Job(1)], workers=2))


def test_each_worker_is_prepared_before_its_first_job(tmp_path):
    jobs = [(number, Job(number, tmp_path)) for number in range(6)]
    task = processes.Task(fn=double, jobs=jobs, prepare=note_preparation)
    events = [event for event in processes.run_in_processes(task, n_workers=2) if event]
    assert sum(event.kind is processes.Kind.ENDED for event in events) == 6
    prepared = (tmp_path / "prepared").read_text().splitlines()
    assert len({*prepared}) == len(prepared) <= 2


def test_a_worker_that_the_system_does_not_start_ends_the_run(monkeypatch):
    start, n_started = processes._Workers.start, []

    def start_one(self):
        with monkeypatch.context() as patch:
            if n_started:
                patch.setattr("multiprocessing.util.spawnv_passfds", refuse)
            n_started.append(1)
            start(self)

    def refuse(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(processes._Workers, "start", start_one)
    with pytest.raises(EngineError, match="Resource temporarily unavailable"):
        results_of(run_jobs(double, [Job(number) for number in range(4)], workers=2))


def test_a_fault_of_the_thread_that_feeds_workers_is_raised():
    jobs = [Job(0), Job(1, folder=lambda: None), Job(2)]  # a function that cannot be sent
    with pytest.raises((AttributeError, TypeError, PicklingError)):
        results_of(run_jobs(double, jobs, workers=2))


def test_a_signal_without_a_name_is_named_by_its_number(tmp_path):
    jobs = [Job(number) for number in range(4)]
    jobs[1] = Job(1, tmp_path, "get signal 40")
    found = results_of(run_jobs(double, jobs, workers=2, name_of=name_of))
    assert "killed by signal 40" in str(found.pop(1))
    assert found == {0: 0, 2: 4, 3: 6}


def test_an_engine_that_loses_jobs_is_noticed():
    class Forgetful(LocalEngine):
        def run(self, work, *, workers):
            yield from list(super().run(work, workers=workers))[:-1]

    with pytest.raises(EngineError, match="2 results for 3 jobs"):
        results_of(run_jobs(double, [Job(n) for n in range(3)], workers=2, engine=Forgetful()))
