"""The tables of a report, as tables.toml declares them, and those that features add.

The descriptions become comments in the database; a change to one rebuilds the report. views.sql has
the views.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from decon_core.errors import Problem
from decon_core.feature import all_features, feature_files
from decon_core.schemas import COLUMNS, Column, field, schema_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_KINDS = {
    "text": "string",
    "whole": "int64",
    "number": "double",
    "flag": "bool",
    "texts": "list<item: string>",
    "marks": "list<item: struct<start: int64, stop: int64, part: string>>",
}

# Columns of files in the store, which follow those that are declared.
_STORED: Mapping[str, Sequence[Column]] = {
    "visibility": COLUMNS["VISIBILITY"],
    "common_ngrams": COLUMNS["COMMON"],
    "matches": COLUMNS["ENTRIES"],
    "removed": COLUMNS["REMOVED"][1:],
    **{
        name: resolve_name(schema)
        for feature in all_features()
        for name, schema in feature.report_tables.items()
    },
}


@dataclass(frozen=True)
class ReportTable:
    """What a table contains, and its columns."""

    about: str
    columns: Sequence[Column]
    origin: str  # the asset whose columns of the same names are copied; empty: none
    origins: Mapping[str, str]  # keyed by other column: its asset and column, with a dot between
    is_derived: bool  # computed by derived.sql, not filled from the store

    @cached_property
    def schema(self) -> pa.Schema:
        return schema_of(self.columns)


def _declared(name: str, table: Mapping[str, Any]) -> ReportTable:
    columns = [
        field(column, _KINDS[kind], about) for column, kind, about in table.get("columns", ())
    ]
    return ReportTable(
        table["about"],
        [*columns, *_STORED.get(name, ())],
        table.get("origin", ""),
        table.get("origins", {}),
        table.get("is_derived", False),
    )


_FILES = (Path(__file__).with_suffix(".toml"), *feature_files("report_tables.toml"))
TABLES: Mapping[str, ReportTable] = {
    name: _declared(name, table)
    for file in _FILES
    for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()
}


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; missing columns get null, or what is empty if not nullable."""
    import pyarrow as pa

    table = TABLES[name]
    defaults = {column.name: _default_of(column) for column in table.columns}
    return pa.Table.from_pylist([{**defaults, **row} for row in rows], schema=table.schema)


def beside(name: str, values: Mapping[str, object], rows: pa.Table) -> pa.Table:
    """Put columns of one value each before the columns of a stored file."""
    import pyarrow as pa

    columns = [pa.repeat(pa.scalar(value), rows.num_rows) for value in values.values()]
    return pa.table([*columns, *rows.columns], schema=TABLES[name].schema)


def filled(name: str, known: pa.Table) -> pa.Table:
    """Return a table with all declared columns; missing ones are filled."""
    import pyarrow as pa

    table = TABLES[name]
    columns = [
        known[column.name].cast(kind)
        if column.name in known.column_names
        else pa.repeat(pa.scalar(_default_of(column), kind), known.num_rows)
        for column, kind in zip(table.columns, table.schema.types, strict=True)
    ]
    return pa.table(columns, schema=table.schema)


def _default_of(column: Column) -> Any:
    """Return the value for unknown cells: null, or an empty or zero value if not nullable."""
    if column.is_nullable:
        return None
    return {"string": "", "bool": False}.get(column.kind, 0)


REBUILD = "Run `decon-assets run` to materialize `report` again"
_STATES = {True: "up to date", False: "out of date or missing"}


@dataclass(frozen=True)
class ReportAddition:
    """Tables of a report, and a key of their content: with another key the report is outdated."""

    key: str
    tables: Callable[[], Mapping[str, pa.Table]]
    changes: Callable[[duckdb.DuckDBPyConnection], Iterable[Problem]] = lambda _: ()
    """Yields what changed since an outdated report was built, where that is known."""


def state_changed(product: str, in_report: bool, now: bool) -> Problem:
    """Return the problem of a product that was current when the report was built, or is now."""
    found = f"{_STATES[in_report]} when the report was built, {_STATES[now]} now"
    return Problem(product, found, remedy=REBUILD)
