"""Estimate the precision of a report: the share of findings that are leaks, from a reviewed sample.

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
    """The verdicts on the findings drawn from a stratum."""

    stratum: str
    n_findings: int  # findings of the stratum, drawn or not
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
    """The share of findings that are leaks, with its 95 % interval."""

    share: float | None  # None: nothing was judged
    low: float
    high: float
    least: float  # the share if no unjudged finding were a leak
    most: float  # the share if every unjudged finding were a leak
    n_effective: float | None  # None: every finding was judged


def tally(stratum: Stratum, verdicts: Verdicts) -> Tally:
    """Count the verdicts on the drawn findings of a stratum."""
    lines = [verdicts.by_text.get(finding.text_id) for finding in stratum.drawn]
    drawn = [line.verdict if line else None for line in lines]
    return Tally(
        stratum=stratum.name,
        n_findings=stratum.n_findings,
        n_leaks=drawn.count(LEAK),
        n_others=sum(map(drawn.count, CLEARING)),
        n_unsure=drawn.count("unsure"),
        n_unseen=drawn.count(None),
    )


def estimate(tallies: Sequence[Tally]) -> Precision:
    """Estimate the share of leaks among all findings of these strata."""
    drawn = [stratum for stratum in tallies if stratum.n_drawn]
    least = _weighted(drawn, [stratum.n_leaks / stratum.n_drawn for stratum in drawn])
    not_cleared = _weighted(drawn, [1 - stratum.n_others / stratum.n_drawn for stratum in drawn])
    most = not_cleared if drawn else 1.0
    judged = [stratum for stratum in tallies if stratum.n_judged]
    if not judged:
        return Precision(share=None, low=0.0, high=1.0, least=least, most=most, n_effective=None)
    share = _weighted(judged, [stratum.n_leaks / stratum.n_judged for stratum in judged])
    n_findings = sum(stratum.n_findings for stratum in tallies)
    n_findings_judged = sum(stratum.n_findings for stratum in judged)
    weights = [stratum.n_findings / n_findings_judged for stratum in judged]
    variance = sum(
        weight**2 * _relative_variance(stratum.n_judged, weight * n_findings)
        for stratum, weight in zip(judged, weights, strict=True)
    )
    low, high = wilson(share, 1 / variance) if variance else (share, share)
    return Precision(
        share=share,
        low=max(low, sum(stratum.n_leaks for stratum in tallies) / n_findings),
        high=min(high, 1 - sum(stratum.n_others for stratum in tallies) / n_findings),
        least=least,
        most=most,
        n_effective=1 / variance if variance else None,
    )


def _weighted(tallies: Iterable[Tally], shares: Sequence[float]) -> float:
    sizes = [stratum.n_findings for stratum in tallies]
    total = sum(size * share for size, share in zip(sizes, shares, strict=True))
    return total / (sum(sizes) or 1)


def _relative_variance(n_judged: int, n_findings: float) -> float:
    """Return the variance of a stratum's share divided by p (1 - p)."""
    n_left = n_findings - n_judged
    return n_left / (n_findings - 1) / n_judged if n_left > 1e-9 else 0.0
