"""GAPERON's counts: how often a text of an item stands in a document, to the letter.

Looked for are the question, the question with its correct answer behind it, and its last sentence
with the answer. The score says how telling the text is: one of common phrases stands in documents
that never saw the item.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.detectors.found import Found, in_order
from decon_core.detectors.sharing import Screened
from decon_core.verbatim import ANSWER, NAMES, Verbatim


def count(screened: Screened, verbatim: Verbatim) -> list[Found]:
    """One row per document, record and text."""
    by_kind = sorted(
        _counted(screened, verbatim), key=lambda one: NAMES.index(one.looked_for or "")
    )
    return in_order(by_kind)


def _counted(screened: Screened, verbatim: Verbatim) -> Iterator[Found]:
    texts = verbatim.texts
    before, content = -1, b""
    for document, text in screened.wholes.tolist():
        if document != before:
            before, content = document, screened.content(document)
        wanted = texts.data[texts.offsets[text] : texts.offsets[text + 1]].tobytes()
        places = [*_places(content, wanted)]
        if not places:
            continue
        for use in range(int(verbatim.use_offsets[text]), int(verbatim.use_offsets[text + 1])):
            kind = int(verbatim.use_kind[use])
            if kind == ANSWER:
                continue
            yield Found(
                document=document,
                part=int(verbatim.use_part[use]),
                record=int(verbatim.use_record[use]),
                score=float(verbatim.use_weight[use]),
                question_overlap=1.0,
                n_matched=len(places),
                question_tokens=0,
                total_tokens=0,
                question_bytes=(places[0], places[0] + len(wanted)),
                looked_for=NAMES[kind],
            )


def _places(content: bytes, wanted: bytes) -> Iterator[int]:
    """Where it stands, one within another too."""
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + 1)
