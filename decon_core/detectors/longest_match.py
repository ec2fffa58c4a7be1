"""The WMT study's rule: the longest run of tokens in common, over the length of the field.

A record has two fields, question and answer (source and target); the better one decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.detectors.found import Found
from decon_core.detectors.sharing import Shared
from decon_core.policy import Policy
from decon_core.verbatim import ANSWER, QUESTION, Verbatim

_FIELDS = (QUESTION, ANSWER)


def measure(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Found]:
    """All records of which a document holds enough of either field."""
    enough: set[tuple[int, int]] = set()
    for text, run in zip(document.texts.tolist(), document.lengths.tolist(), strict=True):
        if run / verbatim.n_tokens(text) < policy.longest_match_floor:
            continue
        enough |= {(use.part, use.record) for use in verbatim.uses(text, _FIELDS)}
    for part, record in sorted(enough):
        yield _found(document, verbatim, part, record)


def _found(document: Shared, verbatim: Verbatim, part: int, record: int) -> Found:
    texts = verbatim.fields(part, record)
    lengths = [verbatim.n_tokens(text) if text >= 0 else 0 for text in texts]
    runs = [document.run_of(text) for text in texts]
    # None: it cannot be searched for, which is not the same as not found.
    scores = [
        len(run or ()) / length if text >= 0 and verbatim.has_opening(text) else None
        for text, run, length in zip(texts, runs, lengths, strict=True)
    ]
    better = max(_FIELDS, key=lambda field: scores[field] or 0.0)
    question, answer = ((run.start, run.stop) if run else None for run in runs)
    matched = runs[better]
    return Found(
        document=document.number,
        part=part,
        record=record,
        score=scores[better] or 0.0,
        question_overlap=scores[QUESTION],
        answer_overlap=scores[ANSWER],
        n_matched=len(matched or ()),
        question_tokens=lengths[QUESTION],
        total_tokens=sum(lengths),
        question=question,
        answer=answer,
        question_bytes=document.bytes_of(*question) if question else None,
        answer_bytes=document.bytes_of(*answer) if answer else None,
    )
