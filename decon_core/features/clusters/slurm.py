"""Runs jobs on Slurm: an array job whose tasks each work off some consecutive jobs.

What a task finished is kept when it dies. Its other jobs are submitted again, and those that were
in progress are run alone, so that a job that kills its task is found.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from decon_core.errors import EngineError, Problem
from decon_core.execution.engine import ENGINE_LOG, MOST_DEATHS, Ended, Work
from decon_core.execution.local import Follower
from decon_core.execution.processes import Event, Kind
from decon_core.execution.progress import JobCounts, Tracker
from decon_core.features.clusters import slurm_queue
from decon_core.features.clusters.interrupts import cancelled_at_end
from decon_core.features.clusters.settings import Slurm
from decon_core.features.clusters.slurm_queue import GONE, TaskState
from decon_core.features.clusters.task_files import EventReader, TaskFiles, TaskJobs
from decon_core.storage.drafts import draft_name, remove
from decon_core.wording import counted

_SECONDS_BETWEEN_READS = 1.0  # reads of the files of the tasks
_SECONDS_BETWEEN_LOOKS = 5.0  # looks at the queue: its server answers all users
_SECONDS_FOR_EVENTS = 10.0  # after a task has ended, on a network file system
_SECONDS_TO_CANCEL = 20.0
_SECONDS_TO_SUBMIT_AGAIN = 600.0  # what is left of tasks, while Slurm refuses it
_SECONDS_AFTER_FRUITLESS = 15.0  # until a node that ends all its tasks gets new ones
_MOST_TASKS = 1000  # tasks of an array: Slurm's default limit is 1,001
_MOST_FRUITLESS = 3  # tasks that end before their first job, while no other node has a task
_LINES_OF_LOG = 5


@dataclass
class SlurmEngine:
    """Runs jobs as array jobs of Slurm."""

    settings: Slurm
    drafts: Path  # a folder that all nodes see
    logs: Path  # likewise
    counts: JobCounts = field(default_factory=JobCounts)
    is_remote: bool = True
    store_url: None = None  # the files of tasks are in a folder that all nodes see

    def most_workers(self, workers: int) -> int:  # noqa: ARG002 - of this machine
        return self.settings.array_size * self.settings.cpus_per_task

    def run(self, work: Work, *, workers: int) -> Iterator[Ended]:  # noqa: ARG002 - of this machine
        slurm_queue.require_slurm()
        self.counts = JobCounts(len(work.jobs))
        run = _Run(work, self)
        with cancelled_at_end(run.cancel):
            yield from run.results()


@dataclass
class _Task:
    """A submitted task, and what is left of it."""

    id: str
    left: set[int]  # jobs that have not ended
    reader: EventReader
    log: Path
    n_started: int = 0
    n_ended: int = 0
    has_deaths: bool = False  # whether its workers died: messages then name its log
    running: set[int] = field(default_factory=set)
    ended_at: float | None = None  # when it was first seen as ended with jobs left

    def note(self, event: Event) -> None:
        self.has_deaths |= event.kind in (Kind.DIED, Kind.ABANDONED)
        match event.kind:
            case Kind.STARTED:
                self.n_started += 1
                self.running.add(event.number)
            case Kind.ENDED | Kind.ABANDONED:
                self.n_ended += 1
                self.left.discard(event.number)
                self.running.discard(event.number)
            case Kind.DIED:
                self.running.discard(event.number)


class _Run:
    """The tasks of a list of jobs."""

    def __init__(self, work: Work, engine: SlurmEngine) -> None:
        self._work, self._engine, self._settings = work, engine, engine.settings
        self._follower = Follower(work, Tracker(engine.counts, work.on_advance))
        self._files = TaskFiles(engine.drafts / draft_name("jobs"))
        self._tasks: list[_Task] = []  # tasks with jobs left
        self._left = set(range(len(work.jobs)))
        self._arrays: list[str] = []
        self._n_submissions = 0  # also those that Slurm refused
        # What is left of tasks that have ended, to be submitted again.
        self._again: list[TaskJobs] = []
        self._again_at = 0.0
        self._refused_at: float | None = None  # since when Slurm refuses that
        self._is_answered = True  # whether Slurm answered when it was asked last
        self._succeeded: list[Path] = []  # logs of tasks without problems
        self._fruitless: list[str] = []  # nodes of such tasks, since any task did something

    def results(self) -> Iterator[Ended]:
        """Submit all jobs, and yield each one when it has ended."""
        self._files.write_work(self._work.fn, self._work.prepare)
        self._engine.logs.mkdir(parents=True, exist_ok=True)
        self._submit([*map(self._jobs_of, self._chunks())])
        looked_at = time.monotonic()
        while self._left:
            time.sleep(_SECONDS_BETWEEN_READS)
            for task in [*self._tasks]:
                yield from self._read(task)
            if time.monotonic() - looked_at >= _SECONDS_BETWEEN_LOOKS:
                self._files.keep_alive()
                yield from self._look()
                looked_at = time.monotonic()
            self._follower.tracker.report()

    def cancel(self) -> None:
        """Cancel what was submitted and has not ended, and remove the files."""
        if self._tasks:
            slurm_queue.cancel(self._arrays)
            until = time.monotonic() + _SECONDS_TO_CANCEL
            while time.monotonic() < until:
                states = slurm_queue.states(self._arrays)
                if states is not None and all(state.has_ended for state in states.values()):
                    break
                time.sleep(_SECONDS_BETWEEN_READS)
            self._tasks = []
        for log in self._succeeded:
            log.unlink(missing_ok=True)
        self._succeeded = []
        with suppress(OSError):  # a task still writes; the draft is removed later
            remove(self._files.folder)

    def _chunks(self) -> Iterator[range]:
        """Yield the jobs of each task: consecutive ones."""
        n_jobs, settings = len(self._work.jobs), self._settings
        size = settings.jobs_per_task
        if size is None:
            size = max(-(-n_jobs // settings.array_size), settings.cpus_per_task)
        least = -(-n_jobs // _MOST_TASKS)
        if least > size:
            most = f"an array job can have at most {_MOST_TASKS:,} tasks"
            ENGINE_LOG.info(f"{least} shards per task, not {size}: {most}")
            size = least
        for start in range(0, n_jobs, size):
            yield range(start, min(start + size, n_jobs))

    def _jobs_of(self, numbers: Iterable[int]) -> TaskJobs:
        """Return the jobs of a task, with the deaths of workers that they had so far."""
        jobs = [(number, pickle.dumps(self._work.jobs[number])) for number in numbers]
        deaths = {number: len(self._follower.deaths.get(number, ())) for number, _ in jobs}
        return TaskJobs(jobs=jobs, deaths=Counter(deaths))

    def _submit(self, tasks: Sequence[TaskJobs]) -> None:
        array, logs = self._n_submissions, self._engine.logs
        self._n_submissions += 1  # one that was refused too late may run all the same
        self._files.write_jobs(array, tasks)
        job = slurm_queue.submit(
            self._settings, n_tasks=len(tasks), folder=self._files.folder, array=array, logs=logs
        )
        self._arrays.append(job)
        self._engine.counts.queue = f"Slurm job {job}"
        for number, task in enumerate(tasks):
            name = f"{job}_{number}"
            left = {number for number, _ in task.jobs}
            reader = EventReader(self._files.events(array, number))
            self._tasks.append(_Task(name, left, reader, logs / f"{name}.log"))
        n_jobs = sum(len(task.jobs) for task in tasks)
        of_tasks = counted(len(tasks), "task")
        ENGINE_LOG.info(f"Slurm job {job}: {counted(n_jobs, 'job')} in {of_tasks}, logs in {logs}")

    def _read(self, task: _Task) -> Iterator[Ended]:
        """Yield the jobs that a task has ended since it was read last."""
        for event in task.reader.read():
            task.note(event)
            self._fruitless.clear()
            if event.number not in self._left:
                continue  # a task that was given up for lost had ended it
            if ended := self._follower.follow(event, log=str(task.log)):
                self._left.discard(event.number)
                yield ended
        if not task.left:
            self._tasks.remove(task)
            if not task.has_deaths:
                self._succeeded.append(task.log)

    def _look(self) -> Iterator[Ended]:
        """Look at the queue, and submit again what is left of tasks that have ended."""
        if (states := slurm_queue.states(self._arrays)) is None:
            if self._is_answered:
                ENGINE_LOG.warning("Slurm does not answer; waiting until it does")
            self._is_answered = False
            return
        if not self._is_answered:
            ENGINE_LOG.info("Slurm answers again")
        self._is_answered = True
        for task in [*self._tasks]:
            state = states.get(task.id, GONE)
            if not state.has_ended:
                continue
            yield from self._read(task)
            task.ended_at = task.ended_at or time.monotonic()
            is_late = time.monotonic() - task.ended_at > _SECONDS_FOR_EVENTS
            if task.left and (state.name not in _COMPLETE or is_late):
                yield from self._bury(task, state, states)
                if task.left:
                    self._again.append(self._jobs_of(sorted(task.left)))
        self._submit_again()

    def _submit_again(self) -> None:
        """Submit what is left of tasks that have ended; wait while Slurm refuses it."""
        now = time.monotonic()
        if not self._again or (self._tasks and now < self._again_at):
            return
        try:
            self._submit(self._again)
        except EngineError as error:
            if self._refused_at is None:
                self._refused_at = now
                refusal = "Slurm refuses the remaining jobs of ended tasks; trying again"
                ENGINE_LOG.warning(f"{refusal}: {error}")
            if not self._tasks and now - self._refused_at > _SECONDS_TO_SUBMIT_AGAIN:
                raise
        else:
            self._again, self._refused_at = [], None

    def _bury(
        self, task: _Task, state: TaskState, states: Mapping[str, TaskState]
    ) -> Iterator[Ended]:
        """Note the end of a task that has jobs left, and give up those that were too often in it.

        A preempted task counts against no job. A time-out counts only if the task ended no job.
        """
        self._tasks.remove(task)
        cause = f"{state.name} on {state.node or 'an unknown node'}"
        if state.name == "CANCELLED":
            failure = f"task {task.id} was cancelled by another user or program"
            raise self._failure(task, failure)
        if not task.n_started and state.name not in _UNSTARTED:
            self._fruitless.append(state.node)
            self._again_at = time.monotonic() + _SECONDS_AFTER_FRUITLESS
            if len(self._fruitless) >= _MOST_FRUITLESS and not self._is_anywhere_else(states):
                n = len(self._fruitless)
                failure = f"{n} tasks ended before their first job ({cause})"
                raise self._failure(task, failure)
        is_to_blame = state.name not in _BLAMELESS
        if state.name == "TIMEOUT" and task.n_ended:
            is_to_blame = False
        n_running = len(task.running)
        for number in sorted(task.running & self._left):
            if is_to_blame:
                self._follower.deaths.setdefault(number, []).append(cause)
            if is_to_blame and len(self._follower.deaths[number]) >= MOST_DEATHS:
                task.left.discard(number)
                self._left.discard(number)
                yield self._follower.abandon(number, str(task.log))
            else:
                self._follower.tracker.requeue(number)
        ENGINE_LOG.warning(
            f"Slurm task {task.id}: {cause}; {counted(task.n_ended, 'job')} ended, {n_running} in "
            f"progress, {counted(len(task.left), 'job')} queued again; log: {task.log}"
        )

    def _is_anywhere_else(self, states: Mapping[str, TaskState]) -> bool:
        """Return whether a task runs on another node than those whose tasks end at once."""
        running = (states[task.id] for task in self._tasks if task.id in states)
        return any(
            state.name == "RUNNING" and state.node not in self._fruitless for state in running
        )

    def _failure(self, task: _Task, failure: str) -> EngineError:
        lines: list[str] = []
        with suppress(OSError):
            lines = task.log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:]
        remedy = "\n".join([f"See the log {task.log}", *lines])
        return EngineError(Problem("engine slurm", failure, remedy=remedy))


_COMPLETE = ("COMPLETED", GONE.name)
# States of a task that may end before its first job.
_UNSTARTED = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
_BLAMELESS = ("PREEMPTED", "BOOT_FAIL")
