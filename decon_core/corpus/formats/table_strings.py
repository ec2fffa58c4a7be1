"""The strings of a table's rows, column by column: those in lists and structs as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from decon_core.corpus.compiled_rows import Fields, Strings, fields_of, settle
from decon_core.corpus.fields import Field, FieldTree, rank_of
from decon_core.corpus.formats.table_values import is_bytes
from decon_core.corpus.row_texts import LONGEST_NAME, text_of_number
from decon_core.corpus.string_kinds import is_text, text_of_bytes
from decon_core.kernels import json_lines, string_kinds
from decon_core.kernels.arrays import Bools, Bytes, Integers
from decon_core.kernels.json_tokens import PADDING

_types = pa.types
_CONTROL = "[\\x00-\\x08\\x0e-\\x1f]"  # bytes with one of these may not be text


class UnusualColumnError(Exception):
    """A column of a type that is read row by row: a map or a union."""


@dataclass(frozen=True, eq=False)
class _Column:
    """The strings in one field of all rows."""

    field: Field
    strings: pa.Array
    rows: Integers
    keys: Sequence[Integers]  # sort keys of the strings of a row


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The whole numbers in the lists of one field."""

    field: Field
    values: pa.Array
    parents: Integers  # the list of each number
    rows: Integers  # the row of each list

    def tokens(self) -> tuple[Integers, Integers]:
        """Return the row of each list that is a text, and how many numbers it has."""
        numbers = self.values.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
        parents = self.parents[self.values.is_valid().to_numpy(zero_copy_only=False)]
        edges = np.searchsorted(parents, np.arange(self.rows.size + 1))
        n_ids = np.empty(self.rows.size, np.int64)
        string_kinds.count_ids(numbers, edges, self.field.has_tokens, n_ids)
        return self.rows[n_ids > 0], n_ids[n_ids > 0]


def strings_of_table(table: pa.RecordBatch, tree: FieldTree) -> tuple[Strings, Bools, Fields]:
    """Return the strings of rows, which rows are unusual, and the fields of the table.

    Raises `UnusualColumnError` if the table has to be read row by row.
    """
    if len({*table.schema.names}) < len(table.schema.names):
        raise UnusualColumnError
    rows = np.arange(table.num_rows)
    named = sorted(zip(table.schema.names, table.columns, strict=True), key=rank_of)
    lists: list[_Numbers] = []
    columns = [
        column
        for at, (name, values) in enumerate(named)
        for column in _columns(
            values, _child(tree.root, name), rows, [np.full(rows.size, at)], lists
        )
    ]
    fields = fields_of(tree)
    strings = _sorted(columns, table.num_rows)
    counts = np.empty(strings.starts.size, np.int64)
    string_kinds.count_characters(strings.text, strings.starts, strings.stops, counts)
    is_unusual = np.zeros(table.num_rows, np.bool_)
    is_unusual[strings.rows[counts < 0]] = True
    np.subtract(strings.stops - strings.starts, counts, out=strings.continuing)
    settle(strings, fields, may_decode=True)
    strings = strings.take(strings.actions != string_kinds.TO_SKIP)
    return _with_numbers(strings, lists), is_unusual, fields


def _child(field: Field, name: str) -> Field:
    """Return the field of a name, unless the name is itself a text."""
    if len(name) > LONGEST_NAME and is_text(name):
        raise UnusualColumnError
    return _known(field.child(name))


def _known(field: Field) -> Field:
    """Return a field of a source that has not too many of them."""
    if field.number < 0:
        raise UnusualColumnError
    return field


def _columns(
    values: pa.Array, field: Field, rows: Integers, keys: list[Integers], lists: list[_Numbers]
) -> Iterator[_Column]:
    """Yield the columns of strings in an array, whose values belong to these rows.

    Adds the lists of numbers in it.
    """
    import pyarrow.compute as pc

    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _columns(values.storage, field, rows, keys, lists)
    elif (strings := as_strings(values)) is not None:
        yield _Column(field, strings, rows, keys)
    elif field.has_tokens and (_types.is_struct(kind) or is_bytes(kind)):
        raise UnusualColumnError  # ids in objects or in bytes
    elif is_bytes(kind):
        yield _Column(field, _texts_in(values.cast(pa.large_binary())), rows, keys)
    elif _types.is_dictionary(kind):
        yield from _columns(_decoded(values), field, rows, keys, lists)
    elif _types.is_list(kind) or _types.is_large_list(kind) or _types.is_fixed_size_list(kind):
        parents = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
        below = [*(key[parents] for key in keys), np.arange(parents.size)]
        inner = _known(field.element)
        flat = pc.list_flatten(values)
        if field.has_tokens and (_types.is_nested(flat.type) or _types.is_floating(flat.type)):
            raise UnusualColumnError  # ids may be in all of the inner lists together
        if _types.is_integer(flat.type):
            lists.append(_Numbers(field, flat, parents, rows))
        yield from _columns(flat, inner, rows[parents], below, lists)
    elif _types.is_struct(kind):
        named = zip((member.name for member in kind), values.flatten(), strict=True)
        for at, (name, inner) in enumerate(sorted(named, key=rank_of)):
            below = [*keys, np.full(rows.size, at)]
            yield from _columns(inner, _child(field, name), rows, below, lists)
    elif _types.is_nested(kind) or _types.is_run_end_encoded(kind):
        raise UnusualColumnError
    elif field.is_answer and field.place is not None and _is_number(kind):
        numbers = values.to_pylist()
        texts = [None if n is None or n != n else text_of_number(n) for n in numbers]
        yield _Column(field, pa.array(texts, pa.large_string()), rows, keys)


def _is_number(kind: pa.DataType) -> bool:
    checks = _types.is_boolean, _types.is_integer, _types.is_floating, _types.is_decimal
    return any(check(kind) for check in checks)


def _decoded(column: pa.Array) -> pa.Array:
    """Return the values of a dictionary array."""
    try:
        return column.dictionary_decode()
    except pa.ArrowNotImplementedError:  # binary views, some nested types: read value by value
        raise UnusualColumnError from None


def _sorted(columns: Sequence[_Column], n_rows: int) -> Strings:
    """Return all strings that are not empty, row after row in reading order."""
    depth = max((len(column.keys) for column in columns), default=0)
    texts, parts = [np.empty(0, np.uint8)], []
    n_before = 0
    for column in columns:
        text, starts, stops = bytes_of(column.strings)
        is_valid = column.strings.is_valid().to_numpy(zero_copy_only=False)
        (which,) = np.nonzero((stops > starts) & is_valid)
        padding = [np.zeros(which.size, np.int64)] * (depth - len(column.keys))
        keys = [*(key[which] for key in column.keys), *padding]
        numbers = np.full(which.size, column.field.number)
        rows = column.rows[which]
        parts.append([starts[which] + n_before, stops[which] + n_before, numbers, rows, *keys])
        texts.append(text)
        n_before += text.size
    texts.append(np.zeros(PADDING, np.uint8))
    nothing = [np.empty((4 + depth, 0), np.int64)]
    starts, stops, numbers, rows, *keys = np.concatenate([*nothing, *map(np.stack, parts)], axis=1)
    order = np.lexsort((*reversed(keys), rows)) if len(columns) > 1 else np.arange(rows.size)
    ordered = np.empty((json_lines.N_OF_STRING, rows.size), np.int64)
    ordered[json_lines.FIELD] = numbers[order]
    ordered[json_lines.LINE] = rows[order]
    ordered[json_lines.START] = starts[order]
    ordered[json_lines.STOP] = stops[order]
    marks = np.zeros((n_rows, 2), np.uint64)
    return Strings(np.concatenate(texts), ordered, marks, has_room=False)


def as_strings(column: pa.Array) -> pa.Array | None:
    """Return a column of texts as a string array with offsets; None if it has another type."""
    if _types.is_dictionary(column.type):
        # Arrow cannot decode a dictionary of string views.
        values = as_strings(column.dictionary)
        if values is None:
            return None
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    if _types.is_string_view(column.type):
        # Cast as bytes: the slow reader handles invalid UTF-8, a string cast would raise.
        column = column.view(pa.binary_view()).cast(pa.large_binary()).view(pa.large_string())
    return column if column.type in (pa.string(), pa.large_string()) else None


def _texts_in(column: pa.Array) -> pa.Array:
    """Return the texts in a column of bytes; other values are empty."""
    import pyarrow.compute as pc

    texts = column.view(pa.large_string())
    content, starts, stops = bytes_of(texts)
    counts = np.empty(starts.size, np.int64)
    string_kinds.count_characters(content, starts, stops, counts)
    texts = pc.if_else(pa.array(counts >= 0), texts, None)
    is_odd = pc.or_kleene(pc.match_substring_regex(texts, _CONTROL), pc.is_null(texts))
    is_odd = pc.and_(is_odd, column.is_valid())
    odd = [text_of_bytes(value) for value in column.filter(is_odd).to_pylist()]
    return pc.replace_with_mask(texts, is_odd, pa.array(odd, pa.large_string()))


def bytes_of(column: pa.Array) -> tuple[Bytes, Integers, Integers]:
    """Return the bytes of a column, and where each text starts and stops."""
    _, offsets, content = column.buffers()
    width = np.int32 if column.type == pa.string() else np.int64
    if not len(column):  # may have no buffers
        none = np.empty(0, np.int64)
        return np.empty(0, np.uint8), none, none
    count = len(column) + 1
    bounds = np.frombuffer(offsets, width, count, column.offset * np.dtype(width).itemsize)
    text = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds.astype(np.int64) - int(bounds[0])
    return text, bounds[:-1], bounds[1:]


def _with_numbers(strings: Strings, lists: Sequence[_Numbers]) -> Strings:
    """Add the lists of numbers that are a text, behind the strings of all rows."""
    columns = [strings.columns]
    for numbers in lists:
        rows, counts = numbers.tokens()
        added = np.zeros((json_lines.N_OF_STRING, rows.size), np.int64)
        added[json_lines.FIELD], added[json_lines.LINE] = numbers.field.number, rows
        added[json_lines.ACTION] = string_kinds.TO_COUNT_NUMBERS
        added[json_lines.KEY] = counts
        columns.append(added)
    return replace(strings, columns=np.concatenate(columns, axis=1)) if lists else strings
