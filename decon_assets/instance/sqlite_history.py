"""Dagster's history in SQLite, written twice as fast.

Dagster opens the file of a run for each event, and closes it again. SQLite then waits for the disk
twice: at the commit, and as the last one to close the file it moves the log of changes into it. For
a grid of thousands of cells that is half of what Dagster takes. The first wait is only needed for a
power cut: it could take the latest events with it, and nothing else, as the log of changes is
written ahead. What counts is in the store, and is told again. The second wait is not needed while
somebody has the file open.
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

# What is lost with a history: where none of these tables has a row, nothing is.
_WORTH_KEEPING = {
    _RUNS: ("runs", "bulk_actions"),
    _EVENTS: ("event_logs", "asset_keys"),
    _SCHEDULES: ("jobs", "instigators", "job_ticks"),
}

_MOST_OPEN = 8  # files: those of the run at work, and of the instance
_open: OrderedDict[str, sqlite3.Connection] = OrderedDict()


def write_quickly() -> None:
    """From now on, in this process."""
    if not event.contains(Engine, "connect", _connected):
        event.listen(Engine, "connect", _connected)


def _connected(connection: Any, _: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return  # another database, which has its own ways
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        return  # in memory; or a new file, whose mode can be set only while nobody else has it open
    connection.execute("PRAGMA synchronous = NORMAL")
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    if path not in _open:
        # Closed here by whoever comes later, in whatever thread.
        _open[path] = sqlite3.connect(path, check_same_thread=False)
        _open[path].execute("SELECT count(*) FROM sqlite_master")
    _open.move_to_end(path)
    while len(_open) > _MOST_OPEN:
        _open.popitem(last=False)[1].close()


# Made whole ---------------------------------------------------------------------------------------


def has_own_storage(home: Path) -> bool:
    """Whether dagster.yaml names another storage than SQLite in the home."""
    try:
        settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    except yaml.YAMLError:
        return True  # Dagster says what is wrong with it
    return isinstance(settings, dict) and not _STORAGES.isdisjoint(settings)


def is_to_be_made(home: Path) -> bool:
    """Whether there is no history yet, or one whose creation was cut off.

    Dagster creates tables one by one, and a database that lacks some is never completed. A history
    with runs or events is not touched: `dagster instance migrate` can mend it.
    """
    try:
        is_complete = all(
            _is_complete(home / name, tables, marks) for name, (tables, marks) in _wanted().items()
        )
        return not is_complete and not any(
            _has_rows(home / name, tables) for name, tables in _WORTH_KEEPING.items()
        )
    except sqlite3.DatabaseError:
        return False  # no database at all: Dagster says so


def make_history(home: Path) -> None:
    """Create the databases of a history aside, and put them in their place once they are whole.

    The caller holds the lock of the home: a draft that is there is of a process that was killed.
    """
    for left in home.glob(".history.*.tmp"):
        shutil.rmtree(left)
    draft = home / ".history.new.tmp"
    with DagsterInstance.from_config(str(_made(draft))) as instance:
        # Each is created when it is asked for.
        _ = instance.run_storage, instance.event_log_storage, instance.schedule_storage
    _close_below(draft)
    for name in _FOLDERS:
        with suppress(FileNotFoundError):
            (home / name).replace(draft / f"old-{name}")
        (draft / name).replace(home / name)
    shutil.rmtree(draft)


def _made(folder: Path) -> Path:
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    return folder


def _wanted() -> Mapping[str, tuple[Collection[str], Collection[str]]]:
    """Of each database the tables, and the indexes that are noted in it when it is complete."""
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
    with closing(_opened(path)) as connection:
        if not {*tables, "alembic_version"} <= _tables(connection):
            return False
        stamps = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        marked = {name for (name,) in connection.execute(_MARKED)} if marks else set()
    return bool(stamps) and marked >= {*marks}


_MARKED = "SELECT name FROM secondary_indexes WHERE migration_completed IS NOT NULL"


def _has_rows(path: Path, tables: Collection[str]) -> bool:
    if not path.is_file():
        return False
    with closing(_opened(path)) as connection:
        there = _tables(connection)
        asked = (f"SELECT EXISTS (SELECT 1 FROM {name})" for name in tables if name in there)  # noqa: S608 - names from here
        return any(connection.execute(query).fetchone()[0] for query in asked)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def _close_below(folder: Path) -> None:
    """Close the files in a folder that are held open: SQLite then empties their logs of changes."""
    for path in [path for path in _open if Path(path).is_relative_to(folder.resolve())]:
        _open.pop(path).close()
