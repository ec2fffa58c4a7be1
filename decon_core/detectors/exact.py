"""The `exact` detector (GAPERON): count the verbatim occurrences of an item's texts in a document.

It searches for the question, the question followed by its correct answer, and the last sentence of
the question followed by the answer. The score is how informative the text is (by idf): a text of
common phrases also occurs in documents unrelated to the item.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decon_core.detectors.finding import Finding, sort_findings
from decon_core.detectors.sharing import Screened
from decon_core.index.verbatim import NAMES, WHOLE, Verbatim
from decon_core.kernels import screen


def count(screened: Screened, verbatim: Verbatim) -> list[Finding]:
    """Return one finding per document, record and text."""
    by_kind = sorted(
        _findings(screened, verbatim), key=lambda one: NAMES.index(one.looked_for or "")
    )
    return sort_findings(by_kind)


def _findings(screened: Screened, verbatim: Verbatim) -> Iterator[Finding]:
    wholes = screened.wholes
    keys = wholes[:, : screen.PLACE]
    first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(wholes)])
    counts = np.diff(first, append=len(wholes))
    for (document, text, place), n in zip(wholes[first].tolist(), counts.tolist(), strict=True):
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
