"""Report databases by hand: rows of which only what matters is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.report.database import write_database
from decon_core.report.tables import TABLES, table_of


def write_report(path: Path, **tables: Sequence[Mapping[str, Any]]) -> Path:
    """A report with these rows; what a row leaves out is null, or nothing where it cannot be."""
    write_database(path, {name: _table(name, rows) for name, rows in tables.items()})
    return path


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    unknown = {column for row in rows for column in row} - set(TABLES[name].schema.names)
    if unknown:
        raise KeyError(f"no such columns: {sorted(unknown)}")
    return table_of(name, rows)
