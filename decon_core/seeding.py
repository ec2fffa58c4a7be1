"""Chance that comes out the same everywhere: numbers that a name and a place decide.

SplitMix64 over a start that is hashed from the name. Any number can be had without those before it,
and no library's next version draws others.
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
    """The numbers of a name from one place on, each of 64 bits."""
    return numbers_at(name, np.arange(first, first + n))


def numbers_at(name: str, places: Integers) -> Words64:
    """The numbers of a name at these places."""
    start = np.uint64(int(sha256(name.encode()).hexdigest()[:16], 16))
    mixed = start + (places.astype(np.uint64) + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


def fractions(name: str, n: int, *, first: int = 0) -> npt.NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    return (numbers(name, n, first=first) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffled(name: str, n: int) -> Integers:
    """0 to n - 1 in an order that the name decides."""
    return np.argsort(numbers(name, n), kind="stable")
