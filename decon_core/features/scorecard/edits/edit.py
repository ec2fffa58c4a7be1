"""What an edit is: a graded, seeded change of a benchmark item.

An edit returns None for an item with nothing to change (no numbers, a single sentence). Unless
stated otherwise, passage, question, choices and answer are planted in this order, and the question
and the passage are changed separately: detectors compare the question first, and changes that all
fell into a long passage would leave it unchanged.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from decon_core.features.scorecard.items import Item, as_text
from decon_core.features.scorecard.lexicon import Lexicon

DATA: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("edits.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Turn:
    """A message of a conversation."""

    role: str
    content: str


Written = str | tuple[Turn, ...]


@dataclass(frozen=True)
class Material:
    """The input of an edit."""

    item: Item
    lexicon: Lexicon
    rng: Random
    partner: Item | None = None  # the second item, if two are planted together


@dataclass(frozen=True)
class Edit:
    """A way to plant an item, or to make a hard negative of it. The name is unique."""

    group: str  # shared by related edits
    grade: str
    apply: Callable[[Material], Written | None]
    has_partner: bool = False
    is_of_held_out: bool = False  # made of an item that is not in the index

    @property
    def name(self) -> str:
        return f"{self.group}: {self.grade}" if self.grade else self.group

    @property
    def meaning(self) -> str:
        meanings: Mapping[str, str] = DATA["meanings"]
        return meanings.get(self.name) or meanings[self.group]


def graded(
    group: str, apply: Callable[[Any, Material], Written | None], grades: Mapping[str, Any]
) -> Iterable[Edit]:
    """Return an edit for each grade. `apply` gets the value of the grade."""
    return [Edit(group, grade, partial(apply, value)) for grade, value in grades.items()]


def of_text(change: Callable[[str], str]) -> Callable[[Material], str | None]:
    """Return an edit of the whole text of an item; None for a text that stays the same."""

    def apply(m: Material) -> str | None:
        text = as_text(m.item)
        changed = change(text)
        return changed if changed != text else None

    return apply
