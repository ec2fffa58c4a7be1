"""The signs of JSON: space, strings with their escapes, numbers and literals.

What is not strict JSON in strict UTF-8 is unusual, and left to Python.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes
from decon_core.kernels.instructions import bytes_between, lowest_bit
from decon_core.kernels.jit import kernel
from decon_core.kernels.utf8 import four_digits, valid_size, write_character

# Unsigned: signed indexes cost one more comparison per byte.
Place = np.uint64
Number = int | np.int64
Byte = np.uint8

LINE_BREAK, QUOTE, BACKSLASH = 0x0A, 0x22, 0x5C

PADDING = 64  # spare bytes after a block, for lookahead, and after a text, for writing

_LONGEST_NUMBER = 40  # neither infinite, nor more digits than Python turns into an int
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_STRIDE = 32
_WIDEST = 4  # bytes of a character


@kernel
def skip_space(block: Bytes, at: Place) -> Place:
    if block[at] > 0x20:
        return at
    while (block[at] == 0x20) | (block[at] == 0x09) | (block[at] == 0x0D):
        at += _ONE
    return at


@kernel
def n_plain_bytes(block: Bytes, at: Place) -> int:
    """Count the plain bytes at the start of the next bytes of a string, `_STRIDE` at most.

    All others are special: controls, quotes, backslashes and what is not ASCII. Whether there is
    one takes vector instructions only, and less time than where it is.
    """
    has_other = False
    for step in range(_STRIDE):
        has_other |= _is_other(block[at + np.uint64(step)])
    if not has_other:
        return _STRIDE
    special = (
        bytes_between(block, at, 0x00, 0x1F)
        | bytes_between(block, at, QUOTE, QUOTE)
        | bytes_between(block, at, BACKSLASH, BACKSLASH)
        | bytes_between(block, at, 0x80, 0xFF)
    )
    return int(lowest_bit(special))


@kernel
def _is_other(byte: Byte) -> bool:
    return bool((byte < 0x20) | (byte == QUOTE) | (byte == BACKSLASH) | (byte >= 0x80))


@kernel
def _escaped(block: Bytes, at: Place) -> tuple[Number, int]:
    """Return the code point of an escape, and its length in bytes; 0 bytes if unusual."""
    byte = block[at + _ONE]
    if byte == 0x6E:  # n: by far the most frequent
        return 0x0A, 2
    if (byte == QUOTE) | (byte == BACKSLASH) | (byte == 0x2F):
        return np.int64(byte), 2
    if byte == 0x75:
        point = four_digits(block, at + np.uint64(2))
        if (point < 0) | ((point >= 0xDC00) & (point < 0xE000)):
            return 0, 0
        if (point < 0xD800) | (point >= 0xE000):
            return point, 6
        if (block[at + np.uint64(6)] != BACKSLASH) | (block[at + np.uint64(7)] != 0x75):
            return 0, 0
        second = four_digits(block, at + np.uint64(8))
        if (second < 0xDC00) | (second >= 0xE000):
            return 0, 0
        return 0x10000 + ((point - 0xD800) << 10) + second - 0xDC00, 12
    for letter, control in ((0x74, 0x09), (0x72, 0x0D), (0x62, 0x08), (0x66, 0x0C)):  # t, r, b, f
        if byte == letter:
            return control, 2
    return 0, 0


@kernel
def end_of_string(block: Bytes, at: Place) -> Place:
    """Return the position after the string whose content begins here; 0 if unusual."""
    while True:
        n_plain = n_plain_bytes(block, at)
        at += np.uint64(n_plain)
        if n_plain == _STRIDE:
            continue
        byte = block[at]
        if byte == QUOTE:
            return at + _ONE
        if byte == BACKSLASH:
            _, size = _escaped(block, at)
            if size == 0:
                return _ZERO
            at += np.uint64(size)
            continue
        if byte < 0x20:
            return _ZERO
        while byte >= 0x80:
            size = valid_size(block, at)
            if size == 0:
                return _ZERO
            at += np.uint64(size)
            byte = block[at]


@kernel
def read_string(block: Bytes, at: Place, text: Bytes, n: Place) -> tuple[Place, Place, int]:
    """Decode a string to `text`.

    Returns the end of the string (0 if unusual), the end of the text, and the number of
    continuation bytes in it.
    """
    n_continuing = 0
    while True:
        # All bytes are written; special ones are overwritten.
        for step in range(_STRIDE):
            text[n + np.uint64(step)] = block[at + np.uint64(step)]
        n_plain = n_plain_bytes(block, at)
        at += np.uint64(n_plain)
        n += np.uint64(n_plain)
        if n_plain == _STRIDE:
            continue
        byte = block[at]
        if byte == QUOTE:
            return at + _ONE, n, n_continuing
        if byte == BACKSLASH:
            point, size = _escaped(block, at)
            if size == 0:
                return _ZERO, n, 0
            at += np.uint64(size)
            size = write_character(point, text, n)
            n += np.uint64(size)
            n_continuing += size - 1
            continue
        if byte < 0x20:
            return _ZERO, n, 0
        while byte >= 0x80:
            size = valid_size(block, at)
            if size == 0:
                return _ZERO, n, 0
            for step in range(_WIDEST):
                text[n + np.uint64(step)] = block[at + np.uint64(step)]
            at += np.uint64(size)
            n += np.uint64(size)
            n_continuing += size - 1
            byte = block[at]
            if (block[at + _ONE] >= 0x80) & (not _is_other(byte)):
                text[n] = byte  # the space between two words of another script
                at += _ONE
                n += _ONE
                byte = block[at]


@kernel
def _end_of_digits(block: Bytes, at: Place) -> Place:
    while (block[at] >= 0x30) & (block[at] <= 0x39):
        at += _ONE
    return at


@kernel
def _end_of_number(block: Bytes, at: Place) -> Place:
    """Return the position after a number; 0 if it is none, or very long or large."""
    first = at
    if block[at] == 0x2D:
        at += _ONE
    if block[at] == 0x30:
        at += _ONE
    else:
        start = at
        at = _end_of_digits(block, at)
        if at == start:
            return _ZERO
    if block[at] == 0x2E:
        start = at + _ONE
        at = _end_of_digits(block, start)
        if at == start:
            return _ZERO
    if (block[at] | 0x20) == 0x65:
        start = at + _ONE
        if (block[start] == 0x2B) | (block[start] == 0x2D):
            start += _ONE
        at = _end_of_digits(block, start)
        if (at == start) | (at > start + np.uint64(2)):
            return _ZERO
    return at if at - first <= np.uint64(_LONGEST_NUMBER) else _ZERO


@kernel
def end_of_scalar(block: Bytes, at: Place) -> Place:
    """Return the position after a scalar value; 0 if unusual."""
    byte = block[at]
    if byte == QUOTE:
        return end_of_string(block, at + _ONE)
    if (byte == 0x2D) | ((byte >= 0x30) & (byte <= 0x39)):
        return _end_of_number(block, at)
    second, third = block[at + _ONE], block[at + np.uint64(2)]
    fourth, fifth = block[at + np.uint64(3)], block[at + np.uint64(4)]
    if byte == 0x74:
        is_true = (second == 0x72) & (third == 0x75) & (fourth == 0x65)
        return at + np.uint64(4) if is_true else _ZERO
    if byte == 0x6E:
        is_null = (second == 0x75) & (third == 0x6C) & (fourth == 0x6C)
        return at + np.uint64(4) if is_null else _ZERO
    if byte == 0x66:
        is_false = (second == 0x61) & (third == 0x6C) & (fourth == 0x73) & (fifth == 0x65)
        return at + np.uint64(5) if is_false else _ZERO
    return _ZERO


@kernel
def is_fraction(block: Bytes, start: Place, stop: Place) -> bool:
    """Return whether a number is written as a fraction, as 7.0 is."""
    has_sign = False
    for at in range(start, stop):
        has_sign |= (block[at] == 0x2E) | ((block[at] | 0x20) == 0x65)
    return has_sign


@kernel
def copy_plain_scalar(block: Bytes, start: Place, stop: Place, text: Bytes, n: Place) -> Place:
    """Copy a whole number or a boolean; return the end of the text, and 0 for other numbers.

    Python may write those in another way.
    """
    byte = block[start]
    is_minus_zero = (byte == 0x2D) & (block[start + _ONE] == 0x30)
    is_boolean = (byte == 0x74) | (byte == 0x66)
    if is_minus_zero or (not is_boolean and is_fraction(block, start, stop)):
        return _ZERO
    for step in range(stop - start):
        text[n + step] = block[start + step]
    return n + (stop - start)
