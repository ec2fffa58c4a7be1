"""Which of the items that were compared at one place it belongs to.

The item of which most was found claims its words of the document. The next one keeps the place only
if enough of what was found of it are other words: a sibling that shares the template of a question,
or the passage that it is about, has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from decon_core.alignment.comparison import Comparison

_LEAST_UNCLAIMED = 0.34  # of the weight that was found


@dataclass(frozen=True)
class Claim:
    """A comparison, its place among those of the same benchmark, and what supports it besides."""

    comparison: Comparison
    found: Sequence[tuple[int, int]]  # characters of the document where a unit begins, its weight
    support: int  # weight of other evidence near: the passage
    is_sibling: bool = False  # another item holds these words


def attributed(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims in the same order, with those marked that others hold the words of.

    An item that is found whole is no sibling of one with as many units: the two are equal.
    """
    if len(claims) == 1:
        return [*claims]
    order = sorted(
        range(len(claims)),
        key=lambda at: (-claims[at].comparison.weight_found - claims[at].support, at),
    )
    settled = [*claims]
    holder: dict[int, int] = {}  # units of the item that holds a character
    for at in order:
        claim = claims[at]
        free = sum(weight for place, weight in claim.found if place not in holder)
        if free < _LEAST_UNCLAIMED * claim.comparison.weight_found:
            n_units = max(holder.get(place, 0) for place, _ in claim.found)
            is_equal = claim.comparison.is_whole and claim.comparison.n_units >= n_units
            settled[at] = replace(claim, is_sibling=not is_equal)
            continue
        for place, _ in claim.found:
            holder.setdefault(place, claim.comparison.n_units)
    return settled
