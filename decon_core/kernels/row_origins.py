"""Count the rows that name the same data set and split.

`corpus/origins.py` does the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.string_values import LONGEST_NAME, is_text

ORIGIN, SPLIT = 1, 2  # what the values of a field name; 0: nothing

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel
def _is_name(text: Bytes, start: int, stop: int) -> bool:
    return stop - start <= LONGEST_NAME and not is_text(text, start, stop)


@kernel
def _hash(text: Bytes, start: int, stop: int, seed: np.uint64) -> np.uint64:
    value = seed
    for at in range(np.uint64(start), np.uint64(stop)):
        value = (value ^ np.uint64(text[at])) * _MULTIPLIER
    return value ^ (value >> _HALF)


@kernel
def _is_same(
    text: Bytes, starts: Integers, stops: Integers, string: np.int64, other: np.int64
) -> bool:
    """Return whether two strings are equal; -1 stands for no string."""
    if (string < 0) | (other < 0):
        return bool(string == other)
    n = stops[string] - starts[string]
    if stops[other] - starts[other] != n:
        return False
    for step in range(n):  # noqa: SIM110 - a generator is not compiled
        if text[starts[string] + step] != text[starts[other] + step]:
            return False
    return True


@entry(compile_seconds=0.5, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()))
def count_origins(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    fields: Integers,
    names: Integers,
    rows: Integers,
    table: Integers,
    origins: Integers,
    splits: Integers,
    counts: Integers,
) -> int:
    """Count the rows with each pair of an origin and a split; return the number of pairs.

    `names`: what each string names. Strings are sorted by row; the first split of a row is that of
    all its origins. Writes the strings of the first such pair (-1: no split) and the number of
    rows. `table`, whose size is a power of two and more than that of strings, has -1.
    """
    n = at = 0
    mask = np.uint64(table.size - 1)
    while at < rows.size:
        row, end, split = rows[at], at, np.int64(-1)
        while (end < rows.size) and (rows[end] == row):
            if (split < 0) & (names[end] == SPLIT) and _is_name(text, starts[end], stops[end]):
                split = np.int64(end)
            end += 1
        for string in range(at, end):
            if names[string] != ORIGIN or not _is_name(text, starts[string], stops[string]):
                continue
            key = _hash(text, starts[string], stops[string], np.uint64(fields[string]))
            if split >= 0:
                key = _hash(text, starts[split], stops[split], key)
            place = key & mask
            pair = table[place]
            while pair >= 0:
                is_alike = fields[origins[pair]] == fields[string]
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
        at = end
    return n
