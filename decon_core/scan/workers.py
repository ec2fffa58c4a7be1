"""Jobs over shards: in this process when that is quicker, else in a process per core."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from decon_core.errors import ConfigError, DeconError, Problem

if TYPE_CHECKING:
    from decon_core.corpus.packs import Shard

Job = TypeVar("Job")
Advance = Callable[[int], None]

WORKERS_VARIABLE = "DECON_WORKERS"

# A worker takes about 2 s to start, and gets through some 50 MB of compressed shards in that time.
_BYTES_PER_WORKER = 200_000_000
# Writing a small file takes some 2 ms, as much as getting through these.
_BYTES_PER_FILE = 100_000
_TICK_SECONDS = 1.0


def usable_cores() -> int:
    """How many cores this process may use: schedulers and containers often leave it fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wanted_workers() -> int:
    """As many as the environment says, for whoever has no other way to be told; else all cores."""
    told = os.environ.get(WORKERS_VARIABLE)
    if not told:
        return usable_cores()
    if not told.isdecimal() or int(told) < 1:
        remedy = "unset it, and every core that may be used has a worker"
        raise ConfigError(Problem(f"${WORKERS_VARIABLE}", repr(told), "a number from 1 on", remedy))
    return int(told)


def useful_workers(workers: int, shards: Sequence[Shard], *, n_files: int = 0) -> int:
    """No more than there is work for. `n_files` are written: of many small shards, most of it."""
    n_bytes = sum(shard.n_bytes for shard in shards) + n_files * _BYTES_PER_FILE
    return min(workers, len(shards), n_bytes // _BYTES_PER_WORKER)


def run_jobs(
    fn: Callable[[Job], Any], jobs: Sequence[Job], *, workers: int, on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    """Each job and what became of it, as they end. Whoever stops early leaves none running.

    `on_advance` hears how far all jobs have come together, as they say it with `advance`.
    """
    if workers <= 1:
        yield from _run_here(fn, jobs, on_advance)
    else:
        yield from _run_in_processes(fn, jobs, workers, on_advance)


def advance(n: int) -> None:
    """Said by a job: so much more is done."""
    _advance(n)


@contextmanager
def in_subprocess(fn: Callable[[Job], None], job: Job) -> Iterator[None]:
    """Have a job done in a process of its own meanwhile, and wait for it.

    For what others find on the disk later: nothing comes back, and a failure is only lost time. Not
    a worker: those begin by importing the program that was started, which may not expect it.
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


def _ignore(n: int) -> None:
    pass


_advance: Advance = _ignore


def _hear(advance: Advance) -> None:
    global _advance  # noqa: PLW0603 - a job is a plain function and has nowhere else to look
    _advance = advance


def _run_here(
    fn: Callable[[Job], Any], jobs: Sequence[Job], on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    """One after the other: no start-up cost, plain tracebacks."""
    n_done = 0

    def add(n: int) -> None:
        nonlocal n_done
        n_done += n
        on_advance(n_done)

    for job in jobs:
        future: Future[Any] = Future()
        _hear(add)
        try:
            future.set_result(fn(job))
        except DeconError as error:
            future.set_exception(error)
        finally:
            _hear(_ignore)
        yield job, future


def _run_in_processes(
    fn: Callable[[Job], Any], jobs: Sequence[Job], workers: int, on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    # Spawned, not forked: Dagster and Arrow hold threads, which a fork would leave half-dead.
    context = get_context("spawn")
    done = context.Value("q", 0)
    others = {*active_children()}
    with ProcessPoolExecutor(workers, context, _begin_worker, (done,)) as pool:
        try:
            with _interrupts_held_back():
                running = {pool.submit(fn, job): job for job in jobs}
            while running:
                ended, _ = wait_for(running, _TICK_SECONDS, FIRST_COMPLETED)
                on_advance(done.value)
                for future in ended:
                    yield running.pop(future), future
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Without this a Ctrl-C would wait for every shard that is being read.
            for worker in {*active_children()} - others:
                worker.terminate()
            raise


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Deliver SIGINT after the block, and never to the processes that it starts.

    They inherit the mask. Without it a worker that is still importing modules would answer a
    Ctrl-C with a traceback of its own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(done: Any) -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it does, even if it was killed."""

    def add(n: int) -> None:
        with done.get_lock():
            done.value += n

    _hear(add)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
