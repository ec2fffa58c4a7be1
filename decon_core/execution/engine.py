"""What every engine does: prepare its machines, run a list of jobs, and return their outcomes."""

from __future__ import annotations

import fcntl
import logging
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from decon_core.errors import CorpusError, Problem
from decon_core.execution.progress import Advance, JobCounts
from decon_core.storage.paths import RemotePath

# What engines log here is in the log of a run, whichever feature they are of.
ENGINE_LOG = logging.getLogger("decon_core.execution")

# Give up after three deaths: one may be an out-of-memory kill or a lost node.
MOST_DEATHS = 3

Prepare = Callable[[Any], None]


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


# The machine of a job -----------------------------------------------------------------------------


def prepare_machine(prepare: Prepare, job: Any) -> None:
    """Prepare this process for jobs such as `job`, while no other one on the machine does it first.

    The first process holds the lock alone. Those that come meanwhile wait for it, then find its
    work in a cache, and go on side by side.
    """
    path = Path(tempfile.gettempdir()) / f"decon-prepare-{os.getuid()}.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        except OSError:
            pass  # no locks here: each process prepares alone
        prepare(job)
    finally:
        with suppress(OSError):
            os.close(file)


def outcome_of(fn: Callable[[Any], Any], job: Any) -> bytes:
    """Run a job and return its result or its exception, pickled."""
    try:
        result = fn(job)
    except Exception as error:  # noqa: BLE001 - it is raised again where the job was started
        error.add_note(f"In a worker:\n{traceback.format_exc()}")
        try:
            pickled = pickle.dumps((False, error))
            pickle.loads(pickled)  # noqa: S301 - an exception may fail only here
        except (AttributeError, TypeError, ValueError, pickle.PickleError):
            plain = RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
            return pickle.dumps((False, plain))
        return pickled
    return pickle.dumps((True, result))


# The machine that submits jobs --------------------------------------------------------------------


def future_of(outcome: bytes) -> Future[Any]:
    """Return a finished future with the result or the exception of a job."""
    is_result, value = pickle.loads(outcome)  # noqa: S301 - written by a worker of this run
    future: Future[Any] = Future()
    if is_result:
        future.set_result(value)
    else:
        future.set_exception(value)
    return future


def failed(error: Exception) -> Future[Any]:
    """Return a finished future with an exception."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def abandoned(name: str, deaths: Sequence[str], log: str) -> CorpusError:
    """Return the error of a job whose workers died too often; `deaths` says how each one did."""
    causes = ", ".join(dict.fromkeys(deaths)) or "cause unknown"
    remedy = "Give workers more memory or time, run fewer at once, or remove the file"
    if log:
        remedy += f"; worker log: {log}"
    failure = f"workers died {len(deaths)} times while reading this ({causes})"
    return CorpusError(Problem(name, failure, remedy=remedy))
