"""What every engine does: run a list of jobs, and count them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from decon_core.execution.preparation import Prepare
from decon_core.execution.progress import Advance, JobCounts
from decon_core.storage.paths import RemotePath


@dataclass(frozen=True, kw_only=True)
class Work:
    """A function, the jobs that it is called with, and who hears of their progress."""

    fn: Callable[[Any], Any]
    jobs: Sequence[Any]
    on_advance: Advance
    prepare: Prepare | None
    name_of: Callable[[Any], str]


Ended = tuple[int, Future[Any]]  # the number of a job, and its finished future


class Engine(Protocol):
    """Runs jobs on this machine or on a cluster."""

    @property
    def is_remote(self) -> bool:
        """Whether jobs run on other machines, with workers of their own."""

    @property
    def store_url(self) -> RemotePath | None:
        """Where nodes read and write the store; None if they see its folder."""

    @property
    def counts(self) -> JobCounts:
        """The counts of the current or last run."""

    def most_workers(self, workers: int) -> int:
        """Return the most workers there can be at once; `workers`: processes of this machine."""

    def run(self, work: Work, *, workers: int) -> Iterator[Ended]:
        """Yield jobs by number when they end; closing the iterator stops what it started."""
