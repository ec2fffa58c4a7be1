"""Jobs over shards: in this process when that is quicker, else in a process per core."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any

from decon_core.corpus import Shard
from decon_core.errors import CorpusError

# A worker takes about 2 s to start, and gets through some 0.2 MB of compressed shards in that time.
_BYTES_PER_WORKER = 200_000


def useful_workers(workers: int, shards: Sequence[Shard]) -> int:
    """No more than there is work for."""
    n_bytes = sum(shard.n_bytes for shard in shards)
    return min(workers, len(shards), n_bytes // _BYTES_PER_WORKER)


@contextmanager
def executor(workers: int) -> Iterator[Executor]:
    """Where jobs go. One that is left because of an error does not wait for those in line."""
    if workers <= 1:
        yield _InThisProcess()
        return
    # Spawned, not forked: Dagster and Arrow hold threads, which a fork would leave half-dead.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_live_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or a Ctrl-C would wait for every shard
            raise


def _live_with_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it does, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class _InThisProcess(Executor):
    """Runs a job at once: no start-up cost, plain tracebacks."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except CorpusError as error:
            future.set_exception(error)
        return future
