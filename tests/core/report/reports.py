"""Report databases by hand: rows of which only what matters is said."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from decon_core.report import database
from decon_core.report.tables import TABLES, table_of

_WRITTEN = TemporaryDirectory(prefix="reports-")  # each once, by a digest of its rows


def write_report(path: Path, **tables: Sequence[Mapping[str, Any]]) -> Path:
    """A report with these rows; what a row leaves out is null, or nothing where it cannot be.

    Columns have no comments, which take a third of the time.
    """
    written = Path(_WRITTEN.name) / sha256(repr(tables).encode()).hexdigest()
    if not written.exists():
        rows = {name: _table(name, of_table) for name, of_table in tables.items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database, "_comments", lambda _: ())
            database.write_database(written, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(written, path)
    return path


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    unknown = {column for row in rows for column in row} - set(TABLES[name].schema.names)
    if unknown:
        raise KeyError(f"no such columns: {sorted(unknown)}")
    return table_of(name, rows)
