"""Dagster's history in SQLite, written twice as fast.

Dagster opens the file of a run for each event, and closes it again. SQLite then waits for the disk
twice: at the commit, and as the last one to close the file it moves the log of changes into it. For
a grid of thousands of cells that is half of what Dagster takes. The first wait is only needed for a
power cut: it could take the latest events with it, and nothing else, as the log of changes is
written ahead. What counts is in the store, and is told again. The second wait is not needed while
somebody has the file open.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

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
