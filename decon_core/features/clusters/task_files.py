"""The files by which a task on another machine gets its jobs and tells what happened to them.

<folder>/work.pickle             the function, and what prepares a machine for it
<folder>/<array>/<task>.jobs     the jobs of a task
<folder>/<array>/<task>.events   one line per event, appended by the task
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from decon_core.execution.engine import Prepare
from decon_core.execution.processes import Event, Kind

_SECONDS_BETWEEN_ADVANCES = 1.0  # advances of one job
# The process that submitted a task updates the time of the folder more often.
_SECONDS_WITHOUT_SUBMITTER = 900.0


@dataclass(frozen=True, kw_only=True)
class TaskJobs:
    """The jobs of a task by number, pickled: only its workers load them, and what they import."""

    jobs: Sequence[tuple[int, bytes]]
    deaths: Counter[int] = field(default_factory=Counter)  # deaths of workers, by job

    @property
    def alone(self) -> list[tuple[int, bytes]]:
        """Jobs of a task that died: each runs alone, so that the next death tells which it was."""
        return [job for job in self.jobs if self.deaths[job[0]]]

    @property
    def others(self) -> list[tuple[int, bytes]]:
        return [job for job in self.jobs if not self.deaths[job[0]]]


@dataclass(frozen=True)
class TaskFiles:
    """The files of the tasks of a run."""

    folder: Path

    def write_work(self, fn: Callable[[Any], Any], prepare: Prepare | None) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "work.pickle").write_bytes(pickle.dumps((fn, prepare)))

    def read_work(self) -> bytes:
        """Return what `run_pickled` takes."""
        return (self.folder / "work.pickle").read_bytes()

    def write_jobs(self, array: int, tasks: Sequence[TaskJobs]) -> None:
        folder = self.folder / str(array)
        folder.mkdir()
        for number, task in enumerate(tasks):
            (folder / f"{number}.jobs").write_bytes(pickle.dumps(task))
            self.events(array, number).touch()  # a network file system remembers missing files

    def read_jobs(self, array: int, task: int) -> TaskJobs:
        content = (self.folder / f"{array}/{task}.jobs").read_bytes()
        jobs: TaskJobs = pickle.loads(content)  # noqa: S301 - of this run
        return jobs

    def events(self, array: int, task: int) -> Path:
        return self.folder / f"{array}/{task}.events"

    def keep_alive(self) -> None:
        """Show that the submitter of the tasks lives."""
        os.utime(self.folder)

    def is_abandoned(self, own: Path) -> bool:
        """Return whether the submitter died. `own`: a file just written, as clocks differ."""
        try:
            return own.stat().st_mtime - self.folder.stat().st_mtime > _SECONDS_WITHOUT_SUBMITTER
        except FileNotFoundError:
            return True


def run_pickled(work: bytes, job: bytes) -> Any:
    """Run a pickled job with the pickled function of its run."""
    fn, _ = pickle.loads(work)  # noqa: S301 - of this run
    return fn(pickle.loads(job))  # noqa: S301 - likewise


def prepare_pickled(work: bytes, job: bytes) -> None:
    """Prepare a machine for such a job."""
    _, prepare = pickle.loads(work)  # noqa: S301 - of this run
    if prepare:
        prepare(pickle.loads(job))  # noqa: S301 - likewise


class EventWriter:
    """Appends the events of a task to its file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._units: Counter[int] = Counter()
        self._written_at: dict[int, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_start(self, number: int) -> None:
        """Write that a job starts, before it does: it may kill this process at once."""
        self._append([Kind.STARTED, number, None])

    def write(self, event: Event) -> None:
        kind, number, value = event
        match kind:
            case Kind.ADVANCED:
                self._units[number] += value
                now = time.monotonic()
                if now - self._written_at.get(number, 0) < _SECONDS_BETWEEN_ADVANCES:
                    return
                self._written_at[number] = now
            case Kind.ENDED:
                value = base64.b64encode(value).decode()
        if n := self._units.pop(number, 0):
            self._append([Kind.ADVANCED, number, n])
        if kind is not Kind.ADVANCED:
            self._append([kind, number, value])

    def _append(self, line: list[Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")


class EventReader:
    """Reads the events of a task while they are appended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def read(self) -> Iterator[Event]:
        """Yield the events since the last call; a line that is not complete is left for later."""
        with self._path.open("rb") as file:  # anew: that makes a network file system look
            file.seek(self._position)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._position += len(line)
            kind, number, value = json.loads(line)
            if kind == Kind.ENDED:
                value = base64.b64decode(value)
            yield Event(Kind(kind), number, value)
