"""Write Dagster's history in SQLite faster, and create its databases completely.

Dagster makes an engine of SQLAlchemy for each event, which would compile every statement again: 6 %
of the processor's time for a run of the sample world. For each run's file, Alembic reads some fifty
scripts several times, only to learn the newest revision of the tables: 5 %.

Dagster opens and closes the file of a run for each event. SQLite then waits for the disk twice: at
the commit, and when the last connection closes and moves the write-ahead log into the file. That is
half a second or more for each run of the sample world where others use the disk, and half of
Dagster's time for a grid of thousands of partitions. The first wait only protects against a power
cut, which could lose the latest events and nothing else; the store has the results, and they are
reported again. The second wait is not needed while another connection is open.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sqlite3
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from dagster import DagsterInstance
from sqlalchemy import event
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import Connection, Engine

if TYPE_CHECKING:  # takes 0.1 s to import, which many commands do without
    from alembic.config import Config
    from alembic.script import ScriptDirectory

RUNS = "history/runs.db"
_FOLDERS = ("schedules", "history")  # the one with the runs last
_STORAGES = {"storage", "run_storage", "event_log_storage", "schedule_storage"}

_MOST_STATEMENTS = 500
_MOST_OPEN = 8  # files: those of the active run, and of the instance
_open: OrderedDict[str, sqlite3.Connection] = OrderedDict()


class _Statements(dict[Hashable, Any]):
    """Compiled statements, shared by all engines of a process for SQLite.

    SQLAlchemy's keys begin with the dialect, an object of each engine. Those of Dagster's files
    have equal settings, so equal statements are the same for all of them.
    """

    def get(self, key: Hashable, default: Any = None) -> Any:
        return super().get(_without_dialect(key), default)

    def __setitem__(self, key: Hashable, compiled: Any) -> None:
        if len(self) >= _MOST_STATEMENTS:
            self.clear()
        super().__setitem__(_without_dialect(key), compiled)


def _without_dialect(key: Hashable) -> Hashable:
    is_usual = isinstance(key, tuple) and key and isinstance(key[0], SQLiteDialect)
    return key[1:] if is_usual else key  # type: ignore[index] # mypy does not follow `is_usual`


_statements = _Statements()


def write_quickly() -> None:
    """Make this process skip both waits, and compile and read scripts once, from now on."""
    if not event.contains(Engine, "connect", _connected):
        event.listen(Engine, "connect", _connected)
        event.listen(Engine, "engine_connect", _share_statements)
        read_scripts_once()
        # It logs a Ctrl-C that comes while it closes a file, with a traceback, and raises it again.
        logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
        # A process that ends at once (`cli/program.py`) frees no objects, so it closes no files.
        atexit.register(_close_all)


def _close_all() -> None:
    """Close all open files; SQLite then moves the write-ahead logs into them."""
    while _open:
        connection = _open.popitem()[1]
        with suppress(sqlite3.Error):  # the others are closed all the same
            connection.close()


@cache
def read_scripts_once() -> None:
    """Make Alembic read its scripts once in this process for all databases of one kind."""
    from alembic.script import ScriptDirectory

    read = ScriptDirectory.from_config
    known: dict[str | None, ScriptDirectory] = {}

    def read_once(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    ScriptDirectory.from_config = read_once  # type: ignore[method-assign] # applies to all callers


def _share_statements(connection: Connection) -> None:
    if isinstance(connection.dialect, SQLiteDialect):
        connection.execution_options(compiled_cache=_statements)


def _connected(connection: Any, _: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return  # another database
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        # A database in memory, or a new file, whose mode can be set only with no other connection.
        return
    connection.execute("PRAGMA synchronous = NORMAL")
    if path not in _open:
        # A later call closes it, maybe in another thread.
        _open[path] = sqlite3.connect(path, check_same_thread=False)
        _open[path].execute("SELECT count(*) FROM sqlite_master")
    _open.move_to_end(path)
    while len(_open) > _MOST_OPEN:
        _open.popitem(last=False)[1].close()


def storage_settings(home: Path) -> Mapping[str, Any] | None:
    """Return the storages that dagster.yaml sets instead of SQLite in the home.

    None if the file cannot be read; Dagster reports the error.
    """
    try:
        settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    except yaml.YAMLError:
        return None
    settings = settings if isinstance(settings, dict) else {}
    return {name: value for name, value in settings.items() if name in _STORAGES}


def make_history(home: Path) -> None:
    """Create the databases of a history in a draft folder, and move them when they are complete.

    Dagster creates tables one by one, and never completes a database that lacks some. The caller
    must hold the home's lock, so an existing draft is of a process that was killed.
    """
    for leftover in home.glob(".history.*.tmp"):
        shutil.rmtree(leftover)
    draft = home / ".history.new.tmp"
    draft.mkdir()
    settings = "telemetry:\n  enabled: false\n"
    (draft / "dagster.yaml").write_text(settings, encoding="utf-8")
    with DagsterInstance.from_config(str(draft)) as instance:
        # Each is created on access.
        _ = instance.run_storage, instance.event_log_storage, instance.schedule_storage
    # Closing the open files of the draft makes SQLite empty their write-ahead logs.
    for path in [path for path in _open if Path(path).is_relative_to(draft.resolve())]:
        _open.pop(path).close()
    for name in _FOLDERS:
        with suppress(FileNotFoundError):
            (home / name).replace(draft / f"old-{name}")
        (draft / name).replace(home / name)
    shutil.rmtree(draft)
