"""Allocate large arrays that live as long as one block of a shard."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Number = TypeVar("Number", bound=np.generic)


def alloc_array(n: int, kind: type[Number]) -> npt.NDArray[Number]:
    """Return an uninitialized array of `n` numbers.

    It is allocated in Arrow's pool, which separates large and small allocations. In the heap that
    numpy uses, small results of a block fill the memory freed by it, and memory grows with the
    shard.
    """
    return np.frombuffer(pa.allocate_buffer(n * np.dtype(kind).itemsize), kind, n)
