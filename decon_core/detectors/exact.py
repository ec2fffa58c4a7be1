"""GAPERON's counts: how often a text of an item stands in a document, to the letter.

Looked for are the question, the question with its correct answer behind it, and its last sentence
with the answer. The score says how telling the text is: one of common phrases stands in documents
that never saw the item.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decon_core.detectors.finding import Finding, in_order
from decon_core.detectors.sharing import Screened
from decon_core.index.verbatim import NAMES, WHOLE, Verbatim
from decon_core.kernels import screen


def count(screened: Screened, verbatim: Verbatim) -> list[Finding]:
    """One row per document, record and text."""
    by_kind = sorted(
        _counted(screened, verbatim), key=lambda one: NAMES.index(one.looked_for or "")
    )
    return in_order(by_kind)


def _counted(screened: Screened, verbatim: Verbatim) -> Iterator[Finding]:
    wholes = screened.wholes
    named = wholes[:, : screen.PLACE]
    first = np.flatnonzero(np.append(True, (named[1:] != named[:-1]).any(axis=1))[: len(wholes)])
    times = np.diff(first, append=len(wholes))
    for (document, text, place), n in zip(wholes[first].tolist(), times.tolist(), strict=True):
        length = int(verbatim.texts.offsets[text + 1] - verbatim.texts.offsets[text])
        for use in verbatim.uses(text, WHOLE):
            yield Finding(
                document=document,
                part=use.part,
                record=use.record,
                score=use.weight,
                question_overlap=1.0,
                n_matched=n,
                question_tokens=0,
                total_tokens=0,
                question_bytes=(place, place + length),
                looked_for=NAMES[use.kind],
            )
