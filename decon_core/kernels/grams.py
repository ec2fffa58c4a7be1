"""n-grams of ragged rows of tokens: number them, count rows with each, invert.

A gram is represented by its position in the tokens and compared token by token, so hash collisions
do no harm. Reference implementation: dictionaries of tuples in `tests/oracle/decon.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import kernel

Numbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]

NONE = 0xFFFFFFFF

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel
def _slot(tokens: Numbers, at: int, size: int, n_slots: int) -> int:
    digest = np.uint64(size)
    for step in range(size):
        digest = (digest ^ np.uint64(tokens[at + step])) * _MIX
        digest ^= digest >> _HALF
    # The upper half, scaled to the table size, which need not be a power of two.
    return np.int64(((digest >> _HALF) * np.uint64(n_slots)) >> _HALF)


@kernel
def _is_same(tokens: Numbers, at: int, others: Numbers, other: int, size: int) -> bool:
    n_same = 0
    while n_same < size and tokens[at + n_same] == others[other + n_same]:
        n_same += 1
    return n_same == size


@kernel
def number_grams(
    tokens: Numbers, offsets: Integers, size: int, slots: Numbers, numbers: Numbers, first: Integers
) -> int:
    """Number the grams of all rows in order of first occurrence; return how many are distinct.

    `slots` are zeros, more than there are grams. `numbers` gets, per token, the number of the gram
    that begins there, or `NONE`; `first` the position of each gram's first occurrence.
    """
    n = 0
    numbers[:] = np.uint32(NONE)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1] - size + 1):
            slot = _slot(tokens, at, size, slots.size)
            while True:
                number = np.int64(slots[slot]) - 1
                if number < 0:
                    number = n
                    first[n] = at
                    n += 1
                    slots[slot] = np.uint32(n)
                    break
                if _is_same(tokens, at, tokens, first[number], size):
                    break
                slot += 1
                if slot == slots.size:
                    slot = 0
            numbers[at] = np.uint32(number)
    return n


@kernel
def find_grams(
    tokens: Numbers,
    first: Integers,
    slots: Numbers,
    wanted: Numbers,
    starts: Integers,
    size: int,
    numbers: Numbers,
) -> None:
    """Look up grams in a table filled by `number_grams`; `NONE` for unknown ones."""
    for at in range(starts.size):
        slot = _slot(wanted, starts[at], size, slots.size)
        numbers[at] = np.uint32(NONE)
        while slots[slot]:
            number = np.int64(slots[slot]) - 1
            if _is_same(wanted, starts[at], tokens, first[number], size):
                numbers[at] = np.uint32(number)
                break
            slot += 1
            if slot == slots.size:
                slot = 0


@kernel
def unique_in_rows(
    numbers: Numbers,
    offsets: Integers,
    size: int,
    last_row: Integers,
    unique: Numbers,
    unique_offsets: Integers,
) -> None:
    """List each row's distinct grams in order. `last_row` is scratch: -1 for every gram."""
    n = 0
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1] - size + 1):
            number = np.int64(numbers[at])
            if last_row[number] != row:
                last_row[number] = row
                unique[n] = np.uint32(number)
                n += 1
        unique_offsets[row + 1] = n


@kernel
def copy_grams(tokens: Numbers, first: Integers, size: int, out: Numbers) -> None:
    """Write the tokens of all grams, concatenated."""
    for number in range(first.size):
        for step in range(size):
            out[number * size + step] = tokens[first[number] + step]


@kernel
def add_rows(
    unique: Numbers, unique_offsets: Integers, multiplicity: Integers, frequency: Integers
) -> None:
    """Add each row's multiplicity to the frequency of its grams."""
    for row in range(unique_offsets.size - 1):
        for at in range(unique_offsets[row], unique_offsets[row + 1]):
            frequency[np.int64(unique[at])] += multiplicity[row]


@kernel
def invert(
    unique: Numbers,
    unique_offsets: Integers,
    fill: Integers,
    postings: Numbers,
) -> None:
    """List the rows with each gram, ascending. `fill`: start of each gram's rows, modified."""
    for row in range(unique_offsets.size - 1):
        for at in range(unique_offsets[row], unique_offsets[row + 1]):
            number = np.int64(unique[at])
            postings[fill[number]] = np.uint32(row)
            fill[number] += 1


@kernel
def sum_in_order(
    weights: npt.NDArray[np.float64],
    weight_of: Numbers,
    offsets: Integers,
    totals: npt.NDArray[np.float64],
) -> None:
    """Sum the weights of each row, from its first gram to its last."""
    for row in range(offsets.size - 1):
        total = 0.0
        for at in range(offsets[row], offsets[row + 1]):
            total += weights[np.int64(weight_of[at])]
        totals[row] = total
