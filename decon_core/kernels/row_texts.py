"""Join the strings of rows to the texts of documents, and decide what is done with each.

`corpus/row_texts.py` does the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers, Table, Words64, n_same
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.json_lines import (
    ACTION,
    FIELD,
    IS_DECODED,
    KEY,
    LINE,
    NAMES,
    START,
    STOP,
    USE,
)
from decon_core.kernels.string_kinds import (
    LEAST_REPEATED,
    TO_COUNT_WORDS,
    TO_DECODE,
    action_on,
    key_of,
    may_be_json,
    words_in,
)

_LINE_BREAK = 0x0A

_STRIDE = 32  # less than the spare bytes of texts, `PADDING` of `json_tokens.py`

_ZERO = np.uint64(0)
VISIBLE, HIDDEN = 1, 2

# The columns of a table of the strings of a row, at most `MOST_STRINGS` of `json_lines.py`: row,
# place where it was joined, size, kind, and key of its text.
TABLE = 1 << 13, 5
_ROW, _PLACE, _SIZE, _KIND, _TEXT = range(5)
_FEWEST = 63


@kernel
def _is_repeated(
    text: Bytes,
    start: int,
    n: int,
    key: int,
    joined: Bytes,
    to: int,
    kind: int,
    row: int,
    table: Table,
    mask: int,
) -> bool:
    """Return whether a row has a text of this kind already; if not, enter it as joined at `to`."""
    at = (key >> 40) & mask
    while table[at, _ROW] == row:
        is_alike = (table[at, _TEXT] == key) & (table[at, _SIZE] == n) & (table[at, _KIND] == kind)
        if is_alike and n_same(text, start, joined, table[at, _PLACE], n) == n:
            return True
        at = (at + 1) & mask
    table[at, _ROW], table[at, _PLACE], table[at, _SIZE] = row, to, n
    table[at, _KIND], table[at, _TEXT] = kind, key
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


@kernel
def _move_down(text: Bytes, start: int, to: int, size: int) -> None:
    first, at = np.uint64(start), np.uint64(to)
    for step in range(np.uint64(size)):
        text[at + step] = text[first + step]


@entry(compile_seconds=1.0, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def join_strings(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    kinds: Bytes,
    continuing: Integers,
    keys: Integers,
    rows: Integers,
    table: Table,
    is_in_place: bool,
    joined: Bytes,
    text_starts: Integers,
    text_stops: Integers,
    text_rows: Integers,
) -> tuple[int, int]:
    """Join the strings of each row: those that are visible, then those that are hidden.

    Strings are sorted by row. Returns the number of texts, and of their characters. `table` has
    -1 for rows. In place, `joined` is `text`: a row's strings come in the order in
    which they are joined, with two spare bytes between them, and only those behind a text that is
    left out are moved.
    """
    n = n_texts = n_characters = at = 0
    while at < starts.size:
        row, end = rows[at], at
        has_hidden = False
        while (end < starts.size) and (rows[end] == row):
            has_hidden |= kinds[end] == HIDDEN
            end += 1
        mask = _FEWEST
        while mask < 2 * (end - at):  # few strings need little of the cache
            mask = 2 * mask + 1
        if is_in_place:
            n = starts[at]
        for kind in range(VISIBLE, HIDDEN + has_hidden):
            first = n
            is_first = True
            for string in range(at, end):
                if kinds[string] != kind:
                    continue
                start, size = starts[string], stops[string] - starts[string]
                if is_first & is_in_place:
                    first = n = start
                to = n if is_first else n + 2
                is_compared = (size >= LEAST_REPEATED) & (end - at > 1)
                if is_compared and _is_repeated(
                    text, start, size, keys[string], joined, to, kind, row, table, mask
                ):
                    continue
                if not is_first:
                    joined[n] = joined[n + 1] = _LINE_BREAK
                    n_characters += 2
                if not is_in_place:
                    _copy(text, start, joined, to, size)
                elif to < start:
                    _move_down(text, start, to, size)
                n = to + size
                n_characters += size - continuing[string]
                is_first = False
            text_starts[n_texts], text_stops[n_texts], text_rows[n_texts] = first, n, row
            n_texts += 1
        at = end
    return n_texts, n_characters


@entry(compile_seconds=0.5, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def put_in_place(
    inner: Bytes, starts: Integers, stops: Integers, lines: Integers, text: Bytes, targets: Integers
) -> None:
    """Move the strings of lines to `text`, from the target of each line on; set their edges.

    There they take no more room than the JSON that they are from.
    """
    line, n = -1, _ZERO
    for at in range(starts.size):
        if lines[at] != line:
            line = lines[at]
            n = np.uint64(targets[line])
        first, size = np.uint64(starts[at]), np.uint64(stops[at] - starts[at])
        for step in range(size + np.uint64(2)):
            text[n + step] = inner[first + step]
        starts[at], stops[at] = np.int64(n), np.int64(n + size)
        n += size + np.uint64(2)


@entry(compile_seconds=0.5, steps=lambda _text, columns, *_: columns.shape[1])
def settle(
    text: Bytes,
    columns: Table,
    fields: Table,
    marks_of: Words64,
    may_decode: bool,
    marks: Words64,
) -> None:
    """Write what is done with strings of other readers, their keys, and the marks of rows."""
    for at in range(columns.shape[1]):
        start, stop = np.uint64(columns[START, at]), np.uint64(columns[STOP, at])
        field, row = columns[FIELD, at], columns[LINE, at]
        columns[KEY, at] = key_of(text, start, stop)
        if may_decode and fields[field, IS_DECODED] and may_be_json(text, start, stop):
            columns[ACTION, at] = TO_DECODE
            continue
        columns[ACTION, at] = action_on(text, start, stop, fields[field, USE], fields[field, NAMES])
        if columns[ACTION, at] == TO_COUNT_WORDS:
            columns[KEY, at] = words_in(text, start, stop)
        marks[row, 0] |= marks_of[field, 0]
        marks[row, 1] |= marks_of[field, 1]


@entry(compile_seconds=0.5, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def copy_to_lines(text: Bytes, starts: Integers, stops: Integers, lines: Bytes) -> int:
    """Write JSON values as lines; return their bytes. Line breaks in them become white space."""
    n = _ZERO
    for at in range(starts.size):
        start, size = np.uint64(starts[at]), np.uint64(stops[at] - starts[at])
        for step in range(size):
            byte = text[start + step]
            lines[n + step] = 0x0D if byte == _LINE_BREAK else byte
        n += size
        lines[n] = _LINE_BREAK
        n += np.uint64(1)
    return int(n)
