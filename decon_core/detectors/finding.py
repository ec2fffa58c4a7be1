"""What every rule but `decon` finds: rows for the match table, less what the shard says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One record found in one document. Spans are tokens, then bytes of the form compared."""

    document: int  # number in the batch
    part: int  # number of the benchmark
    record: int
    score: float
    question_overlap: float | None
    answer_overlap: float | None = None
    n_matched: int
    question_tokens: int
    total_tokens: int
    question: Span | None = None
    answer: Span | None = None
    question_bytes: Span | None = None
    answer_bytes: Span | None = None
    looked_for: str | None = None


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """By document and record; several of one record stay as they are.

    Texts are numbered through all benchmarks of a scan, which no tile may show.
    """
    return sorted(found, key=lambda one: (one.document, one.part, one.record))
