"""A report's database, opened to be read; what cannot be read says so before it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from decon_core.errors import MissingError, Problem, StaleError
from decon_core.storage.checksums import require_undamaged_database
from decon_core.wording import counted

Row = Mapping[str, Any]

_REMEDY = "`decon-assets run` makes one"
_CLOSE = "close whatever holds it open: a `duckdb` shell does, unless it was opened with -readonly"

# Younger than any other column of a report: a database that has these has the rest.
_SIGNS = "SELECT made_by, thresholds, n_shards_not_scanned FROM runs LIMIT 0"


def require_report(path: Path) -> None:
    """Raise where there is no report of this version that can be opened."""
    with opened(path):
        pass


@contextmanager
def opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that changes nothing. A question that it cannot answer says why."""
    if not path.is_file():
        raise MissingError(Problem(str(path), "no such file", "a report", _REMEDY))
    require_undamaged_database(path)
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            connection.execute(_SIGNS)
            yield connection
    except duckdb.Error as error:
        raise StaleError(_no_answer(path, error)) from None


def _no_answer(path: Path, error: duckdb.Error) -> Problem:
    told = str(error).splitlines()[0]
    if "lock" in told.lower():
        found = f"a database that another program holds open ({told})"
        return Problem(str(path), found, "one that can be read", _CLOSE)
    found = f"a database that cannot answer ({told})"
    expected = "a report of this version, that no other program holds open"
    return Problem(str(path), found, expected, _REMEDY)


def rows_of(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[object] = ()
) -> list[dict[str, Any]]:
    """An answer with a name for each value."""
    answer = connection.execute(query, values)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


# Incomplete reports -------------------------------------------------------------------------------

_N_SHARDS = """
    SELECT count(*) AS n FROM (
        SELECT source, pack, shard_name FROM shards
        UNION SELECT source, pack, shard_name FROM not_scanned
    )
"""
_NOT_SCANNED = """
    SELECT source, pack, shard_name AS shard, path, benchmarks, reason, remedy
    FROM not_scanned ORDER BY source, pack, shard_name
"""


@dataclass(frozen=True)
class Coverage:
    """The shards that a report lacks, of all."""

    not_scanned: Sequence[Row]
    n_shards: int

    @property
    def is_complete(self) -> bool:
        return not self.not_scanned

    @property
    def notice(self) -> str:
        """The sentence that marks an incomplete report; empty for a complete one."""
        return incomplete_notice(len(self.not_scanned), self.n_shards)


def coverage_in(connection: duckdb.DuckDBPyConnection) -> Coverage:
    (total,) = rows_of(connection, _N_SHARDS)
    return Coverage(rows_of(connection, _NOT_SCANNED), total["n"])


def coverage_of(report: Path) -> Coverage:
    with opened(report) as connection:
        return coverage_in(connection)


def incomplete_notice(n_not_scanned: int, n_shards: int) -> str:
    """The sentence that marks an incomplete report; empty for a complete one."""
    if not n_not_scanned:
        return ""
    return (
        f"Incomplete: {n_not_scanned:,} of {counted(n_shards, 'shard')} "
        f"{'was' if n_not_scanned == 1 else 'were'} not scanned. All numbers are about what was "
        "read: more items may have leaked, and an item without a finding is not known to be clean."
    )
