"""Ranges of arrays: compare, search, fill."""

from __future__ import annotations

import numpy as np

from decon_core.kernels.array_types import Array, Integers, Numbers
from decon_core.kernels.jit import inlined, kernel

NONE = -1


@inlined
def n_same(values: Array, at: int, others: Array, other: int, most: int) -> int:
    """Count the equal elements from two positions on, up to `most`."""
    n = 0
    while n < most and values[at + n] == others[other + n]:
        n += 1
    return n


@kernel
def first_at_least(numbers: Array, start: int, stop: int, least: int) -> int:
    """Return the first position in a range at which ascending numbers reach a value."""
    while start < stop:
        middle = (start + stop) // 2
        if np.int64(numbers[middle]) < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def filled(n: int, value: int) -> Integers:
    """Like `np.full`, which takes ten times as long to compile."""
    array = np.empty(n, np.int64)
    for at in range(n):
        array[at] = value
    return array


@kernel
def zeros(n: int) -> Numbers:
    """Like `np.zeros`, which takes several times as long to compile."""
    array = np.empty(n, np.uint32)
    for at in range(n):
        array[at] = 0
    return array
