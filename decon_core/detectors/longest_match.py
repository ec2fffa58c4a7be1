"""The WMT study's rule: the longest run of tokens in common, over the length of the field.

A record has two fields, question and answer (source and target); the better one decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.detectors.found import Found
from decon_core.detectors.sharing import Shared
from decon_core.kernels import runs
from decon_core.policy import Policy
from decon_core.verbatim import ANSWER, QUESTION, Verbatim

_FIELDS = (QUESTION, ANSWER)


def measure(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Found]:
    """All records of which a document holds enough of either field."""
    aligned: runs.Texts = verbatim.aligned
    # For each record the number of its field's text among those of the document.
    records: dict[tuple[int, int], dict[int, int]] = {}
    enough: set[tuple[int, int]] = set()
    for number, text in enumerate(document.texts.tolist()):
        length = int(aligned.offsets[text + 1] - aligned.offsets[text])
        is_enough = document.lengths[number] >= policy.longest_match_floor * length
        for use in range(int(verbatim.use_offsets[text]), int(verbatim.use_offsets[text + 1])):
            kind = int(verbatim.use_kind[use])
            if kind in _FIELDS:
                record = int(verbatim.use_part[use]), int(verbatim.use_record[use])
                records.setdefault(record, {})[kind] = number
                if is_enough:
                    enough.add(record)
    for record in sorted(enough):
        yield _found(document, aligned, record, records[record])


def _found(
    document: Shared, aligned: runs.Texts, record: tuple[int, int], texts: dict[int, int]
) -> Found:
    scores, spans, lengths = {}, {}, {}
    for kind, number in texts.items():
        text, run = document.texts[number], int(document.lengths[number])
        start = int(document.starts[number])
        lengths[kind] = int(aligned.offsets[text + 1] - aligned.offsets[text])
        scores[kind], spans[kind] = run / lengths[kind], (start, start + run)
    better = max(_FIELDS, key=lambda kind: scores.get(kind, -1.0))
    part, row = record
    question, answer = spans.get(QUESTION), spans.get(ANSWER)
    return Found(
        document=document.number,
        part=part,
        record=row,
        score=scores[better],
        question_overlap=scores.get(QUESTION, 0.0),
        answer_overlap=scores.get(ANSWER),
        n_matched=spans[better][1] - spans[better][0],
        question_tokens=lengths.get(QUESTION, 0),
        total_tokens=sum(lengths.values()),
        question=question,
        answer=answer,
        question_bytes=document.bytes_of(*question) if question else None,
        answer_bytes=document.bytes_of(*answer) if answer else None,
    )
