"""Runs jobs on Slurm: an array job whose tasks each work off some consecutive jobs.

What a task finished is kept when it dies. Its other jobs are submitted again, and those that were
in progress are run alone, so that a job that kills its task is found. A node that ends its tasks
before their first job gets no more of them.
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
_SECONDS_AFTER_BAD_START = 15.0  # until a node that ended a task before its first job gets another
_MOST_TASKS = 1000  # tasks of an array: Slurm's default limit is 1,001
_MOST_BAD_STARTS = 3  # tasks of a node that end before their first job, until it is left out
_MOST_BAD_NODES = 3  # nodes with such tasks, while no other node has a task
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
    node: str = ""  # its node at the last look at the queue
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
        # Tasks that ended before their first job, by node, since another task of it did something.
        self._bad_starts: Counter[str] = Counter()
        self._bad_nodes: set[str] = set()  # nodes of such tasks, since any task did something
        self._left_out: dict[str, Path] = {}  # nodes that get no more tasks, with the log of one

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
            self._settings,
            n_tasks=len(tasks),
            folder=self._files.folder,
            array=array,
            logs=logs,
            left_out=[*self._left_out],
        )
        self._arrays.append(job)
        for number, task in enumerate(tasks):
            name = f"{job}_{number}"
            left = {number for number, _ in task.jobs}
            reader = EventReader(self._files.events(array, number))
            self._tasks.append(_Task(name, left, reader, logs / f"{name}.log"))
        self._count_tasks({})
        n_jobs = sum(len(task.jobs) for task in tasks)
        of_tasks = counted(len(tasks), "task")
        ENGINE_LOG.info(f"Slurm job {job}: {counted(n_jobs, 'job')} in {of_tasks}, logs in {logs}")

    def _read(self, task: _Task) -> Iterator[Ended]:
        """Yield the jobs that a task has ended since it was read last."""
        for event in task.reader.read():
            task.note(event)
            self._bad_starts.pop(task.node, None)
            self._bad_nodes.clear()
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
            task.node = state.node or task.node
            if not state.has_ended:
                continue
            yield from self._read(task)
            task.ended_at = task.ended_at or time.monotonic()
            is_late = time.monotonic() - task.ended_at > _SECONDS_FOR_EVENTS
            if task.left and (state.name not in _COMPLETE or is_late):
                yield from self._bury(task, state, states)
                if task.left:
                    self._again.append(self._jobs_of(sorted(task.left)))
        self._count_tasks(states)
        self._submit_again()

    def _count_tasks(self, states: Mapping[str, TaskState]) -> None:
        """Note for the progress how many tasks wait in the queue; new ones have no state yet."""
        names = Counter(states[task.id].name if task.id in states else _NEW for task in self._tasks)
        n_waiting, n_running = names["PENDING"] + names[_NEW], names["RUNNING"]
        tasks = f"tasks: {n_waiting:,} waiting, {n_running:,} running"
        self._engine.counts.queue = f"Slurm job {self._arrays[-1]} ({tasks})"

    def _submit_again(self) -> None:
        """Submit what is left of tasks that have ended; try again later while Slurm refuses it."""
        now = time.monotonic()
        if not self._again or (self._tasks and now < self._again_at):
            return
        try:
            self._submit(self._again)
        except EngineError as error:
            if self._left_out and not self._tasks and slurm_queue.has_no_node(error):
                nodes = ", ".join(self._left_out)
                failure = f"Slurm has no nodes other than the excluded ones ({nodes})"
                raise _failure([*self._left_out.values()][-1], failure) from error
            if self._refused_at is None:
                refusal = "Slurm refuses the remaining jobs of ended tasks; trying again"
                ENGINE_LOG.warning(f"{refusal}: {error}")
            if self._refused_at is None or self._tasks:
                self._refused_at = now
            elif now - self._refused_at > _SECONDS_TO_SUBMIT_AGAIN:
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
        cause = f"{state.name} on {task.node or 'an unknown node'}"
        if state.name == "CANCELLED":
            failure = f"task {task.id} was cancelled by another user or program"
            raise _failure(task.log, failure)
        if not task.n_started and state.name not in _UNSTARTED:
            self._note_bad_start(task, cause, states)
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

    def _note_bad_start(self, task: _Task, cause: str, states: Mapping[str, TaskState]) -> None:
        """Leave out a node that ends its tasks before their first job.

        Raises EngineError if several nodes do so while no other node has a task, as the settings
        are then wrong, or if Slurm does not say which node it is.
        """
        self._bad_starts[task.node] += 1
        self._bad_nodes.add(task.node)
        n, n_nodes = self._bad_starts[task.node], len(self._bad_nodes)
        is_unknown = not task.node and n >= _MOST_BAD_STARTS
        is_everywhere = is_unknown or n_nodes >= _MOST_BAD_NODES
        if is_everywhere and not self._is_anywhere_else(states):
            where = f"on {counted(n_nodes, 'node')}, " if n_nodes > 1 else ""
            failure = f"{where}tasks ended before their first job (the last one: {cause})"
            raise _failure(task.log, failure)
        if task.node in self._left_out:
            return  # Slurm had queued the task before
        self._again_at = time.monotonic() + _SECONDS_AFTER_BAD_START
        if task.node and n >= _MOST_BAD_STARTS:
            self._left_out[task.node] = task.log
            ENGINE_LOG.warning(
                f"node {task.node} gets no more tasks of this step: {n} tasks ended there before "
                "their first job. Other nodes run these jobs. Find the cause in the log "
                + "\n".join([str(task.log), *_last_lines(task.log)])
            )

    def _is_anywhere_else(self, states: Mapping[str, TaskState]) -> bool:
        """Return whether a task runs on another node than those whose tasks end at once."""
        running = (states[task.id] for task in self._tasks if task.id in states)
        return any(
            state.name == "RUNNING" and state.node not in self._bad_nodes for state in running
        )


def _failure(log: Path, failure: str) -> EngineError:
    remedy = "\n".join([f"See the log {log}", *_last_lines(log)])
    return EngineError(Problem("engine slurm", failure, remedy=remedy))


def _last_lines(log: Path) -> list[str]:
    with suppress(OSError):
        return log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:]
    return []


_NEW = "NEW"  # a task that the queue has not been asked for
_COMPLETE = ("COMPLETED", GONE.name)
# States of a task that may end before its first job.
_UNSTARTED = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
_BLAMELESS = ("PREEMPTED", "BOOT_FAIL")
