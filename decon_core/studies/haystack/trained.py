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
class Features:
    """Hashed words of texts: of each text its features, and their values of length 1."""

    n: int
    rows: Integers  # of each value
    columns: Integers
    values: Floats

    def times(self, weights: Floats) -> Floats:
        """Return the product with a weight for each column."""
        products = self.values * weights[self.columns]
        return np.bincount(self.rows, products, minlength=self.n).astype(np.float64)

    def weighted_columns(self, of_rows: Floats) -> Floats:
        """Return the sum of the rows, each times a number."""
        weights = self.values * of_rows[self.rows]
        return np.bincount(self.columns, weights, minlength=_N_FEATURES).astype(np.float64)


def features_of(texts: Sequence[str]) -> Features:
    rows, columns, values = [], [], []
    hashes: dict[str, int] = {}
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


def _hashed(text: str, hashes: dict[str, int]) -> Integers:
    """Return the features of the words and of the pairs of neighbouring words of a text."""
    words = _WORD.findall(text[:_MOST_CHARACTERS].lower())
    for word in words:
        if word not in hashes:
            hashes[word] = zlib.crc32(word.encode("utf-8", "replace"))
    single = np.array([hashes[word] for word in words], np.uint64)
    with np.errstate(over="ignore"):
        pairs = (single[:-1] * _PAIR + single[1:]) * _PAIR >> np.uint64(32)
    return (np.concatenate([single, pairs]) % np.uint64(_N_FEATURES)).astype(np.int64)


@dataclass(frozen=True)
class TrainedScorer:
    """A weight for each feature."""

    weights: Floats
    bias: float

    def score(self, texts: Sequence[str]) -> Floats:
        """Return the logit of each text: above 0, it is more like the positive texts."""
        starts = range(0, len(texts), _AT_ONCE)
        blocks = (features_of(texts[start : start + _AT_ONCE]) for start in starts)
        products = np.concatenate([np.zeros(0), *(one.times(self.weights) for one in blocks)])
        return np.round(products + self.bias, _DECIMALS) + 0.0


def train(positive: Sequence[str], negative: Sequence[str]) -> TrainedScorer:
    """Train on two groups of texts, which count equally whatever their sizes."""
    features = features_of([*positive, *negative])
    is_positive = np.arange(features.n) < len(positive)
    share = np.where(is_positive, 0.5 / len(positive), 0.5 / len(negative))
    weights, bias = np.zeros(_N_FEATURES), 0.0
    for _ in range(_STEPS):
        logits = features.times(weights) + bias
        residuals = (1 / (1 + np.exp(-logits)) - is_positive) * share
        weights -= _RATE * (features.weighted_columns(residuals) + _PENALTY * weights)
        bias -= _RATE * float(residuals.sum())
    return TrainedScorer(weights, bias)
