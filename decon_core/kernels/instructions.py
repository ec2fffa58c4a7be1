"""Processor instructions for kernels that numba has no function for.

Each is a plain function, for kernels that run as plain Python; `register` tells numba which
instruction it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

LANES = 64  # bytes that are looked at together


def prefetch(array: npt.NDArray[np.generic], at: int) -> None:
    """Prefetch an element into the CPU cache. As plain Python it does nothing."""


def eight_bytes(array: npt.NDArray[np.uint8 | np.uint64], at: int) -> np.uint64:
    """Return the eight bytes from a byte on as a number; the first byte is the lowest."""
    some = array.view(np.uint8)[int(at) : int(at) + 8]
    return np.uint64(int.from_bytes(some.tobytes(), "little"))


def bytes_between(array: npt.NDArray[np.uint8], at: int, low: int, high: int) -> np.uint64:
    """Return a bit for each of the `LANES` bytes from a position on: 1 if low <= byte <= high."""
    some = array[int(at) : int(at) + LANES]
    flags = np.packbits((some >= low) & (some <= high), bitorder="little")
    return np.uint64(int.from_bytes(flags.tobytes(), "little"))


def lowest_bit(bits: np.uint64) -> np.uint64:
    """Return the position of the lowest bit that is 1; 64 if there is none."""
    number = int(bits)
    return np.uint64((number & -number).bit_length() - 1 if number else 64)


def n_bits(bits: np.uint64) -> np.uint64:
    """Count the bits that are 1."""
    return np.uint64(int(bits).bit_count())


@lru_cache(maxsize=1)
def register() -> None:
    """Tell numba the instructions of all functions here, once."""
    import numba.extending
    from llvmlite import ir
    from numba import types

    extending: Any = numba.extending  # untyped: intrinsics change their signature
    byte, word = ir.IntType(8), ir.IntType(64)
    lanes = ir.VectorType(byte, LANES)

    def place(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.gep(first, [values[1]])

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba's decorators are untyped
    def fetch(_: Any, array: Any, at: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = place(context, builder, signature, values)
            for_reading, for_good, data = (ir.Constant(ir.IntType(32), n) for n in (0, 3, 1))
            name, pointer = "llvm.prefetch.p0", byte.as_pointer()
            form = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
            known = builder.module.globals
            fetching = known.get(name) or ir.Function(builder.module, form, name)
            arguments = [builder.bitcast(address, pointer), for_reading, for_good, data]
            builder.call(fetching, arguments)
            return context.get_dummy_value()

        return types.void(array, at), emit

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba's decorators are untyped
    def load(_: Any, array: Any, at: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, values[0])
            first = builder.bitcast(array.data, byte.as_pointer())
            address = builder.gep(first, [values[1]])
            return builder.load(builder.bitcast(address, word.as_pointer()), align=1)

        return types.uint64(array, at), emit

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba's decorators are untyped
    def compare(_: Any, array: Any, at: Any, low: Any, high: Any) -> Any:  # noqa: ARG001 - as below
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = place(context, builder, signature, values)
            loaded = builder.load(builder.bitcast(address, lanes.as_pointer()), align=1)
            first = ir.Constant(lanes, ir.Undefined)
            of_no_lane = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

            def in_all_lanes(number: Any) -> Any:
                inserted = builder.insert_element(first, number, ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(inserted, first, of_no_lane)

            low, high = values[2:]
            span = in_all_lanes(builder.sub(high, low))
            above = builder.sub(loaded, in_all_lanes(low))
            return builder.bitcast(builder.icmp_unsigned("<=", above, span), word)

        return types.uint64(array, at, types.uint8, types.uint8), emit

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba's decorators are untyped
    def count_zeros(_: Any, bits: Any) -> Any:  # noqa: ARG001 - numba compares names
        def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), emit

    @extending.intrinsic  # type: ignore[untyped-decorator] # numba's decorators are untyped
    def count_ones(_: Any, bits: Any) -> Any:  # noqa: ARG001 - as above
        def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.ctpop(values[0])

        return types.uint64(types.uint64), emit

    for function, intrinsic in ((prefetch, fetch), (eight_bytes, load)):
        extending.overload(function)(_called_at(intrinsic))
    extending.overload(bytes_between)(_called_between(compare))
    for function, intrinsic in ((lowest_bit, count_zeros), (n_bits, count_ones)):
        extending.overload(function)(_called_on(intrinsic))


# Numba calls the outer functions, compiles the inner ones, and compares the names of parameters.
# ruff: noqa: ARG005, PLW0108


def _called_at(intrinsic: Any) -> Any:
    return lambda array, at: lambda array, at: intrinsic(array, at)


def _called_between(intrinsic: Any) -> Any:
    return lambda array, at, low, high: lambda array, at, low, high: intrinsic(array, at, low, high)


def _called_on(intrinsic: Any) -> Any:
    return lambda bits: lambda bits: intrinsic(bits)
