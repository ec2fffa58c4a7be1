"""Query the report's database for everything the page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.detectors import get
from decon_core.report.open import coverage_in, opened, rows_of

Row = Mapping[str, Any]
Rows = Sequence[Row]

# Limits of the page; the database has all rows.
MOST_ITEMS = 50
MOST_DOCUMENTS = 50
MOST_UNREADABLE = 200
MOST_PAIRS = 50_000
MOST_INVISIBLE = 500
# Documents listed per pair, and for all pairs together.
MOST_PLACES_OF_PAIR = 200
MOST_PLACES = 200_000

_QUERIES = {
    "runs": """
        SELECT * EXCLUDE (policy),
               coalesce((policy::JSON ->> 'keep_question_only')::BOOLEAN, true)
                   AS keeps_question_only
        FROM runs
    """,
    "totals": """
        SELECT (SELECT CASE WHEN count(*) = count(n_items) THEN (SELECT count(*) FROM items) END
                FROM benchmarks) AS n_items,
               (SELECT count(*) FROM benchmarks) AS n_benchmarks,
               (SELECT count(*) FROM shards) AS n_shards,
               (SELECT count(DISTINCT source) FROM shards) AS n_sources,
               (SELECT CASE WHEN count(*) = count(n_documents)
                            THEN coalesce(sum(n_documents), 0)::BIGINT END
                FROM shards) AS n_documents,
               (SELECT coalesce(sum(n_characters), 0)::BIGINT FROM shards) AS n_characters,
               (SELECT coalesce(sum(n_too_short), 0)::BIGINT FROM shards) AS n_too_short,
               (SELECT CASE WHEN count(*) = count(n_unreadable)
                            THEN coalesce(sum(n_unreadable), 0)::BIGINT END
                FROM shards) AS n_unreadable,
               (SELECT sum(n_invalid_utf8)::BIGINT FROM shards) AS n_invalid_utf8,
               (SELECT count(*) FROM documents WHERE is_contaminated) AS n_contaminated_documents,
               (SELECT count(*) FROM documents WHERE is_question_only)
                   AS n_question_only_documents,
               (SELECT count(*) FROM documents WHERE n_leaked_items > 1) AS n_crowded_documents,
               (SELECT count(*) FROM pairs) AS n_pairs,
               (SELECT count(*) FROM pairs WHERE is_contaminated) AS n_leak_pairs,
               (SELECT count(*) FROM item_status WHERE status = 'leaked') AS n_leaked,
               (SELECT count(*) FROM item_status WHERE status = 'question-only')
                   AS n_question_only,
               (SELECT count(*) FROM items WHERE NOT is_indexed) AS n_invisible,
               (SELECT count(*) FROM verdicts) AS n_verdicts,
               (SELECT count(*) FROM verdicts WHERE NOT is_found) AS n_verdicts_not_found
    """,
    "benchmarks": """
        SELECT b.*, f.n_clean, f.n_with_answer, f.n_with_part_of_answer, f.n_without_answer,
               f.n_leaked_without_having_one, f.n_not_fully_scanned
        FROM by_benchmark b JOIN flow f USING (benchmark, split)
        ORDER BY b.leak_rate DESC NULLS LAST, b.n_items DESC, benchmark, split
    """,
    "versions": """
        SELECT benchmark, version, n_items, n_records, thresholds FROM benchmarks ORDER BY benchmark
    """,
    "why_not_indexed": """
        SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
        FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY n_items DESC, benchmark, reason
    """,
    "invisible": f"""
        SELECT benchmark, split, instance_index, why_not_indexed AS reason, question
        FROM items WHERE NOT is_indexed
        ORDER BY benchmark, split, instance_index LIMIT {MOST_INVISIBLE}
    """,  # noqa: S608 - a number of our own
    "sources": """
        SELECT s.*, t.n_shards, t.n_characters, t.n_too_short
        FROM by_source s JOIN (
            SELECT source, count(*) AS n_shards, sum(n_characters)::BIGINT AS n_characters,
                   sum(n_too_short)::BIGINT AS n_too_short
            FROM shards GROUP BY source
        ) t USING (source) ORDER BY source
    """,
    "cells": "FROM by_benchmark_and_source ORDER BY benchmark, source",
    "scores": "FROM score_histogram ORDER BY benchmark, rule, bin",
    "sweep": """
        SELECT benchmark, rule, holds_to, count(*) AS n_items FROM item_rules
        WHERE holds_to IS NOT NULL GROUP BY ALL ORDER BY benchmark, rule, holds_to
    """,
    "agreement": """
        SELECT rule, other, sum(n_both)::BIGINT AS n_both, sum(n_rule_only)::BIGINT AS n_rule_only,
               sum(n_other_only)::BIGINT AS n_other_only
        FROM agreement GROUP BY rule, other ORDER BY rule, other
    """,
    "rules": """
        SELECT rule, sum(n_leaked)::BIGINT AS n_leaked, sum(n_documents)::BIGINT AS n_documents,
               sum(n_leaked_by_it_alone)::BIGINT AS n_leaked_by_it_alone
        FROM by_rule GROUP BY rule ORDER BY rule
    """,
    "mixtures": "FROM by_mixture",
    # A document with several reasons is in each; its tokens, too.
    "removed": """
        SELECT mixture, what, why, count(*) AS n_documents, sum(n_tokens)::BIGINT AS n_tokens
        FROM (
            SELECT mixture, what, why, source, shard_name, row, max(n_tokens) AS n_tokens
            FROM removed WHERE is_current GROUP BY ALL
        )
        GROUP BY mixture, what, why ORDER BY mixture, what, why
    """,
    "items": f"FROM top_items LIMIT {MOST_ITEMS}",
    "question_only_items": f"FROM question_only_items LIMIT {MOST_ITEMS}",
    "documents": f"FROM documents_with_many_items LIMIT {MOST_DOCUMENTS}",
    "unreadable": f"""
        SELECT source, shard_name, row, reason, detail FROM unreadable
        ORDER BY source, shard_name, row LIMIT {MOST_UNREADABLE}
    """,  # noqa: S608 - a number of our own
    "invalid_utf8": f"""
        SELECT source, shard_name, row, "offset", detail FROM invalid_utf8
        ORDER BY source, shard_name, row LIMIT {MOST_UNREADABLE}
    """,  # noqa: S608 - a number of our own
    "not_scanned": """
        SELECT source, shard_name, array_to_string(benchmarks, ', ') AS benchmarks, reason, remedy
        FROM not_scanned ORDER BY source, pack, shard_name
    """,
    "unreadable_reasons": """
        SELECT source, reason, count(*) AS n_rows FROM unreadable
        GROUP BY source, reason ORDER BY n_rows DESC, source, reason
    """,
}

_PAIRS = """
    SELECT p.* REPLACE (coalesce(p.verdict, v.verdict) AS verdict),
           v.note AS verdict_note, v.said_by AS verdict_by, v.said_at AS verdict_at
    FROM pairs p LEFT JOIN verdicts v USING (pair)
    ORDER BY p.is_contaminated DESC, p.is_question_only DESC, p.score DESC, p.pair
    LIMIT ?
"""

# The first documents of every pair that is in several, leaks first.
_PLACES = """
    WITH first AS (
        SELECT pair, row_number() OVER (
            ORDER BY is_contaminated DESC, is_question_only DESC, score DESC, pair
        ) AS number
        FROM pairs ORDER BY number LIMIT $most_pairs
    )
    SELECT pair, pair_documents.source, pair_documents.shard_name, pair_documents.row,
           pair_documents.doc_id
    FROM pair_documents JOIN first USING (pair) JOIN pairs USING (pair)
    WHERE pairs.n_documents > 1
    QUALIFY row_number() OVER (
        PARTITION BY pair ORDER BY pair_documents.is_contaminated DESC, pair_documents.source,
            pair_documents.shard_name, pair_documents.row
    ) <= $of_pair
    ORDER BY number, pair_documents.is_contaminated DESC, pair_documents.source,
             pair_documents.shard_name, pair_documents.row
    LIMIT $in_all
"""


@dataclass(frozen=True)
class Facts:
    """Results of all queries; pairs are sorted with leaks first, then by score."""

    results: Mapping[str, Rows]  # by name of the query
    pairs: pa.Table
    places: Mapping[str, Rows]  # by pair, its documents if there are several
    notice: str = ""  # set if the report is incomplete

    def __getitem__(self, query: str) -> Rows:
        return self.results[query]

    @property
    def run(self) -> Row:
        """The row of `runs`; empty if there is none."""
        return next(iter(self["runs"]), {})

    @property
    def totals(self) -> Row:
        return self["totals"][0]

    @property
    def has_snippets(self) -> bool:
        return bool(self.run.get("snippets"))

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Thresholds by detector; some are a number of tokens."""
        return dict(json.loads(self.run.get("thresholds") or "{}"))

    @property
    def with_known_total(self) -> list[Row]:
        """Benchmarks and splits with a known number of items.

        A report imported from another program contains only what leaked.
        """
        return [row for row in self["benchmarks"] if row["n_items"] is not None]

    def total(self, count: str) -> int:
        """Return the sum of a count over all benchmarks and splits."""
        return sum(row[count] or 0 for row in self["benchmarks"])

    @cached_property
    def _thresholds_by_benchmark(self) -> Mapping[str, Mapping[str, float]]:
        """Known thresholds by benchmark and detector."""
        return {
            row["benchmark"]: json.loads(row["thresholds"])
            for row in self["versions"]
            if row["thresholds"]
        }

    def own_thresholds(self, detector: str) -> Mapping[str, float]:
        """Return the thresholds of the benchmarks that differ from the detector's default."""
        default = self.thresholds.get(detector)
        return {
            name: thresholds[detector]
            for name, thresholds in self._thresholds_by_benchmark.items()
            if detector in thresholds and thresholds[detector] != default
        }

    def threshold(self, detector: str, benchmark: str | None = None) -> float | None:
        """Return the threshold for a benchmark; some are a number of tokens."""
        own = self._thresholds_by_benchmark.get(benchmark, {}) if benchmark else {}
        return own.get(detector, self.thresholds.get(detector))

    def score_threshold(self, detector: str, benchmark: str | None = None) -> float | None:
        """Return the lowest score of a leak: always 1, the full length, of a number of tokens."""
        is_length = get(detector).threshold.is_length
        return 1.0 if is_length else self.threshold(detector, benchmark)


def gather(report: Path, *, most_pairs: int = MOST_PAIRS) -> Facts:
    bounds = {"most_pairs": most_pairs, "of_pair": MOST_PLACES_OF_PAIR, "in_all": MOST_PLACES}
    with opened(report) as connection:
        results = {name: rows_of(connection, query) for name, query in _QUERIES.items()}
        pairs = connection.sql(_PAIRS, params=[most_pairs]).to_arrow_table()
        places: dict[str, list[Row]] = {}
        for row in connection.sql(_PLACES, params=bounds).to_arrow_table().to_pylist():
            places.setdefault(row["pair"], []).append(row)
        notice = coverage_in(connection).notice
    return Facts(results, pairs, places, notice)
