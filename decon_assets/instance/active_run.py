"""Find the active run of a configuration, for commands whose input is not built yet."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.instance.history_errors import readable_instance
from decon_assets.instance.home import IN_PROCESS_TAG, LOCK, home_for, take_lock
from decon_assets.instance.sqlite_history import storage_settings
from decon_core.config.load import Config, load_config
from decon_core.errors import DeconError
from decon_core.planner import Plan
from decon_core.scan.coverage import missing_scan_results
from decon_core.storage.store import Store

if TYPE_CHECKING:
    from dagster import DagsterInstance


@dataclass(frozen=True)
class ActiveRun:
    """The progress of a run."""

    asset: str  # being materialized; "" if none yet
    since: datetime | None
    n_scanned: int  # partitions, each a pack and a benchmark
    n_partitions: int  # 0 if they are not registered yet

    def __str__(self) -> str:
        step = f"`{self.asset}`" if self.asset else "preparing"
        since = f" since {self.since.astimezone():%Y-%m-%d %H:%M:%S}" if self.since else ""
        partitions = f"{self.n_scanned:,} of {self.n_partitions:,} partitions scanned"
        if not self.n_partitions:
            partitions = "benchmarks and packs are not registered yet"
        return f"a run is active: {step}{since}; {partitions}"


def active_run(config_path: Path) -> ActiveRun | None:
    """Return the active run of this configuration's Dagster home; None if there is none.

    The command line holds a lock while it runs anything. Runs of the UI are found in the history;
    an unfinished run of the command line without the lock is one whose process died.
    """
    home = home_for(config_path)
    is_locked, started = _is_locked(home), None
    if _may_have_started_runs(home):
        with readable_instance(home) as instance:
            if instance is not None:
                started = next(_started(instance, is_locked=is_locked), None)
    if started is None and not is_locked:
        return None
    asset, since = started or ("", None)
    return ActiveRun(asset, since, *_partitions(load_config(config_path)))


def _is_locked(home: Path) -> bool:
    try:
        file = (home / LOCK).open("rb")
    except FileNotFoundError:
        return False
    with file:
        return not take_lock(file, kind=fcntl.LOCK_SH)


def _started(
    instance: DagsterInstance, *, is_locked: bool
) -> Iterator[tuple[str, datetime | None]]:
    """Yield asset and start time of the started runs, the newest first."""
    from dagster import DagsterRunStatus, RunsFilter

    statuses = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED]
    for record in instance.get_run_records(RunsFilter(statuses=statuses)):
        run = record.dagster_run
        if IN_PROCESS_TAG in run.tags and not is_locked:
            continue
        assets = sorted(key.to_user_string() for key in run.asset_selection or ())
        since = datetime.fromtimestamp(record.start_time, UTC) if record.start_time else None
        yield ", ".join(assets) or run.job_name, since


def _may_have_started_runs(home: Path) -> bool:
    """Return whether the history has unfinished runs, without opening one that is being created.

    Dagster takes most of a second to open a history, which is seldom needed.
    """
    path = home / "history" / "runs.db"
    if not (home / "dagster.yaml").is_file():
        return False
    if not path.is_file():
        # The history may be kept elsewhere, such as in Postgres.
        return bool(storage_settings(home))
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            started = "SELECT 1 FROM runs WHERE status IN ('STARTING', 'STARTED') LIMIT 1"
            return connection.execute(started).fetchone() is not None
    except sqlite3.OperationalError as error:
        return "no such table" not in str(error)  # they do not exist yet; else Dagster says why


def _partitions(config: Config) -> tuple[int, int]:
    plan = Plan(config, Store(config.store))
    try:
        packs, known = plan.packs, plan.known_versions
        n_partitions = len(packs) * len(plan.benchmarks)
        if not plan.store.current_snapshot.is_file():
            return 0, n_partitions
        missing = missing_scan_results(plan.scan_results, packs, known)
    except DeconError:
        return 0, 0  # the run has not written a file yet
    unscanned = {
        (pack.name, version.benchmark) for pack, _, versions in missing for version in versions
    }
    return len(packs) * len(known) - len(unscanned), n_partitions
