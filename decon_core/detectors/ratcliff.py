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

from decon_core.config.policy import Policy, reaches
from decon_core.detectors.finding import Finding, in_order
from decon_core.detectors.sharing import Run, Shared
from decon_core.index.ngram_counts import GramTable
from decon_core.index.verbatim import QUESTION, Verbatim
from decon_core.kernels import grams, runs
from decon_core.text.word_cache import UNKNOWN

Numbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]

_LONG = 1 << 12  # tokens: to go through so many takes no longer than to look up what to leave out


def align(document: Shared, verbatim: Verbatim, policy: Policy) -> list[Finding]:
    """All prompts that a document shares enough of."""
    return in_order(_aligned(document, verbatim, policy))


def _aligned(document: Shared, verbatim: Verbatim, policy: Policy) -> Iterator[Finding]:
    aligning = _Aligning(document, verbatim, policy)
    for text in document.texts:
        uses = [*verbatim.uses(text, (QUESTION,))]
        found = aligning.best(text) if uses else None
        if found is None:
            continue
        for use in uses:
            yield Finding(
                document=document.number,
                part=use.part,
                record=use.record,
                score=found.share,
                question_overlap=found.share,
                n_matched=found.n_matched,
                question_tokens=found.n_tokens,
                total_tokens=found.n_tokens,
                question=(found.start, found.stop),
                question_bytes=found.bytes,
            )


class _Aligning:
    """A document with one prompt after the other, in all forms of each."""

    def __init__(self, document: Shared, verbatim: Verbatim, policy: Policy) -> None:
        self._document, self._aligned = document, verbatim.aligned
        self._least, self._floor = policy.ratcliff_min_block, policy.ratcliff_floor
        self._matching = _Matching(document.tokens, self._least)
        self._slots = np.zeros(2 * document.tokens.size + 1, np.uint32)
        runs.enter_grams(document.tokens, 0, document.tokens.size, self._least, self._slots)

    def best(self, text: int) -> Run | None:
        """From the first block to the last one, of the form that is covered best."""
        if text in self._document.wholes:
            return self._document.wholes[text]
        found = [self._aligned_with(form) for form, _ in self._document.runs[text]]
        enough = [run for run in found if run is not None]
        # By itself comes first: of equal shares it is that one.
        return max(enough, key=lambda run: run.share, default=None)

    def _aligned_with(self, form: int) -> Run | None:
        tokens, aligned, least = self._document.tokens, self._aligned, self._least
        start, stop = int(aligned.offsets[form]), int(aligned.offsets[form + 1])
        most = runs.covered(tokens, self._slots, least, aligned.tokens, start, stop)
        if not reaches(most / (stop - start), self._floor):
            return None
        blocks = self._matching.blocks(aligned.tokens[start:stop])
        n_matched = int(blocks[:, runs.LENGTH].sum())
        if not reaches(n_matched / (stop - start), self._floor):
            return None
        first, last = blocks[0], blocks[-1]
        span = int(first[runs.DOCUMENT]), int(last[runs.DOCUMENT] + last[runs.LENGTH])
        return Run(*span, n_matched, stop - start, self._document.bytes_of(*span))


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
