"""The files by which a task on another machine tells what happened to its jobs."""

import os
import pickle
from collections import Counter

from decon_core.execution.engine import outcome_of
from decon_core.execution.processes import Event, Kind
from decon_core.features.clusters.task_files import (
    EventReader,
    EventWriter,
    TaskFiles,
    TaskJobs,
    run_pickled,
)
from tests.core.execution.jobs import Job, double


def test_events_are_read_while_they_are_written_and_a_cut_line_waits(tmp_path):
    path = tmp_path / "0.events"
    reader = EventReader(path)
    ended = Event(Kind.ENDED, 3, outcome_of(double, Job(4)))
    with EventWriter(path) as writer:
        assert [*reader.read()] == []
        writer.write(Event(Kind.STARTED, 3))
        assert [*reader.read()] == [Event(Kind.STARTED, 3)]
        writer.write(ended)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert [*reader.read()] == []
    path.write_bytes(whole)
    assert [*reader.read()] == [ended]
    assert [*reader.read()] == []


def test_progress_is_written_once_a_second_and_in_all_at_the_end(tmp_path):
    path = tmp_path / "0.events"
    with EventWriter(path) as writer:
        for _ in range(100):
            writer.write(Event(Kind.ADVANCED, 1, 7))
        writer.write(Event(Kind.ENDED, 1, b""))
    events = [*EventReader(path).read()]
    assert len(events) < 100
    assert sum(event.value for event in events if event.kind is Kind.ADVANCED) == 700
    assert events[-1].kind is Kind.ENDED


def test_jobs_that_were_in_progress_at_a_death_run_alone(tmp_path):
    files = TaskFiles(tmp_path / "run")
    files.write_work(double, None)
    jobs = TaskJobs(jobs=[(1, b"a"), (2, b"b"), (5, b"c")], deaths=Counter({2: 1}))
    files.write_jobs(0, [jobs])
    found = files.read_jobs(0, 0)
    assert (found.alone, found.others) == ([(2, b"b")], [(1, b"a"), (5, b"c")])


def test_a_pickled_job_runs_with_the_function_of_its_run(tmp_path):
    files = TaskFiles(tmp_path / "run")
    files.write_work(double, None)
    assert run_pickled(files.read_work(), pickle.dumps(Job(21))) == 42


def test_a_task_sees_that_its_submitter_has_died(tmp_path):
    files = TaskFiles(tmp_path / "run")
    files.write_work(double, None)
    own = tmp_path / "own"
    own.touch()
    files.keep_alive()
    assert not files.is_abandoned(own)
    os.utime(files.folder, (0, own.stat().st_mtime - 1000))
    assert files.is_abandoned(own)
    (files.folder / "work.pickle").unlink()
    files.folder.rmdir()
    assert files.is_abandoned(own)
