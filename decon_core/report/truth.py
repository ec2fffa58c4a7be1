"""Compare a report with a truth file: planted items found, and false alarms.

A truth file has one JSON object a line: source, shard (file name), row, benchmark, split,
instance_index, kind ("plant" or "hard_negative"), phenomenon, and expected (true, false, or null
where either verdict is fine).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from decon_core.report.open import queries_in

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))


@dataclass(frozen=True)
class BenchmarkScore:
    """The result for one benchmark."""

    benchmark: str
    n_items: int
    n_leaked: int
    n_planted: int  # expected to be found
    n_found: int  # planted ones that were found
    n_false_alarms: int  # findings that were not planted, or planted as negatives


@dataclass(frozen=True)
class PhenomenonScore:
    """The result for one phenomenon of plants or hard negatives."""

    kind: str
    phenomenon: str
    n: int
    n_flagged: int
    n_expected: int  # expected to be flagged
    n_wrong: int  # flagged where it must not be, or not flagged where it must


def compare(report: Path, truth: Path) -> tuple[list[BenchmarkScore], list[PhenomenonScore]]:
    """Score a report by benchmark and by phenomenon."""
    with duckdb.connect() as connection:
        quoted = str(report).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS report (READ_ONLY)")
        connection.execute(_QUERIES["flagged"])
        connection.execute(_QUERIES["truth"], [str(truth)])
        benchmarks = connection.execute(_QUERIES["benchmarks"]).fetchall()
        phenomena = connection.execute(_QUERIES["phenomena"]).fetchall()
    by_benchmark = [BenchmarkScore(*row) for row in benchmarks]
    return by_benchmark, [PhenomenonScore(*row) for row in phenomena]
