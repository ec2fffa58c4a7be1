"""Runs jobs over shards on an engine, or in this process if there is little to do; their cost."""

from __future__ import annotations

import logging
import os
import pickle
import platform
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from decon_core.errors import ConfigError, CorpusError, EngineError, Problem
from decon_core.execution.engine import Engine, Prepare, Work
from decon_core.execution.local import LOCAL, run_here
from decon_core.execution.progress import Advance, ignore

Job = TypeVar("Job")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)

WORKERS_VARIABLE = "DECON_WORKERS"

# A worker takes about 1 s to start; in that time it could scan some 50 MB of compressed shards.
_BYTES_PER_WORKER = 100_000_000
# Reading a shard and writing files about it takes some 10 ms, however small it is. Scanning this
# many bytes takes the same time.
BYTES_PER_SHARD = 500_000

_SECONDS_BETWEEN_LOG_LINES = 10.0


def usable_cores() -> int:
    """Return the number of cores this process may use; a scheduler may allow fewer than exist."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wanted_workers() -> int:
    """Return the number of workers from $DECON_WORKERS; if unset, the number of usable cores."""
    value = os.environ.get(WORKERS_VARIABLE)
    if not value:
        return usable_cores()
    if not value.isdecimal() or int(value) < 1:
        expected, remedy = "an integer of at least 1", "unset it to use one worker per core"
        raise ConfigError(Problem(f"${WORKERS_VARIABLE}", repr(value), expected, remedy))
    return int(value)


def useful_workers(workers: int, sizes: Sequence[int], *, engine: Engine = LOCAL) -> int:
    """Limit `workers` to the amount of work; 0 means that it is not worth starting a worker.

    `sizes` are the bytes to read for each job, and `BYTES_PER_SHARD` more for each shard of which
    files are written. A cluster has workers of its own, whatever `workers` is.
    """
    return min(engine.most_workers(workers), len(sizes), sum(sizes) // _BYTES_PER_WORKER)


def runs_here(workers: int, engine: Engine) -> bool:
    """Return whether this process does all jobs itself with so many workers."""
    return workers <= (0 if engine.is_remote else 1)


def run_jobs(
    fn: Callable[[Job], Any],
    jobs: Sequence[Job],
    *,
    workers: int,
    engine: Engine = LOCAL,
    on_advance: Advance | None = None,
    prepare: Prepare | None = None,
    name_of: Callable[[Job], str] = str,
) -> Generator[tuple[Job, Future[Any]]]:
    """Yield each job with its future when it ends; closing the iterator early stops the others.

    `fn` is a function of a module, and jobs hold paths and small values, so that they can run
    anywhere. A job whose worker dies is run again; after three deaths its future has a CorpusError
    with the job's `name_of`. `on_advance` receives the total progress of all jobs, as reported with
    `advance`; without it, the states of jobs on a cluster are logged. `prepare` compiles what a job
    needs, once on each machine of a cluster.
    """
    if not jobs:
        return
    is_here = runs_here(workers, engine)
    if is_here and engine.is_remote:
        _log.info("running on this machine: too little work for a cluster")
    if on_advance is None:
        on_advance = ignore if is_here or not engine.is_remote else _log_of_states(engine)
    work = Work(fn=fn, jobs=jobs, on_advance=on_advance, prepare=prepare, name_of=name_of)
    done = run_here(work) if is_here else engine.run(work, workers=workers)
    n_ended = 0
    for number, future in done:
        n_ended += 1
        yield jobs[number], future
    if n_ended != len(jobs):
        failure = f"The engine returned {n_ended} results for {len(jobs)} jobs"
        raise EngineError(Problem("", failure, remedy="This is a bug in the engine; run it again"))


def results_of(ended: Iterable[tuple[Job, Future[Any]]]) -> Iterator[tuple[Job, Any]]:
    """Yield each job with its result.

    Raises CorpusError for all shards that could not be read, after the others are done.
    """
    problems: list[Problem] = []
    for job, future in ended:
        error = future.exception()
        if isinstance(error, CorpusError):
            problems += error.problems
        elif error:
            raise error
        else:
            yield job, future.result()
    CorpusError.raise_for(dict.fromkeys(problems))


def _log_of_states(engine: Engine) -> Advance:
    """Return a function that logs how many jobs are queued, running and done, if it is time."""
    logged_at = time.monotonic()

    def log(_: int) -> None:
        nonlocal logged_at
        if time.monotonic() - logged_at >= _SECONDS_BETWEEN_LOG_LINES:
            logged_at = time.monotonic()
            _log.debug(str(engine.counts))

    return log


def in_threads(
    fn: Callable[[Job], Result], jobs: Iterable[Job], *, threads: int
) -> Iterator[Result]:
    """Apply a function to jobs in several threads, and yield the results in order.

    Two jobs ahead per thread keep the threads busy and memory bounded.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        waiting: deque[Future[Result]] = deque()
        for job in jobs:
            waiting.append(pool.submit(fn, job))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # jobs that wait are left out if the caller stopped, or one has failed
        pool.shutdown(cancel_futures=True)


def one_ahead(items: Generator[Result]) -> Generator[Result]:
    """Yield the items of a generator, while another thread makes the next item.

    An error is raised after the same items as without the thread. When the caller stops, the thread
    ends after the item that it is making, and the generator is closed.
    """
    end: Any = object()
    pool = ThreadPoolExecutor(1)
    try:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item
    finally:
        pool.shutdown()
        items.close()


@contextmanager
def in_subprocess(fn: Callable[[Job], None], job: Job) -> Iterator[None]:
    """Run a job in a subprocess while the block runs, and wait for it at the end.

    For jobs that leave their result on disk: nothing is returned and failures are ignored. Not a
    worker process: those import the main program first, which may not be written for that.
    """
    code = "import pickle, sys; fn, job = pickle.load(sys.stdin.buffer); fn(job)"
    command, silent = [sys.executable, "-c", code], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent) as process:  # noqa: S603 - our own interpreter
        try:
            with suppress(BrokenPipeError):
                pickle.dump((fn, job), cast("IO[bytes]", process.stdin))
                cast("IO[bytes]", process.stdin).close()
            yield
        except BaseException:
            process.kill()
            raise


# What jobs cost -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What processes spent on shards. Of several machines, all are named."""

    core_seconds: float = 0.0
    n_bytes: int = 0  # bytes of shards, approximately
    peak_bytes: int = 0  # the most memory that one process had so far
    nodes: frozenset[str] = frozenset()
    logs: frozenset[str] = frozenset()  # files to which the processes write their errors

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.core_seconds + other.core_seconds,
            self.n_bytes + other.n_bytes,
            max(self.peak_bytes, other.peak_bytes),
            self.nodes | other.nodes,
            self.logs | other.logs,
        )


def cost_since(started: float, n_bytes: int) -> Cost:
    """Return what this process spent since `started`, a value of `time.process_time`."""
    return Cost(
        time.process_time() - started,
        n_bytes,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        frozenset([platform.node()]),
        frozenset(filter(None, [log_file()])),
    )


def log_file() -> str:
    """Return the file to which this process writes its errors; empty if it is not a file."""
    try:
        path = Path("/proc/self/fd/2").readlink()
    except OSError:
        return ""
    return str(path) if path.is_file() else ""
