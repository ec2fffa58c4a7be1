"""The oracle of pair metrics and of their scores, slow and simple."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def longest_common_subsequence(words: Sequence[str], others: Sequence[str]) -> int:
    """Return its length by the table of all prefixes."""
    row = [0] * (len(others) + 1)
    for word in words:
        before, row = row, [0]
        for at, other in enumerate(others):
            row.append(before[at] + 1 if word == other else max(before[at + 1], row[at]))
    return row[-1]


def difflib_ratio(text: str, other: str) -> float:
    return SequenceMatcher(None, text, other, autojunk=False).ratio()


def auc(duplicates: Sequence[float], others: Sequence[float]) -> float:
    """Return the share of all pairings in which the duplicate has the higher value."""
    wins = [(one > other) + (one == other) / 2 for one in duplicates for other in others]
    return sum(wins) / len(wins)


def recall(
    duplicates: Sequence[float], others: Sequence[float], percent_allowed: int
) -> tuple[float, float]:
    """Return the best recall, and the lowest value to exceed for it, by trying all values."""
    n_allowed = len(others) * percent_allowed // 100
    fair = [
        value
        for value in {*duplicates, *others}
        if sum(other > value for other in others) <= n_allowed
    ]
    lowest = min(fair)
    return sum(one > lowest for one in duplicates) / len(duplicates), lowest


def nearest(
    items: Sequence[Sequence[int]], paragraphs: Sequence[Sequence[int]], top: int
) -> list[list[tuple[int, int]]]:
    """Return product and place of the nearest paragraphs of each item, the first of equal ones."""
    result = []
    for item in items:
        products = [
            (sum(x * y for x, y in zip(item, one, strict=True)), -place)
            for place, one in enumerate(paragraphs)
        ]
        best = sorted(products, reverse=True)[:top]
        result.append([(product, -place) for product, place in best])
    return result
