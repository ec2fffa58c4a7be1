"""Remove tags, entities, URL-encoding and hyphens at line ends.

Reference implementation: `tests/oracle/text.py`. Few bytes can begin mark-up, so these are found
first, many bytes at a time; the rest is copied. No change adds bytes, so a text never grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import inlined, kernel

Bytes = npt.NDArray[np.uint8]
Words64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Names(NamedTuple):
    """A hash table of names and their replacements."""

    data: Bytes
    slots: Integers  # `NUMBERS` each: start and stop of the name in `data`, its value


NUMBERS = 3  # per slot; a free one has stop 0

EDIT_NUMBERS = 3  # per edit: start and stop in the text, number of bytes left

# A replacement is one or two code points in a number, the first one lowest. Numbers are cheaper
# than bytes: numba counts references to arrays at every call.
POINT_BITS = 21
_POINT = (1 << POINT_BITS) - 1
NOTHING = 0

_STRIDE = 64
_STRETCH = 1024
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)
_SIXTEEN = np.uint64(16)
_FORTY_EIGHT = np.uint64(48)
_FIFTY_SIX = np.uint64(56)
_ONES = np.uint64(0x0101010101010101)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_TOP_BITS = np.uint64(0x8080808080808080)
_LONGEST_NAME = 32
_AMPERSAND = 0x26
_LESS = 0x3C
_MORE = 0x3E
_PERCENT = 0x25
_SLASH = 0x2F
_LINE_FEED = 0x0A
_RETURN = 0x0D
_HYPHEN = 0x2D
_EQUALS = 0x3D
_EXCLAMATION = 0x21
_HASH = 0x23
_SEMICOLON = 0x3B
_QUOTE = 0x22
_APOSTROPHE = 0x27
_BACKTICK = 0x60
_SPACE = 0x20
_TAB = 0x09
_FORM_FEED = 0x0C
_SOFT = 0xAD  # last byte of a soft hyphen, after 0xC2
_UNICODE = 0x90  # last byte of U+2010, after 0xE2 0x80

# Each byte eight times. The last byte of a soft hyphen is a hyphen with its top bit set.
_LESSES = np.uint64(_LESS * 0x0101010101010101)
_AMPERSANDS = np.uint64(_AMPERSAND * 0x0101010101010101)
_PERCENTS = np.uint64(_PERCENT * 0x0101010101010101)
_LINE_FEEDS = np.uint64(_LINE_FEED * 0x0101010101010101)
_RETURNS = np.uint64(_RETURN * 0x0101010101010101)
_HYPHENS = np.uint64(_HYPHEN * 0x0101010101010101)
_UNICODES = np.uint64(_UNICODE * 0x0101010101010101)


@kernel
def find_signs(
    text: Bytes, eights: Words64, start: int, stop: int, found: Integers
) -> tuple[int, int]:
    """Find bytes that can begin mark-up, and line breaks after a hyphen.

    `eights` is the text as uint64, without incomplete ones. Returns the number of positions, and
    where the search stopped for lack of room.
    """
    n = 0
    at = start
    whole = min(stop // 8, eights.size) * 8  # the rest is checked byte by byte
    empty = at  # no sign before this position
    while at < stop and n + _STRIDE <= found.size:
        last = min(at // _STRIDE * _STRIDE + _STRIDE, stop)
        if last > empty and at > 0 and at % 8 == 0:
            # First a long stretch, which the compiler vectorizes; then a short one, to skip more.
            if at + _STRETCH <= whole and not _has_sign(eights, at, at + _STRETCH):
                empty = at + _STRETCH
            elif last <= whole and not _has_sign(eights, at, last):
                empty = last
        if last <= empty:
            at = last
            continue
        for place in range(at, last):
            if _begins(text, place, stop):
                found[n] = place
                n += 1
        at = last
    return n, at


@kernel
def _has_sign(eights: Words64, start: int, stop: int) -> bool:
    """Return whether mark-up may begin in a range that has eight bytes before it."""
    is_any = _ZERO
    for at in range(np.uint64(start // 8), np.uint64(stop // 8)):
        is_any |= _signs_in(eights[at], eights[at - _ONE])
    return is_any != _ZERO


@inlined
def _signs_in(eight: np.uint64, before: np.uint64) -> np.uint64:
    """Return non-zero if mark-up may begin in eight bytes; false positives are possible.

    Branch-free on eight bytes, so that the compiler can vectorize it.
    """
    shifted = eight << _EIGHT | before >> _FIFTY_SIX  # the byte before each
    behind = eight << _SIXTEEN | before >> _FORTY_EIGHT  # and the byte before that
    joints = _hyphens(shifted) | (_equal(shifted, _RETURNS) & _hyphens(behind))
    joints &= _equal(eight, _LINE_FEEDS)
    signs = _equal(eight, _LESSES) | _equal(eight, _AMPERSANDS) | _equal(eight, _PERCENTS)
    return signs | joints


@inlined
def _hyphens(eight: np.uint64) -> np.uint64:
    return _equal(eight & _LOW_BITS, _HYPHENS) | _equal(eight, _UNICODES)


@inlined
def _equal(eight: np.uint64, wanted: np.uint64) -> np.uint64:
    """Return the top bits of equal bytes, and possibly of some after them."""
    different = eight ^ wanted
    return (different - _ONES) & ~different & _TOP_BITS


@inlined
def _begins(text: Bytes, at: int, stop: int) -> bool:
    """Return whether mark-up may begin at a position."""
    byte = text[at]
    is_beginning = False
    if byte == _LINE_FEED:
        last = at - 2 if at > 0 and text[at - 1] == _RETURN else at - 1
        before = text[last] if last >= 0 else np.uint8(0)
        is_beginning = before & 0x7F == _HYPHEN or before == _UNICODE
    elif at + 2 < stop and byte in (_LESS, _AMPERSAND, _PERCENT):
        following = text[at + 1]
        if byte == _LESS:
            is_beginning = _is_letter(following) or following in (_SLASH, _EXCLAMATION)
        elif byte == _AMPERSAND:
            is_beginning = _is_letter(following) or following == _HASH
        else:
            is_beginning = _hex(following) >= 0 and _hex(text[at + 2]) >= 0
    return is_beginning


@kernel
def strip(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    signs: Integers,
    firsts: Integers,
    tags: Names,
    entities: Names,
    windows_1252: Integers,
    is_lower: Flags,
    most_spaces: int,
    most_wide: int,
    out: Bytes,
    out_offsets: Integers,
    edits: Integers,
) -> int:
    """Write texts without mark-up, concatenated, and their offsets; return the number of edits.

    `signs` are the positions from `find_signs`; those of a text begin at its number in `firsts`.
    Edits are written to `edits` as far as there is room.
    """
    n_edits = 0
    end = 0
    for number in range(starts.size):
        start, stop = starts[number], stops[number]
        at = start
        dense_stop = start
        is_dense = False
        sign = firsts[number]
        while sign < signs.size and signs[sign] < stop:
            place = signs[sign]
            sign += 1
            if place < at:
                continue
            byte = text[place]
            begin, value = place, NOTHING
            if byte == _LESS:
                following, value = _tag(text, place, stop, tags, most_spaces, most_wide)
            elif byte == _AMPERSAND:
                following, value = _reference(text, place, stop, entities, windows_1252)
            elif byte == _PERCENT:
                if place >= dense_stop:
                    dense_stop, is_dense = _stretch(text, place, start, stop)
                following, value = _decoded(text, place, stop) if is_dense else (-1, NOTHING)
            else:
                begin, following = _hyphen(text, place, start, stop, is_lower)
            if following < 0 or begin < at:
                continue
            end = before = _copy(text, at, begin, out, end)
            while value != NOTHING:
                end = _write(value & _POINT, out, end)
                value >>= POINT_BITS
            if n_edits < edits.shape[0]:
                edits[n_edits, 0] = begin
                edits[n_edits, 1] = following
                edits[n_edits, 2] = end - before
            n_edits += 1
            at = following
        end = _copy(text, at, stop, out, end)
        out_offsets[number + 1] = end
    return n_edits


@inlined
def _copy(text: Bytes, start: int, stop: int, out: Bytes, end: int) -> int:
    """Append a range of the text to the output; return its end."""
    first, target = np.uint64(start), np.uint64(end)
    for step in range(np.uint64(stop - start)):
        out[target + step] = text[first + step]
    return end + stop - start


@inlined
def _write(point: int, out: Bytes, end: int) -> int:
    """Append a character to the output; return its end."""
    size = 1 if point < 0x80 else 2 if point < 0x800 else 3 if point < 0x10000 else 4
    lead = point >> 6 * (size - 1)
    out[end] = lead if size == 1 else lead | 0xF00 >> size & 0xFF
    for at in range(1, size):
        out[end + at] = 0x80 | point >> 6 * (size - 1 - at) & 0x3F
    return end + size


@kernel
def _is_letter(byte: int) -> bool:
    return 0x61 <= byte | 0x20 <= 0x7A


@kernel
def _is_digit(byte: int) -> bool:
    return 0x30 <= byte <= 0x39


@kernel
def _is_space(byte: int) -> bool:
    return byte == _SPACE or _TAB <= byte <= _LINE_FEED or _FORM_FEED <= byte <= _RETURN


@kernel
def _hex(byte: int) -> int:
    """Return the value of a digit; -1 if it is none."""
    if _is_digit(byte):
        return byte - 0x30
    lower = byte | 0x20
    return lower - 0x57 if 0x61 <= lower <= 0x66 else -1


@inlined
def _value_of(text: Bytes, start: int, stop: int, names: Names) -> int:
    """Return the replacement of a name; -1 if it is unknown."""
    data, slots = names.data, names.slots
    n_slots = slots.size // NUMBERS
    slot = hash_of(text, start, stop) % n_slots
    found = np.int64(-1)
    while found < 0 and slots[NUMBERS * slot + 1]:
        first = slots[NUMBERS * slot]
        is_same = slots[NUMBERS * slot + 1] - first == stop - start
        for at in range(stop - start if is_same else 0):
            is_same = is_same and data[first + at] == text[start + at]
        if is_same:
            found = slots[NUMBERS * slot + 2]
        slot = (slot + 1) % n_slots
    return found


@kernel
def hash_of(text: Bytes, start: int, stop: int) -> int:
    """Return the hash of a name."""
    digest = 0
    for at in range(start, stop):
        digest = (digest * 31 + np.int64(text[at])) & 0xFFFFFFFF
    return digest ^ digest >> 15


# Tags and comments --------------------------------------------------------------------------------


@kernel
def _tag(
    text: Bytes, at: int, stop: int, tags: Names, most_spaces: int, most_wide: int
) -> tuple[int, int]:
    """Return the end of a tag or comment and its replacement; -1: none, or too much text in it.

    Parsing stops at a second `<`, so the time is linear in the text.
    """
    place = at + 1
    if text[place] == _EXCLAMATION:
        return _comment(text, at, stop, most_spaces, most_wide), NOTHING
    if text[place] == _SLASH:
        place += 1
    first = place
    while place < stop and place - first <= _LONGEST_NAME and _is_name(text[place]):
        place += 1
    value = _value_of(text, first, place, tags)
    if value < 0:
        return -1, NOTHING
    while True:
        gap = place
        while place < stop and _is_space(text[place]):
            place += 1
        if place < stop and text[place] == _MORE:
            return place + 1, value
        if place + 1 < stop and text[place] == _SLASH and text[place + 1] == _MORE:
            return place + 2, value
        if place >= stop or place == gap:
            return -1, NOTHING
        place = _attribute(text, place, stop, most_spaces, most_wide)
        if place < 0:
            return -1, NOTHING


@kernel
def _attribute(text: Bytes, place: int, stop: int, most_spaces: int, most_wide: int) -> int:
    """Return the end of an attribute with its value; -1 if there is none."""
    first = place
    while place < stop and not _ends_value(text[place]) and text[place] != _SLASH:
        place += 1
    if place == first:
        return -1
    while place < stop and _is_space(text[place]):
        place += 1
    if place >= stop or text[place] != _EQUALS:
        return -1
    place += 1
    while place < stop and _is_space(text[place]):
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
    while place < stop and text[place] != quote and text[place] != _LESS:
        place += 1
    if place >= stop or text[place] == _LESS:
        return -1
    return -1 if _holds_text(text, first, place, most_spaces, most_wide) else place + 1


@kernel
def _ends_value(byte: int) -> bool:
    return _is_space(byte) or byte in (_QUOTE, _APOSTROPHE, _LESS, _MORE, _EQUALS, _BACKTICK)


@kernel
def _is_name(byte: int) -> bool:
    return _is_letter(byte) or _is_digit(byte)


@kernel
def _holds_text(text: Bytes, start: int, stop: int, most_spaces: int, most_wide: int) -> bool:
    n_spaces = n_wide = 0
    for at in range(start, stop):
        n_spaces += _is_space(text[at])
        n_wide += text[at] >= 0x80
    return n_spaces > most_spaces or n_wide > most_wide


@kernel
def _comment(text: Bytes, at: int, stop: int, most_spaces: int, most_wide: int) -> int:
    """Return the end of a comment without a tag in it; -1: none, or it contains text."""
    if at + 6 >= stop or text[at + 1] != _EXCLAMATION:
        return -1
    if text[at + 2] != _HYPHEN or text[at + 3] != _HYPHEN:
        return -1
    place = at + 4
    while place < stop and text[place] != _LESS and text[place] != _MORE:
        place += 1
    if place >= stop or text[place] == _LESS or place - 2 < at + 4:
        return -1
    if text[place - 1] != _HYPHEN or text[place - 2] != _HYPHEN:
        return -1
    is_kept = _holds_text(text, at + 4, place - 2, most_spaces, most_wide)
    return -1 if is_kept else place + 1


# Entities -----------------------------------------------------------------------------------------


@kernel
def _reference(
    text: Bytes, at: int, stop: int, entities: Names, windows_1252: Integers
) -> tuple[int, int]:
    """Return the end of an entity and the character it encodes; -1 if there is none.

    `&amp;` before an entity's name is another `&`: the entity was escaped repeatedly.
    """
    first = at + 1
    following, value = _one_reference(text, first, stop, entities, windows_1252)
    while following == first + 4 and value == _AMPERSAND and text[first] != _HASH:
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
    if place < stop and text[place] == _HASH:
        return _number(text, place + 1, stop, windows_1252)
    while place < stop and place - first <= _LONGEST_NAME and _is_name(text[place]):
        place += 1
    if place >= stop or text[place] != _SEMICOLON:
        return -1, NOTHING
    value = _value_of(text, first, place, entities)
    return (place + 1, value) if value >= 0 else (-1, NOTHING)


@kernel
def _number(text: Bytes, place: int, stop: int, windows_1252: Integers) -> tuple[int, int]:
    base, most = 10, 7
    if place < stop and text[place] | 0x20 == 0x78:
        base, most = 16, 6
        place += 1
    first = place
    point = 0
    while place < stop and place - first < most and 0 <= _hex(text[place]) < base:
        point = point * base + _hex(text[place])
        place += 1
    if place == first or place >= stop or text[place] != _SEMICOLON:
        return -1, NOTHING
    if 0x80 <= point < 0xA0:
        point = windows_1252[point - 0x80]
    if point == 0 or point > 0x10FFFF or 0xD800 <= point < 0xE000:
        return -1, NOTHING
    return place + 1, point


# URL-encoding -------------------------------------------------------------------------------------


@kernel
def _stretch(text: Bytes, at: int, start: int, stop: int) -> tuple[int, bool]:
    """Return the end of the word at a position, and whether it has two escapes or more."""
    first = at
    while first > start and not _is_space(text[first - 1]):
        first -= 1
    n_escapes = 0
    place = first
    while place < stop and not _is_space(text[place]):
        if _escaped(text, place, stop) >= 0:
            n_escapes += 1
            place += 2
        place += 1
    return place, n_escapes > 1


@kernel
def _escaped(text: Bytes, at: int, stop: int) -> int:
    """Return the byte that three bytes such as `%20` encode; -1 if none."""
    if at + 2 >= stop or text[at] != _PERCENT:
        return -1
    high, low = _hex(text[at + 1]), _hex(text[at + 2])
    return -1 if high < 0 or low < 0 else 16 * high + low


@kernel
def _decoded(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the end of a character's escapes, and its code point; -1 if not printable."""
    lead = _escaped(text, at, stop)
    if 0x20 <= lead < 0x7F or lead in (_TAB, _LINE_FEED, _RETURN):
        return at + 3, lead
    if lead < 0xC2 or lead > 0xF4:
        return -1, NOTHING
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    point = lead & (0x7F >> size)
    for number in range(1, size):
        byte = _escaped(text, at + 3 * number, stop)
        if byte & 0xC0 != 0x80 or byte < 0:
            return -1, NOTHING
        point = point << 6 | byte & 0x3F
    is_short = (size == 3 and point < 0x800) or (size == 4 and point < 0x10000)
    if is_short or 0xD800 <= point < 0xE000 or point > 0x10FFFF:
        return -1, NOTHING
    return at + 3 * size, point


# Hyphens ------------------------------------------------------------------------------------------


@kernel
def _hyphen(text: Bytes, at: int, start: int, stop: int, is_lower: Flags) -> tuple[int, int]:
    """Return the second half of a word hyphenated at a line break; -1 if there is none."""
    last = at - 1
    if last > start and text[last] == _RETURN:
        last -= 1
    if last <= start:
        return at, -1
    begin = last
    if text[last] == _SOFT and text[last - 1] == 0xC2:
        begin = last - 1
    elif (
        text[last] == _UNICODE
        and last - 2 >= start
        and text[last - 1] == 0x80
        and text[last - 2] == 0xE2
    ):
        begin = last - 2
    elif text[last] != _HYPHEN:
        return at, -1
    if begin <= start:
        return at, -1
    before = begin - 1
    while before > start and text[before] & 0xC0 == 0x80:
        before -= 1
    following = at + 1
    while following < stop and text[following] in (_SPACE, _TAB):
        following += 1
    if following >= stop:
        return at, -1
    is_word = _is_lower(text, before, is_lower) and _is_lower(text, following, is_lower)
    return begin, following if is_word else -1


@kernel
def _is_lower(text: Bytes, at: int, is_lower: Flags) -> bool:
    """Return whether the character at a position is a lower-case letter."""
    lead = np.int64(text[at])
    point = lead
    if lead >= 0xF0:
        point = (lead & 0x07) << 18 | (np.int64(text[at + 1]) & 0x3F) << 12
        point |= (np.int64(text[at + 2]) & 0x3F) << 6 | np.int64(text[at + 3]) & 0x3F
    elif lead >= 0xE0:
        point = (lead & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6
        point |= np.int64(text[at + 2]) & 0x3F
    elif lead >= 0xC0:
        point = (lead & 0x1F) << 6 | np.int64(text[at + 1]) & 0x3F
    return point < is_lower.size and is_lower[point]
