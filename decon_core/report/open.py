"""Open a report's database read-only, with clear errors, and say what the report does not cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_core.errors import DeconError, MissingError, Problem, StaleError
from decon_core.storage.checksums import note_in_database, require_undamaged_database
from decon_core.wording import counted

if TYPE_CHECKING:  # takes 30 ms to import, which many commands do without
    import duckdb

Row = Mapping[str, Any]

_REMEDY = "Run `decon-assets run` to build it"
_CLOSE = "Close that program: a `duckdb` shell locks the file unless opened with -readonly"

# Beginnings of the reasons of shards of which only a sample was scanned, or that are not in it.
ONLY_SAMPLE = "only a "
NOT_DRAWN = "not in the "

_EXTERNAL = "enable_external_access"

# The newest columns of a report: a database that has these has all others.
_SIGNS = "SELECT other_questions FROM items LIMIT 0"


def connect(path: Path, *, may_use_files: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a database read-only. Its views, and queries, reach no other file unless they may."""
    import duckdb

    if not may_use_files:
        with suppress(duckdb.ConnectionException):  # this process has it open in another way
            return duckdb.connect(str(path), read_only=True, config={_EXTERNAL: "false"})
    return duckdb.connect(str(path), read_only=True)


@contextmanager
def opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only connection; a DuckDB error inside the block becomes a StaleError.

    Raise MissingError if there is no such file, StaleError if it is another kind of file, and
    DamagedError if its checksum is wrong.
    """
    if not path.is_file():
        raise MissingError(Problem(str(path), "no such file", remedy=_REMEDY))
    if not _is_database(path):
        expected = "a report's database, such as .decon/report/contamination.duckdb"
        raise StaleError(Problem(str(path), "a file that is not a database", expected))
    require_undamaged_database(path)
    import duckdb

    try:
        with connect(path) as connection:
            connection.execute(_SIGNS)
            yield connection
    except duckdb.Error as error:
        message = str(error).splitlines()[0]
        if "lock" in message.lower():
            found = f"another program has locked the database ({message})"
            problem = Problem(str(path), found, remedy=_CLOSE)
        else:
            found = f"the database cannot be queried, or is of another version ({message})"
            problem = Problem(str(path), found, remedy=_REMEDY)
        raise StaleError(problem) from None


def state_of(report: Path) -> str | None:
    """Return the state of a report, which is the same on every machine.

    None if the report is missing. The state is in the note of the database, unless that was changed
    or is of an earlier version; None if such a one is damaged, locked, or of another version.
    """
    try:
        if note := note_in_database(report):
            return str(note["state"])
        with opened(report) as connection:
            row = connection.execute("SELECT state FROM runs").fetchone()
    except (DeconError, FileNotFoundError):
        return None
    return str(row[0]) if row else None


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


def rows_of(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries by column name."""
    result = connection.execute(query, values)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def queries_in(path: Traversable) -> dict[str, str]:
    """Read a file of named queries: each follows a line `-- name: ...`."""
    _, *parts = path.read_text(encoding="utf-8").split("-- name: ")
    return {name: query for name, _, query in (part.partition("\n") for part in parts)}


_SHARDS = """
    SELECT source, pack, shard_name FROM shards
    UNION SELECT source, pack, shard_name FROM not_scanned
"""
_NOT_SCANNED = """
    SELECT source, pack, shard_name AS shard, path, benchmarks, reason, remedy
    FROM not_scanned ORDER BY source, pack, shard_name
"""


_NOT_COVERED = "SELECT benchmark, reason, is_refused FROM not_covered ORDER BY ALL"


@dataclass(frozen=True)
class Coverage:
    """The shards and benchmarks that a report lacks, and the numbers of all of them."""

    not_scanned: Sequence[Row]
    n_shards: int
    not_covered: Sequence[Row]
    n_benchmarks: int  # includes those that are not covered

    @property
    def is_complete(self) -> bool:
        return not self.notice

    @property
    def notice(self) -> str:
        """The sentences that mark an incomplete report; empty for a complete report."""
        reasons = [row["reason"] for row in self.not_scanned]
        notice = incomplete_notice(reasons, self.n_shards)
        names = [row["benchmark"] for row in self.not_covered if not row["is_refused"]]
        if not names:
            return notice
        n = f"{len(names):,} of {counted(self.n_benchmarks, 'benchmark')}"
        unavailable = (
            f"Incomplete: {n} could not be downloaded: {', '.join(names)}. "
            "The corpus may contain their items."
        )
        return f"{notice} {unavailable}".lstrip()


def coverage_in(connection: duckdb.DuckDBPyConnection) -> Coverage:
    not_covered = rows_of(connection, _NOT_COVERED)
    n_benchmarks = len(connection.sql("FROM benchmarks")) + len(not_covered)
    n_shards = len(connection.sql(_SHARDS))
    return Coverage(rows_of(connection, _NOT_SCANNED), n_shards, not_covered, n_benchmarks)


def coverage_of(report: Path) -> Coverage:
    with opened(report) as connection:
        return coverage_in(connection)


def incomplete_notice(reasons: Sequence[str | None], n_shards: int) -> str:
    """Return the sentence that marks an incomplete report; empty for a complete report.

    `reasons`: why each shard was not scanned, or only in part.
    """
    if not reasons:
        return ""
    samples, not_drawn = (
        [why for why in reasons if why and why.startswith(beginning)]
        for beginning in (ONLY_SAMPLE, NOT_DRAWN)
    )
    all_shards = counted(n_shards, "shard")
    parts = []
    if n := len(reasons) - len(samples) - len(not_drawn):
        parts.append(f"{n:,} of {all_shards} {'was' if n == 1 else 'were'} not scanned")
    for why, n in sorted(Counter(samples).items()):
        parts.append(f"{why}, was scanned in {n:,} of {all_shards}")
    for why, n in sorted(Counter(not_drawn).items()):
        parts.append(f"{n:,} of {all_shards} {'is' if n == 1 else 'are'} {why}")
    return (
        f"Incomplete: {'; '.join(parts)}. All numbers cover only the scanned "
        f"{'documents' if samples else 'shards'}: more items may have leaked, and items without a "
        "finding are not known to be clean."
    )
