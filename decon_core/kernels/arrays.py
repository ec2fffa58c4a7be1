"""Arrays in kernels: their types, allocation, and ranges of them: compare, search, fill."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import inlined, kernel

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.uint8]  # 0 or 1
Numbers = npt.NDArray[np.uint32]
Words64 = npt.NDArray[np.uint64]
Shorts = npt.NDArray[np.int16]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.int64]  # two-dimensional
Floats = npt.NDArray[np.float64]
Short = npt.NDArray[np.uint16] | Numbers  # 16 bits where they fit

Number = TypeVar("Number", bound=np.generic)


def alloc_array(n: int, kind: type[Number]) -> npt.NDArray[Number]:
    """Return an uninitialized array of `n` numbers.

    It is allocated in Arrow's pool, which separates large and small allocations. In the heap that
    numpy uses, small results of a block fill the memory freed by it, and memory grows with the
    shard.
    """
    import pyarrow as pa

    return np.frombuffer(pa.allocate_buffer(n * np.dtype(kind).itemsize), kind, n)


def read_only(array: Array) -> Array:
    """Return a view that cannot be written, like a mapped array.

    Kernels are compiled for the types of their arguments. An index in memory has the same types as
    one that is mapped, or the largest kernels would be compiled twice.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the distinct values, sorted.

    `np.unique` hashes integers since NumPy 2.3, which takes 15 times as long for a million of them.
    """
    ordered = np.sort(values)
    is_first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


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
