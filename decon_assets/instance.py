"""The Dagster instance of a project: a folder with its history and its settings."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

HOME_VARIABLE = "DAGSTER_HOME"
COMMAND_LINE_TAG = "decon/command_line"  # on every run that this program executes itself

_UNFINISHED = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]

# Silent, as nobody asked for telemetry. One run at a time from the UI: a backfill of a grid becomes
# many, and each scan uses all cores by itself. A run whose process died is begun again, and finds
# its tiles; one that failed would fail again, so it is not.
_SETTINGS = """\
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 1
  pools:
    default_limit: 1
run_monitoring:
  enabled: true
  start_timeout_seconds: 300
run_retries:
  enabled: true
  max_retries: 2
  retry_on_asset_or_op_failure: false
"""


def home_for(config_path: Path) -> Path:
    """$DAGSTER_HOME, else .dagster beside the configuration: one history, wherever one stands."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen) if chosen else config_path.resolve().parent / ".dagster"


def ensure_home(home: Path) -> Path:
    """The instance's folder, made with its settings when absent."""
    found = home.resolve()
    found.mkdir(parents=True, exist_ok=True)
    settings = found / "dagster.yaml"
    if not settings.exists():
        settings.write_text(_SETTINGS)
    return found


@contextmanager
def open_instance(home: Path) -> Iterator[DagsterInstance]:
    """The persistent instance, for runs in this process and in no other one at the same time."""
    found = ensure_home(home)
    os.environ[HOME_VARIABLE] = str(found)
    with _alone(found), DagsterInstance.get() as instance:
        _bury_dead_runs(instance)
        yield instance


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the folder's lock. The system takes it back when a process dies, however it dies."""
    with (home / "decon-assets.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another decon-assets is at work in {home}; waiting for it", file=sys.stderr)  # noqa: T201 - the command line's voice
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bury_dead_runs(instance: DagsterInstance) -> None:
    """Call failed what a killed command left "started".

    Whoever holds the lock knows that no other command line run is alive. Without this such a run
    would look alive forever, and keep the UI's queue waiting.
    """
    unfinished = RunsFilter(statuses=_UNFINISHED, tags={COMMAND_LINE_TAG: "true"})
    for run in instance.get_runs(unfinished):
        instance.report_run_failed(run, "the process that ran it is gone")
        free_slots_of(instance, run.run_id)


def free_slots_of(instance: DagsterInstance, run_id: str) -> None:
    """Give back what a dead run holds of the pools: otherwise only a daemon would, some day."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        storage.free_concurrency_slots_for_run(run_id)
