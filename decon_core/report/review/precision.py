"""Estimate the precision of a report: the share of calls that are leaks, from a reviewed sample.

docs/review.md#precision has the formulas. The variance assumes the same share in all strata: for a
sample drawn in proportion to size it is at least as large as the value from the strata's own
shares, and a stratum with leaks only does not look certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decon_core.decisions.calibration import wilson
from decon_core.decisions.verdicts import CLEARING, LEAK, Verdicts
from decon_core.report.review.sample import Stratum


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The verdicts on the calls drawn from a stratum."""

    stratum: str
    n_calls: int  # of the stratum, drawn or not
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
    """The share of calls that are leaks, with its 95 % interval."""

    share: float | None  # None: nothing was judged
    low: float
    high: float
    least: float  # the share if no unjudged call were a leak
    most: float  # the share if every unjudged call were a leak
    n_effective: float | None  # None: every call was judged


def tally(stratum: Stratum, verdicts: Verdicts) -> Tally:
    """Count the verdicts on the drawn calls of a stratum."""
    drawn = [
        one.verdict if (one := verdicts.by_pair.get(call.pair)) else None for call in stratum.drawn
    ]
    return Tally(
        stratum=stratum.name,
        n_calls=stratum.n_calls,
        n_leaks=drawn.count(LEAK),
        n_others=sum(map(drawn.count, CLEARING)),
        n_unsure=drawn.count("unsure"),
        n_unseen=drawn.count(None),
    )


def estimate(tallies: Sequence[Tally]) -> Precision:
    """Estimate the share of leaks among all calls of these strata."""
    drawn = [one for one in tallies if one.n_drawn]
    least = _weighted(drawn, [one.n_leaks / one.n_drawn for one in drawn])
    most = _weighted(drawn, [1 - one.n_others / one.n_drawn for one in drawn]) if drawn else 1.0
    judged = [one for one in tallies if one.n_judged]
    if not judged:
        return Precision(share=None, low=0.0, high=1.0, least=least, most=most, n_effective=None)
    share = _weighted(judged, [one.n_leaks / one.n_judged for one in judged])
    n_calls = sum(one.n_calls for one in tallies)
    low, high, n_effective = _interval(share, judged, n_calls)
    n_leaks, n_others = (sum(one.n_leaks for one in tallies), sum(one.n_others for one in tallies))
    return Precision(
        share=share,
        low=max(low, n_leaks / n_calls),
        high=min(high, 1 - n_others / n_calls),
        least=least,
        most=most,
        n_effective=n_effective,
    )


def _weighted(tallies: Iterable[Tally], shares: Sequence[float]) -> float:
    sizes = [one.n_calls for one in tallies]
    total = sum(size * share for size, share in zip(sizes, shares, strict=True))
    return total / (sum(sizes) or 1)


def _interval(
    share: float, judged: Sequence[Tally], n_calls: int
) -> tuple[float, float, float | None]:
    weights = [one.n_calls / sum(other.n_calls for other in judged) for one in judged]
    variance = sum(
        weight**2 * _relative_variance(one.n_judged, weight * n_calls)
        for one, weight in zip(judged, weights, strict=True)
    )
    if not variance:
        return share, share, None
    return *wilson(share, 1 / variance), 1 / variance


def _relative_variance(n_judged: int, n_calls: float) -> float:
    """Return the variance of a stratum's share divided by p (1 - p)."""
    n_left = n_calls - n_judged
    return n_left / (n_calls - 1) / n_judged if n_left > 1e-9 else 0.0
