"""The Dagster instance of a project: its folder, settings and lock."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import yaml
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter, deserialize_value

from decon_core.storage.files import copy_file

if TYPE_CHECKING:
    from decon_core.config.policy import Policy

HOME_VARIABLE = "DAGSTER_HOME"
LOCK = "decon-assets.lock"  # held while a command runs anything
# Tag of every run that a command, or the job `everything_missing`, executes in its own process.
IN_PROCESS_TAG = "decon/in_process"
# Dagster's daemon retries a run whose process died; here, the next command does that.
IN_PROCESS_TAGS = {IN_PROCESS_TAG: "true", "dagster/max_retries": "0"}

# The code location, as in `decon-assets dev` and the systemd units, and Dagster's name for the
# definitions in it.
LOCATION = "decon_assets.definitions"
_REPOSITORY = "__repository__"

_UNFINISHED = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]

_SETTINGS = Path(__file__).with_name("dagster.yaml")


def tags_of_command(command: str, policy: Policy) -> dict[str, str]:
    """Return tags that tell what a run was asked for: the command, and the settings it used."""
    return {"decon/command": command, "decon/policy": policy.fingerprint}


def home_for(config_path: Path) -> Path:
    """Return $DAGSTER_HOME, else .dagster beside the configuration, whatever the current folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen) if chosen else config_path.resolve().parent / ".dagster"


def ensure_home(home: Path) -> Path:
    """Create the instance's folder and settings if they do not exist; return the resolved path."""
    folder = home.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists() or not settings.stat().st_size:  # empty: its creation was interrupted
        copy_file(_SETTINGS, settings)
    return folder


def ensure_history(home: Path) -> None:
    """Create the history of a home if there is none."""
    # Imported late: it loads SQLAlchemy, which the code location does not need.
    from decon_assets.instance.sqlite_history import RUNS, make_history, storage_settings

    if storage_settings(home) != {} or (home / RUNS).is_file():
        return  # the history is complete or kept elsewhere, or the settings are unreadable
    with _locked(home):
        if not (home / RUNS).is_file():  # another process may have created it meanwhile
            make_history(home)


@contextmanager
def open_instance(home: Path) -> Iterator[DagsterInstance]:
    """Open the persistent instance for runs in this process, and lock it for other commands."""
    # Imported late, like in `ensure_history`.
    from decon_assets.instance.sqlite_history import read_scripts_once

    folder = ensure_home(home)
    os.environ[HOME_VARIABLE] = str(folder)
    read_scripts_once()
    ensure_history(folder)
    with (
        _locked(folder),
        _settings_of_commands(folder) as settings,
        DagsterInstance.from_config(str(folder), str(settings)) as instance,
    ):
        _fail_dead_runs(instance)
        yield instance


@contextmanager
def _settings_of_commands(home: Path) -> Iterator[Path]:
    """Write a copy of the home's settings without the capture of what steps print.

    Dagster captures it with two more processes per step. They get every Ctrl-C too, print
    tracebacks for it, and replace the terminal while they run. The messages of assets are in the
    run's event log.
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


def take_lock(file: IO[Any] | int, *, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock a file unless another process has; return whether it did."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting if necessary. The system frees it when a process dies."""
    with (home / LOCK).open("w") as file:
        if not take_lock(file):
            print(f"another decon-assets command is using {home}; waiting for it", file=sys.stderr)  # noqa: T201 - for the command line
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fail_dead_runs(instance: DagsterInstance) -> None:
    """Mark unfinished runs of killed commands as failed; the caller must hold the lock.

    Otherwise such a run would look active forever, and the UI's queue would wait for it.
    """
    fail_unfinished_runs(instance, {IN_PROCESS_TAG: "true"})


def fail_unfinished_runs(instance: DagsterInstance, tags: Mapping[str, str]) -> None:
    """Mark unfinished runs with these tags as failed, whose process has died."""
    for run in instance.get_runs(RunsFilter(statuses=_UNFINISHED, tags={**tags})):
        instance.report_run_failed(run, "the process of this run died")
        free_slots_of(instance, run.run_id)


def fail_runs_of_dead_commands(home: Path, instance: DagsterInstance) -> None:
    """Mark unfinished runs of killed commands as failed, unless a command is active."""
    with (home / LOCK).open("w") as file:
        if take_lock(file):
            _fail_dead_runs(instance)


@contextmanager
def locked_instance(instance: DagsterInstance) -> Iterator[None]:
    """Lock an open instance for other commands until the block ends."""
    with _locked(Path(instance.root_directory)):
        _fail_dead_runs(instance)
        yield


def show_in_timeline(instance: DagsterInstance, run_id: str, name: str = LOCATION) -> None:
    """Set a run's code location, without which the UI's overview does not show it.

    A run that is executed in the calling process has no origin. Dagster's class for origins is
    private, but its stored form is the same in every history.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.remote_job_origin is not None:
        return
    location = {"__class__": "RegisteredRepositoryLocationOrigin", "location_name": name}
    repository = {
        "__class__": "ExternalRepositoryOrigin",
        "repository_location_origin": location,
        "repository_name": _REPOSITORY,
    }
    origin = {
        "__class__": "ExternalPipelineOrigin",
        "external_repository_origin": repository,
        "pipeline_name": run.job_name,
    }
    label = {".dagster/repository": f"{_REPOSITORY}@{name}", "dagster/code_location": name}
    instance.add_run_tags(run_id, label)
    origin_of_run: Any = deserialize_value(json.dumps(origin))
    labelled = run.with_tags({**run.tags, **label})
    instance.run_storage.replace_job_origin(labelled, origin_of_run)


def free_slots_of(instance: DagsterInstance, run_id: str) -> None:
    """Free the pool slots of a dead run; otherwise only a daemon would, some time later."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        storage.free_concurrency_slots_for_run(run_id)
