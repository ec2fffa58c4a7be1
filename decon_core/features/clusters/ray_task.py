"""What runs on the nodes of a Ray cluster: tasks, and the actor that collects their progress."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

from decon_core.execution.engine import outcome_of, prepare_machine
from decon_core.execution.jobs import log_file
from decon_core.execution.processes import Event, Kind
from decon_core.execution.progress import advancing

_SECONDS_BETWEEN_ADVANCES = 1.0
_SECONDS_TO_SAY_IT_STARTED = 10.0
_prepared_for: set[str] = set()  # runs that this process was prepared for


class ProgressBoard:
    """Collects events of tasks until the submitter takes them. It is a Ray actor."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, events: list[Event]) -> None:
        self._events += events

    def take(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def run_task(
    work: bytes, job: bytes, number: int, run: str, folder: str, board: Any
) -> tuple[bytes, int]:
    """Run a job and return its outcome and its progress in all.

    `work` and `job` are pickled here, as they are for processes: Ray would pickle functions of the
    main program by value.
    """
    import ray

    if Path(folder).is_dir():
        os.chdir(folder)
    started = board.add.remote([Event(Kind.STARTED, number, log_file())])
    # A job may end this process at once: what was not sent is lost, and so is the path of its log.
    ray.wait([started], timeout=_SECONDS_TO_SAY_IT_STARTED)
    n_units = n_waiting = 0
    sent_at = time.monotonic()

    def send(n: int) -> None:
        nonlocal n_units, n_waiting, sent_at
        n_units, n_waiting = n_units + n, n_waiting + n
        if time.monotonic() - sent_at >= _SECONDS_BETWEEN_ADVANCES:
            board.add.remote([Event(Kind.ADVANCED, number, n_waiting)])
            n_waiting, sent_at = 0, time.monotonic()

    def act(content: bytes) -> Any:
        fn, prepare = pickle.loads(work)  # noqa: S301 - of the process that submitted this
        value = pickle.loads(content)  # noqa: S301 - likewise
        if prepare and run not in _prepared_for:
            prepare_machine(prepare, value)
            _prepared_for.add(run)
        return fn(value)

    with advancing(send):
        return outcome_of(act, job), n_units
