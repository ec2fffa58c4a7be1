"""Hash tables with open addressing: a slot holds a number from 1, and 0 if it is free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Array, Integers, filled, n_same
from decon_core.kernels.hashing import digest_of, mixed, scaled
from decon_core.kernels.jit import inlined, kernel


@kernel
def next_slot(slot: int, n: int) -> int:
    return slot + 1 if slot + 1 < n else 0


@kernel
def free_slot(slot: int, slots: Array) -> int:
    """Return the first free slot from one on."""
    while slots[slot]:
        slot = next_slot(slot, slots.size)
    return slot


@inlined
def slot_of_known(
    values: Array, at: int, size: int, slot: int, known: Array, starts: Array, slots: Array
) -> int:
    """Return the slot of a run of values, searched from `slot` on, or a free slot for it.

    A slot holds the number of a known run, which begins at its position in `starts`.
    """
    while slots[slot]:
        start = np.int64(starts[np.int64(slots[slot]) - 1])
        if n_same(values, at, known, start, size) == size:
            break
        slot = next_slot(slot, slots.size)
    return slot


@inlined
def slot_of_gram(tokens: Array, at: int, size: int, known: Array, slots: Array) -> int:
    """Return the slot of an n-gram or a free slot; a slot holds a position in `known`, from 1."""
    slot = scaled(digest_of(tokens, at, size), slots.size)
    while slots[slot]:
        if n_same(tokens, at, known, np.int64(slots[slot]) - 1, size) == size:
            break
        slot = next_slot(slot, slots.size)
    return slot


class NumberTable(NamedTuple):
    """A map of numbers to values."""

    numbers: Integers
    values: Integers


@kernel
def table_for(n: int) -> NumberTable:
    """Return an empty table with room for n numbers."""
    return NumberTable(filled(2 * n + 2, 0), np.empty(2 * n + 2, np.int64))


@inlined
def _slot_of_number(number: int, numbers: Integers) -> int:
    slot = scaled(mixed(np.uint64(number + 1)), numbers.size)
    while numbers[slot] and numbers[slot] != number + 1:
        slot = next_slot(slot, numbers.size)
    return slot


@inlined
def enter_number(number: int, value: int, table: NumberTable) -> bool:
    """Store a value under a number; return False if the number exists."""
    slot = _slot_of_number(number, table.numbers)
    if table.numbers[slot]:
        return False
    table.numbers[slot] = number + 1
    table.values[slot] = value
    return True


@inlined
def value_of(number: int, table: NumberTable) -> int:
    """Return the value of a number, `NONE` if there is none."""
    slot = _slot_of_number(number, table.numbers)
    return table.values[slot] if table.numbers[slot] else NONE
