"""Count what a folder scan found in each benchmark, over all shards.

By Polars: a query of two groups is not worth a database, which takes longer to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.decisions.judging import may_prove

_ITEM = ("split", "instance_index")  # columns that identify an item of a benchmark
_DOCUMENT = ("file", "row")


@dataclass
class BenchmarkCount:
    """The results for one benchmark."""

    benchmark: str
    n_items: int
    n_records: int
    n_checkable_items: int = 0  # items that a detector can find
    n_leaked_checkable_items: int = 0  # those of them that leaked
    n_leaked_items: int = 0  # items that leaked according to any detector
    n_leaks: int = 0  # findings: an item and a document
    n_documents: int = 0  # documents with a leak
    n_no_answer_items: int = 0  # not leaked anywhere, but its question was found somewhere
    n_no_answer_documents: int = 0  # documents with a question of it, and no leak of any benchmark
    n_review_items: int = 0  # to review, and neither leaked nor without the answer anywhere
    # Items that leaked according to each detector; to review, if it only finds similar text.
    n_items_by_detector: dict[str, int] = field(default_factory=dict)
    n_items_by_all: int = 0  # found by every detector

    @property
    def leak_rate(self) -> float | None:
        """Share of the items that a detector can find; None if there are none."""
        n = self.n_checkable_items
        return self.n_leaked_checkable_items / n if n else None

    @property
    def n_known_items(self) -> int:
        """The items that can be found, or were found in another form than can be."""
        return self.n_checkable_items + self.n_leaked_items - self.n_leaked_checkable_items


def count_matches(
    matches: Path, visibility: Path, versions: Sequence[Version], policy: Policy
) -> list[BenchmarkCount]:
    """Count the matches, and the items that can be found, from the files of a folder scan."""
    found = {row["benchmark"]: row for row in _findings_by_benchmark(matches)}
    checkable = {row.pop("benchmark"): row for row in _checkable(matches, visibility, policy)}
    counts = {
        version.benchmark: BenchmarkCount(
            n_items=version.n_items,
            n_records=version.n_records,
            **checkable.get(version.benchmark, {}),
            n_items_by_detector=dict.fromkeys(policy.detectors, 0),
            **found.get(version.benchmark, {"benchmark": version.benchmark}),
        )
        for version in versions
    }
    is_reviewed = pl.col("needs_review") & ~may_prove(policy)
    detected = pl.scan_parquet(matches).filter(pl.col("is_contaminated") | is_reviewed)
    by_item = detected.group_by("benchmark", *_ITEM)
    sets = by_item.agg(detectors=pl.col("detector").unique().sort())
    for row in _rows(sets.group_by("benchmark", "detectors").agg(n=pl.len())):
        count = counts[row["benchmark"]]
        count.n_items_by_all += row["n"] if len(row["detectors"]) == len(policy.detectors) else 0
        for detector in row["detectors"]:
            count.n_items_by_detector[detector] += row["n"]
    return [*counts.values()]


def _findings_by_benchmark(matches: Path) -> list[dict[str, Any]]:
    """Count findings, items and documents.

    A finding (an item and a document) is a leak if any detector calls it one; else `no answer`;
    else `review`.
    """
    is_leak, is_question, needs_review = map(
        pl.col, ("is_contaminated", "is_no_answer", "needs_review")
    )
    findings = (
        pl.scan_parquet(matches)
        .group_by("benchmark", *_ITEM, *_DOCUMENT)
        .agg(is_leak.any(), is_question.any(), needs_review.any())
        .with_columns(
            is_question & ~is_leak,
            needs_review & ~(is_leak | is_question),
            is_leak.any().over("benchmark", *_ITEM).alias("is_leaked_item"),
            is_question.any().over("benchmark", *_ITEM).alias("is_question_item"),
            is_leak.any().over(*_DOCUMENT).alias("is_leaky_document"),
        )
    )
    item, document = pl.struct(*_ITEM), pl.struct(*_DOCUMENT)
    in_clean_item, in_clean_document = ~pl.col("is_leaked_item"), ~pl.col("is_leaky_document")
    return _rows(
        findings.group_by("benchmark").agg(
            n_leaked_items=item.filter(is_leak).n_unique(),
            n_leaks=is_leak.sum(),
            n_documents=document.filter(is_leak).n_unique(),
            n_no_answer_items=item.filter(is_question & in_clean_item).n_unique(),
            n_no_answer_documents=document.filter(is_question & in_clean_document).n_unique(),
            n_review_items=item.filter(
                needs_review & in_clean_item & ~pl.col("is_question_item")
            ).n_unique(),
        )
    )


def _checkable(matches: Path, visibility: Path, policy: Policy) -> list[dict[str, Any]]:
    """Count, per benchmark, the items that can be found as leaks, and those of them that leaked."""
    item = ("benchmark", *_ITEM)
    is_seen = pl.col("is_visible") & may_prove(policy)
    seen = pl.scan_parquet(visibility).filter(is_seen).select(item).unique()
    leaked = pl.scan_parquet(matches).filter("is_contaminated").select(item).unique()
    both = seen.join(leaked.with_columns(is_leaked=pl.lit(1)), on=item, how="left")
    return _rows(
        both.group_by("benchmark").agg(
            n_checkable_items=pl.len(), n_leaked_checkable_items=pl.col("is_leaked").sum()
        )
    )


def _rows(query: pl.LazyFrame) -> list[Any]:
    return query.collect(engine="streaming").to_dicts()
