"""Runs jobs over shards, in this process if there is little to do, else in worker processes."""

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
from typing import IO, Any, TypeVar, cast

from decon_core.errors import ConfigError, DeconError, Problem

Job = TypeVar("Job")
Advance = Callable[[int], None]

WORKERS_VARIABLE = "DECON_WORKERS"

# A worker takes about 2 s to start; in that time it could scan some 50 MB of compressed shards.
_BYTES_PER_WORKER = 200_000_000
# Writing a small file takes some 2 ms, as long as scanning this many bytes.
_BYTES_PER_FILE = 100_000
_TICK_SECONDS = 1.0


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
        remedy = "unset it to use one worker per core"
        raise ConfigError(
            Problem(f"${WORKERS_VARIABLE}", repr(value), "an integer of at least 1", remedy)
        )
    return int(value)


def useful_workers(workers: int, sizes: Sequence[int], *, n_files: int = 0) -> int:
    """Limit `workers` to the amount of work; 0 or 1 means that processes are not worth starting.

    `sizes` are the bytes to read of each shard, `n_files` is the number of files to write, which
    dominates for many small shards.
    """
    n_bytes = sum(sizes) + n_files * _BYTES_PER_FILE
    return min(workers, len(sizes), n_bytes // _BYTES_PER_WORKER)


def run_jobs(
    fn: Callable[[Job], Any], jobs: Sequence[Job], *, workers: int, on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    """Yield each job with its future when it ends; closing the iterator early stops the workers.

    `on_advance` receives the total progress of all jobs, as reported with `advance`.
    """
    if workers <= 1:
        yield from _run_here(fn, jobs, on_advance)
    else:
        yield from _run_in_processes(fn, jobs, workers, on_advance)


def advance(n: int) -> None:
    """Report progress from within a job: `n` more units are done."""
    _advance(n)


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


def _ignore(n: int) -> None:
    pass


_advance: Advance = _ignore


def _set_advance(advance: Advance) -> None:
    global _advance  # noqa: PLW0603 - a job is a plain function without access to the pool
    _advance = advance


def _run_here(
    fn: Callable[[Job], Any], jobs: Sequence[Job], on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    """Run jobs one after the other: no start-up cost, plain tracebacks."""
    n_done = 0

    def add(n: int) -> None:
        nonlocal n_done
        n_done += n
        on_advance(n_done)

    for job in jobs:
        future: Future[Any] = Future()
        _set_advance(add)
        try:
            future.set_result(fn(job))
        except DeconError as error:
            future.set_exception(error)
        finally:
            _set_advance(_ignore)
        yield job, future


def _run_in_processes(
    fn: Callable[[Job], Any], jobs: Sequence[Job], workers: int, on_advance: Advance
) -> Iterator[tuple[Job, Future[Any]]]:
    # Spawned, not forked: Dagster and Arrow have threads, which do not survive a fork.
    context = get_context("spawn")
    done = context.Value("q", 0)
    others = {*active_children()}
    with ProcessPoolExecutor(workers, context, _begin_worker, (done,)) as pool:
        try:
            with _interrupts_blocked():
                running = {pool.submit(fn, job): job for job in jobs}
            while running:
                ended, _ = wait_for(running, _TICK_SECONDS, FIRST_COMPLETED)
                on_advance(done.value)
                for future in ended:
                    yield running.pop(future), future
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Otherwise Ctrl-C would wait until all shards in progress are read.
            for worker in {*active_children()} - others:
                worker.terminate()
            raise


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT until the end of the block, and in the processes that it starts.

    They inherit the mask. Without it, a worker that is still importing modules would print its own
    traceback on Ctrl-C.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(done: Any) -> None:
    """Set up a worker: ignore Ctrl-C, and exit when the parent exits, even if it was killed."""

    def add(n: int) -> None:
        with done.get_lock():
            done.value += n

    _set_advance(add)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
