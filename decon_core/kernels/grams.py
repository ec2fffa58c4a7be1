"""n-grams of ragged rows of tokens: number them, invert, and screen documents for them.

A gram is represented by its position in the tokens and compared token by token, so hash collisions
do no harm. Reference implementation: dictionaries of tuples in `tests/oracle/decon.py`.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Flags, Integers, Numbers, Words64, n_same
from decon_core.kernels.hashing import (
    BASE,
    ZERO,
    digest_of,
    enter_digest,
    free_slot,
    has_bit,
    may_hold,
    mixed,
    next_slot,
    pair_digest,
    scaled,
    set_bit,
    shift_for,
    slot_of_known,
)
from decon_core.kernels.instructions import prefetch
from decon_core.kernels.jit import entry, inlined, kernel

NONE = 0xFFFFFFFF
_GROUP = 32  # grams whose slots are fetched together: a large table is not in the CPU's cache


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
    ahead = np.zeros(_GROUP, np.int64)  # the slots of the next grams, on their way to the cache
    for row in range(offsets.size - 1):
        start, stop = offsets[row], offsets[row + 1] - size + 1
        for at in range(start, stop):
            if (at - start) % _GROUP == 0:
                n_ahead = min(_GROUP, stop - at)
                for step in range(n_ahead):
                    ahead[step] = scaled(digest_of(tokens, at + step, size), slots.size)
                    prefetch(slots, np.uint64(ahead[step]))
                _prefetch_first(ahead[:n_ahead], slots, first)
            slot = ahead[(at - start) % _GROUP]
            # The loop of `slot_of_known`, written out: three times as fast, ten times for tokens.
            while slots[slot]:
                known = first[np.int64(slots[slot]) - 1]
                if n_same(tokens, at, tokens, known, size) == size:
                    break
                slot = next_slot(slot, slots.size)
            if not slots[slot]:
                first[n] = at
                n += 1
                slots[slot] = np.uint32(n)
            numbers[at] = np.uint32(np.int64(slots[slot]) - 1)
    return n


@inlined
def _prefetch_first(ahead: Integers, slots: Numbers, first: Integers) -> None:
    """Prefetch where the grams in these slots first occur."""
    for slot in ahead:
        if slots[slot]:
            prefetch(first, np.uint64(slots[slot]) - np.uint64(1))


@kernel
def enter_grams(tokens: Numbers, first: Integers, size: int, slots: Numbers) -> None:
    """Enter distinct grams, given by their positions, into a table as `number_grams` does."""
    for number in range(first.size):
        slot = free_slot(scaled(digest_of(tokens, first[number], size), slots.size), slots)
        slots[slot] = np.uint32(number + 1)


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
    ahead = np.zeros(_GROUP, np.int64)
    for at in range(starts.size):
        if at % _GROUP == 0:
            n_ahead = min(_GROUP, starts.size - at)
            for step in range(n_ahead):
                ahead[step] = scaled(digest_of(wanted, starts[at + step], size), slots.size)
                prefetch(slots, np.uint64(ahead[step]))
            _prefetch_first(ahead[:n_ahead], slots, first)
        slot = ahead[at % _GROUP]
        slot = slot_of_known(wanted, starts[at], size, slot, tokens, first, slots)
        numbers[at] = np.uint32(np.int64(slots[slot]) - 1 if slots[slot] else NONE)


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


@entry(compile_seconds=0.1, steps=lambda unique, *_: unique.size)
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


# Screening ----------------------------------------------------------------------------------------


@kernel
def _tokens_digest(tokens: Numbers, at: int, size: int) -> np.uint64:
    digest = ZERO
    for step in range(size):
        digest = (digest + np.uint64(tokens[at + step])) * BASE
    return mixed(digest)


@kernel
def enter_runs(
    tokens: Numbers, offsets: Integers, size: int, pairs: Words64, in_filter: Words64
) -> None:
    """Enter the n-grams of all texts, and their adjacent token pairs, into filters."""
    shift = shift_for(pairs)
    for text in range(offsets.size - 1):
        for at in range(offsets[text], offsets[text + 1] - size + 1):
            for pair in range(at, at + size - 1):
                set_bit(pairs, pair_digest(tokens[pair], tokens[pair + 1]) >> shift)
            enter_digest(_tokens_digest(tokens, at, size), in_filter)


@kernel
def screen_runs(
    tokens: Numbers,
    offsets: Integers,
    size: int,
    pairs: Words64,
    in_filter: Words64,
    shares: Flags,
) -> None:
    """Mark the documents that may share an n-gram; no false negatives.

    The pairs of an n-gram are looked up from its last: no n-gram holds one that is in no text, so
    the next that may be shared begins behind it. Most pairs are never looked up.
    """
    shift = shift_for(pairs)
    for document in range(offsets.size - 1):
        start, last = offsets[document], offsets[document + 1] - size
        known = start  # pairs from here to the end of the n-gram before are known
        while start <= last:
            pair = start + size - 2
            while pair >= known and has_bit(
                pairs, pair_digest(tokens[pair], tokens[pair + 1]) >> shift
            ):
                pair -= 1
            is_possible = pair < known
            known = start + size - 1
            if not is_possible:
                start = pair + 1
                continue
            if may_hold(in_filter, _tokens_digest(tokens, start, size)):
                shares[document] = 1
                break
            start += 1
