"""Values of table rows as Python objects, and as JSON without loss.

`as_py` would round times and raises on invalid UTF-8; the functions here do neither.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.corpus.string_kinds import text_of_bytes

_types = pa.types
_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def values_of_table(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the rows of a batch as Python values, with the names of columns with invalid UTF-8."""
    try:
        for value in batch.to_pylist():
            yield value, []
        return
    except (ValueError, OverflowError):  # not UTF-8, or a time that Python has no type for
        pass
    names = batch.schema.names
    for row in zip(*batch.columns, strict=True):
        value = {name: value_of(scalar) for name, scalar in zip(names, row, strict=True)}
        yield value, [n for n, scalar in zip(names, row, strict=True) if not is_utf8(scalar)]


def is_utf8(scalar: Any) -> bool:
    """Return whether all strings in a scalar are valid UTF-8."""
    try:
        scalar.as_py()
    except (ValueError, OverflowError) as error:  # others: a time that Python has no type for
        return not isinstance(error, UnicodeDecodeError)
    return True


def value_of(scalar: Any) -> Any:
    """Return a scalar as a Python value, with U+FFFD in place of invalid UTF-8.

    None for a time that Python has no type for.
    """
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        pass
    if _types.is_temporal(scalar.type):
        return None
    if isinstance(scalar.type, pa.BaseExtensionType):
        return value_of(scalar.value)
    if _types.is_map(scalar.type):
        return [(value_of(item[0]), value_of(item[1])) for item in scalar.values]
    if _has_parts(scalar.type):
        return _of_parts(scalar, value_of)
    return scalar.as_buffer().to_pybytes().decode("utf-8", errors="replace")


def bytes_of_strings(scalar: Any) -> bytes:
    """Return the bytes of all strings in a scalar that are not valid UTF-8."""
    if is_utf8(scalar):
        return b""
    if isinstance(scalar.type, pa.BaseExtensionType):
        return bytes_of_strings(scalar.value)
    if not _has_parts(scalar.type):
        content: bytes = scalar.as_buffer().to_pybytes()
        return content
    parts = _of_parts(scalar, bytes_of_strings)
    if isinstance(parts, dict):
        parts = [*parts.values()]
    return parts if isinstance(parts, bytes) else b" ".join(parts)


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values as an array, also of extension types at any depth."""
    stored = _stored(kind)
    if _types.is_fixed_size_binary(stored):
        values = [value and value.ljust(stored.byte_width, b"\0") for value in values]
    array = pa.array(values, stored)
    return array if stored == kind else array.cast(kind)


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the same type with storage types in place of extension types."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if _types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if _types.is_list(kind) or _types.is_large_list(kind):
        make_list = pa.list_ if _types.is_list(kind) else pa.large_list
        return make_list(kind.value_field.with_type(_stored(kind.value_type)))
    return kind


def _has_parts(kind: pa.DataType) -> bool:
    return _is(kind, _types.is_dictionary, _types.is_run_end_encoded, _types.is_nested)


def _of_parts(scalar: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert the value that a scalar stands for, or each of its fields or elements."""
    kind = scalar.type
    if _is(kind, _types.is_dictionary, _types.is_union, _types.is_run_end_encoded):
        return convert(scalar.value)
    if _types.is_struct(kind):
        return {field.name: convert(scalar[at]) for at, field in enumerate(kind)}
    return [convert(item) for item in scalar.values]


def json_values(batch: pa.RecordBatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rows of a batch as JSON objects, and as `values_of_table` gives them."""
    names = batch.schema.names
    columns = [_json_column(column) for column in batch.columns]
    values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if all(_is_json(column.type) for column in batch.columns):
        return [(value, value) for value in values]
    read = (value for value, _ in values_of_table(batch))
    return [*zip(values, read, strict=True)]


def _json_column(column: pa.Array) -> list[Any]:
    if _is_json(column.type):
        with suppress(UnicodeDecodeError):
            values: list[Any] = column.to_pylist()
            return values
    return [_json_form(scalar) for scalar in column]


_IS_SCALAR = (
    _types.is_null,
    _types.is_boolean,
    _types.is_integer,
    _types.is_floating,
    _types.is_string,
    _types.is_large_string,
    _types.is_string_view,
)
_IS_LIST = (
    _types.is_list,
    _types.is_large_list,
    _types.is_fixed_size_list,
    _types.is_list_view,
    _types.is_large_list_view,
)


def _is(kind: pa.DataType, *tests: Any) -> bool:
    return any(test(kind) for test in tests)


def is_bytes(kind: pa.DataType) -> bool:
    any_length = _types.is_binary, _types.is_large_binary, _types.is_binary_view
    return _is(kind, *any_length, _types.is_fixed_size_binary)


def _is_json(kind: pa.DataType) -> bool:
    """Return whether `to_pylist` of this type gives JSON values without loss."""
    if _types.is_struct(kind):
        return all(_is_json(field.type) for field in kind)
    if _is(kind, *_IS_LIST, _types.is_dictionary):
        return _is_json(kind.value_type)
    return _is(kind, *_IS_SCALAR)


def _json_form(scalar: Any) -> Any:
    """Convert a table value to JSON without loss; `as_py` would round some types."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if isinstance(kind, pa.BaseExtensionType):
        return _json_form(scalar.value)
    if _types.is_map(kind):
        return [[_json_form(item[0]), _json_form(item[1])] for item in scalar.values]
    if _has_parts(kind):
        return _of_parts(scalar, _json_form)
    if is_bytes(kind):
        value = scalar.as_py()
        return text_of_bytes(value) or b64encode(value).decode()
    if _types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if _types.is_temporal(kind):
        return _iso(scalar)
    return value_of(scalar)


def _iso(scalar: Any) -> Any:
    """Return a time in ISO 8601 with all digits; an interval as [months, days, nanoseconds]."""
    kind = scalar.type
    if _types.is_interval(kind):
        return list(scalar.as_py())
    if _types.is_date32(kind):
        return str(np.datetime64(scalar.value, "D"))
    if _types.is_duration(kind):
        n_digits = _FRACTION_DIGITS[kind.unit]
        whole, rest = divmod(abs(scalar.value), 10**n_digits)
        fraction = f".{rest:0{n_digits}}" if n_digits else ""
        return f"{'-' * (scalar.value < 0)}PT{whole}{fraction}S"
    text = str(np.datetime64(scalar.value, "ms" if _types.is_date64(kind) else kind.unit))
    if _types.is_time(kind):
        return text.partition("T")[2]
    return text + "Z" if _types.is_timestamp(kind) and kind.tz else text  # Arrow stores UTC
