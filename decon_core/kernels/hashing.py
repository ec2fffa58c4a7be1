"""Hashes of 64 bits, their scaling to the size of a table, and filters.

A filter is a set of bits that says for certain that a number was not entered.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Numbers, Words64
from decon_core.kernels.jit import inlined, kernel

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
