"""Make the texts that the built-in scorers are trained on: instructions, and teaching texts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from decon_core.config.seeding import numbers

T = TypeVar("T")

N_EXAMPLES = 600
_SENTENCES = 4  # between the first and the last of a teaching text
_PATH = Path(__file__).with_name("examples.toml")


@cache
def _content() -> Mapping[str, Any]:
    return tomllib.loads(_PATH.read_text(encoding="utf-8"))


class _Draws:
    """Random choices of a name, one after the other."""

    def __init__(self, name: str) -> None:
        self._numbers = iter(numbers(name, 64).tolist())

    def below(self, n: int) -> int:
        return int(next(self._numbers)) % n

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]


def instructions(n: int = N_EXAMPLES) -> list[str]:
    """Return instructions and questions with their answers."""
    templates = _content()["instruction"]
    texts = []
    for at in range(n):
        draws = _Draws(f"haystack instruction {at}")
        template, slots = templates[at % len(templates)], _slots(draws)
        asked, answered = (template[name].format(**slots) for name in ("asked", "answered"))
        texts.append(f"{asked}\n\n{answered}")
    return [*dict.fromkeys(texts)]


def teaching_texts(n: int = N_EXAMPLES) -> list[str]:
    """Return short passages in the manner of textbooks."""
    parts = _content()["educational"]
    texts = []
    for at in range(n):
        draws = _Draws(f"haystack educational {at}")
        slots = _slots(draws)
        sentences, left = [draws.one_of(parts["first"])], [*parts["then"]]
        sentences += [left.pop(draws.below(len(left))) for _ in range(_SENTENCES)]
        if at % 2:
            sentences.append(draws.one_of(parts["last"]))
        texts.append(" ".join(sentence.format(**slots) for sentence in sentences))
    return [*dict.fromkeys(texts)]


def _slots(draws: _Draws) -> dict[str, object]:
    content = _content()
    terms, words = content["terms"], content["slots"]
    at = draws.below(len(terms))
    term, other = terms[at], terms[(at + 1 + draws.below(len(terms) - 1)) % len(terms)]
    a, b = 2 + draws.below(40), 2 + draws.below(40)
    return {
        **term,
        **{f"other_{key}": value for key, value in other.items()},
        "Term": _capitalized(term["term"]),
        "Other_term": _capitalized(other["term"]),
        "a": a,
        "b": b,
        "sum": a + b,
        "product": a * b,
        "double": 2 * a,
        "triple": 3 * a,
        "dozens": 12 * a,
        "name": draws.one_of(words["names"]),
        "place": draws.one_of(words["places"]),
        "things": draws.one_of(words["things"]),
    }


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]
