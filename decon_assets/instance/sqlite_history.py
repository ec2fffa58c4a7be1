"""Write Dagster's history in SQLite twice as fast, and create its databases completely.

Dagster opens and closes the file of a run for each event. SQLite then waits for the disk twice: at
the commit, and when the last connection closes and moves the write-ahead log into the file. For a
grid of thousands of cells, that is half of Dagster's time. The first wait only protects against a
power cut, which could lose the latest events and nothing else; the store has the results, and they
are reported again. The second wait is not needed while another connection is open.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import yaml
from dagster import DagsterInstance
from sqlalchemy import event
from sqlalchemy.engine import Engine

_RUNS, _EVENTS = "history/runs.db", "history/runs/index.db"
_SCHEDULES = "schedules/schedules.db"
_FOLDERS = ("history", "schedules")
_STORAGES = {"storage", "run_storage", "event_log_storage", "schedule_storage"}

# Tables with data that would be lost with a history: if all are empty, it may be created again.
_WORTH_KEEPING = {
    _RUNS: ("runs", "bulk_actions"),
    _EVENTS: ("event_logs", "asset_keys"),
    _SCHEDULES: ("jobs", "instigators", "job_ticks"),
}

_MOST_OPEN = 8  # files: those of the active run, and of the instance
_open: OrderedDict[str, sqlite3.Connection] = OrderedDict()


def write_quickly() -> None:
    """Make SQLite connections of this process skip the two waits, from now on."""
    if not event.contains(Engine, "connect", _connected):
        event.listen(Engine, "connect", _connected)


def _connected(connection: Any, _: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return  # another database
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        return  # in memory; or a new file, whose mode can be set only with no other connection
    connection.execute("PRAGMA synchronous = NORMAL")
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    if path not in _open:
        # A later call closes it, maybe in another thread.
        _open[path] = sqlite3.connect(path, check_same_thread=False)
        _open[path].execute("SELECT count(*) FROM sqlite_master")
    _open.move_to_end(path)
    while len(_open) > _MOST_OPEN:
        _open.popitem(last=False)[1].close()


# Creation -----------------------------------------------------------------------------------------


def has_own_storage(home: Path) -> bool:
    """Return whether dagster.yaml sets a storage other than SQLite in the home."""
    try:
        settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    except yaml.YAMLError:
        return True  # Dagster reports the error
    return isinstance(settings, dict) and not _STORAGES.isdisjoint(settings)


def needs_history(home: Path) -> bool:
    """Return whether there is no history yet, or one whose creation was interrupted.

    Dagster creates tables one by one, and never completes a database that lacks some. A history
    with runs or events is not touched: `dagster instance migrate` can repair it.
    """
    try:
        is_complete = all(
            _is_complete(home / name, tables, marks)
            for name, (tables, marks) in _expected().items()
        )
        return not is_complete and not any(
            _has_rows(home / name, tables) for name, tables in _WORTH_KEEPING.items()
        )
    except sqlite3.DatabaseError:
        return False  # not a database: Dagster reports the error


def make_history(home: Path) -> None:
    """Create the databases of a history in a draft folder, and move them when they are complete.

    The caller must hold the home's lock, so an existing draft is of a process that was killed.
    """
    for leftover in home.glob(".history.*.tmp"):
        shutil.rmtree(leftover)
    draft = home / ".history.new.tmp"
    with DagsterInstance.from_config(str(_make_home(draft))) as instance:
        # Each is created on access.
        _ = instance.run_storage, instance.event_log_storage, instance.schedule_storage
    _close_below(draft)
    for name in _FOLDERS:
        with suppress(FileNotFoundError):
            (home / name).replace(draft / f"old-{name}")
        (draft / name).replace(home / name)
    shutil.rmtree(draft)


def _make_home(folder: Path) -> Path:
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    return folder


def _expected() -> Mapping[str, tuple[Collection[str], Collection[str]]]:
    """Return the tables of each database, and the migrations recorded in a complete one."""
    from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
    from dagster._core.storage.runs import migration as runs
    from dagster._core.storage.runs.schema import RunStorageSqlMetadata
    from dagster._core.storage.schedules import migration as schedules
    from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata

    of_runs = {**runs.REQUIRED_DATA_MIGRATIONS, **runs.OPTIONAL_DATA_MIGRATIONS}
    of_schedules = {
        **schedules.REQUIRED_SCHEDULE_DATA_MIGRATIONS,
        **schedules.OPTIONAL_SCHEDULE_DATA_MIGRATIONS,
    }
    return {
        _RUNS: (RunStorageSqlMetadata.tables.keys(), of_runs),
        _EVENTS: (SqlEventLogStorageMetadata.tables.keys(), ()),
        _SCHEDULES: (ScheduleStorageSqlMetadata.tables.keys(), of_schedules),
    }


def _is_complete(path: Path, tables: Collection[str], marks: Collection[str]) -> bool:
    if not path.is_file():
        return False
    with closing(_connect(path)) as connection:
        if not {*tables, "alembic_version"} <= _tables(connection):
            return False
        stamps = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        marked = {name for (name,) in connection.execute(_MARKED)} if marks else set()
    return bool(stamps) and marked >= {*marks}


_MARKED = "SELECT name FROM secondary_indexes WHERE migration_completed IS NOT NULL"


def _has_rows(path: Path, tables: Collection[str]) -> bool:
    if not path.is_file():
        return False
    with closing(_connect(path)) as connection:
        existing = _tables(connection)
        queries = (f"SELECT EXISTS (SELECT 1 FROM {name})" for name in tables if name in existing)  # noqa: S608 - names from here
        return any(connection.execute(query).fetchone()[0] for query in queries)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def _close_below(folder: Path) -> None:
    """Close the open files of a folder: SQLite then empties their write-ahead logs."""
    for path in [path for path in _open if Path(path).is_relative_to(folder.resolve())]:
        _open.pop(path).close()
