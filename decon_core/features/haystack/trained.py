"""Small text classifiers in NumPy: logistic regression on hashed words and pairs of words.

They are for trying the study offline, and show what training data does to a scorer; they do not
replace the classifier that a corpus was filtered with. Training is full-batch gradient descent from
zero, so the same texts give the same weights, whatever their number of workers or order of calls.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_N_FEATURES = 1 << 18
_MOST_CHARACTERS = 5_000  # of a text that are read, about a page and a half
_WORD = re.compile(r"\w+|[^\w\s]")
_PAIR = np.uint64(0x9E3779B97F4A7C15)  # as in SplitMix64
_AT_ONCE = 500  # texts that are scored: a page has some 1,500 features of 24 bytes
_STEPS = 200
# Features have length 1, so with the bias the curvature of the loss is at most 2 x 0.25.
_RATE = 2.0
_PENALTY = 1e-4
_DECIMALS = 6  # of a score: the last digits depend on the processor


@dataclass(frozen=True)
class Groups:
    """Groups of neighbouring numbers in an array; some of the `n` groups have none.

    Adds up in a tenth of the time of `np.bincount`, which takes numbers in any order, if the groups
    are long.
    """

    n: int
    filled: Integers  # the groups that have numbers
    starts: Integers  # the first number of each

    @classmethod
    def of(cls, groups: Integers, n: int) -> Groups:
        """Take the group of each number, in ascending order."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        return cls(n, groups[starts], starts)

    def sums(self, numbers: Floats) -> Floats:
        """Return the sum of each group. It depends on no number outside the group."""
        sums = np.zeros(self.n)
        if self.starts.size:
            sums[self.filled] = np.add.reduceat(numbers, self.starts)
        return sums


@dataclass(frozen=True)
class Features:
    """Hashed words of texts: of each text its features, and their values of length 1."""

    n: int
    rows: Integers  # of each value, ascending
    columns: Integers
    values: Floats

    @cached_property
    def _by_row(self) -> Groups:
        return Groups.of(self.rows, self.n)

    def times(self, weights: Floats) -> Floats:
        """Return the product with a weight for each column."""
        return self._by_row.sums(self.values * weights[self.columns])


@dataclass(frozen=True)
class _ByColumn:
    """The features of some texts, without the columns that none of them has."""

    used: Integers  # columns
    by_row: Features  # whose columns are positions in `used`
    rows: Integers  # of each value, by column
    columns: Groups
    values: Floats

    @classmethod
    def of(cls, features: Features) -> _ByColumn:
        used, columns = np.unique(features.columns, return_inverse=True)
        order = np.argsort(columns, kind="stable")
        by_row = Features(features.n, features.rows, columns, features.values)
        by_column = Groups.of(columns[order], used.size)
        return cls(used, by_row, features.rows[order], by_column, features.values[order])

    def weighted_sum(self, of_rows: Floats) -> Floats:
        """Return the sum of the rows, each times a number."""
        return self.columns.sums(self.values * of_rows[self.rows])


def features_of(texts: Sequence[str]) -> Features:
    rows, columns, values = [], [], []
    hashes = _Hashes()
    for row, text in enumerate(texts):
        found, counts = np.unique(_hashed(text, hashes), return_counts=True)
        weights = 1 + np.log(counts)
        rows.append(np.full(found.size, row))
        columns.append(found)
        values.append(weights / np.sqrt((weights * weights).sum()) if found.size else weights)
    empty = np.zeros(0, np.int64)
    return Features(
        len(texts),
        np.concatenate([empty, *rows]),
        np.concatenate([empty, *columns]),
        np.concatenate([np.zeros(0), *values]),
    )


@lru_cache(maxsize=6)
def kept_features(texts: tuple[str, ...]) -> Features:
    """Return features, kept for the next scorer: all score the same documents.

    Six times some 500 documents and 20 MB; of a larger haystack, nothing is found again.
    """
    return features_of(texts)


def _joined(first: Features, second: Features) -> Features:
    return Features(
        first.n + second.n,
        np.concatenate([first.rows, second.rows + first.n]),
        np.concatenate([first.columns, second.columns]),
        np.concatenate([first.values, second.values]),
    )


class _Hashes(dict[str, int]):
    """The hash of each word that occurred."""

    def __missing__(self, word: str) -> int:
        self[word] = found = zlib.crc32(word.encode("utf-8", "replace"))
        return found


def _hashed(text: str, hashes: _Hashes) -> Integers:
    """Return the features of the words and of the pairs of neighbouring words of a text."""
    words = _WORD.findall(text[:_MOST_CHARACTERS].lower())
    single = np.fromiter(map(hashes.__getitem__, words), np.uint64, len(words))
    with np.errstate(over="ignore"):
        pairs = (single[:-1] * _PAIR + single[1:]) * _PAIR >> np.uint64(32)
    return (np.concatenate([single, pairs]) & np.uint64(_N_FEATURES - 1)).astype(np.int64)


@dataclass(frozen=True)
class TrainedScorer:
    """A weight for each feature."""

    weights: Floats
    bias: float

    def score(self, texts: Sequence[str]) -> Floats:
        """Return the logit of each text: above 0, it is more like the positive texts."""
        starts = range(0, len(texts), _AT_ONCE)
        blocks = (kept_features(tuple(texts[start : start + _AT_ONCE])) for start in starts)
        products = np.concatenate([np.zeros(0), *(one.times(self.weights) for one in blocks)])
        return np.round(products + self.bias, _DECIMALS) + 0.0


def train(positive: Sequence[str], negative: Sequence[str]) -> TrainedScorer:
    """Train on two groups of texts, which count equally whatever their sizes."""
    features = _ByColumn.of(_joined(features_of(positive), kept_features(tuple(negative))))
    n = features.by_row.n
    is_positive = np.arange(n) < len(positive)
    share = np.where(is_positive, 0.5 / len(positive), 0.5 / len(negative))
    weights, bias = np.zeros(features.used.size), 0.0
    for _ in range(_STEPS):
        logits = features.by_row.times(weights) + bias
        residuals = (1 / (1 + np.exp(-logits)) - is_positive) * share
        weights -= _RATE * (features.weighted_sum(residuals) + _PENALTY * weights)
        bias -= _RATE * float(residuals.sum())
    of_all = np.zeros(_N_FEATURES)
    of_all[features.used] = weights
    return TrainedScorer(of_all, bias)
