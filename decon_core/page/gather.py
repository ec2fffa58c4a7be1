"""What the page shows, asked of the report's database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.report_file import opened, rows_of

Row = Mapping[str, Any]
Rows = Sequence[Row]

# More can be asked of the database; a page is to be read.
MOST_ITEMS = 50
MOST_DOCUMENTS = 50
MOST_UNREADABLE = 200
MOST_PAIRS = 50_000

_QUERIES = {
    "runs": "SELECT * EXCLUDE (policy) FROM runs",
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
               (SELECT count(*) FROM documents WHERE is_contaminated) AS n_contaminated_documents,
               (SELECT count(*) FROM documents WHERE n_leaked_items > 1) AS n_crowded_documents,
               (SELECT count(*) FROM pairs) AS n_pairs,
               (SELECT count(*) FROM pairs WHERE is_contaminated) AS n_leak_pairs,
               (SELECT count(*) FROM item_status WHERE status = 'leaked') AS n_leaked,
               (SELECT count(*) FROM verdicts) AS n_verdicts,
               (SELECT count(*) FROM verdicts WHERE NOT is_found) AS n_verdicts_not_found
    """,
    "benchmarks": """
        SELECT b.*, f.n_clean, f.n_question_only, f.n_question_and_answer, f.n_leaked_without_answer
        FROM by_benchmark b JOIN flow f USING (benchmark, split)
        ORDER BY b.leak_rate DESC NULLS LAST, b.n_items DESC, benchmark, split
    """,
    "versions": "SELECT benchmark, version, n_items, n_records FROM benchmarks ORDER BY benchmark",
    "why_not_indexed": """
        SELECT benchmark, why_not_indexed AS reason, count(*) AS n_items
        FROM items WHERE NOT is_indexed GROUP BY ALL ORDER BY n_items DESC, benchmark, reason
    """,
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
    "documents": f"FROM documents_with_many_items LIMIT {MOST_DOCUMENTS}",
    "unreadable": f"""
        SELECT source, shard_name, row, reason, detail FROM unreadable
        ORDER BY source, shard_name, row LIMIT {MOST_UNREADABLE}
    """,  # noqa: S608 - a number of our own
    "unreadable_reasons": """
        SELECT source, reason, count(*) AS n_rows FROM unreadable
        GROUP BY source, reason ORDER BY n_rows DESC, source, reason
    """,
}

_PAIRS = """
    SELECT p.* REPLACE (coalesce(p.verdict, v.verdict) AS verdict),
           v.note AS verdict_note, v.said_by AS verdict_by, v.said_at AS verdict_at
    FROM pairs p LEFT JOIN verdicts v USING (pair)
    ORDER BY p.is_contaminated DESC, p.score DESC, p.pair
    LIMIT ?
"""


@dataclass(frozen=True)
class Facts:
    """What the database answered, by question; pairs as a table, leaks first and best first."""

    answers: Mapping[str, Rows]
    pairs: pa.Table

    def __getitem__(self, question: str) -> Rows:
        return self.answers[question]

    @property
    def run(self) -> Row:
        """The settings; a report made by hand may lack them."""
        return next(iter(self["runs"]), {})

    @property
    def totals(self) -> Row:
        return self["totals"][0]

    @property
    def has_snippets(self) -> bool:
        return bool(self.run.get("snippets"))

    @property
    def thresholds(self) -> Mapping[str, float]:
        """By rule; that of `ngram_any` is a length."""
        return dict(json.loads(self.run.get("thresholds") or "{}"))

    @property
    def counted(self) -> list[Row]:
        """Benchmarks and splits of which it is known how many items they have.

        A report that was read from another program's names what leaked, and nothing else.
        """
        return [row for row in self["benchmarks"] if row["n_items"] is not None]

    def of_items(self, count: str) -> int:
        """The sum of a count over all benchmarks and splits."""
        return sum(row[count] or 0 for row in self["benchmarks"])

    def score_threshold(self, rule: str) -> float | None:
        """From which score on the rule calls a leak: `ngram_any` scores 1 at its full length."""
        return 1.0 if rule == "ngram_any" else self.thresholds.get(rule)


def gather(report: Path, *, most_pairs: int = MOST_PAIRS) -> Facts:
    with opened(report) as connection:
        answers = {name: rows_of(connection, query) for name, query in _QUERIES.items()}
        pairs = connection.sql(_PAIRS, params=[most_pairs]).to_arrow_table()
    return Facts(answers, pairs)
