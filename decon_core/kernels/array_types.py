"""Types of arrays, and the allocation of large ones that live as long as one block of a shard."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.uint8]  # 0 or 1
Numbers = npt.NDArray[np.uint32]
Words64 = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
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
