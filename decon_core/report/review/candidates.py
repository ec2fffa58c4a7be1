"""The matched texts of a report as candidates of the judge (`decisions/candidates.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from decon_core.decisions.candidates import Candidate
from decon_core.report.review.found import Report

_PAIRS_AT_ONCE = 500  # whose texts are in memory


def candidates_in(
    report: Report, *, benchmarks: Sequence[str] = (), detectors: Sequence[str] = ()
) -> list[Candidate]:
    """Return the matched texts that these detectors found (default: all), without their texts."""
    return [
        Candidate(
            pair=row["text_id"],
            fingerprint=row["fingerprint"],
            benchmark=row["benchmark"],
            item=f"{row['split']} {row['instance_index']}",
            detector=row["detector"],
            score=row["score"],
        )
        for row in report.candidates(benchmarks, detectors)
    ]


def with_texts(
    report: Report | None, pairs: Iterable[Sequence[Candidate]]
) -> Iterator[list[Candidate]]:
    """Yield the candidates of each pair, those of the report with their texts."""
    rest = iter(pairs)
    while batch := [*islice(rest, _PAIRS_AT_ONCE)]:
        # Candidates of files have their texts already.
        keys = [member.pair for members in batch for member in members if not member.item_text]
        texts = report.texts(keys) if report and keys else {}
        for members in batch:
            yield [
                _filled(member, texts[member.pair]) if member.pair in texts else member
                for member in members
            ]


def _filled(candidate: Candidate, row: Mapping[str, Any]) -> Candidate:
    parts = [row["passage"], row["question"], row["answer"] and f"Answer: {row['answer']}"]
    return replace(
        candidate,
        item_text="\n\n".join(filter(None, parts)),
        text=row["text"],
        why_no_text=row["why_no_text"] or "the report has no text for it",
    )
