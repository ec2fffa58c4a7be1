"""Which of the items that were compared at one place it belongs to.

The item of which most was found claims its words of the document. A question that is there as a
whole comes before a longer one with the same words, unless most of the longer one's other words are
there, too.
The next one keeps the place only if enough of what was found of it are other words: a sibling that
shares the template of a question has none. Nor has an item of which only words of its passage are
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decon_core.alignment.comparison import Comparison
from decon_core.kernels.arrays import Bools, Integers

_LEAST_UNCLAIMED = 0.34  # share of the weight that was found


class Claim(NamedTuple):
    """A comparison, its place among those of the same benchmark, and what supports it besides."""

    comparison: Comparison
    support: int  # weight of other evidence near: the passage
    is_of_passage: Bools | None = None  # which of the found units are words of its own passage
    is_sibling: bool = False  # another item or its passage holds these words

    def evidence(self, wholes: _Wholes) -> int:
        """Return the weight of what was found of a question and its passage.

        If half of a question that was found as a whole is these words, missing words are
        subtracted.
        """
        found = self.comparison.weight_found
        if self.is_of_passage is not None:
            found -= int(self.comparison.weights[self.is_of_passage].sum())
        is_beside = wholes.have_half_within(self.comparison.places)
        missing = self.comparison.weight - found if is_beside else 0
        return found - missing + self.support


class _Wholes:
    """The places of the questions that were found as a whole."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        comparisons = (claim.comparison for claim in claims)
        edges = [of.places[[0, -1]] for of in comparisons if of.is_whole]
        self._firsts, self._lasts = np.array(edges, np.int64).reshape(-1, 2).T

    def have_half_within(self, places: Integers) -> bool:
        """Whether at least half of the units of any of the questions are among these."""
        n_within = places.searchsorted(self._lasts, "right") - places.searchsorted(self._firsts)
        return bool((2 * n_within > self._lasts - self._firsts).any())


def attributed(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims in the same order, with those marked that others hold the words of.

    An item that is found whole is no sibling of one with as many units: the two are equal.
    """
    if not claims or (len(claims) == 1 and claims[0].is_of_passage is None):
        return [*claims]
    first = min(int(claim.comparison.places[0]) for claim in claims)
    last = max(int(claim.comparison.places[-1]) for claim in claims)
    wholes = _Wholes(claims)
    evidence = [claim.evidence(wholes) for claim in claims]
    order = sorted(range(len(claims)), key=lambda at: -evidence[at])
    settled = [*claims]
    # The number of units of the item that holds each unit of the document.
    holder = np.zeros(last - first + 1, np.int64)
    for at in order:
        comparison = claims[at].comparison
        places = comparison.places - first
        held = holder[places]
        is_free = held == 0
        if (is_of_passage := claims[at].is_of_passage) is not None:
            is_free &= ~is_of_passage
        if comparison.weights[is_free].sum() < _LEAST_UNCLAIMED * comparison.weight_found:
            is_equal = comparison.is_whole and comparison.n_units >= held.max()
            settled[at] = claims[at]._replace(is_sibling=not is_equal)
        else:
            holder[places[is_free]] = comparison.n_units
    return settled
