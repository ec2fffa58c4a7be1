"""A fair sample of calls: so many of each stratum, drawn by a hash of the seed and the place.

Chance is in the place alone, not in when or in which order anything was found. So the same calls
are drawn again after another scan, and a larger sample holds the smaller one as long as both keep
the same strata.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from decon_core.report.review.found import Call

_LEAST = 2  # of one call alone nobody knows how much others differ
OTHERS = "all others"


def _band(call: Call) -> str:
    """Tenths; what was found whole apart, for there is most of it."""
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
    """Calls that are alike, and those of them that were drawn."""

    name: str
    n_calls: int
    drawn: tuple[Call, ...]


def draw(calls: Sequence[Call], n: int, *, by: Sequence[str], seed: int = 0) -> list[Stratum]:
    """Draw `n` calls, or all where there are no more; strata by name."""
    strata = _pooled(_strata(calls, by), max(1, n // _LEAST))
    sizes = {name: len(own) for name, own in strata.items()}
    shares = allocate(sizes, n)
    return [
        Stratum(name, sizes[name], tuple(_first(own, shares[name], seed)))
        for name, own in sorted(strata.items())
    ]


def in_order_of_draw(strata: Sequence[Stratum], seed: int) -> list[Call]:
    """All that were drawn. Whoever stops early has looked at a fair part of them."""
    drawn = [call for stratum in strata for call in stratum.drawn]
    return _first(drawn, len(drawn), seed)


def _strata(calls: Sequence[Call], by: Sequence[str]) -> dict[str, list[Call]]:
    strata: dict[str, list[Call]] = {}
    for call in calls:
        name = ", ".join(STRATA[one](call) for one in by) or "all"
        strata.setdefault(name, []).append(call)
    return strata


def _pooled(strata: dict[str, list[Call]], most: int) -> dict[str, list[Call]]:
    """Where there are too many strata for the sample, the smallest are taken together."""
    if len(strata) <= most:
        return strata
    in_order = sorted(strata, key=lambda name: (-len(strata[name]), name))
    kept = {name: strata[name] for name in in_order[: most - 1]}
    others = [call for name in in_order[most - 1 :] for call in strata[name]]
    return {**kept, OTHERS: others}


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many to draw of each stratum: two at least, then by size.

    One after the other goes to the stratum that has most calls for each that is drawn of it, so
    that a larger sample takes nothing away from any stratum.
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


def _first(calls: Sequence[Call], n: int, seed: int) -> list[Call]:
    return heapq.nsmallest(n, calls, key=lambda call: _chance(call, seed))


def _chance(call: Call, seed: int) -> bytes:
    # The pair is no part of it: of a call, another may become the best when a person clears one.
    place = [
        *(call.source, call.shard_name, call.row),
        *(call.benchmark, call.split, call.instance_index),
    ]
    return sha256(json.dumps([seed, *place]).encode()).digest()
