"""Tags, comments and entities: where each ends, and what replaces it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers, n_same
from decon_core.kernels.hashing import next_slot
from decon_core.kernels.jit import inlined, kernel
from decon_core.kernels.utf8 import four_digits, hex_value, is_digit, is_letter, is_space


class Names(NamedTuple):
    """A hash table of names and their replacements."""

    data: Bytes
    slots: Integers  # `NUMBERS` each: start and stop of the name in `data`, its value


# A tag or comment with more text (in it or in a quoted value) is kept: the text may be a leak.
MOST_SPACES = 7
MOST_WIDE_BYTES = 63

NUMBERS = 3  # per slot; a free one has stop 0

# A replacement is one or two code points in a number, the first one lowest. Numbers are cheaper
# than bytes: numba counts references to arrays at every call.
POINT_BITS = 21
NOTHING = 0

AMPERSAND, LESS, SLASH, EXCLAMATION, HASH, HYPHEN = map(ord, "&</!#-")
_MORE, _EQUALS, _SEMICOLON, _QUOTE, _APOSTROPHE, _BACKTICK = map(ord, ">=;\"'`")
_BACKSLASH, _U = map(ord, "\\u")
LONGEST_NAME = 32


@inlined
def value_of(text: Bytes, start: int, stop: int, names: Names) -> int:
    """Return the replacement of a name; -1 if it is unknown."""
    data, slots = names.data, names.slots
    n_slots = slots.size // NUMBERS
    slot = hash_of(text, start, stop) % n_slots
    size = stop - start
    value = np.int64(-1)
    while value < 0 and slots[NUMBERS * slot + 1]:
        first, last = slots[NUMBERS * slot], slots[NUMBERS * slot + 1]
        if last - first == size and n_same(data, first, text, start, size) == size:
            value = slots[NUMBERS * slot + 2]
        slot = next_slot(slot, n_slots)
    return value


@kernel
def hash_of(text: Bytes, start: int, stop: int) -> int:
    """Return the hash of a name."""
    digest = 0
    for at in range(start, stop):
        digest = (digest * 31 + np.int64(text[at])) & 0xFFFFFFFF
    return digest ^ digest >> 15


# Tags and comments --------------------------------------------------------------------------------


@kernel
def tag(text: Bytes, at: int, stop: int, tags: Names) -> tuple[int, int]:
    """Return the end of a tag or comment and its replacement; -1: none, or too much text in it.

    Parsing stops at a second `<`, so the time is linear in the text.
    """
    place = at + 1
    if text[place] == EXCLAMATION:
        return _comment(text, at, stop), NOTHING
    if text[place] == SLASH:
        place += 1
    first = place
    while place < stop and place - first <= LONGEST_NAME and _is_name(text[place]):
        place += 1
    value = value_of(text, first, place, tags)
    if value < 0:
        return -1, NOTHING
    while True:
        gap = place
        while place < stop and is_space(text[place]):
            place += 1
        if place < stop and text[place] == _MORE:
            return place + 1, value
        if place + 1 < stop and text[place] == SLASH and text[place + 1] == _MORE:
            return place + 2, value
        if place >= stop or place == gap:
            return -1, NOTHING
        place = _attribute(text, place, stop)
        if place < 0:
            return -1, NOTHING


@kernel
def _attribute(text: Bytes, place: int, stop: int) -> int:
    """Return the end of an attribute with its value; -1 if there is none."""
    first = place
    while place < stop and not _ends_value(text[place]) and text[place] != SLASH:
        place += 1
    if place == first:
        return -1
    while place < stop and is_space(text[place]):
        place += 1
    if place >= stop or text[place] != _EQUALS:
        return -1
    place += 1
    while place < stop and is_space(text[place]):
        place += 1
    if place >= stop:
        return -1
    quote = text[place]
    if quote not in (_QUOTE, _APOSTROPHE):
        first = place
        while place < stop and not _ends_value(text[place]):
            place += 1
        return place if place > first else -1
    place += 1
    first = place
    while place < stop and text[place] != quote and text[place] != LESS:
        place += 1
    if place >= stop or text[place] == LESS:
        return -1
    return -1 if holds_text(text, first, place) else place + 1


@kernel
def _ends_value(byte: int) -> bool:
    return is_space(byte) or byte in (_QUOTE, _APOSTROPHE, LESS, _MORE, _EQUALS, _BACKTICK)


@kernel
def _is_name(byte: int) -> bool:
    return is_letter(byte) or is_digit(byte)


@kernel
def holds_text(text: Bytes, start: int, stop: int) -> bool:
    """Return whether a value has many spaces or bytes beyond ASCII, which may be spelled."""
    n_spaces = n_wide = 0
    for at in range(start, stop):
        n_spaces += is_space(text[at])
        n_wide += text[at] >= 0x80
        if text[at] in (AMPERSAND, _BACKSLASH):
            point = _spelled(text, at, stop)
            n_wide += 0 if point < 0x80 else 2 if point < 0x800 else 3
    return n_spaces > MOST_SPACES or n_wide > MOST_WIDE_BYTES


@kernel
def _spelled(text: Bytes, at: int, stop: int) -> int:
    """Return the number in `&#24352;`, `&#x5F20;` or `\\u5f20`; 0 if there is none."""
    if text[at] == _BACKSLASH:
        is_unit = at + 6 <= stop and text[at + 1] == _U
        return max(four_digits(text, at + 2), 0) if is_unit else 0
    if at + 1 >= stop or text[at + 1] != HASH:
        return 0
    place, point = _digits(text, at + 2, stop)
    return point if place < stop and text[place] == _SEMICOLON else 0


@kernel
def _comment(text: Bytes, at: int, stop: int) -> int:
    """Return the end of a comment without a tag in it; -1: none, or it contains text."""
    if at + 6 >= stop or text[at + 1] != EXCLAMATION:
        return -1
    if text[at + 2] != HYPHEN or text[at + 3] != HYPHEN:
        return -1
    place = at + 4
    while place < stop and text[place] != LESS and text[place] != _MORE:
        place += 1
    if place >= stop or text[place] == LESS or place - 2 < at + 4:
        return -1
    if text[place - 1] != HYPHEN or text[place - 2] != HYPHEN:
        return -1
    is_kept = holds_text(text, at + 4, place - 2)
    return -1 if is_kept else place + 1


# Entities -----------------------------------------------------------------------------------------


@kernel
def reference(
    text: Bytes, at: int, stop: int, entities: Names, windows_1252: Integers
) -> tuple[int, int]:
    """Return the end of an entity and the character it encodes; -1 if there is none.

    `&amp;` before an entity's name is another `&`: the entity was escaped repeatedly.
    """
    first = at + 1
    following, value = _one_reference(text, first, stop, entities, windows_1252)
    while following == first + 4 and value == AMPERSAND and text[first] != HASH:
        inner, inner_value = _one_reference(text, following, stop, entities, windows_1252)
        if inner < 0:
            break
        first = following
        following, value = inner, inner_value
    return following, value


@kernel
def _one_reference(
    text: Bytes, first: int, stop: int, entities: Names, windows_1252: Integers
) -> tuple[int, int]:
    """Do the same for a single entity, from the byte after its `&`."""
    place = first
    if place < stop and text[place] == HASH:
        return _number(text, place + 1, stop, windows_1252)
    while place < stop and place - first <= LONGEST_NAME and _is_name(text[place]):
        place += 1
    if place >= stop or text[place] != _SEMICOLON:
        return -1, NOTHING
    value = value_of(text, first, place, entities)
    return (place + 1, value) if value >= 0 else (-1, NOTHING)


@kernel
def _number(text: Bytes, place: int, stop: int, windows_1252: Integers) -> tuple[int, int]:
    place, point = _digits(text, place, stop)
    if place >= stop or text[place] != _SEMICOLON:
        return -1, NOTHING
    if 0x80 <= point < 0xA0:
        point = windows_1252[point - 0x80]
    if point == 0 or point > 0x10FFFF or 0xD800 <= point < 0xE000:
        return -1, NOTHING
    return place + 1, point


@kernel
def _digits(text: Bytes, place: int, stop: int) -> tuple[int, int]:
    """Return the end of the digits of an entity, and their number; 0 if there are none."""
    base, most = 10, 7
    if place < stop and text[place] | 0x20 == 0x78:
        base, most = 16, 6
        place += 1
    first = place
    point = 0
    while place < stop and place - first < most and 0 <= hex_value(text[place]) < base:
        point = point * base + hex_value(text[place])
        place += 1
    return place, point
