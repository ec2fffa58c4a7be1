"""Worker processes of this machine: run jobs, and notice which job a dead worker was running."""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import Empty, Queue
from threading import Event as ThreadEvent
from threading import Thread
from typing import Any, NamedTuple, Self

from decon_core.errors import EngineError, Problem
from decon_core.execution.engine import MOST_DEATHS, Prepare, outcome_of, prepare_machine
from decon_core.execution.progress import advancing

_TICK_SECONDS = 1.0
_MOMENT_SECONDS = 0.2  # until a thread sees that it shall stop
_SECONDS_TO_END = 5.0
_MOST_FAILED_STARTS = 3


class Kind(StrEnum):
    """What happened to a job."""

    STARTED = "started"
    ADVANCED = "advanced"  # value: by how much
    ENDED = "ended"  # value: the outcome
    DIED = "died"  # its worker; value: how
    ABANDONED = "abandoned"  # its worker died once too often; value: how


class Event(NamedTuple):
    """Something that happened to the job with this number."""

    kind: Kind
    number: int
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A function, and the jobs that it is called with, by number."""

    fn: Callable[[Any], Any]
    jobs: Sequence[tuple[int, Any]]
    prepare: Prepare | None = None  # called in each worker before its first job
    on_start: Callable[[int], None] = lambda _: None  # called in a thread before a job starts


def run_in_processes(
    task: Task, *, n_workers: int, deaths: Counter[int] | None = None
) -> Generator[Event | None]:
    """Run jobs in worker processes and yield what happens; None at least once a second.

    A job whose worker died is run again, until its worker has died three times, including earlier
    `deaths`. Closing the iterator stops the workers.
    """
    events: Queue[Event | BaseException | None] = Queue()
    stopped = ThreadEvent()
    feeding = Thread(
        target=_feed, args=(task, n_workers, Counter(deaths), events, stopped), daemon=True
    )
    feeding.start()
    try:
        while True:
            try:
                event = events.get(timeout=_TICK_SECONDS)
            except Empty:
                yield None
                continue
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            yield event
            if events.empty():
                yield None
    finally:
        stopped.set()
        feeding.join()


def _feed(
    task: Task,
    n_workers: int,
    deaths: Counter[int],
    events: Queue[Event | BaseException | None],
    stopped: ThreadEvent,
) -> None:
    """Give jobs to workers in a thread, so that none waits while a result is processed."""
    try:
        with _Workers(task, deaths) as workers:
            for _ in range(min(n_workers, len(task.jobs))):
                workers.start()
            while workers.has_work and not stopped.is_set():
                for event in workers.wait():
                    events.put(event)
    except BaseException as error:  # noqa: BLE001 - raised by the thread that reads the events
        events.put(error)
    finally:
        events.put(None)


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    number: int | None = None  # number of the job that it runs
    is_ready: bool = False


class _Workers:
    """The worker processes, the jobs that wait, and those in progress."""

    def __init__(self, task: Task, deaths: Counter[int]) -> None:
        self._task = task
        self._jobs = dict(task.jobs)
        self._waiting = deque(self._jobs)
        self._deaths = deaths
        self._workers: list[_Worker] = []
        self._n_failed_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        is_interrupted = self.has_work
        for worker in self._workers:
            if is_interrupted:
                worker.process.terminate()
            else:
                with suppress(OSError):
                    worker.connection.send(None)
        for worker in self._workers:
            worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.connection.close()

    @property
    def has_work(self) -> bool:
        return bool(self._waiting) or any(worker.number is not None for worker in self._workers)

    def start(self) -> None:
        """Start a worker process."""
        # Spawned, not forked: Dagster and Arrow have threads, which do not survive a fork.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self._task.fn, self._task.prepare)
        process = context.Process(target=_work, args=arguments, daemon=True)
        try:
            with _interrupts_blocked():
                process.start()
        except OSError as error:
            ours.close()
            theirs.close()
            failure = f"Could not start a worker process: {error}"
            raise EngineError(Problem("", failure, remedy="Try fewer workers")) from error
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def wait(self) -> Iterator[Event]:
        """Wait a moment for messages of workers, and yield what they say."""
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in wait([*by_connection], _MOMENT_SECONDS):
            worker = by_connection[connection]  # type: ignore[index] # one of those waited for
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                yield from self._bury(worker)
            else:
                yield from self._take(worker, message)

    def _take(self, worker: _Worker, message: tuple[Kind, Any] | None) -> Iterator[Event]:
        if message is not None and worker.number is not None:
            kind, value = message
            yield Event(kind, worker.number, value)
            if kind is not Kind.ENDED:
                return
        worker.is_ready, worker.number = True, None
        yield from self._assign()

    def _assign(self) -> Iterator[Event]:
        """Give waiting jobs to the workers that have none."""
        for worker in self._workers:
            if self._waiting and worker.is_ready and worker.number is None:
                worker.number = number = self._waiting.popleft()
                self._task.on_start(number)
                with suppress(OSError):  # it died: its end of the pipe is seen next
                    worker.connection.send((self._jobs[number],))
                yield Event(Kind.STARTED, number)

    def _bury(self, worker: _Worker) -> Iterator[Event]:
        """Note a dead worker, put its job first in the queue, and start another worker."""
        self._workers.remove(worker)
        worker.process.join(_SECONDS_TO_END)
        worker.connection.close()
        how = _cause_of(worker.process.exitcode)
        number = worker.number
        if number is not None:
            self._deaths[number] += 1
            is_abandoned = self._deaths[number] >= MOST_DEATHS
            if not is_abandoned:
                self._waiting.appendleft(number)
            yield Event(Kind.ABANDONED if is_abandoned else Kind.DIED, number, how)
        elif not worker.is_ready:
            self._n_failed_starts += 1
            if self._n_failed_starts >= _MOST_FAILED_STARTS:
                n = self._n_failed_starts
                failure = f"{n} worker processes ended before their first job ({how})"
                raise EngineError(Problem("", failure, remedy="Try one worker, or more memory"))
        if len(self._waiting) > sum(other.number is None for other in self._workers):
            self.start()
        yield from self._assign()


def _cause_of(exit_code: int | None) -> str:
    """Describe how a process ended."""
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    number = -exit_code
    names = {known.value: known.name for known in signal.Signals}
    hint = ", which the system sends when memory runs out" if number == signal.SIGKILL else ""
    return f"killed by {names.get(number, f'signal {number}')}{hint}"


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


def _work(connection: Connection, fn: Callable[[Any], Any], prepare: Prepare | None) -> None:
    """Run jobs from a pipe until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    is_prepared = prepare is None

    def run(job: Any) -> Any:
        nonlocal is_prepared
        if prepare and not is_prepared:
            prepare_machine(prepare, job)
            is_prepared = True
        return fn(job)

    connection.send(None)  # ready
    while (message := connection.recv()) is not None:
        with advancing(lambda n: connection.send((Kind.ADVANCED, n))):
            outcome = outcome_of(run, *message)
        connection.send((Kind.ENDED, outcome))


def _end_with_parent() -> None:
    """Exit when the parent exits, even if it was killed."""
    if parent := parent_process():
        wait([parent.sentinel])
        os._exit(1)
