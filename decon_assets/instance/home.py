"""The Dagster instance of a project: a folder with its history and its settings."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter, deserialize_value

from decon_assets.instance.sqlite_history import has_own_storage, is_to_be_made, make_history
from decon_core.storage.store import atomic_path

HOME_VARIABLE = "DAGSTER_HOME"
LOCK = "decon-assets.lock"  # held while a command runs anything
COMMAND_LINE_TAG = "decon/command_line"  # on every run that this program executes itself
# Dagster's daemon begins a run again whose process died. Here that is for the next command to do.
COMMAND_LINE_TAGS = {COMMAND_LINE_TAG: "true", "dagster/max_retries": "0"}

# The code location, as `decon-assets dev` and the units for systemd name it, and Dagster's own name
# for the definitions in it.
LOCATION = "decon_assets.definitions"
_REPOSITORY = "__repository__"

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
    if not settings.exists() or not settings.stat().st_size:  # empty: a creation that was cut off
        with atomic_path(settings) as draft:
            draft.write_text(_SETTINGS)
    return found


def ensure_history(home: Path) -> None:
    """Create the history of a home, or create it anew where an earlier creation was cut off."""
    if has_own_storage(home) or not is_to_be_made(home):
        return
    with _locked(home):
        if is_to_be_made(home):  # another process may have been quicker
            make_history(home)


@contextmanager
def open_instance(home: Path) -> Iterator[DagsterInstance]:
    """The persistent instance, for runs in this process and in no other one at the same time."""
    found = ensure_home(home)
    os.environ[HOME_VARIABLE] = str(found)
    ensure_history(found)
    with (
        _locked(found),
        _settings_of_commands(found) as settings,
        DagsterInstance.from_config(str(found), str(settings)) as instance,
    ):
        _fail_dead_runs(instance)
        yield instance


@contextmanager
def _settings_of_commands(home: Path) -> Iterator[Path]:
    """The home's settings, but for the capture of what steps print.

    Dagster captures it with two more processes for each step. They take a part of every Ctrl-C,
    which they answer with tracebacks, and the terminal is none while they run. What assets say is
    in the log of the run's events.
    """
    settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8")) or {}
    settings["compute_logs"] = {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dagster.yaml"
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        yield path


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Hold the folder's lock. The system takes it back when a process dies, however it dies."""
    with (home / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another decon-assets is at work in {home}; waiting for it", file=sys.stderr)  # noqa: T201 - the command line's voice
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fail_dead_runs(instance: DagsterInstance) -> None:
    """Call failed what a killed command left "started".

    Whoever holds the lock knows that no other command line run is alive. Without this such a run
    would look alive forever, and keep the UI's queue waiting.
    """
    unfinished = RunsFilter(statuses=_UNFINISHED, tags={COMMAND_LINE_TAG: "true"})
    for run in instance.get_runs(unfinished):
        instance.report_run_failed(run, "the process that ran it is gone")
        free_slots_of(instance, run.run_id)


def fail_runs_of_dead_commands(home: Path, instance: DagsterInstance) -> None:
    """Call failed what killed commands left "started", unless a command is at work now."""
    with (home / "decon-assets.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        _fail_dead_runs(instance)


@contextmanager
def locked_instance(instance: DagsterInstance) -> Iterator[None]:
    """Keep every command out of an instance that is open already."""
    with _locked(Path(instance.root_directory)):
        _fail_dead_runs(instance)
        yield


def show_in_timeline(instance: DagsterInstance, run_id: str) -> None:
    """Say which code location a run is of: the UI's overview leaves out runs that do not say it.

    A run that is executed in the process that asks for it has no origin. Dagster's own form of one
    is a private class, and its stored form the same in every history.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.remote_job_origin is not None:
        return
    origin = {
        "__class__": "ExternalPipelineOrigin",
        "external_repository_origin": {
            "__class__": "ExternalRepositoryOrigin",
            "repository_location_origin": {
                "__class__": "RegisteredRepositoryLocationOrigin",
                "location_name": LOCATION,
            },
            "repository_name": _REPOSITORY,
        },
        "pipeline_name": run.job_name,
    }
    label = {".dagster/repository": f"{_REPOSITORY}@{LOCATION}", "dagster/code_location": LOCATION}
    instance.add_run_tags(run_id, label)
    origin_of_run: Any = deserialize_value(json.dumps(origin))
    labelled = run.with_tags({**run.tags, **label})
    instance.run_storage.replace_job_origin(labelled, origin_of_run)


def free_slots_of(instance: DagsterInstance, run_id: str) -> None:
    """Give back what a dead run holds of the pools: otherwise only a daemon would, some day."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        storage.free_concurrency_slots_for_run(run_id)
