"""Hashes of 64 bits, their scaling to the size of a table, filters, and hash tables.

A filter is a set of bits that says for certain that a number was not entered. Tables have open
addressing: a slot holds a number from 1, and 0 if it is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Array, Integers, Numbers, Words64, filled, n_same
from decon_core.kernels.jit import entry, inlined, kernel

# Hashes decide the arrays of saved indexes: one that changes makes saved ones unusable.
BASE = np.uint64(0xD6E8FEB86659FD93)
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads by multiplication
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
ZERO = np.uint64(0)
ONE = np.uint64(1)
SIX = np.uint64(6)
SIX_BITS = np.uint64(63)


@kernel
def mixed(digest: np.uint64) -> np.uint64:
    """Let every bit depend on the others."""
    digest = (digest ^ (digest >> HALF)) * MIX
    return digest ^ (digest >> HALF)


@kernel
def digest_of(tokens: Numbers, at: int, size: int) -> np.uint64:
    """Hash an n-gram."""
    digest = ZERO
    for step in range(size):
        digest = digest * BASE + np.uint64(tokens[at + step]) * MIX
    return mixed(digest)


@kernel
def scaled(digest: np.uint64, n: int) -> int:
    """Scale the upper half to a number below n, which need not be a power of two."""
    return np.int64(((digest >> HALF) * np.uint64(n)) >> HALF)


@kernel
def scaled_low(digest: np.uint64, n: int) -> int:
    """Scale the lower half to a number below n."""
    return np.int64(((digest & LOW) * np.uint64(n)) >> HALF)


# Filters ------------------------------------------------------------------------------------------


@kernel
def two_bits(digest: np.uint64) -> np.uint64:
    """Return the bits of a digest in one word of a Bloom filter."""
    return ONE << (digest & SIX_BITS) | ONE << ((digest >> SIX) & SIX_BITS)


@kernel
def pair_digest(first: int, second: int) -> np.uint64:
    """Hash two adjacent tokens."""
    return (np.uint64(first) * BASE + np.uint64(second)) * MIX


@kernel
def shift_for(words: Words64) -> np.uint64:
    """Return the shift that turns a digest into a bit number; the size is a power of two."""
    shift = np.uint64(58)
    n = words.size
    while n > 1:
        n >>= 1
        shift -= ONE
    return shift


@kernel
def set_bit(words: Words64, bit: np.uint64) -> None:
    words[np.int64(bit >> SIX)] |= ONE << (bit & SIX_BITS)


@inlined
def has_bit(words: Words64, bit: np.uint64) -> int:
    """Return a bit, as 0 or 1. Inlined: it is called for every token of a shard."""
    return np.int64((words[np.int64(bit >> SIX)] >> (bit & SIX_BITS)) & ONE)


@kernel
def _four_bits(digest: np.uint64) -> np.uint64:
    return two_bits(digest) | two_bits(digest >> np.uint64(34))


@kernel
def enter_digest(digest: np.uint64, in_filter: Words64) -> None:
    """Enter a digest into a Bloom filter of four bits each."""
    in_filter[scaled_low(digest, in_filter.size)] |= _four_bits(digest)


@kernel
def may_hold(in_filter: Words64, digest: np.uint64) -> bool:
    """Return whether a digest may have been entered into a filter of four bits each."""
    bits = _four_bits(digest)
    return in_filter[scaled_low(digest, in_filter.size)] & bits == bits


@kernel
def next_slot(slot: int, n: int) -> int:
    return slot + 1 if slot + 1 < n else 0


@kernel
def free_slot(slot: int, slots: Array) -> int:
    """Return the first free slot from one on."""
    while slots[slot]:
        slot = next_slot(slot, slots.size)
    return slot


def numbered_digests(digests: Words64) -> tuple[Numbers, Integers]:
    """Number different digests in order of first occurrence.

    Return the number of each, and where each number first occurs.
    """
    numbers, first = np.empty(digests.size, np.uint32), np.empty(digests.size, np.int64)
    n = _number_digests(digests, np.zeros(2 * digests.size + 1, np.uint32), numbers, first)
    return numbers, first[:n]


@entry(compile_seconds=0.2, steps=lambda digests, *_: digests.size)
def _number_digests(digests: Words64, slots: Numbers, numbers: Numbers, first: Integers) -> int:
    n = 0
    for at in range(digests.size):
        slot = scaled(mixed(digests[at]), slots.size)
        while slots[slot] and digests[first[np.int64(slots[slot]) - 1]] != digests[at]:
            slot = next_slot(slot, slots.size)
        if not slots[slot]:
            first[n] = at
            n += 1
            slots[slot] = np.uint32(n)
        numbers[at] = np.uint32(np.int64(slots[slot]) - 1)
    return n


class Numbered(NamedTuple):
    """Distinct digests by number: a filter of them, and a table with their numbers, from 1."""

    filter: Words64
    slots: Numbers
    digests: Words64


@kernel
def enter_numbered(numbered: Numbered) -> None:
    """Fill the filter and the table, which are zeros."""
    for number in range(numbered.digests.size):
        digest, slots = numbered.digests[number], numbered.slots
        enter_digest(digest, numbered.filter)
        slots[free_slot(scaled(digest, slots.size), slots)] = number + 1


@inlined
def number_of_digest(digest: np.uint64, numbered: Numbered) -> int:
    """Return the number of a digest, `NONE` if it was not entered."""
    if not may_hold(numbered.filter, digest):
        return NONE
    slots = numbered.slots
    slot = scaled(digest, slots.size)
    while slots[slot] and numbered.digests[np.int64(slots[slot]) - 1] != digest:
        slot = next_slot(slot, slots.size)
    return np.int64(slots[slot]) - 1


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
