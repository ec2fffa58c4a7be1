"""Compare a report with a truth file: planted items found, and false alarms.

A truth file has one JSON object a line: source, shard (file name), row, benchmark, split,
instance_index, kind ("plant" or "hard_negative"), phenomenon, and expected (true, false, or null
where either verdict is fine).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb


@dataclass(frozen=True)
class BenchmarkScore:
    """The result for one benchmark."""

    benchmark: str
    n_items: int
    n_leaked: int
    n_planted: int  # expected to be found
    n_found: int  # of those
    n_false_alarms: int  # flagged (document, item) pairs not planted, or planted as negatives


@dataclass(frozen=True)
class PhenomenonScore:
    """The result for one phenomenon of plants or hard negatives."""

    kind: str
    phenomenon: str
    n: int
    n_flagged: int
    n_expected: int  # expected to be flagged
    n_wrong: int  # flagged where it must not be, or not flagged where it must


_FLAGGED = """
    CREATE TEMP TABLE flagged AS
    SELECT DISTINCT source, parse_filename(shard_name) AS shard, row,
                    benchmark, split, instance_index
    FROM report.matches WHERE is_contaminated
"""

# A hard negative may name no item: then nothing may be flagged in its document. `document` rows are
# flagged by any match, all others by a match with the same item.
_TRUTH = """
    CREATE TEMP TABLE truth AS
    SELECT t.*, parse_filename(t.shard) AS file,
           EXISTS (
               FROM flagged f
               WHERE f.source = t.source AND f.shard = parse_filename(t.shard) AND f.row = t.row
                 AND (t.instance_index IS NULL
                      OR (f.benchmark, f.split, f.instance_index)
                       = (t.benchmark, t.split, t.instance_index))
           ) AS is_flagged
    FROM read_json(?, format = 'newline_delimited', columns = {
        source: 'VARCHAR', shard: 'VARCHAR', row: 'BIGINT', kind: 'VARCHAR',
        phenomenon: 'VARCHAR', benchmark: 'VARCHAR', split: 'VARCHAR',
        instance_index: 'BIGINT', expected: 'BOOLEAN'}) t
    WHERE benchmark IS NULL OR benchmark IN (SELECT benchmark FROM report.benchmarks)
"""

_BY_BENCHMARK = """
    SELECT b.benchmark,
           (SELECT count(*) FROM report.items i WHERE i.benchmark = b.benchmark),
           (SELECT count(DISTINCT (split, instance_index))
              FROM flagged f WHERE f.benchmark = b.benchmark),
           (SELECT count(*) FROM truth t WHERE t.benchmark = b.benchmark AND expected),
           (SELECT count(*) FROM truth t
             WHERE t.benchmark = b.benchmark AND expected AND is_flagged),
           (SELECT count(*) FROM flagged f
             WHERE f.benchmark = b.benchmark AND NOT EXISTS (
                 FROM truth t
                 WHERE t.kind = 'plant' AND t.expected IS DISTINCT FROM false
                   AND (t.source, t.file, t.row) = (f.source, f.shard, f.row)
                   AND (t.benchmark, t.split, t.instance_index)
                     = (f.benchmark, f.split, f.instance_index)))
    FROM report.benchmarks b ORDER BY b.benchmark
"""

_BY_PHENOMENON = """
    SELECT kind, phenomenon, count(*), count(*) FILTER (is_flagged),
           count(*) FILTER (expected),
           count(*) FILTER (expected IS NOT NULL AND expected <> is_flagged)
    FROM truth GROUP BY kind, phenomenon ORDER BY kind DESC, phenomenon
"""


def compare(report: Path, truth: Path) -> tuple[list[BenchmarkScore], list[PhenomenonScore]]:
    """Score a report by benchmark and by phenomenon."""
    with duckdb.connect() as connection:
        connection.execute(
            f"ATTACH '{str(report).replace(chr(39), chr(39) * 2)}' AS report (READ_ONLY)"
        )
        connection.execute(_FLAGGED)
        connection.execute(_TRUTH, [str(truth)])
        benchmarks = connection.execute(_BY_BENCHMARK).fetchall()
        phenomena = connection.execute(_BY_PHENOMENON).fetchall()
    return (
        [BenchmarkScore(*row) for row in benchmarks],
        [PhenomenonScore(*row) for row in phenomena],
    )
