"""Extract the text of one field from lines of JSON.

A line is handled here only if all of it is strict JSON in strict UTF-8 and the field is found
directly. Unusual lines are left to `corpus.row_of_line`; no line is rejected here.

A block ends in a line break followed by `PADDING` bytes, so that lookahead needs no bounds check.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.utf8 import hex_value, valid_size, write_character

# Unsigned: signed indexes cost one more comparison per byte.
Place = np.uint64
Number = int | np.int64
Byte = np.uint8

PADDING = 64  # spare bytes after a block, for lookahead, and after a text, for writing

_MOST_DEEP = 64  # maximum nesting: one bit of a number per container
_LONGEST_NUMBER = 40  # neither infinite, nor more digits than Python turns into an int

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_STRIDE = 32
_STRIDE_U = np.uint64(_STRIDE)
_WIDEST = 4  # bytes of a character

LINE_BREAK = 0x0A
_QUOTE, _BACKSLASH, _COLON, _COMMA = 0x22, 0x5C, 0x3A, 0x2C
_OBJECT, _OBJECT_END, _LIST, _LIST_END = 0x7B, 0x7D, 0x5B, 0x5D

# Parser states: what may come next in a line.
_FIRST_KEY, _KEY, _FIRST_VALUE, _VALUE, _AFTER_VALUE = 0, 1, 2, 3, 4


@kernel
def _skip_space(block: Bytes, at: Place) -> Place:
    while (block[at] == 0x20) | (block[at] == 0x09) | (block[at] == 0x0D):
        at += _ONE
    return at


@kernel
def _is_other(byte: Byte) -> bool:
    """Return whether a byte of a string is special: a control, quote, backslash or non-ASCII."""
    return bool((byte < 0x20) | (byte == _QUOTE) | (byte == _BACKSLASH) | (byte >= 0x80))


@kernel
def _n_plain(block: Bytes, at: Place) -> int:
    """Count the plain bytes at the start of the next `_STRIDE` bytes of a string.

    Two branch-free loops that become vector instructions. The second one, which finds the position,
    is slower.
    """
    has_other = False
    for step in range(_STRIDE):
        has_other |= _is_other(block[at + np.uint64(step)])
    if not has_other:
        return _STRIDE
    n_plain = np.uint8(_STRIDE)
    for step in range(_STRIDE):
        is_other = _is_other(block[at + np.uint64(step)])
        n_plain = min(n_plain, np.uint8(step) if is_other else np.uint8(_STRIDE))
    return int(n_plain)


@kernel
def _four_digits(block: Bytes, at: Place) -> Number:
    """Return the number after `\\u`; -1 if there are no four hexadecimal digits."""
    value = np.int64(0)
    for place in range(4):
        digit = hex_value(block[at + np.uint64(place)])
        if digit < 0:
            return -1
        value = value << 4 | digit
    return value


@kernel
def _escaped(block: Bytes, at: Place) -> tuple[Number, int]:
    """Return the code point of an escape, and its length in bytes; 0 bytes if unusual."""
    byte = block[at + _ONE]
    if byte == 0x6E:  # n: by far the most frequent
        return 0x0A, 2
    if (byte == _QUOTE) | (byte == _BACKSLASH) | (byte == 0x2F):
        return np.int64(byte), 2
    if byte == 0x75:
        point = _four_digits(block, at + np.uint64(2))
        if (point < 0) | ((point >= 0xDC00) & (point < 0xE000)):
            return 0, 0
        if (point < 0xD800) | (point >= 0xE000):
            return point, 6
        if (block[at + np.uint64(6)] != _BACKSLASH) | (block[at + np.uint64(7)] != 0x75):
            return 0, 0
        second = _four_digits(block, at + np.uint64(8))
        if (second < 0xDC00) | (second >= 0xE000):
            return 0, 0
        return 0x10000 + ((point - 0xD800) << 10) + second - 0xDC00, 12
    for letter, control in ((0x74, 0x09), (0x72, 0x0D), (0x62, 0x08), (0x66, 0x0C)):  # t, r, b, f
        if byte == letter:
            return control, 2
    return 0, 0


@kernel
def _end_of_string(block: Bytes, at: Place) -> Place:
    """Return the position after the string whose content begins here; 0 if unusual."""
    while True:
        n_plain = _n_plain(block, at)
        at += np.uint64(n_plain)
        if n_plain == _STRIDE:
            continue
        byte = block[at]
        if byte == _QUOTE:
            return at + _ONE
        if byte == _BACKSLASH:
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
def _read_string(block: Bytes, at: Place, text: Bytes, n: Place) -> tuple[Place, Place, int]:
    """Decode a string to `text`.

    Returns the end of the string (0 if unusual), the end of the text, and the number of
    continuation bytes in it.
    """
    n_continuing = 0
    while True:
        # All bytes are written; special ones are overwritten.
        for step in range(_STRIDE):
            text[n + np.uint64(step)] = block[at + np.uint64(step)]
        n_plain = _n_plain(block, at)
        at += np.uint64(n_plain)
        n += np.uint64(n_plain)
        if n_plain == _STRIDE:
            continue
        byte = block[at]
        if byte == _QUOTE:
            return at + _ONE, n, n_continuing
        if byte == _BACKSLASH:
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
def _end_of_scalar(block: Bytes, at: Place) -> Place:
    """Return the position after a scalar value; 0 if unusual."""
    byte = block[at]
    if byte == _QUOTE:
        return _end_of_string(block, at + _ONE)
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
def _is_key(
    block: Bytes, start: Place, stop: Place, path: Bytes, first: Number, last: Number
) -> bool:
    if np.int64(stop - start) != last - first:
        return False
    for step in range(last - first):  # noqa: SIM110 - a generator is not compiled
        if block[start + np.uint64(step)] != path[first + step]:
            return False
    return True


@inlined
def _read_line(
    block: Bytes, at: Place, path: Bytes, key_starts: Integers, text: Bytes, n: Place
) -> tuple[Place, Place, int]:
    """Read one line.

    Returns the start of the next line (0 if this one is unusual), the end of the text, and the
    number of continuation bytes in it.
    """
    at = _skip_space(block, at)
    if block[at] != _OBJECT:
        return _ZERO, n, 0
    at += _ONE
    depth = 1
    are_objects = _ONE  # open containers: 1 for an object, 0 for a list; innermost lowest
    n_keys = key_starts.size - 1
    level = 0  # keys of the path with open objects
    n_found = 0  # keys of the path seen
    n_continuing = 0
    state = _FIRST_KEY
    while depth:
        at = _skip_space(block, at)
        byte = block[at]
        if state == _AFTER_VALUE or (
            (state == _FIRST_KEY) & (byte == _OBJECT_END)
            | (state == _FIRST_VALUE) & (byte == _LIST_END)
        ):
            is_object = (are_objects & _ONE) == _ONE
            at += _ONE
            if byte == (_OBJECT_END if is_object else _LIST_END):
                if (level > 0) & (depth == level + 1):
                    level -= 1
                depth -= 1
                are_objects >>= _ONE
                state = _AFTER_VALUE
            elif (byte == _COMMA) & (state == _AFTER_VALUE):
                state = _KEY if is_object else _VALUE
            else:
                return _ZERO, n, 0
            continue

        is_wanted = False
        if state <= _KEY:
            if byte != _QUOTE:
                return _ZERO, n, 0
            start = at + _ONE
            at = _end_of_string(block, start)
            if at == _ZERO:
                return _ZERO, n, 0
            if depth == level + 1:
                stop = at - _ONE
                for step in range(np.int64(stop - start)):
                    if block[start + np.uint64(step)] == _BACKSLASH:
                        return _ZERO, n, 0
                first, last = key_starts[level], key_starts[level + 1] - 1
                if _is_key(block, start, stop, path, first, last):
                    if n_found > level:
                        return _ZERO, n, 0  # a duplicate key: the last one counts
                    n_found = level + 1
                    is_wanted = True
                elif _is_key(block, start, stop, path, first, path.size):
                    return _ZERO, n, 0  # the rest of the path as a single key has priority
            at = _skip_space(block, at)
            if block[at] != _COLON:
                return _ZERO, n, 0
            at = _skip_space(block, at + _ONE)
            byte = block[at]

        if (byte == _OBJECT) | (byte == _LIST):
            is_object = byte == _OBJECT
            if (depth == _MOST_DEEP) | (is_wanted & ((not is_object) | (n_found == n_keys))):
                return _ZERO, n, 0
            if is_wanted:
                level += 1
            at += _ONE
            depth += 1
            are_objects <<= _ONE
            if is_object:
                are_objects |= _ONE
            state = _FIRST_KEY if is_object else _FIRST_VALUE
            continue
        if is_wanted:
            if (byte != _QUOTE) | (n_found < n_keys):
                return _ZERO, n, 0
            at, n, n_continuing = _read_string(block, at + _ONE, text, n)
        else:
            at = _end_of_scalar(block, at)
        if at == _ZERO:
            return _ZERO, n, 0
        state = _AFTER_VALUE
    at = _skip_space(block, at)
    if (block[at] != LINE_BREAK) | (n_found < n_keys):
        return _ZERO, n, 0
    return at + _ONE, n, n_continuing


@entry(compile_seconds=1.5, steps=lambda _block, n_bytes, *_: n_bytes)
def read_lines(
    block: Bytes,
    n_bytes: int,
    path: Bytes,
    key_starts: Integers,
    text: Bytes,
    starts: Integers,
    stops: Integers,
    documents: Integers,
    unusual: Integers,
    line_starts: Integers,
) -> tuple[int, int, Number]:
    """Write the field's text of every line; return the numbers of documents, unusual lines and
    characters.

    `path` is the field in UTF-8; its keys begin at `key_starts`, whose last element is after an
    imagined final dot. `documents` and `unusual` get line numbers.
    """
    at = _ZERO
    end = np.uint64(n_bytes)
    n = _ZERO
    n_documents = n_unusual = line = 0
    n_characters = np.int64(0)
    line_starts[0] = 0
    while at < end:
        behind, stop, n_continuing = _read_line(block, at, path, key_starts, text, n)
        if behind != _ZERO:
            starts[n_documents] = np.int64(n)
            stops[n_documents] = np.int64(stop)
            documents[n_documents] = line
            n_documents += 1
            n_characters += np.int64(stop - n) - n_continuing
            n = stop
        else:
            behind = at
            while block[behind] != LINE_BREAK:
                behind += _ONE
            behind += _ONE
            unusual[n_unusual] = line
            n_unusual += 1
        at = behind
        line += 1
        line_starts[line] = np.int64(min(at, end))
    return n_documents, n_unusual, n_characters


@kernel
def _n_characters(text: Bytes, start: int, stop: int) -> int:
    """Return the number of characters of a text; -1 if it is not strict UTF-8."""
    at, end = np.uint64(start), np.uint64(stop)
    n_characters = 0
    while at < end:
        limit = min(at + _STRIDE_U, end)
        if limit - at == _STRIDE_U:
            bits = np.uint8(0)
            for step in range(_STRIDE):
                bits |= text[at + np.uint64(step)]
            if bits < 0x80:
                at = limit
                n_characters += _STRIDE
                continue
        while at < limit:
            lead = text[at]
            size = 1
            if lead >= 0x80:
                needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
                if np.int64(end - at) < needed:
                    return -1
                size = valid_size(text, at)
                if size == 0:
                    return -1
            at += np.uint64(size)
            n_characters += 1
    return n_characters


@kernel
def count_characters(text: Bytes, starts: Integers, stops: Integers, counts: Integers) -> None:
    """Count the characters of each text; -1 if it is not strict UTF-8."""
    for number in range(starts.size):
        counts[number] = _n_characters(text, starts[number], stops[number])
