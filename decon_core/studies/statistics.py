"""Bootstrap intervals and permutation p-values for the difference between two groups of scores.

Scores are mostly 0 or 1; then both follow known distributions and no items are drawn one by one.
Random numbers are seeded by a name, so the same results give the same numbers.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from decon_core.config import seeding

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

N_DRAWS = 10_000
_SURE = 0.95
_MOST_EXACT = 10_000  # up to this many ways to draw the smaller group, all are tried
_MOST_AT_ONCE = 2_000_000  # numbers drawn at a time
_TOLERANCE = 1e-9  # relative rounding error of sums of scores


def interval(leaked: Floats, clean: Floats, name: str) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of mean(leaked) - mean(clean)."""
    gaps = _means(leaked, f"{name} leaked") - _means(clean, f"{name} clean")
    low, high = np.quantile(gaps, [(1 - _SURE) / 2, (1 + _SURE) / 2])
    return float(low), float(high)


def _means(scores: Floats, name: str) -> Floats:
    """Return the means of N_DRAWS groups drawn from the scores with replacement."""
    values, counts = np.unique(scores, return_counts=True)
    if values.size == 2:
        n, share = scores.size, counts[1] / scores.size
        hits = np.arange(n + 1)
        logs = _log_choose(n, hits) + hits * np.log(share) + (n - hits) * np.log1p(-share)
        below = np.cumsum(np.exp(logs))  # the binomial distribution
        n_high = np.searchsorted(below, seeding.fractions(name, N_DRAWS), side="right")
        n_high = np.minimum(n_high, n)
        return np.asarray(values[0] + (values[1] - values[0]) * n_high / n)
    means = np.empty(N_DRAWS)
    step = max(_MOST_AT_ONCE // scores.size, 1)
    for start in range(0, N_DRAWS, step):
        stop = min(start + step, N_DRAWS)
        size, first = (stop - start) * scores.size, start * scores.size
        drawn = seeding.fractions(name, size, first=first).reshape(-1, scores.size)
        means[start:stop] = scores[(drawn * scores.size).astype(np.int64)].mean(axis=1)
    return means


def p_value(leaked: Floats, clean: Floats, name: str) -> float:
    """Return the two-sided permutation p-value of the difference of means.

    Exact if scores have two values, or if there are few ways to draw the smaller group; otherwise
    from N_DRAWS draws and the observed one.
    """
    small, large = sorted((leaked, clean), key=len)
    scores = np.concatenate([small, large])
    values = np.unique(scores)
    if values.size == 1:
        return 1.0
    if values.size == 2:
        return _exact_p_value(int((small == values[1]).sum()), small.size, scores == values[1])
    # The total is fixed, so the sum of one group determines the difference of means.
    expected = scores.mean() * small.size
    extent = np.abs(scores).sum() * _TOLERANCE
    observed = abs(small.sum() - expected) - extent
    if comb(scores.size, small.size) <= _MOST_EXACT:
        draws = np.array([*combinations(range(scores.size), small.size)], np.int64)
        sums = scores[draws].sum(axis=1)
        return float((np.abs(sums - expected) >= observed).mean())
    n_hits = 0
    step = max(_MOST_AT_ONCE // scores.size, 1)
    for start in range(0, N_DRAWS, step):
        n_rows = min(step, N_DRAWS - start)
        keys = seeding.fractions(name, n_rows * scores.size, first=start * scores.size)
        drawn = np.argpartition(keys.reshape(n_rows, -1), small.size - 1, axis=1)
        sums = scores[drawn[:, : small.size]].sum(axis=1)
        n_hits += int((np.abs(sums - expected) >= observed).sum())
    return (n_hits + 1) / (N_DRAWS + 1)


def _exact_p_value(n_small_hits: int, n_small: int, is_hit: npt.NDArray[np.bool_]) -> float:
    """Sum the hypergeometric distribution of hits in the smaller group."""
    n, n_hits = is_hit.size, int(is_hit.sum())
    hits = np.arange(max(0, n_small - (n - n_hits)), min(n_small, n_hits) + 1)
    logs = _log_choose(n_hits, hits) + _log_choose(n - n_hits, n_small - hits)
    weights = np.exp(logs - logs.max())
    # Integers, so that equal differences on both sides compare as equal.
    off = np.abs(hits * n - n_hits * n_small)
    is_as_far = off >= abs(n_small_hits * n - n_hits * n_small)
    return float(min(weights[is_as_far].sum() / weights.sum(), 1.0))


def _log_choose(n: int, k: Integers) -> Floats:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(logs[n] - logs[k] - logs[n - k])
