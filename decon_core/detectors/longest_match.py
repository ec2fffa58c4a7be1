"""The WMT study's rule: the longest run of tokens in common, over the length of the field.

A record has two fields, question and answer (source and target); the better one decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.config.policy import Policy, reaches
from decon_core.detectors.finding import Finding
from decon_core.detectors.sharing import Shared
from decon_core.index.verbatim import ANSWER, QUESTION, Verbatim

_FIELDS = (QUESTION, ANSWER)


def measure(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Finding]:
    """All records of which a document holds enough of either field."""
    enough: set[tuple[int, int]] = set()
    for text in document.texts:
        run = document.run_of(text)
        if run is None or not reaches(run.share, policy.longest_match_floor):
            continue
        enough |= {(use.part, use.record) for use in verbatim.uses(text, _FIELDS)}
    for part, record in sorted(enough):
        yield _found(document, verbatim, part, record)


def _found(document: Shared, verbatim: Verbatim, part: int, record: int) -> Finding:
    texts = verbatim.fields(part, record)
    runs = [document.run_of(text) if text >= 0 else None for text in texts]
    lengths = [
        run.n_tokens if run else verbatim.n_tokens(text) if text >= 0 else 0
        for text, run in zip(texts, runs, strict=True)
    ]
    # None: it cannot be searched for, which is not the same as not found.
    scores = [
        (run.share if run else 0.0) if text >= 0 and verbatim.is_compared[text] else None
        for text, run in zip(texts, runs, strict=True)
    ]
    better = max(_FIELDS, key=lambda field: scores[field] or 0.0)
    question, answer = runs
    matched = runs[better]
    return Finding(
        document=document.number,
        part=part,
        record=record,
        score=scores[better] or 0.0,
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
