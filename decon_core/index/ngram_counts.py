"""How many records hold which n-gram, counted over arrays. Twin: `reference.Frequencies`.

Everything idf needs, of one benchmark or of many together. Tokens are numbered anew in every set of
counts, so two sets meet through the tokenizer's own ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.kernels import grams as kernels
from decon_core.text.word_cache import FixedVocabulary, Ragged

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]

KINDS = ("question", "answer", "passage")


def gram_sizes(policy: Policy) -> dict[str, int]:
    return {
        "question": policy.ngram_size,
        "answer": policy.answer_ngram_size,
        "passage": policy.passage_ngram_size,
    }


# n-grams of rows of tokens ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grams:
    """Different n-grams, numbered as they first occur, and which of them each row holds."""

    size: int
    first: Integers  # where each first occurs in `source`
    source: Numbers
    rows: Ragged  # each row's different n-grams, as they first occur in it

    def __len__(self) -> int:
        return self.first.size

    @property
    def tokens(self) -> Numbers:
        """Of all n-grams, `size` for each."""
        out = np.empty(self.first.size * self.size, np.uint32)
        kernels.copy_grams(self.source, self.first, self.size, out)
        return out


def grams_of(rows: Ragged, size: int) -> Grams:
    """The n-grams of rows of tokens."""
    table = GramTable(rows.values, rows.offsets, size)
    unique = np.empty(int(np.maximum(rows.lengths - size + 1, 0).sum()), np.uint32)
    offsets = np.zeros_like(rows.offsets)
    last_row = np.full(table.first.size, -1, np.int64)
    kernels.unique_in_rows(table.numbers, rows.offsets, size, last_row, unique, offsets)
    different = Ragged(unique[: offsets[-1]].copy(), offsets)
    return Grams(size, table.first, rows.values, different)


class GramTable:
    """All n-grams of rows of tokens, by number."""

    def __init__(self, tokens: Numbers, offsets: Integers, size: int) -> None:
        most = int(np.maximum(np.diff(offsets) - size + 1, 0).sum())
        self.size, self.tokens = size, tokens
        self.numbers = np.empty(tokens.size, np.uint32)
        first = np.empty(most, np.int64)
        self._slots = np.zeros(max(2 * most, 2), np.uint32)
        n = kernels.number_grams(tokens, offsets, size, self._slots, self.numbers, first)
        self.first = first[:n].copy()

    def find(self, tokens: Numbers) -> Numbers:
        """The number of each of these n-grams, `kernels.NONE` for one that is not here."""
        starts = np.arange(0, tokens.size, self.size)
        numbers = np.empty(starts.size, np.uint32)
        kernels.find_grams(self.tokens, self.first, self._slots, tokens, starts, self.size, numbers)
        return numbers


def frequency(grams: Grams, multiplicity: Integers) -> Integers:
    """In how many records each n-gram stands, when a row stands for so many."""
    counted = np.zeros(len(grams), np.int64)
    kernels.add_rows(grams.rows.values, grams.rows.offsets, multiplicity, counted)
    return counted


# Counts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """n-grams of one kind, and how many records hold each."""

    size: int
    tokens: Numbers  # numbers of ids, from 1
    df: Integers

    def table(self) -> GramTable:
        return GramTable(self.tokens, np.arange(0, self.tokens.size + 1, self.size), self.size)


@dataclass(frozen=True, eq=False)
class Counts:
    """The frequencies of a set of records."""

    n_records: int
    ids: Integers  # the tokenizer's ids, ascending; the first one has number 1
    token_df: Integers  # fields (question, answer, passage of any record) that hold each id
    kinds: Mapping[str, Counted]

    def token_frequency(self, ids: Integers) -> Integers:
        """Of each of these ids; 0 for one that is not here."""
        return np.concatenate([np.zeros(1, np.int64), self.token_df])[
            FixedVocabulary(self.ids).numbers(ids)
        ]

    def gram_frequency(self, kind: str, tokens: Numbers, ids: Integers) -> Integers:
        """Of each of these n-grams, whose tokens number `ids`; 0 for one that is not here."""
        counted = self.kinds[kind]
        numbers = counted.table().find(renumbered(tokens, ids, self.ids))
        df = np.concatenate([counted.df, np.zeros(1, np.int64)])
        return df[np.minimum(numbers, counted.df.size)]


def renumbered(tokens: Numbers, ids: Integers, other: Integers) -> Numbers:
    """Numbers of `ids` as numbers of `other`, which is sorted."""
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
    """Counts of several sets of records together."""
    ids = np.unique(np.concatenate([one.ids for one in counts]))
    token_df = np.zeros(ids.size, np.int64)
    for one in counts:
        token_df[np.searchsorted(ids, one.ids)] += one.token_df
    kinds = {kind: _total(kind, counts, ids) for kind in KINDS}
    return Counts(sum(one.n_records for one in counts), ids, token_df, kinds)


def _total(kind: str, counts: Sequence[Counts], ids: Integers) -> Counted:
    parts = [one.kinds[kind] for one in counts]
    tokens = np.concatenate(
        [renumbered(part.tokens, one.ids, ids) for one, part in zip(counts, parts, strict=True)]
    )
    every = Counted(parts[0].size, tokens, np.concatenate([part.df for part in parts]))
    table = every.table()
    df = np.zeros(table.first.size, np.int64)
    np.add.at(df, table.numbers[:: every.size], every.df)
    tokens_of_grams = np.empty(table.first.size * every.size, np.uint32)
    kernels.copy_grams(tokens, table.first, every.size, tokens_of_grams)
    return Counted(every.size, tokens_of_grams, df)
