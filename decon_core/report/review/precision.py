"""From what people said of a sample to the share of calls that are leaks, with an interval.

Of stratum h with N_h of all N calls, m_h were judged, x_h of them leaks; W_h = N_h / N:

    p  = sum of W_h x_h / m_h
    v  = sum of W_h^2 / m_h (N_h - m_h) / (N_h - 1)
    n* = 1 / v                          the effective size of the sample

The interval is Wilson's for the share p of n* draws, cut where what is known already ends: no fewer
leaks than were seen, no more than are left. Where every call was judged, v is 0, and it is a point.
`v` takes the same share for all strata. For a sample that is drawn by size it is no smaller than
what the strata's own shares give, and a stratum of leaks alone does not feign certainty.

What is drawn and not judged (doubtful, or nobody looked) is left out of p; what p would be if all
or none of it were leaks stands beside it. For a stratum in which nothing was judged the others
stand in: their N_h grow, in proportion, by as many calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from decon_core.config.verdicts import CLEARING, LEAK
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.review.sample import Stratum

_Z = 1.959963984540054  # 95 %


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What people said of the calls that were drawn of a stratum."""

    stratum: str
    n_calls: int  # in all
    n_leaks: int
    n_others: int  # template or common source
    n_unsure: int
    n_unseen: int

    @property
    def n_judged(self) -> int:
        return self.n_leaks + self.n_others

    @property
    def n_drawn(self) -> int:
        return self.n_judged + self.n_unsure + self.n_unseen


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The share of calls that are leaks; None where nothing was judged."""

    share: float | None
    low: float
    high: float
    least: float  # if nothing were a leak that was not judged
    most: float  # if all of that were one
    n_effective: float | None  # None: every call was judged


def tally(stratum: Stratum, verdicts: Verdicts) -> Tally:
    """Count what stands of the calls of a stratum."""
    said = [
        one.verdict if (one := verdicts.by_pair.get(call.pair)) else None for call in stratum.drawn
    ]
    return Tally(
        stratum=stratum.name,
        n_calls=stratum.n_calls,
        n_leaks=said.count(LEAK),
        n_others=sum(map(said.count, CLEARING)),
        n_unsure=said.count("unsure"),
        n_unseen=said.count(None),
    )


def estimate(tallies: Sequence[Tally]) -> Precision:
    """The share of leaks among all calls of these strata."""
    drawn = [one for one in tallies if one.n_drawn]
    least = _weighted(drawn, [one.n_leaks / one.n_drawn for one in drawn])
    most = _weighted(drawn, [1 - one.n_others / one.n_drawn for one in drawn]) if drawn else 1.0
    judged = [one for one in tallies if one.n_judged]
    if not judged:
        return Precision(share=None, low=0.0, high=1.0, least=least, most=most, n_effective=None)
    share = _weighted(judged, [one.n_leaks / one.n_judged for one in judged])
    n_calls = sum(one.n_calls for one in tallies)
    low, high, n_effective = _interval(share, judged, n_calls)
    n_leaks, n_others = (sum(map(count, tallies)) for count in (_leaks, _others))
    return Precision(
        share=share,
        low=max(low, n_leaks / n_calls),
        high=min(high, 1 - n_others / n_calls),
        least=least,
        most=most,
        n_effective=n_effective,
    )


def _leaks(one: Tally) -> int:
    return one.n_leaks


def _others(one: Tally) -> int:
    return one.n_others


def _weighted(tallies: Iterable[Tally], shares: Sequence[float]) -> float:
    sizes = [one.n_calls for one in tallies]
    total = sum(size * share for size, share in zip(sizes, shares, strict=True))
    return total / (sum(sizes) or 1)


def _interval(
    share: float, judged: Sequence[Tally], n_calls: int
) -> tuple[float, float, float | None]:
    weights = [one.n_calls / sum(other.n_calls for other in judged) for one in judged]
    variance = sum(
        weight**2 * _of_one(one.n_judged, weight * n_calls)
        for one, weight in zip(judged, weights, strict=True)
    )
    if not variance:
        return share, share, None
    return *wilson(share, 1 / variance), 1 / variance


def _of_one(n_judged: int, n_calls: float) -> float:
    """The variance of a stratum's share, less the part that the share itself has in it."""
    n_left = n_calls - n_judged
    return n_left / (n_calls - 1) / n_judged if n_left > 1e-9 else 0.0


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval, 95 %, for a share of so many draws."""
    squared = _Z * _Z
    centre = (share + squared / (2 * n)) / (1 + squared / n)
    half = _Z / (1 + squared / n) * sqrt(share * (1 - share) / n + squared / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
