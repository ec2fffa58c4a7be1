"""Rewordings of items by an endpoint: the requests, the accepted answers, and the stored ones.

A rewording is accepted if it has the same numbers and is not a near copy of the item or of another
rewording. A person or a judge must decide whether it asks the same question. Answers are stored
with a hash of the request, so that an item of several blends is requested only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decon_core.features.blends.rewordings import FIELDS, ItemWords, Line, Rewording, Rewordings
from decon_core.features.endpoints.requests import (
    Prompt,
    Request,
    Task,
    last_object,
    load_prompt,
    request_digest,
)
from decon_core.features.similarity.metrics import overlap, words_of
from decon_core.text.numbers import numbers_in

_BUILT_IN = Path(__file__).with_name("rewording_prompt.txt.j2")
# A near copy of a text has as much of its word n-grams (docs/blends.md). Shorter texts have none.
_SIZE, _LIMIT = 3, 0.5


def load_rewording_prompt(path: Path | None) -> Prompt:
    """Read a template, the built-in one for None; raise InputError if it cannot be used."""
    expected = "a jinja2 template that uses {{ question }}"
    values = _values(ItemWords("", ""), 0, Rewording())
    return load_prompt(
        path or _BUILT_IN, "rewording.prompt", values, shown=("question",), expected=expected
    )


def _values(item: ItemWords, variant: int, settings: Rewording) -> dict[str, Any]:
    return {**item._asdict(), "variant": variant + 1, "variants": settings.variants}


# What an answer has to be.
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in FIELDS},
    "required": [*FIELDS],
    "additionalProperties": False,
}


@dataclass
class RewordingPlan:
    """What is left to ask, and which item and variant each request is about."""

    requests: list[Request] = field(default_factory=list)
    # Item and variant of each request, by digest.
    about: dict[str, tuple[ItemWords, int]] = field(default_factory=dict)
    # Accepted variants of each item.
    accepted: dict[ItemWords, dict[int, ItemWords]] = field(default_factory=dict)
    n_items: int = 0
    n_answered: int = 0  # requests, before

    @property
    def task(self) -> Task:
        return Task("rewording", _SCHEMA, self._read)

    def _read(self, request: Request, content: str) -> dict[str, Any]:
        item, variant = self.about[request.digest]
        accepted = self.accepted.setdefault(item, {})
        others = [words for number, words in accepted.items() if number != variant]
        value = last_object(content, FIELDS, lambda value: faults_of(item, value, others))
        accepted[variant] = ItemWords(**value)
        return value

    def line_of(self, request: Request, settings: Rewording, *, at: str, said: Line) -> Line:
        """Return the line of an answer. `said`: its fields, or `failed`."""
        item, variant = self.about[request.digest]
        about = {"item": item.key, "variant": variant, "request": request.digest}
        return {**about, "by": settings.model, "at": at, **said}


def plan_rewordings(
    items: Iterable[ItemWords],
    prompt: Prompt,
    settings: Rewording,
    known: Rewordings,
    *,
    count_tokens: Callable[[str], int],
) -> RewordingPlan:
    """Return the requests for all variants of items that were not answered before."""
    plan = RewordingPlan()
    for item in dict.fromkeys(items):
        plan.n_items += 1
        plan.accepted[item] = known.by_variant(item)
        for variant in range(settings.variants):
            text = prompt.fill(_values(item, variant, settings))
            # Also by variant: a template may not show it.
            digest = request_digest(f"{variant}\n{text}", settings)
            if digest in known.answered:
                plan.n_answered += 1
            elif digest not in plan.about:
                plan.about[digest] = item, variant
                plan.requests.append(Request(digest, text, count_tokens(text)))
    return plan


def faults_of(item: ItemWords, value: Line, others: Iterable[ItemWords] = ()) -> list[str]:
    """Return why an answer is no rewording of an item that differs from `others`."""
    if not all(isinstance(value[name], str) for name in FIELDS):
        return ["a field that is not text"]
    made = ItemWords(value["passage"].strip(), value["question"].strip())
    faults = []
    if not made.question or bool(made.passage) != bool(item.passage.strip()):
        faults.append("a passage or question that is missing or was added")
    if _is_near_copy(made, item):
        faults.append("too similar to the item")
    if any(_is_near_copy(made, other) for other in others):
        faults.append("too similar to another variant")
    if _numbers_of(made) != _numbers_of(item):
        faults.append("other numbers")
    return faults


def _is_near_copy(made: ItemWords, other: ItemWords) -> bool:
    """Return whether a passage or a question is mostly that of another, or all words are."""
    pairs = [
        (words_of(text), words_of(other_text)) for text, other_text in zip(made, other, strict=True)
    ]
    return all(words == others for words, others in pairs) or any(
        min(len(words), len(others)) >= _SIZE and overlap(words, others, _SIZE) >= _LIMIT
        for words, others in pairs
    )


def _numbers_of(item: ItemWords) -> frozenset[float]:
    """Return the numbers of an item, without "one", which may become "a" or stand for a word."""
    return frozenset(number.value for text in item for number in numbers_in(text)) - {1.0}
