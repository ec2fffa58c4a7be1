"""GAPERON's counts: how often a text of an item stands in a document, to the letter.

Looked for are the question, the question with its correct answer behind it, and its last sentence
with the answer. The score says how telling the text is: one of common phrases stands in documents
that never saw the item.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decon_core.detectors.found import Found
from decon_core.detectors.sharing import Batched
from decon_core.verbatim import ANSWER, NAMES, Verbatim


def count(batched: Batched, verbatim: Verbatim) -> Iterator[Found]:
    """One row per document, record and text."""
    named, first, times = np.unique(
        batched.occurrences[:, (0, 2)], axis=0, return_index=True, return_counts=True
    )
    offsets = verbatim.texts.offsets
    for (document, text), at, n in zip(named.tolist(), first.tolist(), times.tolist(), strict=True):
        start = int(batched.occurrences[at, 1] - batched.starts[document])
        place = start, start + int(offsets[text + 1] - offsets[text])
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
                n_matched=n,
                question_tokens=0,
                total_tokens=0,
                question_bytes=place,
                looked_for=NAMES[kind],
            )
