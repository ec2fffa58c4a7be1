"""How a window of a document agrees with an item: in the weight of its words and in its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from decon_core.kernels import word_windows
from decon_core.text.content_words import SCALE

REWORDED, OTHER_NUMBERS = "reworded", "other numbers"

# A number weighs as much as a rare word; one that many texts hold, as half of them do, less.
_NUMBER_WEIGHT = round(6.2 * SCALE)
_SMALL_NUMBER_WEIGHT = 3 * SCALE
_LARGEST_SMALL_NUMBER = 12
# A word that agrees counts as one, a number as two, however often it occurs. Below the least count
# unrelated texts agree with short questions by chance; the other count halves the score.
NUMBER_COUNT = word_windows.NUMBER_COUNT
LEAST_COUNT, HALF_COUNT = 7, 10
# Numbers of the same item: at least half agree, and few are replaced by others; none if nearly all
# words agree, for then the numbers are what differs.
_LEAST_AGREEING = 0.5
_MOST_REPLACED = 0.25
_NEARLY_ALL_WORDS = 0.85


@lru_cache(maxsize=1 << 12)
def number_weight(value: float) -> int:
    is_small = value <= _LARGEST_SMALL_NUMBER and (value == int(value) or value == 0.5)
    return _SMALL_NUMBER_WEIGHT if is_small else _NUMBER_WEIGHT


class Evidence(NamedTuple):
    """How a window agrees with an item."""

    words: int  # weight of the words in both
    n_words: int  # how many
    all_words: int  # weight of the item's words
    numbers: int  # weight of the agreeing numbers
    all_numbers: int  # weight of the item's numbers
    n_numbers: int  # numbers of the item
    n_agreeing: int
    n_distinct: int  # distinct agreeing numbers
    is_same_item: bool

    @property
    def agreement(self) -> int:
        return self.n_words + NUMBER_COUNT * self.n_distinct

    @property
    def score(self) -> float:
        if self.agreement < LEAST_COUNT:
            return 0.0
        share = (self.words + self.numbers) / (self.all_words + self.all_numbers)
        return share * (self.agreement / (self.agreement + HALF_COUNT))

    @property
    def kind(self) -> str:
        return REWORDED if self.is_same_item else OTHER_NUMBERS

    @property
    def rank(self) -> tuple[bool, float]:
        return self.is_same_item, self.score


def evidence_of(
    item_numbers: Sequence[float],
    around: Sequence[float],
    within: Callable[[], Sequence[float]],
    words: tuple[int, int, int],
) -> Evidence:
    """Compare the numbers of an item with those around a window, and within it if need be."""
    weight, n_words, all_words = words
    agreeing = _in_both(item_numbers, around)
    n_absent = len(item_numbers) - len(agreeing)
    is_verbatim = weight >= _NEARLY_ALL_WORDS * all_words
    most_replaced = 0 if is_verbatim else _MOST_REPLACED * len(item_numbers)
    is_same_item = n_absent <= most_replaced or (
        len(agreeing) >= _LEAST_AGREEING * len(item_numbers)
        and len(there := within()) - len(_in_both(item_numbers, there)) <= most_replaced
    )
    return Evidence(
        words=weight,
        n_words=n_words,
        all_words=all_words,
        numbers=sum(map(number_weight, agreeing)),
        all_numbers=sum(map(number_weight, item_numbers)),
        n_numbers=len(item_numbers),
        n_agreeing=len(agreeing),
        n_distinct=len({*agreeing}),
        is_same_item=is_same_item,
    )


def _in_both(numbers: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the numbers that are in both, each as often as in both."""
    left, common = [*others], []
    for number in numbers:
        if number in left:
            left.remove(number)
            common.append(number)
    return common
