"""Estimates for a corpus from a sample of its documents or shards, with 95 % intervals.

The sample takes every document with the same probability, the share: it draws the same number of
rows from each of many runs of rows (`corpus/sample.py`). Or it takes every shard with the same
probability (`corpus/sample.py`); then what is said of documents below is true of shards.

**Documents** with a property, such as a leak: the number in the sample is a sum of independent
draws, whose probabilities differ by run. Of all such sums with the same mean the binomial one has
the widest tails (Hoeffding 1956), so Clopper and Pearson's exact interval holds wherever in the
corpus the documents are.

**Items** found in at least one document: each was found, so their number is a lower bound with
certainty. An item in a single document is found with the probability of the share, any other with a
higher one; this bounds how many were missed, from the number of items found exactly once. The upper
bound needs one assumption, that no document holds more items than the fullest of the sample.
Between the two lies an estimate that is rather too low (Chao's lower bound for sampling without
replacement; Chao and Lin 2012).

**The share of documents** of which whole shards were drawn: documents of a shard are alike, so what
counts is how many shards were drawn, not how many documents. The estimate is the share in the drawn
shards (a ratio estimator). Divided by the highest share of a drawn shard, the shares are between 0
and 1, and Clopper and Pearson's interval is computed for their mean. Large shards count more, so
the number of draws is Kish's effective sample size. The upper end assumes that no shard has a
higher share than the highest drawn one, or 1 if none was found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ALPHA = 1 - 0.95
_ROUNDING = 1e-6
# Fewer are too few: even if no document is found, more than 17 % of all may have the property.
FEWEST_SHARDS = 20


@dataclass(frozen=True)
class Estimate:
    """An estimated number of documents or items of the whole corpus, and its interval."""

    value: float
    low: int
    high: int


def documents(
    n_found: int, *, n_sampled: int, n_draws: int, n_documents: int, share: float
) -> Estimate:
    """Estimate how many of the documents have a property, of which `n_found` of the sample have it.

    `n_draws`: how many draws there were, also those that met no document.
    """
    least, most = float(n_found), float(n_documents - (n_sampled - n_found))
    # The interval of the number that is expected of independent, unequal draws.
    low, high = 0.0, math.inf
    if n_draws := max(n_draws, n_sampled):
        low = _least_mean(n_found, n_draws)
        high = n_draws - _least_mean(n_draws - n_found, n_draws)
    value, low, high = (min(max(mean / share, least), most) for mean in (n_found, low, high))
    # Numbers of documents are whole.
    return Estimate(value, math.ceil(low - _ROUNDING), math.floor(high + _ROUNDING))


def share_of_documents(shards: Sequence[tuple[int, int]]) -> tuple[float, float, float] | None:
    """Estimate a share of documents from drawn shards, with the ends of its interval.

    `shards` has for each its number of documents with the property, and of all documents. Returns
    None if fewer than `FEWEST_SHARDS` have documents.
    """
    shards = [(n_found, n) for n_found, n in shards if n]
    if len(shards) < FEWEST_SHARDS:
        return None
    n_documents = sum(n for _, n in shards)
    share = sum(n_found for n_found, _ in shards) / n_documents
    highest = max(n_found / n for n_found, n in shards) or 1.0
    n_draws = n_documents**2 / sum(n**2 for _, n in shards)
    mean = n_draws * share / highest
    low = _least_mean(mean, n_draws)
    high = n_draws - _least_mean(n_draws - mean, n_draws)
    return share, highest * low / n_draws, highest * high / n_draws


def most_above(n_drawn: int) -> float:
    """Return the largest share of units that may be above all drawn ones: it is so in 5 %."""
    return float(1 - _ALPHA ** (1 / n_drawn)) if n_drawn else 1.0


def _least_mean(n_found: float, n_draws: float) -> float:
    """Return the lower end: with this mean, so many are found with half of the error."""
    from scipy.special import betaincinv

    if n_found <= 0:
        return 0.0
    share = float(betaincinv(n_found, n_draws - n_found + 1, _ALPHA / 2))
    # Hoeffding's theorem says nothing of one found where less than one is expected. There the
    # chance is at most the mean.
    return min(n_draws * share, _ALPHA / 2) if n_found == 1 else n_draws * share


def items(
    n_by_documents: Mapping[int, int], *, share: float, n_items: int, n_most_together: int = 1
) -> Estimate:
    """Estimate how many of a benchmark's items have a property in any document of the corpus.

    `n_by_documents` says how many items were found in 1, 2, … documents of the sample, and
    `n_most_together` how many at most in one document.
    """
    n_found = sum(n_by_documents.values())
    once, twice = n_by_documents.get(1, 0), n_by_documents.get(2, 0)
    together = max(n_most_together, 1)
    # Items found once or never: the found ones are at least as many as single copies would be.
    n_groups = most_drawn_from(once // together, share, n_items)
    high = min(n_found - once + together * n_groups, n_items)
    odds = share / (1 - share)
    missed = once * (once - 1) / (2 * (twice + 1) + odds * max(once - 1, 0))
    return Estimate(min(n_found + missed, high), n_found, high)


def most_drawn_from(n_drawn: int, share: float, most: int) -> int:
    """Return the largest number of units, up to `most`, of which so few may have been drawn.

    Each unit is drawn with the probability `share`; with one more unit, the chance of `n_drawn` or
    fewer would be below 5 %.
    """
    from scipy.special import bdtr

    low, high = n_drawn, max(most, n_drawn)
    while low < high:
        middle = (low + high + 1) // 2
        is_possible = bdtr(n_drawn, middle, share) >= _ALPHA
        low, high = (middle, high) if is_possible else (low, middle - 1)
    return low
