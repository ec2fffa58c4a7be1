"""Slurm's commands: submit an array job, look up the states of its tasks, cancel it.

Not `submitit`: it learns that a task has ended from `sacct`, so without accounting it waits forever
for one that was killed; and it returns the results of a task only when all its jobs are done.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decon_core.errors import EngineError, Problem
from decon_core.features.clusters.settings import Slurm

_COMMANDS = ("sbatch", "squeue", "scancel")
_SECONDS_TO_ANSWER = 120.0
_INSIDE = "SLURM_"  # the environment of a job, which must not set options of jobs that it submits
_KEPT = ("SLURM_CONF",)


@dataclass(frozen=True)
class TaskState:
    """The state of a task in the queue, as squeue names it, and its node."""

    name: str
    node: str = ""

    @property
    def has_ended(self) -> bool:
        return self.name in _ENDED


GONE = TaskState("GONE")  # Slurm forgets ended tasks after some minutes
_ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "GONE", "NODE_FAIL",
    "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip


def require_slurm() -> None:
    """Raise EngineError if Slurm's commands are not on the PATH."""
    if missing := [name for name in _COMMANDS if not shutil.which(name)]:
        remedy = 'Run this on a login node, or set engine = "local" in [execution]'
        failure = f"not on the PATH: {', '.join(missing)}"
        raise EngineError(Problem("engine slurm", failure, remedy=remedy))


def submit(
    settings: Slurm,
    *,
    n_tasks: int,
    folder: Path,
    array: int,
    logs: Path,
    left_out: Sequence[str] = (),
) -> str:
    """Submit an array of tasks and return its job id. `left_out`: nodes that get none of them."""
    options = {
        "array": f"0-{n_tasks - 1}%{settings.array_size}",
        "job-name": "decon",
        "output": f"{logs}/%A_%a.log",
        "chdir": str(Path.cwd()),
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(settings.cpus_per_task),
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "time": settings.time,
        "mem": settings.memory,
    }
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    # What is left of a task is submitted again here, where each attempt is counted.
    command = ["sbatch", "--parsable", "--no-requeue", "--open-mode=append", *given]
    command += settings.options
    if left_out:  # last, as sbatch takes the last of several
        command.append(f"--exclude={','.join([*_excluded_by(settings.options), *left_out])}")
    program = [settings.python or sys.executable, "-m", "decon_core.features.clusters.slurm_task"]
    task = shlex.join([*program, str(folder), str(array)])
    done = _call(command, "\n".join(["#!/bin/bash", *settings.setup, f"exec {task}", ""]))
    if done.returncode:
        failure = f"Slurm refused the job: {done.stderr.strip() or f'exit code {done.returncode}'}"
        remedy = "The settings are in [execution.slurm]"
        raise EngineError(Problem(shlex.join(command), failure, remedy=remedy))
    return done.stdout.strip().partition(";")[0]


def _excluded_by(options: Sequence[str]) -> list[str]:
    """Return the nodes that sbatch options exclude."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-x", "--exclude")
    known, _ = parser.parse_known_args(options)
    return [known.exclude] if known.exclude else []


def has_no_node(error: EngineError) -> bool:
    """Return whether Slurm refused a job because no node is left that may run it."""
    return any(refusal in str(error) for refusal in _NO_NODE)


# The second one is said where the options name nodes, and these are excluded.
_NO_NODE = ("Requested node configuration is not available", "Invalid node name specified")


def states(jobs: Collection[str]) -> Mapping[str, TaskState] | None:
    """Return the states of the tasks of array jobs, by "job_task"; None if Slurm does not answer.

    Tasks that Slurm has forgotten are missing.
    """
    form = "%i|%T|%N"
    command = ["squeue", "--noheader", "--array", "--states=all", f"--format={form}"]
    done = _call([*command, f"--jobs={','.join(jobs)}"])
    if done.returncode:
        return {} if "Invalid job id" in done.stderr else None
    rows = (line.split("|") for line in done.stdout.splitlines())
    return {task: TaskState(name, node) for task, name, node in rows}


def cancel(jobs: Collection[str]) -> None:
    """Cancel array jobs; those that have ended are left alone."""
    _call(["scancel", *jobs])


def _call(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_INSIDE) or name in _KEPT
    }
    try:
        return subprocess.run(  # noqa: S603 - Slurm's commands
            command,
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_TO_ANSWER,
        )
    except subprocess.TimeoutExpired:
        what = f"no answer within {_SECONDS_TO_ANSWER:.0f} s"
    except OSError as error:  # such as too many processes, or a file system that is away
        what = str(error)
    return subprocess.CompletedProcess(command, 1, stdout="", stderr=what)
