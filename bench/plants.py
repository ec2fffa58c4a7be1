"""The forms in which `bench.forms` plants an item, and the hard negatives.

They are independent of the scorecard's edits, which are used to choose thresholds: a threshold that
only fits those edits fails here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

_NAMES = (
    *("Amara", "Benedikt", "Chidi", "Dagny", "Eleni", "Farouk", "Greta", "Hamish", "Ines", "Jorge"),
    *("Kenji", "Lucia", "Malik", "Noor", "Oskar", "Priya", "Quinn", "Rosa", "Stefan", "Tomoko"),
    *("Ulrich", "Vera", "Wanjiru", "Xavier", "Yusuf", "Zora"),
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_MARKED = ("<b>{}</b>", "**{}**", "<i>{}</i>", "\\textbf{{{}}}", "&quot;{}&quot;", "_{}_")
N_EDITS = 3
FAR_WORDS = 400


@dataclass(frozen=True)
class Planted:
    """An item to plant: its texts, and words and texts of others to change it with."""

    passage: str
    question: str
    answer: str
    words: Sequence[str]  # of other items and of the text around
    far_text: str
    rng: Random

    def write(self, question: str | None = None, *, has_answer: bool = True) -> str:
        """Return passage, question and answer, one below the other."""
        parts = [self.passage, self.question if question is None else question]
        return "\n".join(part for part in [*parts, self.answer * has_answer] if part)


Form = Callable[[Planted], str | None]  # None: this item cannot take the form


def _words(text: str) -> list[re.Match[str]]:
    return [*re.finditer(r"\S+", text)]


def _plain(text: str) -> list[re.Match[str]]:
    """Return the words that are letters only, with the sign behind them: no numbers, no code."""
    return [word for word in _words(text) if re.fullmatch(r"[^\W\d_]{2,}[.,;:?!]?", word[0])]


def _spliced(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    for start, stop, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _other_word(item: Planted, word: str) -> str:
    """Return another word, with the capital and the sign of the one that it replaces."""
    bare = word.rstrip(".,;:?!")
    other = next(
        one
        for one in iter(lambda: item.rng.choice(item.words), None)
        if one.lower() != bare.lower()
    )
    cased = other.capitalize() if bare[0].isupper() else other.lower()
    return cased + word[len(bare) :]


def _edited(item: Planted, kinds: Sequence[str]) -> str | None:
    words = _plain(item.question)
    if len(words) < 2 * len(kinds):
        return None
    changes = []
    for kind, word in zip(kinds, item.rng.sample(words, len(kinds)), strict=True):
        if kind == "replaced":
            changes.append((*word.span(), _other_word(item, word[0])))
        elif kind == "deleted":
            changes.append((word.start(), min(word.end() + 1, len(item.question)), ""))
        else:
            changes.append((word.start(), word.start(), item.rng.choice(item.words).lower() + " "))
    return item.write(_spliced(item.question, changes))


def _one_edit(kind: str) -> Form:
    return lambda item: _edited(item, [kind])


def _three_edits(item: Planted) -> str | None:
    return _edited(item, ("replaced", "deleted", "inserted"))


def _many_edits(item: Planted) -> str | None:
    words = _plain(item.question)
    if len(words) < 5:
        return None
    chosen = item.rng.sample(words, round(0.4 * len(words)))
    changes = [(*word.span(), _other_word(item, word[0])) for word in chosen]
    return item.write(_spliced(item.question, changes))


def _half(item: Planted) -> str | None:
    words = _words(item.question)
    if len(words) < 4:
        return None
    return item.question[: words[len(words) // 2 - 1].end()]


def _far_answer(item: Planted) -> str | None:
    if not item.answer:
        return None
    return f"{item.write(has_answer=False)}\n\n{item.far_text}\n\n{item.answer}"


def _marked_up(item: Planted) -> str | None:
    """Mark a fifth of the words, break lines, and write some as entities."""
    words = _plain(item.question)
    if not words:
        return None
    chosen = item.rng.sample(words, max(1, len(words) // 5))
    changes = [(*word.span(), item.rng.choice(_MARKED).format(word[0])) for word in chosen]
    text = _spliced(item.question, changes)
    breaks = [
        (at.start(), at.end(), "\n") for at in re.finditer(" ", text) if item.rng.random() < 0.1
    ]
    return item.write(_spliced(text, breaks))


def _other_numbers(item: Planted) -> str | None:
    numbers = [*_NUMBER.finditer(item.question)]
    if not numbers:
        return None
    new = {number[0]: _other_number(number[0], item.rng) for number in numbers}
    changes = [(*number.span(), new[number[0]]) for number in numbers]
    return item.write(_spliced(item.question, changes), has_answer=False)


def _other_number(number: str, rng: Random) -> str:
    while True:
        digits = "".join(rng.choice("123456789") if one.isdigit() else one for one in number)
        if digits != number:
            return digits


def _other_names(item: Planted) -> str | None:
    names = [*_NAME.finditer(item.question)]
    others = iter(item.rng.sample(_NAMES, len(_NAMES)))
    if not names or len({name[0] for name in names}) > len(_NAMES):
        return None
    new = {name: next(others) for name in dict.fromkeys(name[0] for name in names)}
    changes = [
        (*name.span(), new[name[0]])
        for name in re.finditer(r"\w+", item.question)
        if name[0] in new
    ]
    return item.write(_spliced(item.question, changes), has_answer=False)


FORMS: dict[str, Form] = {
    "verbatim": lambda item: item.write() if item.answer else None,
    "question only": lambda item: item.write(has_answer=False),
    "one word replaced": _one_edit("replaced"),
    "one word deleted": _one_edit("deleted"),
    "one word inserted": _one_edit("inserted"),
    "three edits": _three_edits,
    "mark-up": _marked_up,
    "far answer": _far_answer,
    "40 % of words replaced": _many_edits,
    "first half": _half,
    "other numbers": _other_numbers,
    "other names": _other_names,
    "answer alone": lambda item: item.answer or None,
    "passage alone": lambda item: item.passage or None,
}
# Also planted, of items that are not in the index: nothing may be found.
NEIGHBOURS: dict[str, Form] = {
    "neighbouring item": lambda item: item.write(),
    "neighbour's question": lambda item: item.write(has_answer=False),
}
