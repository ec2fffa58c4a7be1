"""Stratified random samples of findings, and the precision of a report estimated from a sample.

Findings are drawn by a hash of the seed, the document and the item, whatever their order. The same
ones are drawn again after another scan, and a larger sample contains the smaller one as long as the
strata are the same.

The precision is the share of findings that are leaks. docs/review.md#precision has the formulas.
The variance assumes the same share in all strata: for a sample drawn in proportion to size it is at
least as large as the value from the strata's own shares, and a stratum with leaks only does not
look certain.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter

from decon_core.decisions.calibration import wilson
from decon_core.decisions.verdicts import CLEARING, LEAK, Verdicts
from decon_core.report.review.found import ReportFinding

_LEAST = 2  # findings per stratum: one finding says nothing about the variance
OTHERS = "all others"


def _band(finding: ReportFinding) -> str:
    """Return the tenth of the score; score 1, the most frequent one, has its own band."""
    if finding.score >= 1.0:
        return "score 1"
    tenth = int(finding.score * 10 + 1e-9)
    return f"score {tenth / 10:.1f} to {(tenth + 1) / 10:.1f}"


STRATA: Mapping[str, Callable[[ReportFinding], str]] = {
    "benchmark": lambda finding: finding.benchmark,
    "source": lambda finding: finding.source,
    "split": lambda finding: finding.split,
    "score": _band,
}


@dataclass(frozen=True)
class Stratum:
    """A group of findings, and the ones that were drawn from it."""

    name: str
    n_findings: int
    drawn: tuple[ReportFinding, ...]


def draw(
    findings: Sequence[ReportFinding], n: int, *, by: Sequence[str], seed: int = 0
) -> list[Stratum]:
    """Draw `n` findings, or all if there are fewer; return the strata sorted by name."""
    groups: dict[str, list[ReportFinding]] = {}
    for finding in findings:
        name = ", ".join(STRATA[key](finding) for key in by) or "all"
        groups.setdefault(name, []).append(finding)
    strata = _pool_smallest(groups, max(1, n // _LEAST))
    sizes = {name: len(members) for name, members in strata.items()}
    shares = allocate(sizes, n)
    return [
        Stratum(name, sizes[name], tuple(_draw_first(members, shares[name], seed)))
        for name, members in sorted(strata.items())
    ]


def in_order_of_draw(strata: Sequence[Stratum], seed: int) -> list[ReportFinding]:
    """Return the drawn findings in random order: a review that stops early stays a sample."""
    drawn = [finding for stratum in strata for finding in stratum.drawn]
    return _draw_first(drawn, len(drawn), seed)


def _pool_smallest(
    strata: dict[str, list[ReportFinding]], most: int
) -> dict[str, list[ReportFinding]]:
    """Merge the smallest strata if there are more than `most`."""
    if len(strata) <= most:
        return strata
    in_order = sorted(strata, key=lambda name: (-len(strata[name]), name))
    kept = {name: strata[name] for name in in_order[: most - 1]}
    others = [finding for name in in_order[most - 1 :] for finding in strata[name]]
    return {**kept, OTHERS: others}


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many findings to draw from each stratum: at least two, then in proportion to size.

    Each further finding goes to the stratum with the most findings per drawn one, so a larger
    sample never takes a finding away from a stratum.
    """
    shares = dict.fromkeys(sizes, 0)
    left = min(n, sum(sizes.values()))
    for least in range(1, _LEAST + 1):
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            if left and sizes[name] >= least:
                shares[name] += 1
                left -= 1
    waiting = [(-size / (shares[name] + 1), name) for name, size in sizes.items()]
    heapq.heapify(waiting)
    while left:
        _, name = heapq.heappop(waiting)
        if shares[name] < sizes[name]:
            shares[name] += 1
            left -= 1
            heapq.heappush(waiting, (-sizes[name] / (shares[name] + 1), name))
    return shares


def _draw_first(findings: Sequence[ReportFinding], n: int, seed: int) -> list[ReportFinding]:
    # Without the text: when a verdict clears it, another may be the best of the finding.
    place_of = attrgetter("source", "shard_name", "row", "benchmark", "split", "instance_index")

    def key(finding: ReportFinding) -> bytes:
        return sha256(json.dumps([seed, *place_of(finding)]).encode()).digest()

    return heapq.nsmallest(n, findings, key=key)


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
