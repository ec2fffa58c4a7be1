"""Bootstrap intervals and permutation p-values: of two groups of scores, and of paired scores.

Also intervals of averages over categories, each of which counts the same.

Scores are mostly 0 or 1; then both follow known distributions and no items have to be drawn.
Random numbers are seeded by a name, so the same results give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from decon_core.config import seeding
from decon_core.decisions.calibration import wilson

Floats = npt.NDArray[np.float64]

N_DRAWS = 10_000
# An interval of fewer items means little: resampling ten items gives some thousand different means,
# resampling five about a hundred.
LEAST_ITEMS = 10
_SURE = 0.95
_MOST_EXACT = 10_000  # up to this many ways to draw the smaller group, all are tried
_MOST_AT_ONCE = 2_000_000  # numbers drawn at a time
_MOST_VALUES = 9  # evenly spaced, whose sums have a distribution that is computed
_MOST_SIGNS = 13  # up to this many differences, all signs are tried
_TOLERANCE = 1e-9  # relative rounding error of sums of scores


def interval(leaked: Floats, clean: Floats, name: str) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of mean(leaked) - mean(clean)."""
    return _limits(_gaps(leaked, clean, name))


def mean_interval(groups: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean of the groups' means; keys name the draws.

    Each group is resampled by itself, as the groups are fixed and their items are a sample.
    """
    return _limits(np.mean([_means(scores, name) for name, scores in groups.items()], axis=0))


def mean_gap_interval(pairs: Mapping[str, tuple[Floats, Floats]]) -> tuple[float, float]:
    """Return the same for the mean of the gaps of pairs of groups: leaked and clean."""
    return _limits(np.mean([_gaps(*pair, name) for name, pair in pairs.items()], axis=0))


def mean_share_interval(counts: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of shares, each given as hits and draws.

    It is Wilson's, for as many draws as would give the mean its variance. For one share that is the
    share's own interval.
    """
    mean = sum(hits / n for hits, n in counts) / len(counts)
    return wilson(mean, _effective_draws(counts, mean))


def _effective_draws(counts: Sequence[tuple[int, int]], mean: float) -> float:
    """Return the lower of two numbers of draws.

    One is exact if all shares are the same; with it, a small group of another share would count too
    little. The other takes the variance of each share, which a further draw of the mean keeps above
    0 for groups without a hit; with it alone, very small groups would vary too little.
    """
    squared = len(counts) ** 2
    n_equal = squared / sum(1 / n for _, n in counts)
    smoothed = [((hits + mean) / (n + 1), n) for hits, n in counts]
    variance = sum(share * (1 - share) / n for share, n in smoothed) / squared
    return min(n_equal, mean * (1 - mean) / variance) if variance else n_equal


def _gaps(leaked: Floats, clean: Floats, name: str) -> Floats:
    return _means(leaked, f"{name} leaked") - _means(clean, f"{name} clean")


def _limits(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - _SURE) / 2, (1 + _SURE) / 2])
    return float(low), float(high)


def _means(scores: Floats, name: str) -> Floats:
    """Return the means of N_DRAWS groups drawn from the scores with replacement."""
    from scipy.special import bdtr

    values, counts = np.unique(scores, return_counts=True)
    if values.size == 2:
        n, share = scores.size, counts[1] / scores.size
        below = bdtr(np.arange(n), n, share)  # the binomial distribution
        n_high = np.searchsorted(below, seeding.fractions(name, N_DRAWS), side="right")
        return np.asarray(values[0] + (values[1] - values[0]) * n_high / n)
    if (spacing := _spacing(values)) is not None:
        return _means_of_lattice(scores, float(values[0]), spacing, name)
    return np.concatenate(
        [
            scores[(drawn * scores.size).astype(np.int64)].mean(axis=1)
            for drawn in _fractions(name, scores.size)
        ]
    )


def _fractions(name: str, size: int) -> Iterator[Floats]:
    """Yield `size` random numbers in [0, 1) for each of N_DRAWS rows, a few rows at a time."""
    step = max(_MOST_AT_ONCE // size, 1)
    for start in range(0, N_DRAWS, step):
        n_rows = min(step, N_DRAWS - start)
        yield seeding.fractions(name, n_rows * size, first=start * size).reshape(n_rows, size)


def _spacing(values: Floats) -> float | None:
    """Return the distance between neighbours if values are evenly spaced, as 0, 0.5 and 1 are."""
    if not 3 <= values.size <= _MOST_VALUES:
        return None
    steps = np.diff(values) / np.diff(values).min()
    is_even = np.abs(steps - np.round(steps)).max() < _TOLERANCE and steps.sum() <= _MOST_VALUES
    return float(np.diff(values).min()) if is_even else None


def _means_of_lattice(scores: Floats, least: float, spacing: float, name: str) -> Floats:
    """Return the means of N_DRAWS groups of evenly spaced scores, from the exact distribution.

    That of the sum of n scores is the n-th power, by convolution, of the distribution of a score.
    """
    n = scores.size
    steps = np.round((scores - least) / spacing).astype(np.int64)
    shares = np.bincount(steps) / n
    size = n * (shares.size - 1) + 1
    chances = np.fft.irfft(np.fft.rfft(shares, size) ** n, size)
    below = np.cumsum(np.clip(chances, 0.0, None))
    sums = np.searchsorted(below, seeding.fractions(name, N_DRAWS) * below[-1], side="right")
    return np.asarray(least + spacing * np.minimum(sums, size - 1) / n)


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
    for keys in _fractions(name, scores.size):
        drawn = np.argpartition(keys, small.size - 1, axis=1)
        sums = scores[drawn[:, : small.size]].sum(axis=1)
        n_hits += int((np.abs(sums - expected) >= observed).sum())
    return (n_hits + 1) / (N_DRAWS + 1)


def paired_interval(differences: Floats, name: str) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean of differences between paired scores."""
    return _limits(_means(differences, name))


def interval_of_few(differences: Floats, sure: float = _SURE) -> tuple[float, float]:
    """Return the interval of Student's t for the mean of a few differences, at least two.

    With three of them, a bootstrap interval of 95 % holds the mean in 76 of 100 cases.
    """
    from scipy.special import stdtrit

    n, mean = differences.size, float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = float(stdtrit(n - 1, (1 + sure) / 2)) * error
    return mean - half, mean + half


def paired_p_value(differences: Floats, name: str) -> float:
    """Return the two-sided p-value of the mean difference if each sign were a coin toss.

    Exact if all differences that are not 0 have the same size, or if there are few of them;
    otherwise from N_DRAWS draws and the observed one.
    """
    from scipy.special import bdtr

    sizes = np.abs(differences[differences != 0])
    if not sizes.size:
        return 1.0
    if sizes.max() - sizes.min() <= _TOLERANCE * sizes.max():
        n_fewer = min(int((differences > 0).sum()), int((differences < 0).sum()))
        return float(min(1.0, 2 * bdtr(n_fewer, sizes.size, 0.5)))
    observed = abs(float(differences.sum())) - float(sizes.sum()) * _TOLERANCE
    if sizes.size <= _MOST_SIGNS:
        signs = 1 - 2 * (np.arange(2**sizes.size)[:, None] >> np.arange(sizes.size) & 1)
        return float((np.abs(signs @ sizes) >= observed).mean())
    n_hits = 0
    for drawn in _fractions(name, sizes.size):
        signs = np.where(drawn < 0.5, -1.0, 1.0)
        n_hits += int((np.abs(signs @ sizes) >= observed).sum())
    return (n_hits + 1) / (N_DRAWS + 1)


def _exact_p_value(n_small_hits: int, n_small: int, is_hit: npt.NDArray[np.bool_]) -> float:
    """Sum the hypergeometric distribution of hits in the smaller group."""
    n, n_hits = is_hit.size, int(is_hit.sum())
    hits = np.arange(n_small + 1)
    # Integers, so that equal differences on both sides compare as equal.
    off = np.abs(hits * n - n_hits * n_small)
    is_as_far = off >= abs(n_small_hits * n - n_hits * n_small)
    hits = hits[is_as_far & (hits <= n_hits) & (n_small - hits <= n - n_hits)]
    ways = _log_choose(n_hits, hits) + _log_choose(n - n_hits, n_small - hits)
    return float(min(np.exp(ways - _log_choose(n, n_small)).sum(), 1.0))


def _log_choose(n: int, k: npt.NDArray[np.int64] | int) -> Floats:
    """Return the logarithm of the binomial coefficient; scipy.stats takes a second to import."""
    from scipy.special import betaln

    logarithm: Floats = -np.log1p(n) - betaln(n - k + 1, np.add(k, 1))
    return logarithm
