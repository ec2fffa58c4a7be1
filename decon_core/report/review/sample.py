"""Stratified random samples of calls, drawn by a hash of the seed, the document and the item.

The draw does not depend on the order of the calls. The same calls are drawn again after another
scan, and a larger sample contains the smaller one as long as the strata are the same.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter

from decon_core.report.review.found import Call

_LEAST = 2  # calls per stratum: one call says nothing about the variance
OTHERS = "all others"


def _band(call: Call) -> str:
    """Return the tenth of the score; score 1, the most frequent one, has its own band."""
    if call.score >= 1.0:
        return "score 1"
    tenth = int(call.score * 10 + 1e-9)
    return f"score {tenth / 10:.1f} to {(tenth + 1) / 10:.1f}"


STRATA: Mapping[str, Callable[[Call], str]] = {
    "benchmark": lambda call: call.benchmark,
    "source": lambda call: call.source,
    "split": lambda call: call.split,
    "score": _band,
}


@dataclass(frozen=True)
class Stratum:
    """A group of calls, and the ones that were drawn from it."""

    name: str
    n_calls: int
    drawn: tuple[Call, ...]


def draw(calls: Sequence[Call], n: int, *, by: Sequence[str], seed: int = 0) -> list[Stratum]:
    """Draw `n` calls, or all if there are fewer; return the strata sorted by name."""
    groups: dict[str, list[Call]] = {}
    for call in calls:
        name = ", ".join(STRATA[key](call) for key in by) or "all"
        groups.setdefault(name, []).append(call)
    strata = _pool_smallest(groups, max(1, n // _LEAST))
    sizes = {name: len(members) for name, members in strata.items()}
    shares = allocate(sizes, n)
    return [
        Stratum(name, sizes[name], tuple(_draw_first(members, shares[name], seed)))
        for name, members in sorted(strata.items())
    ]


def in_order_of_draw(strata: Sequence[Stratum], seed: int) -> list[Call]:
    """Return all drawn calls in random order, so that a review that stops early stays a sample."""
    drawn = [call for stratum in strata for call in stratum.drawn]
    return _draw_first(drawn, len(drawn), seed)


def _pool_smallest(strata: dict[str, list[Call]], most: int) -> dict[str, list[Call]]:
    """Merge the smallest strata if there are more than `most`."""
    if len(strata) <= most:
        return strata
    in_order = sorted(strata, key=lambda name: (-len(strata[name]), name))
    kept = {name: strata[name] for name in in_order[: most - 1]}
    others = [call for name in in_order[most - 1 :] for call in strata[name]]
    return {**kept, OTHERS: others}


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many calls to draw from each stratum: at least two, then in proportion to size.

    Each further call goes to the stratum with the most calls per drawn call, so a larger sample
    never takes a call away from a stratum.
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


def _draw_first(calls: Sequence[Call], n: int, seed: int) -> list[Call]:
    # Without the pair: when a pair is cleared by a verdict, the best pair of the call may change.
    place_of = attrgetter("source", "shard_name", "row", "benchmark", "split", "instance_index")

    def key(call: Call) -> bytes:
        return sha256(json.dumps([seed, *place_of(call)]).encode()).digest()

    return heapq.nsmallest(n, calls, key=key)
