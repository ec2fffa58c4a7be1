"""Where words begin, found in eight bytes at a time."""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Integers, Words64
from decon_core.kernels.hashing import ONE, ZERO
from decon_core.kernels.instructions import lowest_bit
from decon_core.kernels.jit import kernel

_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
_EIGHT = np.uint64(8)
_SIXTY_THREE = np.uint64(63)

# A byte plus one of these has its high bit set from that character up.
_LOW_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH_BITS = np.uint64(0x8080808080808080)
_CASE_BITS = np.uint64(0x2020202020202020)
_FROM_A = np.uint64((0x80 - ord("a")) * 0x0101010101010101)
_ABOVE_Z = np.uint64((0x7F - ord("z")) * 0x0101010101010101)
_FROM_0 = np.uint64((0x80 - ord("0")) * 0x0101010101010101)
_ABOVE_9 = np.uint64((0x7F - ord("9")) * 0x0101010101010101)


@kernel
def find_beginnings(eights: Words64, start: int, stop: int, places: Integers) -> int:
    """Find the positions between two bytes where words or non-ASCII characters begin.

    `start` is a multiple of eight. `places` has room for every byte and two more, as the bytes
    between documents are arbitrary. Returns the number of positions.
    """
    n_places = 0
    inside = ZERO
    if start:
        _, inside = _beginnings(eights[(start >> 3) - 1], inside)
    for group in range(start >> 3, (stop + 7) >> 3):
        begins, inside = _beginnings(eights[group], inside)
        begins >>= _SEVEN
        base = group << 3
        # Words have about five letters: two positions are always written, which costs less than a
        # mispredicted branch.
        for _ in range(2):
            places[n_places] = base + np.int64(lowest_bit(begins) >> _THREE)
            n_places += np.int64(begins != ZERO)
            begins &= begins - ONE
        while begins:
            places[n_places] = base + np.int64(lowest_bit(begins) >> _THREE)
            n_places += 1
            begins &= begins - ONE
    return n_places


@kernel
def _beginnings(eight: np.uint64, is_inside: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high bit of every byte at which a word or a non-ASCII character begins.

    And whether the last byte is part of a word, as input for the next eight.
    """
    words = _word_bytes(eight)
    begins = words & ~((words << _EIGHT) | (is_inside << _SEVEN))
    # The first byte of a multi-byte character has two high bits set, the others one.
    return begins | (eight & (eight << ONE) & _HIGH_BITS), words >> _SIXTY_THREE


@kernel
def _word_bytes(eight: np.uint64) -> np.uint64:
    """Return the high bit of every byte in a word: letters, digits, non-ASCII."""
    low = eight & _LOW_SEVENS
    lowered = low | _CASE_BITS
    letters = (lowered + _FROM_A) & ~(lowered + _ABOVE_Z)
    digits = (low + _FROM_0) & ~(low + _ABOVE_9)
    return (letters | digits | eight) & _HIGH_BITS
