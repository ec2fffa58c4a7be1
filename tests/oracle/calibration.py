"""The oracle of the calibration: bins one pair at a time, isotonic regression by its definition.

The value at a bin is the largest, over all starts at or before it, of the smallest mean, over all
ends at or after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, sqrt

Judged = Sequence[tuple[float, bool]]


def bins(judged: Judged) -> list[list[tuple[float, bool]]]:
    """Equally many pairs each, from the highest score down; equal scores stay together."""
    n = len(judged)
    size = max(20, ceil(min(n / 10, 1.5 * sqrt(n))))
    left = sorted(judged)
    found: list[list[tuple[float, bool]]] = []
    while left:
        taken = [left.pop()]
        while left and (len(taken) < size or left[-1][0] == taken[-1][0]):
            taken.append(left.pop())
        found.insert(0, sorted(taken))
    if len(found) > 1 and len(found[0]) < size:
        found[:2] = [found[0] + found[1]]
    return found


def isotonic(judged: Judged) -> list[tuple[float, Fraction]]:
    """The lowest score of each bin, and its probability."""
    every = bins(judged)
    return [
        (
            every[at][0][0],
            max(
                min(_share(every[start : end + 1]) for end in range(at, len(every)))
                for start in range(at + 1)
            ),
        )
        for at in range(len(every))
    ]


def _share(some: Sequence[Judged]) -> Fraction:
    said = [is_sd for one in some for _, is_sd in one]
    return Fraction(sum(said), len(said))


def probability(judged: Judged, score: float) -> Fraction | None:
    """Of the last bin that begins at or below a score; None below all."""
    found = [value for first, value in isotonic(judged) if first <= score]
    return found[-1] if found else None
