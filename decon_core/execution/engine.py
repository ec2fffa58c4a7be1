"""What every engine does: run a list of jobs, and count them; and how a feature opens its own."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from decon_core.config.feature_table import FeatureTable
from decon_core.execution.preparation import Prepare
from decon_core.execution.progress import Advance, JobCounts
from decon_core.storage.paths import RemotePath
from decon_core.storage.store import Store

# What engines log here is in the log of a run, whichever feature they are of.
ENGINE_LOG = logging.getLogger("decon_core.execution")


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


class EngineTable(FeatureTable, ABC):
    """A table of decon.toml with the chosen engine, and settings of the engines of a feature."""

    engine: str

    @abstractmethod
    def open(self, name: str, store: Store, store_url: RemotePath | None) -> Engine:
        """Return the engine of this name; it starts nothing yet.

        `store_url`: where nodes that see no folder read and write the store; None: the work is one
        that needs the folder.
        """

    @abstractmethod
    def require(self, name: str) -> None:
        """Raise an error if the engine of this name cannot be used from this machine."""
