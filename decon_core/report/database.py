"""Write the report's DuckDB file: declared tables, derived tables, views and comments.

An empty database has all of these and no rows. To create it takes longer than to fill it with the
rows of a small report, so a store keeps one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from decon_core.config.detector_registry import near_kinds
from decon_core.config.mixtures import Leaks
from decon_core.config.policy import LEAST_ANSWER_OVERLAP
from decon_core.decisions.calibration import planted_steps
from decon_core.feature import feature_files
from decon_core.mixtures.composition import ITEMS as ITEMS_OF_BENCHMARKS
from decon_core.report.open import queries_in
from decon_core.report.tables import TABLES
from decon_core.storage.checksums import is_whole, seal_database
from decon_core.storage.drafts import remove
from decon_core.storage.files import atomic_path

if TYPE_CHECKING:
    import duckdb

_DERIVED = Path(__file__).with_name("derived.sql")
_VIEWS = Path(__file__).with_name("views.sql")
_SCRIPTS = (_VIEWS, *feature_files("views.sql"))
# Rows come from Parquet files or Arrow memory; DuckDB spills to disk above this limit.
_MEMORY = "1GB"


def write_database(
    path: Path,
    tables: Mapping[str, pa.Table],
    files: Mapping[str, Sequence[Path]] = MappingProxyType({}),
    *,
    drafts: Path | None = None,
    empty: Path | None = None,
    note: Callable[[duckdb.DuckDBPyConnection], Mapping[str, Any]] = lambda _: {},
) -> Mapping[str, Any]:
    """Write a new database and move it to `path`. Tables that are not passed are empty.

    `files`: Parquet files with the rows of tables that are too large for memory. `drafts`: the
    folder in which the file is written (default: that of `path`); a killed process leaves it there.
    `empty`: a copy of the empty database, written if it does not exist, alone in its folder.
    `note`: returns what is appended to the database, to be read without DuckDB; it is returned.
    """
    with atomic_path(path, drafts=drafts) as draft:
        if empty:
            _write_empty(empty)
            shutil.copyfile(empty, draft)
        with _connected(draft) as connection:
            if not empty:
                _create(connection)
            _fill(connection, tables, files)
            noted = note(connection)
        seal_database(draft, noted)
    return noted


def _write_empty(path: Path) -> None:
    """Write the empty database unless it exists, and remove those of other versions."""
    if is_whole(path):
        return
    for other in path.parent.glob("*.duckdb"):
        remove(other)
    with atomic_path(path) as draft:
        with _connected(draft) as connection:
            _create(connection)
        seal_database(draft)


@contextmanager
def _connected(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute(f"SET temp_directory = '{_quoted(str(path))}.spill'")
        yield connection


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all tables, views and macros with their comments."""
    # A commit waits for the disk, so hundreds of statements share a commit.
    connection.execute("BEGIN")
    for name, table in TABLES.items():
        _run_with(connection, table.schema.empty_table(), f"CREATE TABLE {name} AS")
    connection.execute(_macros())
    for script in _SCRIPTS:
        connection.execute(script.read_text(encoding="utf-8"))
    connection.execute("; ".join(comment for name in TABLES for comment in _comments(name)))
    connection.execute("COMMIT")


def _fill(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, pa.Table],
    files: Mapping[str, Sequence[Path]],
) -> None:
    # Each insertion is committed: in one transaction with 1.5 million matches, DuckDB 2.0 made
    # empty tables of them.
    for name, rows in tables.items():
        if rows.num_rows:
            _run_with(connection, rows.cast(TABLES[name].schema), f"INSERT INTO {name}")
    for name, paths in files.items():
        into = f"INSERT INTO {name} FROM read_parquet(?)"
        connection.execute(into, [[str(path) for path in paths]])
    connection.execute("BEGIN")
    for name, query in queries_in(_DERIVED).items():
        connection.execute(f"INSERT INTO {name} BY NAME {query}")
    connection.execute("COMMIT")


def schema_digest() -> str:
    """Return a digest of all tables and views: a report with another one is out of date."""
    tables = [f"{name} {table.about} {table.schema}" for name, table in TABLES.items()]
    scripts = [script.read_text(encoding="utf-8") for script in (_DERIVED, *_SCRIPTS)]
    return sha256("\n".join([*tables, _macros(), *scripts]).encode()).hexdigest()


def _macros() -> str:
    return (
        f"CREATE MACRO answer_threshold() AS {LEAST_ANSWER_OVERLAP}; "
        f"CREATE MACRO items_of_benchmarks() AS '{ITEMS_OF_BENCHMARKS}'; "
        f"CREATE MACRO least_judged() AS {Leaks.min_judged}; "
        f"CREATE MACRO near_kinds() AS {near_kinds()}; "
        f"CREATE MACRO planted_steps() AS {[*planted_steps()]}"
    )


def _run_with(connection: duckdb.DuckDBPyConnection, rows: pa.Table, statement: str) -> None:
    connection.register("incoming", rows)
    connection.execute(f"{statement} FROM incoming")
    connection.unregister("incoming")


def _comments(name: str) -> Iterator[str]:
    table = TABLES[name]
    yield f"COMMENT ON TABLE {name} IS '{_quoted(table.about)}'"
    for column in table.schema:
        meaning = (column.metadata or {}).get(b"description", b"").decode()
        if meaning:
            column_name = f'{name}."{column.name}"'
            yield f"COMMENT ON COLUMN {column_name} IS '{_quoted(meaning)}'"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
