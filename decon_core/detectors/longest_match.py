"""The `longest_match` detector (WMT study): the longest common token run over the field's length.

A record has two fields, question and answer (source and target); the higher share is the score.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.config.policy import Policy, reaches
from decon_core.detectors.finding import Finding
from decon_core.detectors.sharing import Shared
from decon_core.index.verbatim import ANSWER, QUESTION, Verbatim

_FIELDS = (QUESTION, ANSWER)


def measure(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Finding]:
    """Yield a finding for each record with either field's share at or above the floor."""
    matched_records: set[tuple[int, int]] = set()
    for text in document.texts:
        run = document.run_of(text)
        if run is None or not reaches(run.share, policy.longest_match_floor):
            continue
        matched_records |= {(use.part, use.record) for use in verbatim.uses(text, _FIELDS)}
    for part, record in sorted(matched_records):
        yield _finding(document, verbatim, part, record)


def _finding(document: Shared, verbatim: Verbatim, part: int, record: int) -> Finding:
    texts = verbatim.fields(part, record)
    runs = [document.run_of(text) if text >= 0 else None for text in texts]
    lengths = [
        run.n_tokens if run else verbatim.n_tokens(text) if text >= 0 else 0
        for text, run in zip(texts, runs, strict=True)
    ]
    # None: not searchable, which is not the same as not found.
    scores = [
        (run.share if run else 0.0) if text >= 0 and verbatim.is_compared[text] else None
        for text, run in zip(texts, runs, strict=True)
    ]
    best_field = max(_FIELDS, key=lambda field: scores[field] or 0.0)
    question, answer = runs
    matched = runs[best_field]
    return Finding(
        document=document.number,
        part=part,
        record=record,
        score=scores[best_field] or 0.0,
        question_overlap=scores[QUESTION],
        answer_overlap=scores[ANSWER],
        n_matched=matched.n_matched if matched else 0,
        question_tokens=lengths[QUESTION],
        total_tokens=sum(lengths),
        question=(question.start, question.stop) if question else None,
        answer=(answer.start, answer.stop) if answer else None,
        question_bytes=question.bytes if question else None,
        answer_bytes=answer.bytes if answer else None,
    )
