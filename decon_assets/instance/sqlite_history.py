"""Write Dagster's history in SQLite faster, and create its databases completely.

For each event, Dagster opens two files, and makes an engine of SQLAlchemy for each: half of the
time that a partition takes. A new engine asks SQLite for its settings, and compiles every statement
again. For each run's file, Alembic reads some fifty scripts several times, only to learn the newest
revision of the tables: 5 % of the processor's time for a run of the sample world.

SQLite also waits for the disk twice: at the commit, and when the last connection closes and moves
the write-ahead log into the file. That is half a second or more for each run of the sample world
where others use the disk, and half of Dagster's time for a grid of thousands of partitions. The
first wait only protects against a power cut, which could lose the latest events and nothing else;
the store has the results, and they are reported again. The second wait is not needed while a
connection is open.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import yaml
from dagster import DagsterInstance
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import QueuePool

from decon_core.hidden import hidden

if TYPE_CHECKING:  # takes 0.1 s to import, which many commands do without
    from alembic.config import Config
    from alembic.script import ScriptDirectory

RUNS = "history/runs.db"
_FOLDERS = ("schedules", "history")  # the one with the runs last
_STORAGES = {"storage", "run_storage", "event_log_storage", "schedule_storage"}

_MOST_OPEN = 8  # files: those of the active run, and of the instance
_open: OrderedDict[Path, tuple[Engine, int | None]] = OrderedDict()  # engines, inodes of files
_lock = Lock()  # guards `_open`


class _KeptPool(QueuePool):
    """A pool whose connection outlives `Engine.dispose`, which Dagster calls after each event."""

    def dispose(self) -> None:
        """Keep the connection."""

    def recreate(self) -> _KeptPool:
        return self

    def close(self) -> None:
        """Close the connection, unless it is in use."""
        super().dispose()


def write_quickly() -> None:
    """Make this process keep files open, skip both waits, and read scripts once, from now on."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("dagster.") and vars(module).get("create_engine") is create_engine:
            vars(module)["create_engine"] = _kept_engine
    _prepare()


@cache
def _prepare() -> None:
    read_scripts_once()
    # It logs a Ctrl-C that comes while it closes a file, with a traceback, and raises it again.
    logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
    # A process that ends at once (`cli/program.py`) frees no objects, so it closes no files.
    atexit.register(_close_below, Path("/"))


def _kept_engine(url: str, **settings: Any) -> Engine:
    """Return the engine of a file, which keeps one connection open; further ones are closed."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.is_absolute():
        return create_engine(url, **settings)  # a database in memory, or not of SQLite
    inode = path.stat().st_ino if path.exists() else None
    with _lock:
        engine, known = _open.pop(path, (None, None))
        if engine and known not in (None, inode):  # the file was removed
            _close(engine)
            engine = None
        if not engine:
            # The next event may come from another thread.
            arguments = {**settings.get("connect_args", {}), "check_same_thread": False}
            pool = {"poolclass": _KeptPool, "pool_size": 1, "max_overflow": -1}
            engine = create_engine(url, **{**settings, **pool, "connect_args": arguments})
            event.listen(engine, "connect", _do_not_wait)
        _open[path] = engine, inode
        while len(_open) > _MOST_OPEN:
            _close(_open.popitem(last=False)[1][0])
    return engine


def _do_not_wait(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


def _close(engine: Engine) -> None:
    engine.pool.close()  # type: ignore[attr-defined] # a `_KeptPool`


def _close_below(folder: Path) -> None:
    """Close the files below a folder; SQLite then moves the write-ahead logs into them."""
    with _lock:
        for path in [path for path in _open if path.is_relative_to(folder)]:
            _close(_open.pop(path)[0])


@cache
def read_scripts_once() -> None:
    """Make Alembic read its scripts once in this process for all databases of one kind."""
    # Alembic and Dagster import libraries that would import these for colored tracebacks: 0.1 s.
    with hidden("pygments", "rich"), suppress(ModuleNotFoundError):
        import_module("mako.exceptions")
        import_module("structlog")
    from alembic.script import ScriptDirectory

    read = ScriptDirectory.from_config
    known: dict[str | None, ScriptDirectory] = {}

    def read_once(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    ScriptDirectory.from_config = read_once  # type: ignore[method-assign] # applies to all callers


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
    _close_below(draft.resolve())
    for name in _FOLDERS:
        with suppress(FileNotFoundError):
            (home / name).replace(draft / f"old-{name}")
        (draft / name).replace(home / name)
    shutil.rmtree(draft)
