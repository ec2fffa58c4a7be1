"""Runs jobs on Ray: one task each, which Ray never retries, as each death is counted here.

Plain tasks, not a pool of actors: when a node died, a pool hung. Tasks read the index and the
corpus by path, so nothing large goes through Ray's object store.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from decon_core.errors import EngineError, Problem
from decon_core.execution.engine import ENGINE_LOG, MOST_DEATHS, Ended, Work, future_of
from decon_core.execution.local import Follower
from decon_core.execution.processes import Event, Kind
from decon_core.execution.progress import JobCounts, Tracker
from decon_core.features.clusters.interrupts import cancelled_at_end
from decon_core.features.clusters.ray_task import ProgressBoard, run_task
from decon_core.features.clusters.settings import Ray
from decon_core.storage.paths import RemotePath
from decon_core.wording import counted, size

_MOST_SUBMITTED = 1000  # tasks that Ray knows at once, running or queued
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_FOR_PROGRESS = 10.0  # time to get it from its actor
_SECONDS_TO_CANCEL = 20.0
_SECONDS_TO_CONNECT = 20.0


@dataclass
class RayEngine:
    """Runs jobs as tasks of a Ray cluster."""

    settings: Ray
    store_url: RemotePath | None = None
    counts: JobCounts = field(default_factory=JobCounts)
    is_remote: bool = True

    def most_workers(self, workers: int) -> int:  # noqa: ARG002 - of this machine
        return _MOST_SUBMITTED

    def run(self, work: Work, *, workers: int) -> Iterator[Ended]:  # noqa: ARG002 - of this machine
        ray = _connected(self.settings)
        self.counts = JobCounts(len(work.jobs))
        address = ray.get_runtime_context().gcs_address
        ENGINE_LOG.info(f"Ray at {address}: {counted(len(work.jobs), 'job')}")
        _warn_if_no_node_fits(ray, self.settings)
        run = _Run(ray, work, self)
        with cancelled_at_end(run.cancel):
            yield from run.results()


class _Run:
    """The tasks of a list of jobs."""

    def __init__(self, ray: ModuleType, work: Work, engine: RayEngine) -> None:
        self._ray, self._work = ray, work
        settings = engine.settings
        self._follower = Follower(work, Tracker(engine.counts, work.on_advance))
        self._waiting = deque(range(len(work.jobs)))
        self._numbers: dict[Any, int] = {}  # numbers of the jobs, by their references
        self._logs: dict[int, str] = {}  # logs of the workers, by job
        self._board = _progress_board(ray)
        self._arguments = (uuid4().hex, str(Path.cwd()), self._board)
        self._function = ray.put(pickle.dumps((work.fn, work.prepare)))
        self._task = ray.remote(
            num_cpus=settings.cpus,
            memory=settings.memory,
            resources=settings.resources or None,
            max_retries=0,
        )(run_task)

    def results(self) -> Iterator[Ended]:
        """Submit jobs, and yield each one when it has ended."""
        while self._waiting or self._numbers:
            while self._waiting and len(self._numbers) < _MOST_SUBMITTED:
                number = self._waiting.popleft()
                job = pickle.dumps(self._work.jobs[number])
                reference = self._task.remote(self._function, job, number, *self._arguments)
                self._numbers[reference] = number
            ready, _ = self._ray.wait([*self._numbers], timeout=_SECONDS_BETWEEN_LOOKS)
            self._take_progress()
            for reference in ready:
                if ended := self._take(reference):
                    yield ended
            self._follower.tracker.report()

    def cancel(self) -> None:
        """Cancel all tasks that have not ended."""
        left, self._numbers = [*self._numbers], {}
        if not left or not self._ray.is_initialized():
            return
        # Ray forgets to cancel a task that its worker receives at that moment: ask again.
        until = time.monotonic() + _SECONDS_TO_CANCEL
        while left and time.monotonic() < until:
            for reference in left:
                self._ray.cancel(reference, force=True)
            _, left = self._ray.wait(left, num_returns=len(left), timeout=_SECONDS_BETWEEN_LOOKS)

    def _take_progress(self) -> None:
        """Follow what the tasks have reported; if their actor is lost, only progress is lost."""
        errors = self._ray.exceptions
        try:
            events = self._ray.get(self._board.take.remote(), timeout=_SECONDS_FOR_PROGRESS)
        except (errors.RayActorError, errors.GetTimeoutError):
            return
        except errors.RuntimeEnvSetupError as error:
            raise _bad_environment(error) from error
        running = {*self._numbers.values()}
        for event in events:
            if event.number in running:
                if event.kind is Kind.STARTED:
                    self._logs[event.number] = event.value
                self._follower.follow(event)

    def _take(self, reference: Any) -> Ended | None:
        """Return the job that has ended; None if it is queued again."""
        number = self._numbers.pop(reference)
        errors = self._ray.exceptions
        try:
            outcome, n_units = self._ray.get(reference)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            return self._requeue(number, _CAUSES[type(error).__name__])
        except errors.ObjectLostError:
            # The job had ended: its node died before its result was read.
            self._follower.tracker.requeue(number)
            self._waiting.appendleft(number)
            return None
        except errors.RuntimeEnvSetupError as error:
            raise _bad_environment(error) from error
        except errors.RayError as error:
            name = self._follower.name_of(number)
            remedy = "All nodes need the same versions of decon-assets and Python as this machine"
            failure = f"{type(error).__name__}: {error}"
            problem = Problem(f"Ray task of {name}", failure, remedy=remedy)
            raise EngineError(problem) from error
        future = future_of(outcome)
        self._follower.tracker.correct(number, n_units)
        self._follower.tracker.end(number, is_failed=future.exception() is not None)
        return number, future

    def _requeue(self, number: int, how: str) -> Ended | None:
        """Run a job again whose worker died, unless it did so too often."""
        n_deaths = len(self._follower.deaths.get(number, ())) + 1
        is_last = n_deaths >= MOST_DEATHS
        if not is_last:
            self._waiting.appendleft(number)
        return self._follower.follow(
            Event(Kind.ABANDONED if is_last else Kind.DIED, number, how),
            log=self._logs.get(number, ""),
        )


_CAUSES = {
    "WorkerCrashedError": "its process ended",
    "NodeDiedError": "its node was lost",
    "OutOfMemoryError": "its node ran out of memory",
}


def _bad_environment(error: Exception) -> EngineError:
    """Return the error of a runtime environment that Ray cannot set up: the last line says why."""
    found = str(error).strip().rpartition("\n")[2]
    expected = "an environment that Ray can set up on every node"
    return EngineError(Problem("execution.ray.runtime_env", found, expected))


def _warn_if_no_node_fits(ray: ModuleType, settings: Ray) -> None:
    """Say it if no node can run a task. Not an error: a cluster may start nodes when they wait."""
    needs = {"CPU": settings.cpus, "memory": settings.memory or 0, **settings.resources}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= n for name, n in needs.items()) for node in nodes):
        return
    listed = ", ".join(
        f"{name} {size(int(n)) if name == 'memory' else f'{n:g}'}" for name, n in needs.items() if n
    )
    ENGINE_LOG.warning(
        f"no node of the Ray cluster has the resources that a task requests ({listed}): jobs wait "
        "until such a node joins; the settings are in [execution.ray]"
    )


def _progress_board(ray: ModuleType) -> Any:
    """Start the actor that collects progress, on the node of this process.

    Ray starts it again if its process dies. It does not outlive the node, nor does this process.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = ray.get_runtime_context().get_node_id()
    strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    options = {"num_cpus": 0, "max_restarts": -1, "scheduling_strategy": strategy}
    return ray.remote(**options)(ProgressBoard).remote()


def require_ray(settings: Ray) -> None:
    """Raise EngineError if Ray is not installed, or nothing answers at the cluster's address.

    Ray itself would try to connect for seven minutes.
    """
    if not find_spec("ray"):
        remedy = "Install it here and on all nodes: pip install 'decon-assets[ray]'"
        raise EngineError(Problem("engine ray", "Ray is not installed", remedy=remedy))
    address = _address(settings)
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        with _failures_at(address):
            socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT).close()


def _connected(settings: Ray) -> Any:
    require_ray(settings)
    import ray

    if ray.is_initialized():
        return ray
    address = _address(settings)
    with _failures_at(address, has_environment=bool(settings.runtime_env)), _sigterm_kept():
        ray.init(
            address=address,
            runtime_env=settings.runtime_env or None,
            log_to_driver=False,
            configure_logging=False,
        )
    return ray


def _address(settings: Ray) -> str:
    return settings.address or os.environ.get("RAY_ADDRESS") or "auto"


@contextmanager
def _failures_at(address: str, *, has_environment: bool = False) -> Iterator[None]:
    """Raise EngineError with the address if a connection fails; Ray reads `runtime_env` there."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        remedy = "start one with `ray start --head`, and set its address in [execution.ray]"
        if has_environment:
            remedy += "; or correct runtime_env there"
        reason = str(error).strip().partition("\n")[0]
        failure = f"no connection to a cluster: {reason}"
        raise EngineError(Problem(f"Ray at {address!r}", failure, remedy=remedy)) from error


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces by its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
