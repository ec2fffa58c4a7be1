"""Count the rows that name the same data set and split.

`corpus/origins.py` does the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.hashing import HALF, MIX
from decon_core.kernels.instructions import eight_bytes
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.string_values import LONGEST_NAME, TO_NOTE, is_text

ORIGIN, SPLIT = 1, 2  # what the values of a field name; 0: nothing

_WORD = 8  # bytes


@kernel
def _word(text: Bytes, start: int, stop: int, at: int) -> np.uint64:
    """Return the eight bytes of a string from `at` on, fewer at its end."""
    word = eight_bytes(text, np.uint64(start + at))
    n_beyond = start + at + _WORD - stop
    return word << np.uint64(8 * n_beyond) if n_beyond > 0 else word


@kernel
def _hash(text: Bytes, start: int, stop: int, seed: np.uint64) -> np.uint64:
    value = seed
    for at in range(0, stop - start, _WORD):
        value = (value ^ _word(text, start, stop, at)) * MIX
        value ^= value >> HALF
    return value


@kernel
def _is_same(text: Bytes, starts: Integers, stops: Integers, string: int, other: int) -> bool:
    """Return whether two strings are equal; -1 stands for no string."""
    if (string < 0) | (other < 0):
        return bool(string == other)
    start, stop = starts[string], stops[string]
    first, end = starts[other], stops[other]
    if stop - start != end - first:
        return False
    for at in range(0, stop - start, _WORD):
        if _word(text, start, stop, at) != _word(text, first, end, at):
            return False
    return True


@kernel
def _is_name(text: Bytes, start: int, stop: int, action: int) -> bool:
    is_kept = (action <= TO_NOTE) & (stop - start <= LONGEST_NAME)
    return is_kept and not is_text(text, start, stop)


@entry(compile_seconds=0.5, steps=lambda _text, starts, *_: starts.size)
def count_origins(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    fields: Integers,
    actions: Integers,
    rows: Integers,
    names: Integers,
    is_read: Bytes,
    table: Integers,
    origins: Integers,
    splits: Integers,
    counts: Integers,
) -> int:
    """Count the rows with each pair of an origin and a split; return the number of pairs.

    `names`: what values name, by field; `is_read`: whether a row is counted. Strings are sorted by
    row; the first split of a row is that of all its origins. Writes the strings of the first such
    pair (-1: no split) and the number of rows. `table`, whose size is a power of two and more than
    that of pairs, has -1.
    """
    n = at = 0
    mask = np.uint64(table.size - 1)
    while at < rows.size:
        row, end, split, has_origin = rows[at], at, -1, False
        while (end < rows.size) and (rows[end] == row):
            named = names[fields[end]]
            has_origin |= named == ORIGIN
            if (named == SPLIT) & (split < 0) and is_read[row]:
                split = end if _is_name(text, starts[end], stops[end], actions[end]) else -1
            end += 1
        first, at = at, end
        if not (has_origin and is_read[row]):
            continue
        for string in range(first, end):
            field, start, stop = fields[string], starts[string], stops[string]
            if names[field] != ORIGIN or not _is_name(text, start, stop, actions[string]):
                continue
            key = _hash(text, start, stop, np.uint64(field))
            if split >= 0:
                key = _hash(text, starts[split], stops[split], key)
            place = key & mask
            pair = table[place]
            while pair >= 0:
                is_alike = fields[origins[pair]] == field
                is_alike = is_alike and _is_same(text, starts, stops, origins[pair], string)
                if is_alike and _is_same(text, starts, stops, splits[pair], split):
                    break
                place = (place + np.uint64(1)) & mask
                pair = table[place]
            if pair < 0:
                pair = table[place] = n
                origins[n], splits[n], counts[n] = string, split, 0
                n += 1
            counts[pair] += 1
    return n
