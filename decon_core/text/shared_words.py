"""What two texts share whose words are in another order: content words and numbers, for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from decon_core.text.canonical import words_with_places
from decon_core.text.characters import Form
from decon_core.text.content_words import is_content, stems
from decon_core.text.numbers import Number, numbers_in

Span = tuple[int, int]


class Agreement(NamedTuple):
    """What the matched part of a document and an item share."""

    in_document: list[Span]  # characters
    in_item: list[Span]
    summary: str  # what agrees and what does not


class _Text(NamedTuple):
    words: Mapping[str, str]  # first spelling of each stem
    places: Sequence[tuple[str, int, int]]  # places of each stem
    numbers: Sequence[Number]

    @property
    def values(self) -> Counter[str]:
        return Counter(f"{number.value:g}" for number in self.numbers)


def agreement_of(document: str, item: str, form: Form) -> Agreement:
    """Return the places of the words and numbers that are in both, and a summary."""
    in_document, in_item = _read(document, form), _read(item, form)
    places = [
        sorted([*_words_in_both(text, other), *_numbers_in_both(text, other)])
        for text, other in ((in_document, in_item), (in_item, in_document))
    ]
    return Agreement(places[0], places[1], "; ".join(_summary(in_document, in_item)))


def _read(text: str, form: Form) -> _Text:
    content = [word for word in words_with_places(text, form) if is_content(word[0])]
    words: dict[str, str] = {}
    places = []
    for stem, (_, start, stop) in zip(stems([word[0] for word in content]), content, strict=True):
        words.setdefault(stem, text[start:stop])
        places.append((stem, start, stop))
    return _Text(words, places, numbers_in(text))


def _words_in_both(text: _Text, other: _Text) -> Iterator[Span]:
    return ((start, stop) for stem, start, stop in text.places if stem in other.words)


def _numbers_in_both(text: _Text, other: _Text) -> Iterator[Span]:
    """Yield the first numbers of each value, as many as both texts have."""
    left = text.values & other.values
    for number in text.numbers:
        if left[f"{number.value:g}"] > 0:
            left[f"{number.value:g}"] -= 1
            yield number.start, number.stop


def _summary(document: _Text, item: _Text) -> Iterator[str]:
    words = item.words.items()
    parts = {
        "words in both": (word for stem, word in words if stem in document.words),
        "numbers in both": (document.values & item.values).elements(),
        "words only in the item": (word for stem, word in words if stem not in document.words),
        "numbers only in the item": (item.values - document.values).elements(),
        "numbers only in the document": (document.values - item.values).elements(),
    }
    for name, values in parts.items():
        if joined := ", ".join(values):
            yield f"{name}: {joined}"
