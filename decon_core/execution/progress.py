"""Progress of jobs: what a job reports while it runs, and counts of the jobs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Advance = Callable[[int], None]


def ignore(n: int) -> None:
    """Receive progress that is not shown."""


_advance: Advance = ignore


def advance(n: int) -> None:
    """Report progress from within a job: `n` more units are done."""
    _advance(n)


@contextmanager
def advancing(receive: Advance) -> Iterator[None]:
    """Pass what a job reports with `advance` to a function until the block ends."""
    global _advance  # noqa: PLW0603 - a job is a plain function without access to its engine
    _advance = receive
    try:
        yield
    finally:
        _advance = ignore


@dataclass
class JobCounts:
    """Counts of the jobs of a run by their state."""

    n_jobs: int = 0
    n_running: int = 0
    n_done: int = 0
    n_failed: int = 0
    n_requeued: int = 0  # more than once, if a job was requeued more than once
    queue: str = ""  # their place in a queue, such as a job with its number

    @property
    def n_queued(self) -> int:
        return self.n_jobs - self.n_running - self.n_done - self.n_failed

    def __str__(self) -> str:
        where = f"{self.queue}: " if self.queue else ""
        return (
            f"{where}{self.n_queued:,} queued, {self.n_running:,} running, {self.n_done:,} done, "
            f"{self.n_failed:,} failed, {self.n_requeued:,} requeued"
        )


@dataclass
class Tracker:
    """Follows the jobs of a run, by number: which are running, and how far each one is."""

    counts: JobCounts
    on_advance: Advance
    running: set[int] = field(default_factory=set)
    _units: Counter[int] = field(default_factory=Counter)

    def start(self, number: int) -> None:
        self.running.add(number)
        self.counts.n_running = len(self.running)

    def advance(self, number: int, n: int) -> None:
        self._units[number] += n

    def correct(self, number: int, n_units: int) -> None:
        """Set the progress of a job that has ended, of which a part may not have been reported."""
        self._units[number] = n_units

    def end(self, number: int, *, is_failed: bool) -> None:
        self.report()  # before it counts: its caller has not seen that it ended
        self._leave(number)
        if is_failed:
            self.counts.n_failed += 1
        else:
            self.counts.n_done += 1

    def requeue(self, number: int) -> None:
        """Note that a job starts again: its progress is lost."""
        self._leave(number)
        self._units[number] = 0
        self.counts.n_requeued += 1

    def report(self) -> None:
        """Report the total progress of all jobs."""
        self.on_advance(self._units.total())

    def _leave(self, number: int) -> None:
        self.running.discard(number)
        self.counts.n_running = len(self.running)
