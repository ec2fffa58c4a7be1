"""The result type of all detectors but `decon`: a match row without the shard's columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One record found in one document. Spans are in tokens, in characters, or in bytes of the
    compared form."""

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
    question_characters: Span | None = None  # of the document as it is
    answer_characters: Span | None = None
    question_bytes: Span | None = None
    answer_bytes: Span | None = None
    looked_for: str | None = None


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort stably by document, benchmark and record.

    Text numbers run through all benchmarks of a scan, so the order within a tile must not
    depend on them.
    """
    return sorted(findings, key=lambda one: (one.document, one.part, one.record))
