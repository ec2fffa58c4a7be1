"""Reproducible random numbers, determined by a name and a position.

SplitMix64 with a seed hashed from the name. Any number can be computed without its predecessors,
and the numbers do not change with the version of a library.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words64 = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def numbers(name: str, n: int, *, first: int = 0) -> Words64:
    """Return `n` random 64-bit numbers of a name, from position `first` on."""
    return numbers_at(name, np.arange(first, first + n))


def numbers_at(name: str, positions: Integers) -> Words64:
    """Return the random 64-bit numbers of a name at these positions."""
    start = np.uint64(int(sha256(name.encode()).hexdigest()[:16], 16))
    mixed = start + (positions.astype(np.uint64) + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


def fractions(name: str, n: int, *, first: int = 0) -> npt.NDArray[np.float64]:
    """Return `n` random numbers in [0, 1)."""
    return (numbers(name, n, first=first) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffled(name: str, n: int) -> Integers:
    """Return a random permutation of 0 to n - 1."""
    return np.argsort(numbers(name, n), kind="stable")
