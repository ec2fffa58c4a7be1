"""The Arrow schemas of all tables passed between stages; schemas.toml has their columns."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa

from decon_core.hidden import hidden

# With its first array, Arrow imports pandas if it is installed, to recognize objects of pandas: a
# third of a second in every process, though nothing here has such objects. Conversions to and from
# pandas still import it when they are called.
with hidden("pandas"):
    pa.array([0])


def field(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": meaning})


def required(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return field(name, kind, meaning, nullable=False)


def _columns(name: str) -> list[pa.Field]:
    """Return the columns that a table of schemas.toml declares."""
    return [
        field(column, pa.type_for_alias(kind.removesuffix("?")), about, nullable=kind[-1] == "?")
        for column, kind, about in _DECLARED[name]
    ]


def _arrays(name: str) -> pa.Schema:
    """Return a table of one row, with an array in every column."""
    return pa.schema(
        column.with_type(pa.large_list(pa.field("item", column.type, nullable=False)))
        for column in _columns(name)
    )


_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

RECORDS = pa.schema(_columns("RECORDS"))
INDEX = _arrays("INDEX")
FREQUENCIES = _arrays("FREQUENCIES")
DOCUMENTS = pa.schema(_columns("DOCUMENTS"))
GRAM_COUNTS = pa.schema(_columns("GRAM_COUNTS"))
COMMON = pa.schema(_columns("COMMON"))
ALIKE = pa.schema(_columns("ALIKE"))
MATCHES = pa.schema([*_columns("MATCH"), *ALIKE])
ENTRIES = pa.schema([*_columns("MATCH"), *_columns("ENTRY")])
REMOVED = pa.schema(_columns("REMOVED"))
DRAWN = pa.schema(_columns("DRAWN"))
VISIBILITY = pa.schema(_columns("VISIBILITY"))
