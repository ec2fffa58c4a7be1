"""Paired bootstrap of scores of whole test sets: segments are drawn, and the sets scored again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decon_core.config import seeding
from decon_core.features.study.translation.metrics import CorpusMetric, Floats

N_DRAWS = 1_000
_MOST_AT_ONCE = 2_000_000  # numbers drawn at a time
_ENDS = (0.025, 0.975)
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Drawn:
    """A difference of scores of test sets: 95 % interval, p-value and standard error."""

    low: float
    high: float
    p: float
    stderr: float


def paired_draws(own: Floats, other: Floats, metric: CorpusMetric, name: str) -> Floats:
    """Return the differences of two training runs on N_DRAWS test sets of the same segments.

    `own` and `other`: counts, with a row for each segment.
    """
    n, n_counts = own.shape
    both = np.hstack([own, other])
    differences = np.empty(N_DRAWS)
    step = max(_MOST_AT_ONCE // n, 1)
    for start in range(0, N_DRAWS, step):
        n_rows = min(step, N_DRAWS - start)
        # Counts are whole numbers, so sums are exact in any order.
        sums = _times_drawn(n_rows, n, name, first=start * n) @ both
        differences[start : start + n_rows] = metric.scores(sums[:, :n_counts])
        differences[start : start + n_rows] -= metric.scores(sums[:, n_counts:])
    return differences


def _times_drawn(n_rows: int, n: int, name: str, *, first: int) -> Floats:
    """Return how often each of n segments is in each of `n_rows` test sets."""
    drawn = (seeding.fractions(name, n_rows * n, first=first) * n).astype(np.int64)
    drawn += np.repeat(np.arange(n_rows) * n, n)
    return np.bincount(drawn, minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


def summarize(draws: Floats, observed: float) -> Drawn:
    """Return interval and p-value of a difference from draws of it.

    The p-value is the share of draws that lie as far from their mean as the difference from 0,
    counting the observed difference as one of them. sacrebleu takes absolute differences before it
    subtracts their mean, which gives small p-values where there is no effect.
    """
    low, high = np.quantile(draws, _ENDS)
    is_as_far = np.abs(draws - draws.mean()) >= abs(observed) - _TOLERANCE
    p = (int(is_as_far.sum()) + 1) / (draws.size + 1)
    return Drawn(float(low), float(high), p, float(draws.std(ddof=1)))
