"""Room for large arrays that live for a block of a shard."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Number = TypeVar("Number", bound=np.generic)


def alloc_array(n: int, kind: type[Number]) -> npt.NDArray[Number]:
    """An array of so many numbers, not filled.

    From Arrow's pool, which keeps large and small apart: in the heap that numpy uses, what is found
    in a block settles in the room that the block gave back, and memory grows with the shard.
    """
    return np.frombuffer(pa.allocate_buffer(n * np.dtype(kind).itemsize), kind, n)
