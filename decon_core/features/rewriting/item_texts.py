"""The texts of an item that a rewriting changes, and the random choices that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# Returns a random order of 0 to n - 1. A new one each time it is called, the same in each run.
Shuffle = Callable[[int], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class ItemTexts:
    """The texts of an item; empty where it has none."""

    passage: str = ""
    question: str
    choices: tuple[str, ...] = ()
    answer: str = ""  # the right choice, if the item has choices

    def __iter__(self) -> Iterator[str]:
        return iter((self.passage, self.question, *self.choices, self.answer))

    def changed(self, change: Callable[[str], str]) -> ItemTexts:
        return ItemTexts(
            passage=change(self.passage),
            question=change(self.question),
            choices=tuple(map(change, self.choices)),
            answer=change(self.answer),
        )
