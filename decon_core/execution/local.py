"""Runs jobs on this machine: in this process, or in worker processes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from decon_core.errors import DeconError
from decon_core.execution.engine import Ended, Work, abandoned, failed, future_of
from decon_core.execution.processes import Event, Kind, Task, run_in_processes
from decon_core.execution.progress import JobCounts, Tracker, advancing

_log = logging.getLogger(__name__)


def run_here(work: Work) -> Iterator[Ended]:
    """Run jobs one after the other in this process: no start-up cost, plain tracebacks."""
    n_done = 0

    def add(n: int) -> None:
        nonlocal n_done
        n_done += n
        work.on_advance(n_done)

    for number, job in enumerate(work.jobs):
        future: Future[Any] = Future()
        with advancing(add):
            try:
                future.set_result(work.fn(job))
            except DeconError as error:
                future.set_exception(error)
        yield number, future


@dataclass
class LocalEngine:
    """Runs jobs in processes of this machine."""

    counts: JobCounts = field(default_factory=JobCounts)
    is_remote: bool = False
    store_url: None = None

    def most_workers(self, workers: int) -> int:
        return workers

    def run(self, work: Work, *, workers: int) -> Iterator[Ended]:
        # What they need was compiled by this process, before there were any workers.
        task = Task(fn=work.fn, jobs=[*enumerate(work.jobs)])
        self.counts = JobCounts(len(work.jobs))
        follower = Follower(work, Tracker(self.counts, work.on_advance))
        with closing(run_in_processes(task, n_workers=workers)) as events:
            for event in events:
                if event is None:
                    follower.tracker.report()
                elif ended := follower.follow(event):
                    yield ended


@dataclass
class Follower:
    """Turns events of worker processes into finished jobs."""

    work: Work
    tracker: Tracker
    deaths: dict[int, list[str]] = field(default_factory=dict)  # how the workers of a job died

    def follow(self, event: Event, *, log: str = "") -> Ended | None:
        """Note an event; return the job if it has ended. `log`: where the worker writes."""
        kind, number, value = event
        match kind:
            case Kind.STARTED:
                self.tracker.start(number)
            case Kind.ADVANCED:
                self.tracker.advance(number, value)
            case Kind.ENDED:
                return self._end(number, future_of(value))
            case Kind.DIED:
                self._note_death(number, value, log)
                self.tracker.requeue(number)
            case Kind.ABANDONED:
                self._note_death(number, value, log)
                return self.abandon(number, log)
        return None

    def abandon(self, number: int, log: str) -> Ended:
        """Give up a job whose workers died too often."""
        error = abandoned(self.name_of(number), self.deaths[number], log)
        return self._end(number, failed(error))

    def name_of(self, number: int) -> str:
        return self.work.name_of(self.work.jobs[number])

    def _note_death(self, number: int, how: str, log: str) -> None:
        self.deaths.setdefault(number, []).append(how)
        where = f"; log: {log}" if log else ""
        _log.warning(f"{self.name_of(number)}: its worker died ({how}){where}")

    def _end(self, number: int, future: Future[Any]) -> Ended:
        self.tracker.end(number, is_failed=future.exception() is not None)
        return number, future


LOCAL = LocalEngine()
