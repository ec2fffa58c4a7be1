"""Dagster's daemon of a home: there is one, and runs whose daemon died do not hold up the queue.

Runs that the queue starts are children of the daemon. When all of them die at once (a power cut, a
kill -9 of the group), nobody is left to call such a run failed, and a queue that lets one run at a
time waits for it forever. Whoever gets the lock knows that they are gone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from decon_assets.instance.home import fail_runs_of_dead_commands, free_slots_of
from decon_core.errors import InputError, Problem

_LOCK = "decon-daemon.lock"
_LAUNCHED = ".dagster/grpc_info"  # Dagster's mark on runs that a code server was asked to execute
_BEGUN = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def take_over(home: Path, say: Callable[[str], None]) -> None:
    """Make this process the home's only daemon, with nothing left over from the one before it."""
    become_sole_daemon(home)
    with DagsterInstance.from_config(str(home)) as instance:
        fail_runs_of_dead_commands(home, instance)
        for run in fail_orphaned_runs(instance):
            say(f"run {run} was cut off with the daemon that started it; it is called failed")


def become_sole_daemon(home: Path) -> None:
    """Hold the daemon's lock of this home until the process ends, whatever it becomes by then.

    Only one may start runs: two would start each backfill and each tick of a sensor twice.
    """
    # Left open on purpose, and inherited by Dagster: the lock is free when both have ended.
    descriptor = os.open(home / _LOCK, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(
            Problem(
                str(home),
                "another daemon, or `decon-assets dev`, is at work with it",
                "one at a time",
                "stop the other one, or use another DAGSTER_HOME",
            )
        ) from None
    os.set_inheritable(descriptor, True)


def fail_orphaned_runs(instance: DagsterInstance) -> list[str]:
    """Call failed what a dead daemon left "started"; their ids. Only for whoever holds the lock.

    Runs of a command line are not meant: they may be alive, and have a lock of their own.
    """
    begun = instance.get_runs(RunsFilter(statuses=_BEGUN))
    orphans = [run for run in begun if _LAUNCHED in run.tags]
    for run in orphans:
        _fail(instance, run)
    return [run.run_id for run in orphans]


def _fail(instance: DagsterInstance, run: DagsterRun) -> None:
    free_slots_of(instance, run.run_id)
    if run.status is DagsterRunStatus.CANCELING:  # as somebody wished
        instance.report_run_canceled(run)
    else:
        instance.report_run_failed(run, "the daemon that started it is gone, and it with it")
