"""A report as one JSON object: what was looked for, how, what was found, what nobody could see.

The form is told in docs/publishing.md, and `SCHEMA` is counted up when a reader of the old form
could misread the new one. A number that is not known is null, and never 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from decon_core.report_file import opened, rows_of

SCHEMA = "decon-assets/summary/1"

Summary = dict[str, Any]

_DECIMALS = 9

# Of a benchmark whose items nobody counted only those that were found are known: no share is.
_BENCHMARKS = """
    SELECT b.benchmark, b.version, b.n_items, b.n_records, b.is_in_idf_snapshot,
           coalesce(i.n_leaked, 0) AS n_leaked,
           coalesce(i.n_leaked, 0) / nullif(b.n_items, 0) AS leak_rate,
           CASE WHEN b.n_items > 0
                THEN wilson_low(coalesce(i.n_leaked, 0), b.n_items) END AS low,
           CASE WHEN b.n_items > 0
                THEN wilson_high(coalesce(i.n_leaked, 0), b.n_items) END AS high,
           coalesce(i.n_question_only, 0) AS n_question_only,
           CASE WHEN b.n_items IS NOT NULL THEN coalesce(i.n_not_indexable, 0) END
               AS n_not_indexable,
           coalesce(d.n_documents, 0) AS n_documents
    FROM benchmarks b
    LEFT JOIN (
        SELECT benchmark,
               count(*) FILTER (status = 'leaked') AS n_leaked,
               count(*) FILTER (is_question_only) AS n_question_only,
               count(*) FILTER (status = 'not indexable') AS n_not_indexable
        FROM item_status GROUP BY benchmark
    ) i USING (benchmark)
    LEFT JOIN (
        SELECT benchmark, count(DISTINCT (source, shard_name, row)) AS n_documents
        FROM decisions WHERE is_contaminated GROUP BY benchmark
    ) d USING (benchmark)
    ORDER BY b.benchmark
"""

_SPLITS = """
    SELECT s.benchmark, s.split,
           CASE WHEN b.n_items IS NOT NULL THEN s.n_items END AS n_items,
           s.n_leaked,
           CASE WHEN b.n_items IS NOT NULL THEN s.leak_rate END AS leak_rate,
           CASE WHEN b.n_items IS NOT NULL THEN s.low END AS low,
           CASE WHEN b.n_items IS NOT NULL THEN s.high END AS high
    FROM by_benchmark s JOIN benchmarks b USING (benchmark)
    ORDER BY s.benchmark, s.split
"""

_BY_RULE = """
    SELECT benchmark, rule, count(*) FILTER (n_documents > 0) AS n_leaked
    FROM item_rules GROUP BY benchmark, rule ORDER BY benchmark, rule
"""

_WHY_NOT = """
    SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
    FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY ALL
"""

# A sum over shards is known where that of every shard is.
_READ = "CASE WHEN count({name}) = count(*) THEN sum({name})::BIGINT END AS {name}"
_COUNTS = ("n_rows", "n_documents", "n_characters", "n_too_short", "n_unreadable")

_SOURCES = f"""
    SELECT s.source, s.n_shards, {", ".join(f"s.{name}" for name in _COUNTS)},
           coalesce(f.n, 0) AS n_contaminated_documents,
           coalesce(f.n, 0) / nullif(s.n_documents, 0) AS document_rate,
           CASE WHEN s.n_documents > 0
                THEN wilson_low(coalesce(f.n, 0), s.n_documents) END AS low,
           CASE WHEN s.n_documents > 0
                THEN wilson_high(coalesce(f.n, 0), s.n_documents) END AS high,
           coalesce(f.n_leaked_items, 0) AS n_leaked_items
    FROM (
        SELECT {{source}} AS source, count(*) AS n_shards,
               {", ".join(_READ.format(name=name) for name in _COUNTS)}
        FROM shards GROUP BY 1
    ) s
    LEFT JOIN (
        SELECT {{source}} AS source, count(DISTINCT (source, shard_name, row)) AS n,
               count(DISTINCT (benchmark, split, instance_index)) AS n_leaked_items
        FROM decisions WHERE is_contaminated GROUP BY 1
    ) f USING (source)
    ORDER BY s.source
"""  # noqa: S608 - of constants alone

_UNREADABLE = """
    SELECT source, reason, count(*) AS n_rows FROM unreadable GROUP BY ALL ORDER BY ALL
"""

_REMOVED = """
    SELECT mixture, what, why, count(DISTINCT (source, shard_name, row)) AS n_documents
    FROM removed GROUP BY ALL ORDER BY ALL
"""

_SCORES = """
    SELECT rule, score_from, sum(n_matches)::BIGINT AS n_matches,
           sum(n_contaminated)::BIGINT AS n_contaminated
    FROM score_histogram GROUP BY ALL ORDER BY ALL
"""

_VERDICTS = "SELECT verdict, count(*) AS n FROM verdicts WHERE is_found GROUP BY ALL ORDER BY ALL"


def summary_of(report: Path) -> Summary:
    """Everything that is published of a report; the same report gives the same object."""
    with opened(report) as connection:
        return {
            "schema": SCHEMA,
            **_run(connection),
            "benchmarks": _benchmarks(connection),
            "corpus": _corpus(connection),
            "sources": _rows(connection, _SOURCES.format(source="source")),
            "unreadable": _rows(connection, _UNREADABLE),
            "mixtures": _mixtures(connection),
            "verdicts": {one["verdict"]: one["n"] for one in _rows(connection, _VERDICTS)},
        }


def score_bins(report: Path) -> list[Summary]:
    """How many matches of each rule have which score, and how many of them are leaks."""
    with opened(report) as connection:
        return _rows(connection, _SCORES)


def _run(connection: duckdb.DuckDBPyConnection) -> Summary:
    names = ("made_by", "state", "scan_fingerprint", "idf_snapshot", "thresholds", "policy")
    query = f"SELECT {', '.join(names)} FROM runs"  # noqa: S608 - names of our own
    (run,) = _rows(connection, query) or [dict.fromkeys(names)]
    thresholds = json.loads(run.pop("thresholds") or "{}")
    policy = _without_paths(json.loads(run.pop("policy") or "{}"))
    rules = [{"rule": rule, "threshold": value} for rule, value in sorted(thresholds.items())]
    return {**run, "rules": rules, "policy": policy}


def _without_paths(policy: Summary) -> Summary:
    """Where a tokenizer lies on somebody's disk is nobody's business."""
    tokenizer = policy.get("tokenizer_str")
    return {**policy, "tokenizer_str": Path(tokenizer).name} if tokenizer else policy


def _benchmarks(connection: duckdb.DuckDBPyConnection) -> list[Summary]:
    benchmarks = _rows(connection, _BENCHMARKS)
    parts = {
        "splits": _rows(connection, _SPLITS),
        "rules": _rows(connection, _BY_RULE),
        "not_indexable": _rows(connection, _WHY_NOT),
    }
    for benchmark in benchmarks:
        for name, rows in parts.items():
            own = [row for row in rows if row["benchmark"] == benchmark["benchmark"]]
            benchmark[name] = [
                {key: value for key, value in row.items() if key != "benchmark"} for row in own
            ]
    return benchmarks


def _corpus(connection: duckdb.DuckDBPyConnection) -> Summary:
    """All sources as one; without any shard there is no corpus, and nothing is known of it."""
    found = _rows(connection, _SOURCES.format(source="'all'"))
    if not found:
        unknown = (*_COUNTS, "n_contaminated_documents", "document_rate", "low", "high")
        return {"n_shards": 0, **dict.fromkeys(unknown), "n_leaked_items": 0}
    return {name: value for name, value in found[0].items() if name != "source"}


def _mixtures(connection: duckdb.DuckDBPyConnection) -> list[Summary]:
    removed = _rows(connection, _REMOVED)
    mixtures = _rows(connection, "FROM by_mixture")
    for mixture in mixtures:
        mixture["removed"] = [
            {name: value for name, value in row.items() if name != "mixture"}
            for row in removed
            if row["mixture"] == mixture["mixture"]
        ]
    return mixtures


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Summary]:
    return [
        {name: _rounded(value) for name, value in row.items()} for row in rows_of(connection, query)
    ]


def _rounded(value: object) -> object:
    """The last digits of a quotient are those of a processor."""
    return round(value, _DECIMALS) + 0.0 if isinstance(value, float) else value
