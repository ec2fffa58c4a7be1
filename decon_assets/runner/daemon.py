"""Allow one Dagster daemon per home, and fail the runs of a daemon that died.

Runs that the queue starts are children of the daemon. When all of them die at once (a power cut, a
kill -9 of the group), no process is left to mark such a run as failed, and a queue of one run at a
time waits for it forever. The process that gets the lock knows that they are gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from decon_assets.instance.home import fail_runs_of_dead_commands, free_slots_of, take_lock
from decon_core.errors import InputError, Problem

_LOCK = "decon-daemon.lock"
_LAUNCHED = ".dagster/grpc_info"  # Dagster's mark on runs that a code server was asked to execute
_BEGUN = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def take_over(home: Path, say: Callable[[str], None]) -> None:
    """Make this process the home's only daemon, and fail the runs that the last daemon left."""
    _become_sole_daemon(home)
    with DagsterInstance.from_config(str(home)) as instance:
        fail_runs_of_dead_commands(home, instance)
        for run in fail_orphaned_runs(instance):
            say(f"run {run} is marked as failed: the daemon that started it died")


def _become_sole_daemon(home: Path) -> None:
    """Hold the daemon's lock of this home until the process ends, also after an exec.

    Two daemons would start each backfill and each sensor tick twice. Raises InputError if another
    process holds the lock.
    """
    # Left open on purpose, and inherited by Dagster: the lock is free when both have ended.
    descriptor = os.open(home / _LOCK, os.O_WRONLY | os.O_CREAT, 0o644)
    if not take_lock(descriptor):
        os.close(descriptor)
        failure = "already used by another daemon or `decon-assets dev`"
        remedy = "Stop the other one, or use another DAGSTER_HOME"
        raise InputError(Problem(str(home), failure, remedy=remedy))
    os.set_inheritable(descriptor, True)


def fail_orphaned_runs(instance: DagsterInstance) -> list[str]:
    """Mark the unfinished runs of a dead daemon as failed; return their ids.

    The caller must hold the daemon's lock. Runs of a command line are left alone: they may be
    alive, and have their own lock.
    """
    begun = instance.get_runs(RunsFilter(statuses=_BEGUN))
    orphans = [run for run in begun if _LAUNCHED in run.tags]
    for run in orphans:
        free_slots_of(instance, run.run_id)
        if run.status is DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run)
        else:
            died = "the daemon that started this run died, and the run with it"
            instance.report_run_failed(run, died)
    return [run.run_id for run in orphans]
