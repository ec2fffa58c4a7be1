"""Instructions that numba lacks: compiled, they return what their plain Python does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.kernels import instructions as plain
from decon_core.kernels.arrays import Bytes
from decon_core.kernels.instructions import (
    LANES,
    bytes_between,
    eight_bytes,
    lowest_bit,
    n_bits,
    prefetch,
)
from decon_core.kernels.jit import kernel

BITS = st.integers(0, 2**64 - 1).map(np.uint64)
BYTE = st.integers(0, 255).map(np.uint8)


@kernel
def compiled_bytes_between(array: Bytes, at: int, low: int, high: int) -> np.uint64:
    return bytes_between(array, at, low, high)


@kernel
def compiled_eight_bytes(array: Bytes, at: int) -> np.uint64:
    prefetch(array, at)
    return eight_bytes(array, at)


@kernel
def compiled_on_bits(bits: np.uint64) -> tuple[np.uint64, np.uint64]:
    return lowest_bit(bits), n_bits(bits)


@given(
    content=st.binary(min_size=LANES, max_size=LANES),
    at=st.integers(0, 9),
    bounds=st.tuples(BYTE, BYTE),
)
def test_bytes_between_two_bounds_at_any_position(content, at, bounds):
    low, high = sorted(bounds)
    array = np.frombuffer(bytes(at) + content, np.uint8)
    expected = sum(1 << lane for lane, byte in enumerate(content) if low <= byte <= high)
    assert int(plain.bytes_between(array, at, low, high)) == expected
    assert int(compiled_bytes_between(array, at, low, high)) == expected


@given(content=st.binary(min_size=8, max_size=8), at=st.integers(0, 9))
def test_eight_bytes_at_any_position(content, at):
    array = np.frombuffer(bytes(at) + content, np.uint8)
    expected = int.from_bytes(content, "little")
    assert int(plain.eight_bytes(array, at)) == int(compiled_eight_bytes(array, at)) == expected


@given(bits=BITS)
def test_the_lowest_bit_and_the_number_of_bits(bits):
    number = int(bits)
    expected = f"{number:b}"[::-1].index("1") if number else 64, f"{number:b}".count("1")
    assert (int(lowest_bit(bits)), int(n_bits(bits))) == expected
    assert tuple(map(int, compiled_on_bits(bits))) == expected


@pytest.mark.parametrize("at", [0, 63])
def test_a_prefetch_changes_nothing(at):
    array = np.arange(64, dtype=np.uint8)
    assert prefetch(array, at) is None
    assert array.tolist() == [*range(64)]
