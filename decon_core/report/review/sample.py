"""Stratified random samples of findings, drawn by a hash of the seed, the document and the item.

The draw does not depend on the order of the findings. The same ones are drawn again after another
scan, and a larger sample contains the smaller one as long as the strata are the same.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter

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
