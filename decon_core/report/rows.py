"""Fill report tables of which only some columns are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from decon_core.report.tables import TABLES

ONLY_SOURCE = "corpus"  # source name in reports made without a decon.toml


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; missing columns get null, or what is empty if not nullable."""
    schema = TABLES[name].schema
    defaults = {field.name: _default_of(field) for field in schema}
    return pa.Table.from_pylist([{**defaults, **row} for row in rows], schema=schema)


def filled(name: str, known: pa.Table) -> pa.Table:
    """Return a table with all declared columns; missing ones are filled."""
    columns = [
        known[field.name].cast(field.type)
        if field.name in known.column_names
        else pa.repeat(pa.scalar(_default_of(field), field.type), known.num_rows)
        for field in TABLES[name].schema
    ]
    return pa.table(columns, schema=TABLES[name].schema)


def _default_of(field: pa.Field) -> Any:
    """Return the value for unknown cells: null, or an empty or zero value if not nullable."""
    if field.nullable:
        return None
    if pa.types.is_string(field.type):
        return ""
    return False if pa.types.is_boolean(field.type) else 0
