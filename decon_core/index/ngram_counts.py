"""Count how many records contain each n-gram, over arrays.

Holds the frequencies that idf needs, of one benchmark or many. Each set of counts numbers its
tokens itself, so two sets are joined by the tokenizer's ids. Reference implementation:
`Frequencies` in `tests/oracle/decon.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from decon_core.config.policy import Policy
from decon_core.kernels import grams as kernels
from decon_core.kernels.arrays import Integers, Numbers, Words64, read_only
from decon_core.text.word_cache import FixedVocabulary, Ragged, edges_of

KINDS = ("question", "answer", "passage")

_PAIR_BITS = 4
_LOG2_MAX_PAIR_WORDS = 17  # a megabyte


def gram_sizes(policy: Policy) -> dict[str, int]:
    return {
        "question": policy.ngram_size,
        "answer": policy.answer_ngram_size,
        "passage": policy.passage_ngram_size,
    }


# n-grams of rows of tokens ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GramTable:
    """Distinct n-grams, numbered in order of first occurrence; looked up in a table of slots."""

    size: int
    source: Numbers  # tokens
    first: Integers  # position of the first occurrence of each n-gram in `source`

    def __len__(self) -> int:
        return self.first.size

    @staticmethod
    def of_distinct(tokens: Numbers, size: int) -> GramTable:
        """Return the table of distinct n-grams that follow one another."""
        return GramTable(size, tokens, np.arange(0, tokens.size, size))

    @property
    def tokens(self) -> Numbers:
        """The tokens of all n-grams, `size` for each."""
        if not self.first.size:
            return np.zeros(0, np.uint32)
        return sliding_window_view(self.source, self.size)[self.first].ravel()

    @cached_property
    def _slots(self) -> Numbers:
        slots = np.zeros(max(2 * len(self), 2), np.uint32)
        kernels.enter_grams(read_only(self.source), self.first, self.size, slots)
        return slots

    def find(self, tokens: Numbers) -> Numbers:
        """Return the number of each n-gram, `kernels.NONE` if it is unknown."""
        starts = np.arange(0, tokens.size, self.size)
        numbers = np.empty(starts.size, np.uint32)
        source = read_only(self.source)
        kernels.find_grams(source, self.first, self._slots, tokens, starts, self.size, numbers)
        return numbers


def number_grams(rows: Ragged, size: int) -> tuple[GramTable, Numbers]:
    """Return the n-grams of rows of tokens, and per token the number of the one that begins there.

    It is `kernels.NONE` where none begins.
    """
    max_grams = int(np.maximum(rows.lengths - size + 1, 0).sum())
    numbers = np.empty(rows.values.size, np.uint32)
    first = np.empty(max_grams, np.int64)
    slots = np.zeros(max(2 * max_grams, 2), np.uint32)
    n = kernels.number_grams(rows.values, rows.offsets, size, slots, numbers, first)
    return GramTable(size, rows.values, first[:n].copy()), numbers


@dataclass(frozen=True, eq=False)
class Grams:
    """The distinct n-grams of rows of tokens, and those of each row."""

    table: GramTable
    rows: Ragged  # distinct n-grams of each row, in order of first occurrence

    def __len__(self) -> int:
        return len(self.table)

    def per_row(self, df: Integers) -> Ragged:
        """Return the document frequency of each n-gram of each row."""
        return Ragged(df.astype(np.uint32)[self.rows.values], self.rows.offsets)


def grams_of(rows: Ragged, size: int) -> Grams:
    """Return the n-grams of rows of tokens."""
    table, numbers = number_grams(rows, size)
    unique = np.empty(int(np.maximum(rows.lengths - size + 1, 0).sum()), np.uint32)
    offsets = np.zeros_like(rows.offsets)
    last_row = np.full(len(table), -1, np.int64)
    kernels.unique_in_rows(numbers, rows.offsets, size, last_row, unique, offsets)
    return Grams(table, Ragged(unique[: offsets[-1]].copy(), offsets))


def inverted(rows: Ragged, n: int) -> tuple[Integers, Numbers]:
    """Return the rows that contain each of `n` numbers, ascending, and the range of each number."""
    offsets = edges_of(np.bincount(rows.values, minlength=n))
    rows_with = np.empty(rows.values.size, np.uint32)
    kernels.invert(rows.values, rows.offsets, offsets[:-1].copy(), rows_with)
    return offsets, rows_with


def places_of(numbers: Numbers, n: int) -> tuple[Integers, Numbers]:
    """Return the places of each of `n` numbers in an array, ascending, and the range of each."""
    return inverted(Ragged(numbers, np.arange(numbers.size + 1)), n)


def pair_filter(n_grams: int) -> Words64:
    """Return an empty filter for pairs of tokens, at most as large as CPU caches hold."""
    log2_words = min(max((n_grams * _PAIR_BITS // 64).bit_length(), 1), _LOG2_MAX_PAIR_WORDS)
    return np.zeros(1 << log2_words, np.uint64)


# Counts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """n-grams of one kind of text, and how many records contain each."""

    grams: GramTable  # token n is ids[n - 1]
    df: Integers


@dataclass(frozen=True, eq=False)
class Counts:
    """The frequencies of a set of records."""

    n_records: int
    ids: Integers  # token ids of the tokenizer, ascending; token n is ids[n - 1]
    token_df: Integers  # per id: number of fields (question, answer, passage) that contain it
    kinds: Mapping[str, Counted]

    @cached_property
    def _vocabulary(self) -> FixedVocabulary:
        return FixedVocabulary(self.ids)

    def token_frequency(self, ids: Integers) -> Integers:
        """Return the frequency of each id; 0 if it is unknown."""
        return np.append(0, self.token_df)[self._vocabulary.numbers(ids)]

    def gram_frequency(self, kind: str, tokens: Numbers, ids: Integers) -> Integers:
        """Return the frequency of each n-gram; 0 if it is unknown. Token n is ids[n - 1]."""
        counted = self.kinds[kind]
        numbers = counted.grams.find(self._vocabulary.renumbered(tokens, ids))
        is_known = numbers != kernels.NONE
        df = np.zeros(numbers.size, np.int64)
        df[is_known] = counted.df[numbers[is_known]]
        return df
