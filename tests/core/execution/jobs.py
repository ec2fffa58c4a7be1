"""Jobs for workers to run, some of which do not end well."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from decon_core.errors import CorpusError, Problem
from decon_core.execution.progress import advance


@dataclass(frozen=True)
class Job:
    """A number to double, and what happens instead."""

    number: int
    folder: Path | None = None
    does: str = ""

    @property
    def began(self) -> Path:
        return self.folder / f"{self.number}.began"

    @property
    def pids(self) -> list[int]:
        """The processes that began it; a process may be ended before it has written its number."""
        return [*map(int, self.began.read_text().split())] if self.began.exists() else []

    @property
    def gate(self) -> Path:
        return self.folder / "gate"


def double(job):
    """Double a number; some jobs fail, wait, or kill their worker or all of its task."""
    if job.folder:
        with job.began.open("a") as file:
            file.write(f"{os.getpid()}\n")
    match job.does:
        case "refuse":
            raise CorpusError(Problem(f"job {job.number}", "a refusal", "a number"))
        case "fail":
            raise ZeroDivisionError(f"job {job.number}")
        case "die":
            os._exit(9)
        case "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "get signal 40":
            os.kill(os.getpid(), 40)
        case "kill the task":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "wait":
            while not job.gate.exists():
                time.sleep(0.05)
    advance(10)
    return 2 * job.number


def note_preparation(job):
    with (job.folder / "prepared").open("a") as file:
        file.write(f"{os.getpid()}\n")


def results_of(done):
    """Results and errors by number of the job, and in the order in which they ended."""
    found = {}
    for job, future in done:
        error = future.exception()
        found[job.number] = future.result() if error is None else error
    return found
