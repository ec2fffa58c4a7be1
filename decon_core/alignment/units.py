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
    """The units of a text in order, with the characters where each begins and ends."""

    keys: tuple[str, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    is_number: tuple[bool, ...]
    is_name: tuple[bool, ...]  # a capital within a sentence

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, span: tuple[int, int]) -> Units:
        """Return the units that begin in a range of characters."""
        return self._of(slice(bisect_left(self.starts, span[0]), bisect_left(self.starts, span[1])))

    def _of(self, chosen: slice) -> Units:
        return Units(
            self.keys[chosen],
            self.starts[chosen],
            self.stops[chosen],
            self.is_number[chosen],
            self.is_name[chosen],
        )

    @property
    def weights(self) -> list[int]:
        """How rare each unit is in general text, in thousandths of a natural logarithm."""
        return [*map(weight_of_word, self.keys)]


def units_of(text: str, form: Form, *, start: int = 0) -> Units:
    """Return the units of a text that begins at character `start` of a longer one."""
    plain = stripped_with_offsets(text) if form.strip_markup and may_have_markup(text) else None
    found = _found_in(plain.text if plain else text, replace(form, strip_markup=False))
    keys, starts, stops, is_number, is_name = zip(*found, strict=True) if found else ((),) * 5
    if plain:
        places = [*map(plain.original, starts, stops)]
        starts, stops = zip(*places, strict=True) if places else ((), ())
    if start:
        starts, stops = (tuple(start + at for at in places) for places in (starts, stops))
    return Units(keys, starts, stops, is_number, is_name)


def _found_in(text: str, form: Form) -> list[tuple[str, int, int, bool, bool]]:
    numbers = iter(numbers_in(text))
    number = next(numbers, None)
    units: list[tuple[str, int, int, bool, bool]] = []
    for word, start, stop in words_with_places(text, form):
        while number and number.stop <= start:
            number = next(numbers, None)
        if not number or start < number.start:
            is_name = text[start].isupper() and len(word) > 1 and not begins_sentence(text, start)
            units.append((word, start, stop, False, is_name))
        elif not units or units[-1][1] < number.start:  # the first word of the number
            units.append((f"{number.value:.9g}", number.start, max(stop, number.stop), True, False))
    return units
