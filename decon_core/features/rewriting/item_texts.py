"""What rewritings share: the texts of an item, random choices, and the words of words.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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


@cache
def listed(group: str, name: str) -> tuple[str, ...]:
    """Return the words of a list, in its order."""
    read = tomllib.loads(files(__package__).joinpath("words.toml").read_text("utf-8"))
    return tuple(read[group][name].split())
