"""Find the passage of an item anywhere in a document, and in words that look like its question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decon_core.kernels import passages
from decon_core.kernels.arrays import Bools, Integers, Numbers, Table

if TYPE_CHECKING:
    from decon_core.kernels.question_index import Index
    from decon_core.text.word_cache import Places, Ragged

_LONGEST_GAP = 16  # tokens between two n-grams of one copy


class Found(NamedTuple):
    """A passage in a document: the share of its n-grams, and the tokens of the longest part."""

    share: float
    start: int
    stop: int


class Passages:
    """The passages of an index of n-grams."""

    def __init__(self, index: Index) -> None:
        self._size = index.policy.passage_ngram_size
        self._passages = passages.Passages(
            index.passage_tokens,
            index.passage_offsets,
            index.passage_weights,
            index.passage_weight_offsets,
            index.weights,
        )

    def compile(self, documents: Ragged) -> None:
        self.in_documents(documents, [], 1.0)
        passage = self._passages.tokens[:0]
        passages.without_passage(documents.values, passage, 0, 0, self._size)

    def in_documents(
        self, documents: Ragged, wanted: Sequence[tuple[int, int]], least: float
    ) -> dict[tuple[int, int], Found]:
        """Find passages of which documents have at least a share, anywhere in them.

        `wanted`: pairs of the number of a document and of a passage, in order of documents.
        """
        rows: Table = np.array(wanted, np.int64).reshape(-1, 2)
        shares, places, edges = passages.find_in_documents(
            documents.values, documents.offsets, rows, self._passages, self._size, least
        )
        found = {}
        for row in np.flatnonzero(shares).tolist():
            first, last = longest_run(np.sort(places[edges[row] : edges[row + 1]]))
            found[wanted[row]] = Found(float(shares[row]), first, last + self._size)
        return found

    def words_of(
        self, number: int, tokens: Numbers, places: Places, starts: Integers, stop: int
    ) -> Bools:
        """Return which words of a place belong to a passage that continues beyond the place.

        `starts`: the first character of each word; `stop`: the character after the last word.
        """
        first, last = places.tokens(int(starts[0]), stop)
        offsets = self._passages.offsets
        passage = self._passages.tokens[offsets[number] : offsets[number + 1]]
        begin, end = passages.without_passage(tokens, passage, first, last, self._size)
        is_of_passage = np.zeros(starts.size, np.bool_)
        if begin > first:
            is_of_passage |= starts < places.characters(first, begin)[1]
        if end < last:
            is_of_passage |= starts >= places.characters(end, last)[0]
        return is_of_passage


def longest_run(places: Integers) -> tuple[int, int]:
    """Return the first and last place of the longest run of places close to each other."""
    edges = np.flatnonzero(np.diff(places, prepend=places[0] - _LONGEST_GAP - 2) > _LONGEST_GAP + 1)
    edges = np.append(edges, places.size)
    longest = int(np.diff(edges).argmax())
    return int(places[edges[longest]]), int(places[edges[longest + 1] - 1])
