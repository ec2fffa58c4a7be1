"""Count how many records contain each n-gram, over arrays.

Holds the frequencies that idf needs, of one benchmark or many. Each set of counts numbers its
tokens itself, so two sets are joined by the tokenizer's ids. Reference implementation:
`Frequencies` in `tests/oracle/decon.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from decon_core.config.policy import Policy
from decon_core.kernels import grams as kernels
from decon_core.kernels.arrays import Integers, Numbers, Words64, distinct
from decon_core.text.word_cache import FixedVocabulary, Ragged

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
class Grams:
    """Distinct n-grams, numbered in order of first occurrence, and the n-grams of each row."""

    size: int
    first: Integers  # position of the first occurrence in `source`
    source: Numbers
    rows: Ragged  # distinct n-grams of each row, in order of first occurrence

    def __len__(self) -> int:
        return self.first.size

    @property
    def tokens(self) -> Numbers:
        """The tokens of all n-grams, `size` for each."""
        return _tokens_at(self.source, self.first, self.size)


def _tokens_at(tokens: Numbers, first: Integers, size: int) -> Numbers:
    if not first.size:
        return np.zeros(0, np.uint32)
    return sliding_window_view(tokens, size)[first].ravel()


def grams_of(rows: Ragged, size: int) -> Grams:
    """Return the n-grams of rows of tokens."""
    table = GramTable(rows.values, rows.offsets, size)
    unique = np.empty(int(np.maximum(rows.lengths - size + 1, 0).sum()), np.uint32)
    offsets = np.zeros_like(rows.offsets)
    last_row = np.full(table.first.size, -1, np.int64)
    kernels.unique_in_rows(table.numbers, rows.offsets, size, last_row, unique, offsets)
    different = Ragged(unique[: offsets[-1]].copy(), offsets)
    return Grams(size, table.first, rows.values, different)


class GramTable:
    """A lookup table of the n-grams of rows of tokens."""

    def __init__(self, tokens: Numbers, offsets: Integers, size: int) -> None:
        max_grams = int(np.maximum(np.diff(offsets) - size + 1, 0).sum())
        self.size, self.tokens = size, tokens
        self.numbers = np.empty(tokens.size, np.uint32)
        first = np.empty(max_grams, np.int64)
        self._slots = np.zeros(max(2 * max_grams, 2), np.uint32)
        n = kernels.number_grams(tokens, offsets, size, self._slots, self.numbers, first)
        self.first = first[:n].copy()

    def find(self, tokens: Numbers) -> Numbers:
        """Return the number of each n-gram, `kernels.NONE` if it is unknown."""
        starts = np.arange(0, tokens.size, self.size)
        numbers = np.empty(starts.size, np.uint32)
        kernels.find_grams(self.tokens, self.first, self._slots, tokens, starts, self.size, numbers)
        return numbers


def pair_filter(n_grams: int) -> Words64:
    """Return an empty filter for pairs of tokens, at most as large as CPU caches hold."""
    log2_words = min(max((n_grams * _PAIR_BITS // 64).bit_length(), 1), _LOG2_MAX_PAIR_WORDS)
    return np.zeros(1 << log2_words, np.uint64)


def frequency(grams: Grams, multiplicity: Integers) -> Integers:
    """Count the records with each n-gram; row i counts `multiplicity[i]` times."""
    times = np.repeat(multiplicity, grams.rows.lengths)
    return np.bincount(grams.rows.values, times, minlength=len(grams)).astype(np.int64)


# Counts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """n-grams of one kind of text, and how many records contain each."""

    size: int
    tokens: Numbers  # `size` per n-gram; token n is ids[n - 1]
    df: Integers

    @cached_property
    def table(self) -> GramTable:
        return GramTable(self.tokens, np.arange(0, self.tokens.size + 1, self.size), self.size)


@dataclass(frozen=True, eq=False)
class Counts:
    """The frequencies of a set of records."""

    n_records: int
    ids: Integers  # token ids of the tokenizer, ascending; token n is ids[n - 1]
    token_df: Integers  # per id: number of fields (question, answer, passage) that contain it
    kinds: Mapping[str, Counted]

    def token_frequency(self, ids: Integers) -> Integers:
        """Return the frequency of each id; 0 if it is unknown."""
        return np.append(0, self.token_df)[FixedVocabulary(self.ids).numbers(ids)]

    def gram_frequency(self, kind: str, tokens: Numbers, ids: Integers) -> Integers:
        """Return the frequency of each n-gram; 0 if it is unknown. Token n is ids[n - 1]."""
        counted = self.kinds[kind]
        numbers = counted.table.find(renumbered(tokens, ids, self.ids))
        return np.append(counted.df, 0)[np.minimum(numbers, counted.df.size)]


def renumbered(tokens: Numbers, ids: Integers, other: Integers) -> Numbers:
    """Renumber tokens of `ids` as tokens of `other`, which is sorted."""
    numbers = FixedVocabulary(other).numbers(ids)
    return np.concatenate([np.zeros(1, np.uint32), numbers])[tokens]


def no_counts(policy: Policy) -> Counts:
    none = np.zeros(0, np.int64)
    kinds = {
        kind: Counted(size, np.zeros(0, np.uint32), none)
        for kind, size in gram_sizes(policy).items()
    }
    return Counts(0, none, none, kinds)


def total(counts: Sequence[Counts]) -> Counts:
    """Add up the counts of several sets of records."""
    ids = distinct(np.concatenate([count.ids for count in counts]))
    token_df = np.zeros(ids.size, np.int64)
    for count in counts:
        token_df[np.searchsorted(ids, count.ids)] += count.token_df
    kinds = {}
    for kind in KINDS:
        size = counts[0].kinds[kind].size
        tokens = np.concatenate(
            [renumbered(count.kinds[kind].tokens, count.ids, ids) for count in counts]
        )
        joined = Counted(size, tokens, np.concatenate([count.kinds[kind].df for count in counts]))
        table = joined.table
        df = np.zeros(table.first.size, np.int64)
        np.add.at(df, table.numbers[::size], joined.df)
        kinds[kind] = Counted(size, _tokens_at(tokens, table.first, size), df)
    return Counts(sum(count.n_records for count in counts), ids, token_df, kinds)
