"""Compare an item's question with the place of a document where a detector nominated it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from decon_core.alignment.units import Units
from decon_core.kernels import word_alignment
from decon_core.kernels.arrays import Integers, Table
from decon_core.kernels.word_alignment import DOCUMENT, ITEM, SIZE, Words

_PIECE = 4  # words of a run that hardly stands there by chance


class Comparison(NamedTuple):
    """The units of a question that a document has, in order, and those that it replaces.

    Weights are thousandths of a natural logarithm of how rare a unit is in general text.
    """

    n_units: int
    weight: int
    own_weight: int  # weight of the units that no other item has
    n_family: int  # items of the benchmark that share two fifths of the question
    units_per_word: int  # more than 1 if most are single characters
    n_found: int
    weight_found: int
    own_found: int
    longest: int  # units of the longest run
    n_inserted: int  # units of the document between what was found that the question lacks
    n_numbers_found: int
    n_numbers_changed: int
    n_names_found: int
    n_names_changed: int  # consistently, each name to one other
    words_found: int  # weight of those found that are neither numbers nor Latin letters alone
    own_runs_found: int  # weight of the units in the middle of runs of three that no other item has
    n_in_pieces: int  # units in runs of several words
    extent: int  # units of the question from the first to the last that was found
    start: int  # characters of the document
    stop: int
    places: Integers  # units of the document that were found
    weights: Integers  # weight of each found unit
    found_at: Table  # of each found unit: its place in the question, and its characters

    @property
    def is_whole(self) -> bool:
        """Whether every unit of the question was found, and nothing between them."""
        return self.n_found == self.n_units and not self.n_inserted

    @property
    def is_interrupted(self) -> bool:
        """Whether much stands between what was found: a unit for every three at least."""
        return 3 * self.n_inserted >= self.n_found

    @property
    def is_in_pieces(self) -> bool:
        """Whether nearly the whole question was found in runs of several words."""
        return 10 * self.n_in_pieces >= 9 * self.n_units

    def has_words_in(self, start: int, stop: int) -> bool:
        """Whether any unit was found within a range of characters of the document."""
        _, starts, stops = self.found_at.T
        return bool(((starts < stop) & (stops > start)).any())


class Questions:
    """The indexed questions, each compared with places by its number."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._columns = word_alignment.Questions(
            *(arrays[name] for name in word_alignment.Questions._fields)
        )
        self._edges = arrays["unit_edges"]
        self._is_word, self._is_in_own_run = arrays["is_word"], arrays["is_in_own_run"]
        sizes = "weight", "own_weight", "n_family", "units_per_word"
        self._sizes = [arrays[name] for name in sizes]

    def compare(
        self, questions: Integers, document: Units, windows: Table, nominated: Table
    ) -> list[Comparison | None]:
        """Compare questions with units of a document within windows, around nominated ones.

        None if nothing of the question stands there that is worth more than what surrounds it.
        """
        first, last = self._edges[questions], self._edges[questions + 1]
        blocks, edges, counts = word_alignment.compare_all(
            self._columns,
            Words(document.keys, document.is_number, document.is_name),
            np.column_stack([first, last, windows, nominated]),
        )
        sizes = blocks[:, SIZE]
        in_block = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        in_item, places = (np.repeat(blocks[:, of], sizes) + in_block for of in (ITEM, DOCUMENT))
        unit_edges = np.append(0, np.cumsum(sizes))[edges]
        units = np.repeat(first, np.diff(unit_edges)) + in_item
        weights = self._columns.weights[units].astype(np.int64)
        is_inner = (in_block > 0) & (in_block < np.repeat(sizes, sizes) - 1)
        is_inner_of_own = is_inner & self._is_in_own_run[units]
        of_items = np.repeat(questions, np.diff(edges))
        are_pieces = sizes >= _PIECE * self._sizes[-1][of_items]
        in_pieces = np.append(0, np.cumsum(sizes * are_pieces))[edges]
        of_words, of_own_runs = (
            np.append(0, np.cumsum(weights * of))[unit_edges]
            for of in (self._is_word[units], is_inner_of_own)
        )
        is_found = np.diff(edges) > 0
        begin, end = unit_edges[:-1][is_found], unit_edges[1:][is_found]
        found = questions[is_found]
        columns = (
            (last - first)[is_found],
            *(column[found] for column in self._sizes),
            *counts[is_found].T,
            np.diff(of_words)[is_found],
            np.diff(of_own_runs)[is_found],
            np.diff(in_pieces)[is_found],
            in_item[end - 1] - in_item[begin] + 1,
            document.starts[places[begin]],
            document.stops[places[end - 1]],
        )
        found_at = np.column_stack([in_item, document.starts[places], document.stops[places]])
        lists = [column.tolist() for column in columns]
        rows = zip(*lists, strict=True)
        each = [slice(*of) for of in zip(begin.tolist(), end.tolist(), strict=True)]
        comparisons = (
            Comparison._make([*row, places[units], weights[units], found_at[units]])
            for row, units in zip(rows, each, strict=True)
        )
        return [next(comparisons) if is_there else None for is_there in is_found.tolist()]
