"""Errors of Dagster's history as what they are for a user: a full disk, a read-only folder."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from decon_core.storage.paths import cause_of, has_remedy

if TYPE_CHECKING:
    from dagster import DagsterInstance

_SQLITE_NUMBERS = {
    "SQLITE_FULL": errno.ENOSPC,
    "SQLITE_READONLY": errno.EROFS,
    "SQLITE_CANTOPEN": errno.EACCES,
    "SQLITE_IOERR": errno.EIO,
}
_MOST_FREE_BYTES = 1 << 20  # SQLite needs less for any of its files
_FILES_OF_SQLITE = 8  # it opens fewer at once for a database


def plain_error(error: BaseException, home: Path) -> OSError | None:
    """Return the system's error behind an error of Dagster or its database; None for others.

    Dagster wraps errors of its steps, and fails again when it writes them to its history.
    """
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__ or error
    for cause in reversed(seen):  # the first error of the chain is the reason of the others
        if isinstance(cause, OSError) and has_remedy(cause):
            return cause
        if _is_of_database(cause):
            text = cause_of(cause).partition(": ")[2]
            return OSError(_number_of(cause, home), f"the run history: {text}", str(home))
    return None


def _is_of_database(error: BaseException) -> bool:
    """Return whether a database cannot be used, which is no error in a query."""
    names = {kind.__name__ for kind in type(error).__mro__}
    module = type(error).__module__.partition(".")[0]
    return module in ("sqlite3", "sqlalchemy", "psycopg2") and "OperationalError" in names


def _number_of(error: BaseException, home: Path) -> int:
    """Return the number of the system's error, of which SQLite tells only the kind."""
    name = getattr(error, "sqlite_errorname", "")
    number = next((to for start, to in _SQLITE_NUMBERS.items() if name.startswith(start)), 0)
    if number in (errno.EACCES, errno.EIO) and home.is_dir():
        try:
            with ExitStack() as stack:
                for _ in range(_FILES_OF_SQLITE):
                    stack.callback(os.close, os.open(home, os.O_RDONLY))
        except OSError as limit:
            return limit.errno or number
        disk = os.statvfs(home)
        if disk.f_flag & os.ST_RDONLY:
            return errno.EROFS
        if disk.f_bavail * disk.f_frsize < _MOST_FREE_BYTES:
            return errno.ENOSPC
    return number


@contextmanager
def readable_instance(home: Path) -> Iterator[DagsterInstance | None]:
    """Open the Dagster instance to read it; None, after a note, if its history cannot be opened.

    SQLite writes also to read: who may only read a project, or has a full disk, has no history.
    """
    from dagster import DagsterInstance

    with ExitStack() as stack:
        instance: DagsterInstance | None = None
        try:
            instance = stack.enter_context(DagsterInstance.from_config(str(home.resolve())))
            instance.get_runs(limit=1)
        except Exception as error:
            reason = plain_error(error, home)
            if reason is None:
                raise
            instance = None
            print(f"note: runs are not shown: {cause_of(reason)}", file=sys.stderr)  # noqa: T201 - for the command line
        yield instance
