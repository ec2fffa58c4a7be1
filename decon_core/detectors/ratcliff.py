"""Apertus's rule: how much of a prompt lies in blocks that a document holds in the same order.

The blocks are those of Ratcliff and Obershelp, over the whole document: a prompt is let go before
only when not even all its runs together could reach the floor.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decon_core.detectors.found import Found, in_order
from decon_core.detectors.sharing import Shared
from decon_core.kernels import runs
from decon_core.policy import Policy
from decon_core.verbatim import QUESTION, Verbatim


def align(document: Shared, verbatim: Verbatim, policy: Policy) -> list[Found]:
    """All prompts that a document shares enough of."""
    return in_order(_aligned(document, verbatim, policy))


def _aligned(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Found]:
    least, tokens = policy.ratcliff_min_block, document.tokens
    aligned = verbatim.aligned
    slots = np.zeros(2 * tokens.size + 1, np.uint32)
    runs.enter_grams(tokens, 0, tokens.size, least, slots)
    for text in document.texts.tolist():
        uses = _prompts(text, verbatim)
        if not uses:
            continue
        start, stop = int(aligned.offsets[text]), int(aligned.offsets[text + 1])
        length = stop - start
        most = runs.covered(tokens, slots, least, aligned.tokens, start, stop)
        if most / length < policy.ratcliff_floor:
            continue
        blocks = np.empty((length // least + 1, 3), np.int64)
        n = runs.matching_blocks(tokens, aligned.tokens[start:stop], least, blocks)
        blocks = blocks[:n]
        matched = int(blocks[:, runs.LENGTH].sum())
        if matched / length < policy.ratcliff_floor:
            continue
        first, last = blocks[0], blocks[-1]
        span = int(first[runs.DOCUMENT]), int(last[runs.DOCUMENT] + last[runs.LENGTH])
        for use in uses:
            yield Found(
                document=document.number,
                part=int(verbatim.use_part[use]),
                record=int(verbatim.use_record[use]),
                score=matched / length,
                question_overlap=matched / length,
                n_matched=matched,
                question_tokens=length,
                total_tokens=length,
                question=span,
                question_bytes=document.bytes_of(*span),
            )


def _prompts(text: int, verbatim: Verbatim) -> list[int]:
    """The uses of a text as a question."""
    uses = range(int(verbatim.use_offsets[text]), int(verbatim.use_offsets[text + 1]))
    return [use for use in uses if verbatim.use_kind[use] == QUESTION]
