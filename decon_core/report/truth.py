"""Compare a report with a truth file: planted items found, and false alarms.

A truth file has one JSON object a line: source, shard (file name), row, benchmark, split,
instance_index, kind ("plant" or "hard_negative"), phenomenon, and expected (true, false, or null
where either verdict is fine).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from decon_core.report.open import queries_in, rows_of

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))

Rows = list[dict[str, Any]]


def compare(report: Path, truth: Path) -> tuple[Rows, Rows]:
    """Return the scores of a report by benchmark and by phenomenon; truth.sql has their columns."""
    with duckdb.connect() as connection:
        quoted = str(report).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS report (READ_ONLY)")
        connection.execute(_QUERIES["flagged"])
        connection.execute(_QUERIES["truth"], [str(truth)])
        benchmarks, phenomena = (
            rows_of(connection, _QUERIES[name]) for name in ("benchmarks", "phenomena")
        )
    return benchmarks, phenomena
