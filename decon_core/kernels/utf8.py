"""Characters in UTF-8, and classes of ASCII bytes."""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes
from decon_core.kernels.jit import kernel

Place = np.uint64 | int

_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)


@kernel
def is_letter(byte: int) -> bool:
    return 0x61 <= byte | 0x20 <= 0x7A


@kernel
def is_digit(byte: int) -> bool:
    return 0x30 <= byte <= 0x39


@kernel
def is_space(byte: int) -> bool:
    """Return whether a byte is a space, tab, line feed, form feed or carriage return."""
    return byte == 0x20 or 0x09 <= byte <= 0x0A or 0x0C <= byte <= 0x0D


@kernel
def is_character(point: int, size: int) -> bool:
    """Return whether so many bytes may encode a code point: no fewer can, and it is one."""
    is_long = (size == 3 and point < 0x800) or (size == 4 and point < 0x10000)
    return not (is_long or 0xD800 <= point < 0xE000 or point > 0x10FFFF)


@kernel
def hex_value(byte: int) -> int:
    """Return the value of a hexadecimal digit; -1 if it is none."""
    if is_digit(byte):
        return np.int64(byte) - 0x30
    lower = np.int64(byte) | 0x20
    return lower - 0x57 if 0x61 <= lower <= 0x66 else -1


@kernel
def four_digits(text: Bytes, at: Place) -> int:
    """Return the number that four hexadecimal digits spell; -1 if these are none."""
    value, first = np.int64(0), np.uint64(at)
    for step in range(4):
        digit = hex_value(text[first + np.uint64(step)])
        if digit < 0:
            return -1
        value = value << 4 | digit
    return value


@kernel
def character_at(text: Bytes, at: Place) -> tuple[int, int]:
    """Return the code point at a non-ASCII byte of valid UTF-8, and its number of bytes."""
    place = np.uint64(at)  # unsigned: signed indexes cost one more comparison
    lead = np.int64(text[place])
    second = np.int64(text[place + _ONE]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(text[place + _TWO]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    fourth = np.int64(text[place + _THREE]) & 0x3F
    return (lead & 0x07) << 18 | second << 12 | third << 6 | fourth, 4


@kernel
def write_character(point: int, text: Bytes, at: Place) -> int:
    """Write a code point; return its number of bytes."""
    place = np.uint64(at)
    if point < 0x80:
        text[place] = point
        return 1
    if point < 0x800:
        text[place] = 0xC0 | point >> 6
        text[place + _ONE] = 0x80 | point & 0x3F
        return 2
    if point < 0x10000:
        text[place] = 0xE0 | point >> 12
        text[place + _ONE] = 0x80 | point >> 6 & 0x3F
        text[place + _TWO] = 0x80 | point & 0x3F
        return 3
    text[place] = 0xF0 | point >> 18
    text[place + _ONE] = 0x80 | point >> 12 & 0x3F
    text[place + _TWO] = 0x80 | point >> 6 & 0x3F
    text[place + _THREE] = 0x80 | point & 0x3F
    return 4


@kernel
def valid_size(text: Bytes, at: Place) -> int:
    """Return the length of the character at a non-ASCII byte; 0 if it is not UTF-8."""
    place = np.uint64(at)
    lead, second = text[place], text[place + _ONE]
    if (lead < 0xC2) | (lead > 0xF4):
        return 0
    if lead < 0xE0:
        return 2 if _is_continuation(second) else 0
    # No overlong forms, no surrogates, nothing above the last code point.
    low, high = 0x80, 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if (second < low) | (second > high) | (not _is_continuation(text[place + _TWO])):
        return 0
    if lead < 0xF0:
        return 3
    return 4 if _is_continuation(text[place + _THREE]) else 0


@kernel
def _is_continuation(byte: int) -> bool:
    return (byte & 0xC0) == 0x80
