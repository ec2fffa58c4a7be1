"""A report as one JSON object: benchmarks, settings, findings, and what could not be detected.

docs/publishing.md describes its keys. `SCHEMA` is incremented when a reader of the old form could
misread the new one. An unknown number is null, never 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from decon_core.config.policy import LEAST_ANSWER_OVERLAP, QUESTIONS_LEFT_OUT
from decon_core.report.open import coverage_in, opened, rows_of
from decon_core.wording import counted, have, hold

SCHEMA = "decon-assets/summary/2"

Summary = dict[str, Any]

_DECIMALS = 9

# If the number of items of a benchmark is unknown, so are its rates.
_BENCHMARKS = """
    SELECT b.benchmark, b.version, b.n_items, b.n_records, b.is_in_idf_snapshot,
           b.n_shards_not_scanned,
           coalesce(i.n_leaked, 0) AS n_leaked,
           coalesce(i.n_leaked, 0) / nullif(b.n_items, 0) AS leak_rate,
           CASE WHEN b.n_items > 0
                THEN wilson_low(coalesce(i.n_leaked, 0), b.n_items) END AS low,
           CASE WHEN b.n_items > 0
                THEN wilson_high(coalesce(i.n_leaked, 0), b.n_items) END AS high,
           coalesce(i.n_with_answer, 0) AS n_with_answer,
           coalesce(i.n_with_part, 0) AS n_with_part_of_answer,
           coalesce(i.n_without_answer, 0) AS n_without_answer,
           coalesce(i.n_question_only, 0) AS n_question_only,
           coalesce(i.n_question_only, 0) / nullif(b.n_items, 0) AS question_only_rate,
           CASE WHEN b.n_items > 0
                THEN wilson_high(coalesce(i.n_question_only, 0), b.n_items) END
               AS question_only_high,
           CASE WHEN b.n_items IS NOT NULL THEN coalesce(i.n_not_indexable, 0) END
               AS n_not_indexable,
           coalesce(i.n_not_fully_scanned, 0) AS n_not_fully_scanned,
           coalesce(d.n_documents, 0) AS n_documents,
           coalesce(d.n_question_only_documents, 0) AS n_question_only_documents
    FROM benchmarks b
    LEFT JOIN (
        SELECT benchmark,
               count(*) FILTER (status = 'leaked') AS n_leaked,
               count(*) FILTER (what_leaked = 'with its answer') AS n_with_answer,
               count(*) FILTER (what_leaked = 'with part of its answer') AS n_with_part,
               count(*) FILTER (what_leaked = 'without its answer') AS n_without_answer,
               count(*) FILTER (status = 'question-only') AS n_question_only,
               count(*) FILTER (status = 'not fully scanned') AS n_not_fully_scanned,
               count(*) FILTER (status = 'not indexable') AS n_not_indexable
        FROM item_status GROUP BY benchmark
    ) i USING (benchmark)
    LEFT JOIN (
        SELECT d.benchmark,
               count(DISTINCT (source, shard_name, row)) FILTER (d.is_contaminated)
                   AS n_documents,
               count(DISTINCT (source, shard_name, row))
                   FILTER (d.is_question_only AND documents.is_question_only)
                   AS n_question_only_documents
        FROM decisions d JOIN documents USING (source, shard_name, row)
        WHERE d.is_contaminated OR d.is_question_only GROUP BY d.benchmark
    ) d USING (benchmark)
    ORDER BY b.benchmark
"""

_SPLITS = """
    SELECT s.benchmark, s.split,
           CASE WHEN b.n_items IS NOT NULL THEN s.n_items END AS n_items,
           s.n_leaked, s.n_question_only,
           CASE WHEN b.n_items IS NOT NULL THEN s.leak_rate END AS leak_rate,
           CASE WHEN b.n_items IS NOT NULL THEN s.low END AS low,
           CASE WHEN b.n_items IS NOT NULL THEN s.high END AS high
    FROM by_benchmark s JOIN benchmarks b USING (benchmark)
    ORDER BY s.benchmark, s.split
"""

_BY_DETECTOR = """
    SELECT benchmark, rule, count(*) FILTER (n_documents > 0) AS n_leaked
    FROM item_rules GROUP BY benchmark, rule ORDER BY benchmark, rule
"""

_WHY_NOT = """
    SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
    FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY ALL
"""

# A sum over shards is null if the count of any shard is.
_SUM = "CASE WHEN count({name}) = count(*) THEN sum({name})::BIGINT END AS {name}"
_COUNTS = (
    *("n_rows", "n_documents", "n_characters", "n_too_short", "n_unreadable"),
    "n_invalid_utf8",
)

_SOURCES = f"""
    SELECT s.source, s.n_shards, {", ".join(f"s.{name}" for name in _COUNTS)},
           coalesce(f.n, 0) AS n_contaminated_documents,
           coalesce(f.n, 0) / nullif(s.n_documents, 0) AS document_rate,
           CASE WHEN s.n_documents > 0
                THEN wilson_low(coalesce(f.n, 0), s.n_documents) END AS low,
           CASE WHEN s.n_documents > 0
                THEN wilson_high(coalesce(f.n, 0), s.n_documents) END AS high,
           coalesce(f.n_leaked_items, 0) AS n_leaked_items,
           coalesce(q.n, 0) AS n_question_only_documents,
           coalesce(q.n, 0) / nullif(s.n_documents, 0) AS question_only_rate,
           CASE WHEN s.n_documents > 0
                THEN wilson_high(coalesce(q.n, 0), s.n_documents) END AS question_only_high
    FROM (
        SELECT {{source}} AS source, count(*) AS n_shards,
               {", ".join(_SUM.format(name=name) for name in _COUNTS)}
        FROM shards GROUP BY 1
    ) s
    LEFT JOIN (
        SELECT {{source}} AS source, count(DISTINCT (source, shard_name, row)) AS n,
               count(DISTINCT (benchmark, split, instance_index)) AS n_leaked_items
        FROM decisions WHERE is_contaminated GROUP BY 1
    ) f USING (source)
    LEFT JOIN (
        SELECT {{source}} AS source, count(*) AS n
        FROM documents WHERE is_question_only GROUP BY 1
    ) q USING (source)
    ORDER BY s.source
"""  # noqa: S608 - constants only

_UNREADABLE = """
    SELECT source, reason, count(*) AS n_rows FROM unreadable GROUP BY ALL ORDER BY ALL
"""

_REMOVED = """
    SELECT mixture, what, why, count(DISTINCT (source, shard_name, row)) AS n_documents
    FROM removed GROUP BY ALL ORDER BY ALL
"""

_SCORES = """
    SELECT rule, score_from, sum(n_matches)::BIGINT AS n_matches,
           sum(n_contaminated)::BIGINT AS n_contaminated,
           sum(n_question_only)::BIGINT AS n_question_only
    FROM score_histogram GROUP BY ALL ORDER BY ALL
"""

_VERDICTS = "SELECT verdict, count(*) AS n FROM verdicts WHERE is_found GROUP BY ALL ORDER BY ALL"


def summary_of(report: Path) -> Summary:
    """Return the summary of a report; the same report gives the same object."""
    with opened(report) as connection:
        return {
            "schema": SCHEMA,
            "least_answer_overlap": LEAST_ANSWER_OVERLAP,
            **_run(connection),
            **_coverage(connection),
            "benchmarks": _benchmarks(connection),
            "corpus": _corpus(connection),
            "sources": _rows(connection, _SOURCES.format(source="source")),
            "unreadable": _rows(connection, _UNREADABLE),
            "mixtures": _mixtures(connection),
            "verdicts": {one["verdict"]: one["n"] for one in _rows(connection, _VERDICTS)},
        }


_DOCUMENTS = """
    SELECT (SELECT CASE WHEN count(*) = count(n_documents) THEN sum(n_documents)::BIGINT END
            FROM shards) AS n_documents,
           (SELECT sum(n_invalid_utf8)::BIGINT FROM shards) AS n_invalid_utf8,
           count(*) FILTER (is_contaminated) AS n_leaks,
           count(*) FILTER (is_question_only) AS n_question_only,
           (SELECT any_value(policy) FROM runs) AS policy
    FROM documents
"""


def format_headline(report: Path) -> str:
    """Return the numbers of documents with leaks, question-only matches and invalid UTF-8."""
    with opened(report) as connection:
        (counts,) = rows_of(connection, _DOCUMENTS)
    n, n_questions = counts["n_documents"], counts["n_question_only"]
    n_leaks = counts["n_leaks"]
    documents = (
        counted(n_leaks, "document") if n is None else f"{n_leaks:,} of {counted(n, 'document')}"
    )
    policy = json.loads(counts["policy"] or "{}")
    left_out = "" if keeps_question_only(policy) else f"; {QUESTIONS_LEFT_OUT}"
    return (
        f"{documents} {hold(n_leaks)} a leak; {n_questions:,} more {hold(n_questions)} a question "
        f"without its answer (question-only){left_out}{_invalid_utf8(counts['n_invalid_utf8'])}"
    )


def keeps_question_only(policy: Summary) -> bool:
    """Return whether the scan kept questions without an answer below the evidence floor."""
    return bool(policy.get("keep_question_only", True))


def _invalid_utf8(n: int | None) -> str:
    """Return a second line if there are such documents."""
    if not n:
        return ""
    return (
        f"\n{counted(n, 'document')} {have(n)} bytes that are not UTF-8 (scanned as U+FFFD): "
        "decon-assets report --query 'FROM invalid_utf8'"
    )


def score_bins(report: Path) -> list[Summary]:
    """Return a histogram of scores by detector: matches, leaks and question-only matches."""
    with opened(report) as connection:
        return _rows(connection, _SCORES)


def _run(connection: duckdb.DuckDBPyConnection) -> Summary:
    names = (
        "made_by",
        "made_at",
        "state",
        "scan_fingerprint",
        "idf_snapshot",
        "thresholds",
        "policy",
    )
    query = f"SELECT {', '.join(names)} FROM runs"  # noqa: S608 - constant names
    (run,) = _rows(connection, query) or [dict.fromkeys(names)]
    thresholds = json.loads(run.pop("thresholds") or "{}")
    policy = _without_paths(json.loads(run.pop("policy") or "{}"))
    by_benchmark = _thresholds_by_benchmark(connection)
    detectors = [
        {
            "rule": detector,
            "threshold": value,
            "of_benchmarks": {
                benchmark: of_benchmark[detector]
                for benchmark, of_benchmark in by_benchmark.items()
                if of_benchmark.get(detector, value) != value
            },
        }
        for detector, value in sorted(thresholds.items())
    ]
    return {**run, "rules": detectors, "policy": policy}


def _thresholds_by_benchmark(
    connection: duckdb.DuckDBPyConnection,
) -> dict[str, dict[str, float]]:
    """Return known thresholds by benchmark and detector."""
    query = """
        SELECT benchmark, thresholds FROM benchmarks
        WHERE thresholds IS NOT NULL ORDER BY benchmark
    """
    return {one["benchmark"]: json.loads(one["thresholds"]) for one in _rows(connection, query)}


def _coverage(connection: duckdb.DuckDBPyConnection) -> Summary:
    """Return the shards that were not scanned, without their paths: a summary is published."""
    coverage = coverage_in(connection)
    rows = [{name: row[name] for name in row if name != "path"} for row in coverage.not_scanned]
    counts = {"is_complete": coverage.is_complete, "n_shards_in_corpus": coverage.n_shards}
    return {**counts, "not_scanned": rows}


def _without_paths(policy: Summary) -> Summary:
    """Reduce the path of a tokenizer to its file name: a summary is published."""
    tokenizer = policy.get("tokenizer_str")
    return {**policy, "tokenizer_str": Path(tokenizer).name} if tokenizer else policy


def _benchmarks(connection: duckdb.DuckDBPyConnection) -> list[Summary]:
    benchmarks = _rows(connection, _BENCHMARKS)
    parts = {
        "splits": _rows(connection, _SPLITS),
        "rules": _rows(connection, _BY_DETECTOR),
        "not_indexable": _rows(connection, _WHY_NOT),
    }
    for benchmark in benchmarks:
        for name, rows in parts.items():
            benchmark[name] = [
                {key: value for key, value in row.items() if key != "benchmark"}
                for row in rows
                if row["benchmark"] == benchmark["benchmark"]
            ]
    return benchmarks


def _corpus(connection: duckdb.DuckDBPyConnection) -> Summary:
    """Return the counts of all sources together; null in a report without shards."""
    rows = _rows(connection, _SOURCES.format(source="'all'"))
    if not rows:
        unknown = (
            *(*_COUNTS, "n_contaminated_documents", "document_rate", "low", "high"),
            *("n_question_only_documents", "question_only_rate", "question_only_high"),
        )
        return {"n_shards": 0, **dict.fromkeys(unknown), "n_leaked_items": 0}
    return {name: value for name, value in rows[0].items() if name != "source"}


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
    """Round floats: the last digits of a quotient differ between processors."""
    return round(value, _DECIMALS) + 0.0 if isinstance(value, float) else value
