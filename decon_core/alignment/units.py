"""The units in which an item and a document are compared: words, and numbers by their value.

Words are those of canonical text. Scripts without spaces have single characters instead. "3,000",
"3000" and "three thousand" are one unit, `3000`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from decon_core.text.canonical import words_with_places
from decon_core.text.characters import Form
from decon_core.text.content_words import weight_of_word
from decon_core.text.markup import may_have_markup, stripped_with_offsets
from decon_core.text.numbers import numbers_in
from decon_core.text.segments import begins_sentence


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a text in order."""

    keys: tuple[str, ...]
    is_number: tuple[bool, ...]
    is_name: tuple[bool, ...]  # a capital within a sentence

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def weights(self) -> list[int]:
        """How rare each unit is in general text, in thousandths of a natural logarithm."""
        return [*map(weight_of_word, self.keys)]


@dataclass(frozen=True, eq=False)
class PlacedUnits(Units):
    """The same with the characters of the text where each begins and ends."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]

    def within(self, span: tuple[int, int]) -> PlacedUnits:
        """Return the units that begin in a range of characters."""
        chosen = slice(bisect_left(self.starts, span[0]), bisect_left(self.starts, span[1]))
        return PlacedUnits(
            self.keys[chosen],
            self.is_number[chosen],
            self.is_name[chosen],
            self.starts[chosen],
            self.stops[chosen],
        )


def units_of(text: str, form: Form, *, start: int = 0) -> PlacedUnits:
    """Return the units of a text that begins at character `start` of a longer one."""
    plain = stripped_with_offsets(text) if form.strip_markup and may_have_markup(text) else None
    found = _found_in(plain.text if plain else text, replace(form, strip_markup=False))
    keys, starts, stops, is_number, is_name = zip(*found, strict=True) if found else ((),) * 5
    if plain:
        places = [*map(plain.original, starts, stops)]
        starts, stops = zip(*places, strict=True) if places else ((), ())
    if start:
        starts, stops = (tuple(start + at for at in places) for places in (starts, stops))
    return PlacedUnits(keys, is_number, is_name, starts, stops)


def _found_in(text: str, form: Form) -> list[tuple[str, int, int, bool, bool]]:
    words = words_with_places(text, form)
    numbers = numbers_in(text)
    if not numbers:
        return [
            (word, start, stop, False, text[start].isupper() and _is_name(text, word, start))
            for word, start, stop in words
        ]
    units: list[tuple[str, int, int, bool, bool]] = []
    left = iter(numbers)
    number = next(left, None)
    for word, start, stop in words:
        while number and number.stop <= start:
            number = next(left, None)
        if not number or start < number.start:
            is_name = text[start].isupper() and _is_name(text, word, start)
            units.append((word, start, stop, False, is_name))
        elif not units or units[-1][1] < number.start:  # the first word of the number
            units.append((f"{number.value:.9g}", number.start, max(stop, number.stop), True, False))
    return units


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether a word with a capital is a name: it is long enough, and begins no sentence."""
    return len(word) > 1 and not begins_sentence(text, start)
