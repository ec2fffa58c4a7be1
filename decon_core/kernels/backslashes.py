"""Commands of LaTeX and escape sequences: where each ends, and what replaces it."""

from __future__ import annotations

from decon_core.kernels.arrays import Bytes
from decon_core.kernels.html_tags import LONGEST_NAME, NOTHING, Names, value_of
from decon_core.kernels.jit import kernel
from decon_core.kernels.utf8 import four_digits, hex_value, is_character, is_letter

UNIT_BYTES = 6
_BYTE_BYTES = 4

_BACKSLASH, _OPEN, _CLOSE, _N, _R, _T, _U, _X = map(ord, "\\{}nrtux")
_TAB, _LINE_FEED = map(ord, "\t\n")
_HIGH, _LOW, _END = 0xD800, 0xDC00, 0xE000  # surrogates


@kernel
def backslash(
    text: Bytes, at: int, stop: int, commands: Names, like_escapes: Names
) -> tuple[int, int]:
    """Return the end of a command or escape sequence and its replacement; -1 if there is none."""
    name = at + 1
    end = _letters_end(text, name, name, stop)
    if end == name:
        return -1, NOTHING
    first = text[name]
    is_named = end > name + 1  # all commands have names of two letters or more
    following, value = -1, NOTHING
    if is_named and first != _N:
        following, value = _command(text, name, end, stop, commands)
    if following < 0:
        if first == _U:
            following, value = _character(text, at, stop)
        elif first == _X:
            following, value = _character_of_bytes(text, at, stop)
        elif first == _R and name + 2 < stop and text[name + 1] == _BACKSLASH:
            if text[name + 2] == _N:
                following, value = name + 3, _LINE_FEED
        elif first in (_N, _T) and not (is_named and value_of(text, name, end, like_escapes) >= 0):
            following, value = name + 1, _LINE_FEED if first == _N else _TAB
    return following, value


@kernel
def _letters_end(text: Bytes, place: int, name: int, stop: int) -> int:
    """Return the end of the letters at a position, as far as a name may be long."""
    while place < stop and place - name <= LONGEST_NAME and is_letter(text[place]):
        place += 1
    return place


@kernel
def _command(text: Bytes, name: int, end: int, stop: int, commands: Names) -> tuple[int, int]:
    """Look up a name with its argument, such as `{quote}`, with its brace, and alone."""
    if end < stop and text[end] == _OPEN:
        last = _letters_end(text, end + 1, name, stop)
        if last < stop and text[last] == _CLOSE:
            value = value_of(text, name, last + 1, commands)
            if value >= 0:
                return last + 1, value
        value = value_of(text, name, end + 1, commands)
        if value >= 0:
            return end + 1, value
    value = value_of(text, name, end, commands)
    return (end, value) if value >= 0 else (-1, NOTHING)


@kernel
def _character(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the end of the character at `\\uXXXX`, which may be two units, and its code point."""
    point = unit(text, at, stop)
    following = at + UNIT_BYTES
    if _HIGH <= point < _LOW:
        place = _last_backslash(text, following, stop)
        low = unit(text, place, stop)
        if low < _LOW or low >= _END:
            return -1, NOTHING
        return place + UNIT_BYTES, 0x10000 + ((point - _HIGH) << 10) + low - _LOW
    return (-1, NOTHING) if point < 0 or _LOW <= point < _END else (following, point)


@kernel
def unit(text: Bytes, at: int, stop: int) -> int:
    """Return the number in `\\uXXXX`; -1 if there is none."""
    if at + UNIT_BYTES > stop or text[at] != _BACKSLASH or text[at + 1] != _U:
        return -1
    return four_digits(text, at + 2)


@kernel
def _character_of_bytes(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the end of the bytes `\\xHH` of a character beyond ASCII, and its code point."""
    lead = _byte(text, at, stop)
    if lead < 0xC2 or lead > 0xF4:
        return -1, NOTHING
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    point = lead & (0x7F >> size)
    following = at + _BYTE_BYTES
    for _ in range(1, size):
        place = _last_backslash(text, following, stop)
        byte = _byte(text, place, stop)
        if byte < 0x80 or byte >= 0xC0:
            return -1, NOTHING
        point = point << 6 | byte & 0x3F
        following = place + _BYTE_BYTES
    return (following, point) if is_character(point, size) else (-1, NOTHING)


@kernel
def _byte(text: Bytes, at: int, stop: int) -> int:
    """Return the number in `\\xHH`; -1 if there is none."""
    if at + _BYTE_BYTES > stop or text[at] != _BACKSLASH or text[at + 1] != _X:
        return -1
    high, low = hex_value(text[at + 2]), hex_value(text[at + 3])
    return -1 if high < 0 or low < 0 else 16 * high + low


# JSON in a string has two backslashes, or more, in place of one.


@kernel
def beginning(text: Bytes, first: int, at: int, stop: int) -> int:
    """Return where the backslashes of `\\uXXXX` or `\\xHH` begin, `first` or behind it."""
    if unit(text, at, stop) < 0 and _byte(text, at, stop) < 0:
        return at
    while at > first and text[at - 1] == _BACKSLASH:
        at -= 1
    return at


@kernel
def _last_backslash(text: Bytes, at: int, stop: int) -> int:
    """Return the last of the backslashes that begin at a position."""
    while at + 1 < stop and text[at] == text[at + 1] == _BACKSLASH:
        at += 1
    return at
