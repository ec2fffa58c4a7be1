"""Report databases by hand: rows of which only what matters is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.report.database import write_database
from decon_core.report.tables import TABLES


def write_report(path: Path, **tables: Sequence[Mapping[str, Any]]) -> Path:
    """A report with these rows; what a row leaves out is null, or nothing where it cannot be."""
    facts = {name: _filled(TABLES[name].schema, rows) for name, rows in tables.items()}
    write_database(path, facts)
    return path


def _filled(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    unknown = {name for row in rows for name in row} - set(schema.names)
    if unknown:
        raise KeyError(f"no such columns: {sorted(unknown)}")
    nothing = {field.name: _nothing(field) for field in schema}
    return pa.Table.from_pylist([{**nothing, **row} for row in rows], schema=schema)


def _nothing(field: pa.Field) -> Any:
    if field.nullable:
        return None
    if pa.types.is_string(field.type):
        return ""
    return False if pa.types.is_boolean(field.type) else 0
