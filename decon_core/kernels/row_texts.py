"""Decide which strings of rows are read, and join them to the texts of documents.

`corpus/text_values.py` and `corpus/row_texts.py` do the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.jit import entry, kernel

_LEAST_WORDS = 8
_LEAST_LETTERS = 24
_LEAST_BYTES = 15
_LEAST_ENCODED = 64
_FIRST_BYTES = 96  # that are looked at first
_LINE_OF_BASE64 = 60
_LEAST_REPEATED = 32

_STRIDE = 32  # less than the spare bytes of texts, `PADDING` of `json_lines.py`

SKIPPED, VISIBLE, HIDDEN, UNREAD = 0, 1, 2, 3
LABEL = 4  # added to a kind: only longer values are text
_KIND = 3

TABLE = 1 << 13  # of the strings of a row, at most `MOST_STRINGS` of `json_lines.py`


@kernel
def _is_letter(byte: np.uint8) -> bool:
    """Return whether a byte is a letter or digit, or of a character beyond ASCII."""
    return bool(
        ((byte >= 0x30) & (byte <= 0x39))
        | ((byte | 0x20) >= 0x61) & ((byte | 0x20) <= 0x7A)
        | (byte >= 0x80)
    )


@kernel
def _n_beginnings(text: Bytes, start: int, stop: int) -> int:
    """Count the words that follow a space and begin with a letter: a loop without branches."""
    n = 0
    for at in range(np.uint64(start), np.uint64(stop) - np.uint64(1)):
        n += (text[at] == 0x20) & _is_letter(text[at + np.uint64(1)])
    return n


@kernel
def is_text(text: Bytes, start: int, stop: int) -> bool:
    """Return whether a string has some words, or many letters of a script without spaces."""
    if stop - start < _LEAST_BYTES:
        return False
    if _n_beginnings(text, start, min(stop, start + _FIRST_BYTES)) >= _LEAST_WORDS:
        return True
    n_words = n_letters = 0
    has_letter = False
    for at in range(start, stop):
        byte = text[at]
        if (byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D)):
            n_words += has_letter
            has_letter = False
            if n_words >= _LEAST_WORDS:
                return True
        elif byte < 0x80:
            has_letter |= _is_letter(byte)
        else:
            has_letter = True
            if byte >= 0xE0:
                n_letters += _is_unspaced(byte, text[at + 1])
                if n_letters >= _LEAST_LETTERS:
                    return True
    return bool(n_words + has_letter >= _LEAST_WORDS)


@kernel
def _is_unspaced(lead: np.uint8, second: np.uint8) -> bool:
    """Return whether a character is of a script without spaces, by its first two bytes."""
    if (lead >= 0xE3) & (lead <= 0xE9):
        return True
    if lead == 0xE0:
        return bool((second >= 0xB8) & (second <= 0xBB))
    if lead == 0xE1:
        return bool(((second >= 0x80) & (second <= 0x82)) | (second == 0x9E) | (second == 0x9F))
    if lead == 0xE2:
        return bool(second >= 0xBA)
    if lead == 0xEF:
        return bool((second >= 0xA4) & (second <= 0xAB))
    return bool((lead == 0xF0) & (second >= 0xA0))


@kernel
def _is_of_base64(byte: np.uint8) -> bool:
    return bool(
        ((byte >= 0x61) & (byte <= 0x7A))
        | ((byte >= 0x41) & (byte <= 0x5A))
        | ((byte >= 0x2F) & (byte <= 0x39))
        | (byte == 0x2B)
        | (byte == 0x5F)
        | (byte == 0x2D)
    )


@kernel
def is_base64(text: Bytes, start: int, stop: int) -> bool:
    """Return whether a string is base64, in one line or in lines of at least 60 characters."""
    if stop - start < _LEAST_ENCODED:
        return False
    at, first = start, start
    while True:
        while (at < stop) and _is_of_base64(text[at]):
            at += 1
        n = at - first
        if at == stop:
            return bool(n > 0)
        byte = text[at]
        is_break = (byte == 0x0A) | ((byte == 0x0D) & (at + 1 < stop) and text[at + 1] == 0x0A)
        if not (is_break & (n >= _LINE_OF_BASE64)):
            break
        after = at + (2 if byte == 0x0D else 1)
        if (after == stop) or not _is_of_base64(text[after]):
            break
        at = first = after
    if n == 0:
        return False
    for _ in range(2):
        if (at < stop) and (text[at] == 0x3D):
            at += 1
    while at < stop:
        byte = text[at]
        if not ((byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D))):
            return False
        at += 1
    return True


@entry(compile_seconds=1.0, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def settle(text: Bytes, starts: Integers, stops: Integers, kinds: Bytes) -> None:
    """Set the kind of strings that are not read, and not to be counted, to `SKIPPED`."""
    for at in range(starts.size):
        kind = kinds[at]
        if kind == SKIPPED:
            continue
        start, stop = starts[at], stops[at]
        is_short = ((kind & _KIND) == UNREAD) | ((kind & LABEL) != 0)
        if (is_short and not is_text(text, start, stop)) or is_base64(text, start, stop):
            kinds[at] = SKIPPED
        else:
            kinds[at] = kind & _KIND


@kernel
def _is_same(text: Bytes, start: int, other: int, n: int) -> bool:
    for step in range(n):  # noqa: SIM110 - a generator is not compiled
        if text[start + step] != text[other + step]:
            return False
    return True


@kernel
def _is_repeated(
    text: Bytes, start: int, n: int, kind: int, row: int, table: Integers, of_row: Integers
) -> bool:
    """Return whether a row has a text of this kind already; enter it if not."""
    key = np.uint64(n) * np.uint64(4) + np.uint64(kind)
    for step in range(8):
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(text[start + step])
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(text[start + n - 8 + step])
    at = np.int64((key >> np.uint64(20)) & np.uint64(TABLE - 1))
    while of_row[at] == row:
        is_alike = (table[3 * at + 1] == n) & (table[3 * at + 2] == kind)
        if is_alike and _is_same(text, start, table[3 * at], n):
            return True
        at = (at + 1) & (TABLE - 1)
    of_row[at] = row
    table[3 * at], table[3 * at + 1], table[3 * at + 2] = start, n, kind
    return False


@kernel
def _copy(text: Bytes, start: int, target: Bytes, to: int, size: int) -> None:
    """Copy bytes, and up to a stride beyond them: both arrays have as many to spare."""
    first, at, n = np.uint64(start), np.uint64(to), np.uint64(size)
    done = np.uint64(0)
    while done < n:
        for step in range(_STRIDE):
            target[at + done + np.uint64(step)] = text[first + done + np.uint64(step)]
        done += np.uint64(_STRIDE)


@entry(compile_seconds=1.0, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def join_strings(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    kinds: Bytes,
    continuing: Integers,
    rows: Integers,
    table: Integers,
    of_row: Integers,
    joined: Bytes,
    text_starts: Integers,
    text_stops: Integers,
    text_rows: Integers,
) -> tuple[int, int]:
    """Join the strings of each row: those that are visible, then those that are hidden.

    Strings are sorted by row. Returns the number of texts, and of their characters. `of_row` holds
    -1 where `table` is free.
    """
    n = n_texts = n_characters = at = 0
    while at < starts.size:
        row, end = rows[at], at
        has_hidden = False
        while (end < starts.size) and (rows[end] == row):
            has_hidden |= kinds[end] == HIDDEN
            end += 1
        for kind in range(VISIBLE, HIDDEN + has_hidden):
            first = n
            for one in range(at, end):
                if kinds[one] != kind:
                    continue
                size = stops[one] - starts[one]
                is_compared = (size >= _LEAST_REPEATED) & (end - at > 1)
                if is_compared and _is_repeated(text, starts[one], size, kind, row, table, of_row):
                    continue
                if n > first:
                    joined[n] = joined[n + 1] = 0x0A
                    n += 2
                    n_characters += 2
                _copy(text, starts[one], joined, n, size)
                n += size
                n_characters += size - continuing[one]
            text_starts[n_texts], text_stops[n_texts], text_rows[n_texts] = first, n, row
            n_texts += 1
        at = end
    return n_texts, n_characters
