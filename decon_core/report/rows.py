"""Rows of a report's tables of which only some columns are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from decon_core.report.tables import TABLES

ONLY_SOURCE = "corpus"  # of a report that was not made by a decon.toml, which names its sources


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows that say what they know; of the rest nothing is known."""
    schema = TABLES[name].schema
    nothing = {field.name: nothing_of(field) for field in schema}
    return pa.Table.from_pylist([{**nothing, **row} for row in rows], schema=schema)


def filled(name: str, known: pa.Table) -> pa.Table:
    """The same for columns that are at hand."""
    columns = [
        known[field.name].cast(field.type)
        if field.name in known.column_names
        else pa.repeat(pa.scalar(nothing_of(field), field.type), known.num_rows)
        for field in TABLES[name].schema
    ]
    return pa.table(columns, schema=TABLES[name].schema)


def nothing_of(field: pa.Field) -> Any:
    """What stands where nothing is known: null, or what is nearest to it."""
    if field.nullable:
        return None
    if pa.types.is_string(field.type):
        return ""
    return False if pa.types.is_boolean(field.type) else 0
