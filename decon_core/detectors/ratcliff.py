"""Apertus's rule: how much of a prompt lies in blocks that a document holds in the same order.

The blocks are those of Ratcliff and Obershelp, over the whole document: a prompt is let go before
only when not even all its runs together could reach the floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from decon_core.counts import GramTable
from decon_core.detectors.found import Found, in_order
from decon_core.detectors.sharing import Shared
from decon_core.kernels import grams, runs
from decon_core.policy import Policy
from decon_core.verbatim import QUESTION, Verbatim
from decon_core.words import UNKNOWN

Numbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]

_LONG = 1 << 12  # tokens: to go through so many takes no longer than to look up what to leave out


def align(document: Shared, verbatim: Verbatim, policy: Policy) -> list[Found]:
    """All prompts that a document shares enough of."""
    return in_order(_aligned(document, verbatim, policy))


def _aligned(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Found]:
    least, tokens = policy.ratcliff_min_block, document.tokens
    aligned = verbatim.aligned
    matching = _Matching(tokens, least)
    slots = np.zeros(2 * tokens.size + 1, np.uint32)
    runs.enter_grams(tokens, 0, tokens.size, least, slots)
    for text in document.texts.tolist():
        uses = [*verbatim.uses(text, (QUESTION,))]
        if not uses:
            continue
        start, stop = int(aligned.offsets[text]), int(aligned.offsets[text + 1])
        length = stop - start
        most = runs.covered(tokens, slots, least, aligned.tokens, start, stop)
        if most / length < policy.ratcliff_floor:
            continue
        blocks = matching.blocks(aligned.tokens[start:stop])
        matched = int(blocks[:, runs.LENGTH].sum())
        if matched / length < policy.ratcliff_floor:
            continue
        first, last = blocks[0], blocks[-1]
        span = int(first[runs.DOCUMENT]), int(last[runs.DOCUMENT] + last[runs.LENGTH])
        for use in uses:
            yield Found(
                document=document.number,
                part=use.part,
                record=use.record,
                score=matched / length,
                question_overlap=matched / length,
                n_matched=matched,
                question_tokens=length,
                total_tokens=length,
                question=span,
                question_bytes=document.bytes_of(*span),
            )


class _Matching:
    """The matching blocks of a document with one prompt after the other.

    A document with many prompts in it is a long one: to go through all of it for each of them would
    take the square of its length. Of a long one only those pieces are aligned whose n-grams the
    prompt has, with a token between them that no prompt has: blocks lie within such a piece.
    """

    def __init__(self, tokens: Numbers, least: int) -> None:
        self._tokens, self._least = tokens, least
        self._is_long = tokens.size > _LONG

    def blocks(self, prompt: Numbers) -> Integers:
        """Columns as in `runs`."""
        if not self._is_long:
            return self._aligned(self._tokens, prompt)
        places = self._places(prompt)
        if places.size > self._tokens.size // 4:
            return self._aligned(self._tokens, prompt)
        # n-grams that touch or overlap are one piece.
        is_first = np.diff(places, prepend=-self._tokens.size) > self._least
        starts = places[is_first]
        stops = places[np.append(is_first[1:], True)] + self._least
        offsets = np.append(0, np.cumsum(stops - starts + 1))
        pieces = np.full(offsets[-1], UNKNOWN, np.uint32)
        for start, stop, at in zip(starts.tolist(), stops.tolist(), offsets.tolist(), strict=False):
            pieces[at : at + stop - start] = self._tokens[start:stop]
        blocks = self._aligned(pieces, prompt)
        piece = np.searchsorted(offsets, blocks[:, runs.DOCUMENT], side="right") - 1
        blocks[:, runs.DOCUMENT] += starts[piece] - offsets[piece]
        return blocks

    def _places(self, prompt: Numbers) -> Integers:
        """Where in the document an n-gram of the prompt stands."""
        table, offsets, places = self._grams
        numbers = np.unique(table.find(sliding_window_view(prompt, self._least).ravel()))
        found = [places[offsets[n] : offsets[n + 1]] for n in numbers.tolist() if n != grams.NONE]
        return np.sort(np.concatenate(found))

    @cached_property
    def _grams(self) -> tuple[GramTable, Integers, Integers]:
        """The n-grams of the document, and where each stands."""
        table = GramTable(self._tokens, np.array([0, self._tokens.size]), self._least)
        numbers = table.numbers[: self._tokens.size - self._least + 1]
        counts = np.bincount(numbers, minlength=table.first.size)
        offsets = np.append(0, np.cumsum(counts))
        return table, offsets, np.argsort(numbers, kind="stable")

    def _aligned(self, tokens: Numbers, prompt: Numbers) -> Integers:
        blocks = np.empty((min(tokens.size, prompt.size) // self._least + 1, 3), np.int64)
        return blocks[: runs.matching_blocks(tokens, prompt, self._least, blocks)]
