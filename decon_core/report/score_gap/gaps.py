"""How sure a difference between two groups of scores is.

An interval by resampling the items of both groups, and the chance of so large a difference if the
groups had been drawn blindly. Scores are mostly 0 or 1: then both have distributions that need no
items drawn one by one. Chance is decided by a name, so that the same results give the same numbers.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from decon_core import seeding as chance

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

N_DRAWS = 10_000
_SURE = 0.95
_MOST_EXACT = 10_000  # ways to draw the smaller group that are all tried
_MOST_AT_ONCE = 2_000_000  # numbers drawn at a time
_TOLERANCE = 1e-9  # of sums of scores that are equal but for rounding


def interval(leaked: Floats, clean: Floats, name: str) -> tuple[float, float]:
    """The 95 % bootstrap interval of mean(leaked) - mean(clean), each group drawn from itself."""
    gaps = _means(leaked, f"{name} leaked") - _means(clean, f"{name} clean")
    low, high = np.quantile(gaps, [(1 - _SURE) / 2, (1 + _SURE) / 2])
    return float(low), float(high)


def _means(scores: Floats, name: str) -> Floats:
    """The means of N_DRAWS groups drawn from the scores, with replacement."""
    values, counts = np.unique(scores, return_counts=True)
    if values.size == 2:
        n = scores.size
        below = np.cumsum(_binomial(n, counts[1] / n))
        n_high = np.searchsorted(below, chance.fractions(name, N_DRAWS), side="right")
        n_high = np.minimum(n_high, n)
        return np.asarray(values[0] + (values[1] - values[0]) * n_high / n)
    means = np.empty(N_DRAWS)
    step = max(_MOST_AT_ONCE // scores.size, 1)
    for start in range(0, N_DRAWS, step):
        stop = min(start + step, N_DRAWS)
        drawn = chance.fractions(
            name, (stop - start) * scores.size, first=start * scores.size
        ).reshape(-1, scores.size)
        means[start:stop] = scores[(drawn * scores.size).astype(np.int64)].mean(axis=1)
    return means


def _binomial(n: int, share: float) -> Floats:
    """How likely 0, 1, ..., n hits are."""
    hits = np.arange(n + 1)
    logs = _log_choose(n, hits) + hits * np.log(share) + (n - hits) * np.log1p(-share)
    return np.asarray(np.exp(logs))


def chance_of(leaked: Floats, clean: Floats, name: str) -> float:
    """The two-sided permutation p-value of the difference of means.

    Exact where scores have two values, or where there are few ways to draw the smaller group;
    otherwise from N_DRAWS draws, among which what was observed counts as one.
    """
    small, large = sorted((leaked, clean), key=len)
    scores = np.concatenate([small, large])
    values = np.unique(scores)
    if values.size == 1:
        return 1.0
    if values.size == 2:
        return _exact_of_two(int((small == values[1]).sum()), small.size, scores == values[1])
    # The sum of one group says all: the other has the rest, and the means differ as it differs.
    expected = scores.mean() * small.size
    extent = np.abs(scores).sum() * _TOLERANCE
    observed = abs(small.sum() - expected) - extent
    if comb(scores.size, small.size) <= _MOST_EXACT:
        sums = scores[_all_draws(scores.size, small.size)].sum(axis=1)
        return float((np.abs(sums - expected) >= observed).mean())
    n_hits = 0
    step = max(_MOST_AT_ONCE // scores.size, 1)
    for start in range(0, N_DRAWS, step):
        n_rows = min(step, N_DRAWS - start)
        keys = chance.fractions(name, n_rows * scores.size, first=start * scores.size)
        drawn = np.argpartition(keys.reshape(n_rows, -1), small.size - 1, axis=1)
        sums = scores[drawn[:, : small.size]].sum(axis=1)
        n_hits += int((np.abs(sums - expected) >= observed).sum())
    return (n_hits + 1) / (N_DRAWS + 1)


def _all_draws(n: int, size: int) -> Integers:
    return np.array(list(combinations(range(n), size)), np.int64)


def _exact_of_two(n_small_hits: int, n_small: int, is_hit: npt.NDArray[np.bool_]) -> float:
    """Hits in a group drawn blindly are hypergeometric: every possible number of them is summed."""
    n, n_hits = is_hit.size, int(is_hit.sum())
    hits = np.arange(max(0, n_small - (n - n_hits)), min(n_small, n_hits) + 1)
    logs = _log_choose(n_hits, hits) + _log_choose(n - n_hits, n_small - hits)
    weights = np.exp(logs - logs.max())
    # In whole numbers, so that a difference of the same size on the other side is the same.
    off = np.abs(hits * n - n_hits * n_small)
    is_as_far = off >= abs(n_small_hits * n - n_hits * n_small)
    return float(min(weights[is_as_far].sum() / weights.sum(), 1.0))


def _log_choose(n: int, k: Integers) -> Floats:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(logs[n] - logs[k] - logs[n - k])
