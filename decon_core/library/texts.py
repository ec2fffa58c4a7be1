"""Split texts and rows in memory into blocks, as the blocks of a shard.

What is in Arrow's form is read as a table shard is, everything else as lines of JSON, but that
strings become an Arrow array, and rows with bytes are read as rows of a table with bytes. A null is
an unreadable row, and invalid UTF-8 is replaced and reported.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Number
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa

from decon_core.benchmarks.fields import describe
from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import Source
from decon_core.corpus.batches import Block
from decon_core.corpus.documents import Document, Unreadable, document_of
from decon_core.corpus.formats.json_lines import JsonBlock
from decon_core.corpus.formats.shard_format import PART_BYTES
from decon_core.corpus.formats.table_strings import as_strings
from decon_core.corpus.formats.tables import TablePart, columns_of
from decon_core.corpus.row_json import without_lone_surrogates
from decon_core.errors import InputError, Problem
from decon_core.kernels.arrays import Integers
from decon_core.kernels.json_tokens import PADDING

# A text; a row, as a line of JSON Lines holds it; or a conversation, a list of its messages.
TextOrRow: TypeAlias = "str | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
# An iterable of texts and rows; an Arrow array, a polars series or the like of strings, lists or
# structs; or a table, or a dataset of the Hugging Face library.
Texts: TypeAlias = "Iterable[TextOrRow | None] | Any"
# A path or several: `messages[].content`.
Paths: TypeAlias = "str | Iterable[str] | None"

TEXT, MESSAGES = "text", "messages"  # the fields that texts and conversations without one are in
_NO_FILE = Path("texts")
_NO_ROW = b"null"
# Values without text, as those in a table that are no strings, lists or structs.
_WITHOUT_TEXT = (Number, dt.date, dt.time, dt.timedelta)
_BYTES = (bytes, bytearray, memoryview)
_NUMBER_OF_BYTES = f"bytes {uuid4()}"  # a key that no row has
_MAX_ROWS = 1 << 16  # rows of a block: texts may be empty
_DATASET_ROWS = 1 << 10  # rows of a dataset that are read at once: their texts may be long
_EXPECTED = "an iterable of texts or rows, an Arrow array, a polars series, a table or a dataset"

_Piece = tuple["pa.RecordBatch | Sequence[bytes | _WithBytes]", Source]


@dataclass(frozen=True, eq=False)
class _WithBytes:
    """A row that JSON has no form for, because of bytes in it."""

    value: Mapping[str, Any]
    n_bytes: int

    def __len__(self) -> int:
        return self.n_bytes


_Row: TypeAlias = str | bytes | _WithBytes | None


@dataclass(frozen=True, eq=False)
class _Rows(JsonBlock):
    """Rows as lines of JSON, or null in place of those with bytes."""

    with_bytes: Mapping[int, _WithBytes]

    def _document(self, row: int, edges: Integers, source: Source) -> Document | Unreadable | None:
        if row in self.with_bytes:
            return document_of(self.with_bytes[row].value, row, source)
        return super()._document(row, edges, source)


def is_conversation(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(message, Mapping) for message in value
    )


def blocks_of(
    texts: Texts, *, column: Paths = None, ignore: Paths = None, block_bytes: int = PART_BYTES
) -> Iterator[Block]:
    """Yield texts and rows in blocks of about `block_bytes`; rows count from 0.

    The type of the texts is checked at once, before the first block is asked for.
    """
    source = _source(paths_of(column, "column"), paths_of(ignore, "ignore"))
    return _blocks(_pieces(texts, source, block_bytes))


def _source(paths: tuple[str, ...], ignore: tuple[str, ...] = ()) -> Source:
    return Source(name="texts", path="texts", text=paths or None, ignore=ignore)


def paths_of(paths: Paths, name: str) -> tuple[str, ...]:
    """Return paths that are given as one, as several, or as None."""
    is_several = isinstance(paths, Iterable) and not isinstance(paths, str)
    found: tuple[Any, ...] = () if paths is None else tuple(paths) if is_several else (paths,)
    if wrong := [path for path in found if not isinstance(path, str) or not path]:
        raise InputError(Problem(name, describe(wrong[0]), "a path, as 'messages[].content'"))
    return found


def _blocks(pieces: Iterable[_Piece]) -> Iterator[Block]:
    row = 0
    for rows, source in pieces:
        part: TablePart | JsonBlock
        if isinstance(rows, pa.RecordBatch):
            part = TablePart(_NO_FILE, row, rows.num_rows, rows)
        else:
            with_bytes = {at: of for at, of in enumerate(rows, row) if isinstance(of, _WithBytes)}
            content = b"".join((of if isinstance(of, bytes) else _NO_ROW) + b"\n" for of in rows)
            lines = np.frombuffer(bytearray(content + b"\n" + bytes(PADDING)), np.uint8)
            part = _Rows(_NO_FILE, row, len(rows), lines, len(content), 0, with_bytes)
        yield Block(partial(part.batch, source), position=row, place=part.place)
        row += part.n_rows


def _pieces(texts: Any, source: Source, block_bytes: int) -> Iterator[_Piece]:
    """Return an iterator of rows in memory, each of about `block_bytes` or less."""
    if isinstance(texts, bytes):
        raise InputError(Problem("texts", "bytes", _EXPECTED, "Decode them."))
    if isinstance(texts, str | Mapping):
        found = "one string" if isinstance(texts, str) else describe(texts)
        remedy = "For one text or row, call `check`. For columns of rows, pass a table."
        raise InputError(Problem("texts", found, _EXPECTED, remedy))
    if hasattr(texts, "select_columns") and hasattr(texts, "with_format"):
        return _of_dataset(texts, source, block_bytes)
    if isinstance(texts, pa.RecordBatch):
        return _of_arrow(pa.chunked_array([texts.to_struct_array()]), source, block_bytes)
    if isinstance(texts, pa.Array):
        return _of_arrow(pa.chunked_array([texts]), source, block_bytes)
    if hasattr(texts, "__arrow_c_stream__"):
        return _of_arrow(pa.chunked_array(texts), source, block_bytes)
    if isinstance(texts, Iterable):
        return _of_objects(texts, source, block_bytes)
    raise InputError(Problem("texts", describe(texts), _EXPECTED))


# Python objects -----------------------------------------------------------------------------------


def _of_objects(texts: Iterable[object], source: Source, block_bytes: int) -> Iterator[_Piece]:
    rows: list[_Row] = []
    n_bytes = 0
    for number, text in enumerate(texts):
        row: _Row
        if text is None or (isinstance(text, str) and not source.paths):
            row = text
        else:
            row = _line_of(text, number, source)
        rows.append(row)
        n_bytes += len(row or "")
        if n_bytes >= block_bytes or len(rows) >= _MAX_ROWS:
            yield _piece_of(rows, source)
            rows, n_bytes = [], 0
    if rows:
        yield _piece_of(rows, source)


def _line_of(text: object, number: int, source: Source) -> bytes | _WithBytes:
    """Return a row or a conversation as a line of JSON, or as it is if it has bytes."""
    where = f"text {number}"
    if isinstance(text, Mapping):
        return _json_line(text, where)
    if source.paths:
        found = f"{describe(text)} and the column {', '.join(map(repr, source.paths))}"
        raise InputError(Problem(where, found, "a column only with rows, a table or a dataset"))
    if isinstance(text, list | tuple):
        return _json_line({MESSAGES: text}, where)
    expected = "a string, a row (a dictionary), a conversation (a list of messages) or None"
    raise InputError(Problem(where, describe(text), expected))


def _json_line(row: Mapping[Any, Any], where: str = "") -> bytes | _WithBytes:
    """Return a row as JSON in one line; raise `InputError` if it holds what JSON has no form for.

    Numbers and times may be lost: they are no text.
    """
    found: list[bytes] = []
    line = _dumped(row, partial(_json_form, found=found), where)
    if not found:
        return line
    value = json.loads(line, object_hook=partial(_with_bytes, found=found))
    return _WithBytes(value, len(line) + sum(map(len, found)))


def _dumped(row: Mapping[Any, Any], form: Callable[[Any], Any], where: str) -> bytes:
    try:
        return orjson.dumps(row, default=form, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except (TypeError, RecursionError):  # also: lone surrogates, long integers, keys of other types
        pass
    try:
        return json.dumps(row, default=form).encode()
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "Convert the value to dictionaries, lists and strings, or leave it out."
        raise InputError(Problem(where, str(error), "JSON values", remedy)) from None


def _with_bytes(value: dict[str, Any], *, found: Sequence[bytes]) -> object:
    """Return the bytes that an object stands for, or the object."""
    return found[value[_NUMBER_OF_BYTES]] if _NUMBER_OF_BYTES in value else value


def _json_form(value: Any, *, found: list[bytes]) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _BYTES):
        found.append(bytes(value))
        return {_NUMBER_OF_BYTES: len(found) - 1}
    if isinstance(value, _WITHOUT_TEXT):
        return None
    if hasattr(value, "tolist"):  # arrays of numpy and the like
        return value.tolist()
    if isinstance(value, Sequence):
        return [*value]
    raise TypeError(f"a value of type {type(value).__name__}")


def _piece_of(texts: list[_Row], source: Source) -> _Piece:
    strings = [text for text in texts if text is None or isinstance(text, str)]
    if len(strings) == len(texts) and not source.paths:
        try:
            array = pa.array(strings, pa.large_string())
        except UnicodeEncodeError:
            clean = [text and without_lone_surrogates(text) for text in strings]
            array = pa.array(clean, pa.large_string())
        return pa.record_batch([array], [TEXT]), _source((TEXT,))
    lines = [
        _NO_ROW if text is None else _json_line({TEXT: text}) if isinstance(text, str) else text
        for text in texts
    ]
    return lines, source


# Arrow --------------------------------------------------------------------------------------------


def _of_dataset(dataset: Any, source: Source, block_bytes: int) -> Iterator[_Piece]:
    """Return rows of a dataset, whose own format has no effect."""
    if dataset.column_names is not None:  # None: a streamed dataset that names none
        _require_columns(dataset.column_names, source)
    tables = dataset.with_format("arrow").iter(batch_size=_DATASET_ROWS)
    return (
        piece
        for table in _joined(tables, block_bytes)
        for piece in _of_arrow(pa.chunked_array(table), source, block_bytes)
    )


def _joined(tables: Iterable[pa.Table], block_bytes: int) -> Iterator[pa.Table]:
    """Join small tables: each block has fixed costs."""
    small: list[pa.Table] = []
    for table in tables:
        n_bytes = sum(before.nbytes for before in small)
        if small and (n_bytes >= block_bytes or table.schema != small[0].schema):
            yield pa.concat_tables(small)
            small = []
        small.append(table)
    if small:
        yield pa.concat_tables(small)


def _of_arrow(texts: pa.ChunkedArray, source: Source, block_bytes: int) -> Iterator[_Piece]:
    """Return pieces of an array: of strings, of conversations (lists), or of rows (structs)."""
    kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
    if pa.types.is_struct(texts.type):
        _require_columns([field.name for field in kind], source)
    elif source.paths:
        found = f"an array of type {kind} and the column {', '.join(map(repr, source.paths))}"
        raise InputError(Problem("texts", found, "a column only with rows, a table or a dataset"))
    elif not any(is_kind(kind) for is_kind in _TEXTS):
        remedy = "Cast it to strings, or name another column."
        expected = "strings, lists (conversations) or structs (rows)"
        raise InputError(Problem("texts", f"a column of {kind}", expected, remedy))
    if pa.types.is_nested(kind) and kind.num_fields and not _may_hold_text(kind):
        remedy = "Decode token ids first."
        raise InputError(Problem("texts", f"only {kind}", "strings in the rows", remedy))
    n_rows = len(texts) * block_bytes // max(texts.nbytes, 1)
    n_rows = max(1, min(n_rows, _MAX_ROWS))
    slices = (texts.slice(first, n_rows) for first in range(0, len(texts), n_rows))
    arrays = (array for piece in slices for array in _halved(_whole(piece), 2 * block_bytes))
    return (_as_table(array, source) for piece in arrays for array in _without_null_rows(piece))


_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_null,
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _may_hold_text(kind: pa.DataType) -> bool:
    """Return whether there may be a string in values of a type: not in numbers and times."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _may_hold_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_may_hold_text(kind.field(n).type) for n in range(kind.num_fields))
    return not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _require_columns(names: Sequence[str], source: Source) -> None:
    """Raise `InputError` if a column is not there, or there twice."""
    if len({*names}) < len(names):
        twice = next(name for name in names if [*names].count(name) > 1)
        raise InputError(Problem("texts", f"two columns {twice!r}", "columns of different names"))
    for path in source.paths:
        head = re.split(r"[.\[]", path, maxsplit=1)[0]
        if EVERYTHING not in head and not {head, path} & {*names}:
            expected = f"one of {', '.join(names)}"
            raise InputError(Problem("column", f"no column {head!r}", expected))


def _whole(texts: pa.ChunkedArray) -> pa.Array:
    """Return some rows as one array, strings with offsets."""
    array: pa.Array = texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string())
    strings = as_strings(array)
    return array if strings is None else strings


def _halved(array: pa.Array, most_bytes: int) -> Iterator[pa.Array]:
    """Yield an array in pieces: rows may be far longer than most are."""
    half = len(array) // 2
    halves = [array.slice(0, half), array.slice(half)]
    n_bytes = sum(part.nbytes for part in halves)
    # Halves that count what they share, as a dictionary, would not get smaller.
    if not half or array.nbytes <= most_bytes or n_bytes > 1.5 * array.nbytes:
        yield array
        return
    for part in halves:
        yield from _halved(part, most_bytes)


def _without_null_rows(array: pa.Array) -> Iterator[pa.Array]:
    """Yield structs without nulls, and nulls apart: a table has no form for a row that is null."""
    if not (pa.types.is_struct(array.type) and array.null_count):
        yield array
        return
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(np.diff(is_valid)) + 1).tolist(), len(array)]
    for start, stop in pairwise(edges):
        part = array.slice(start, stop - start)
        yield part if is_valid[start] else pa.nulls(len(part), pa.string())


def _as_table(array: pa.Array, source: Source) -> _Piece:
    if not pa.types.is_struct(array.type):
        name = TEXT if as_strings(array) is not None else MESSAGES
        # Its column is named: a null is unreadable then, while rows may lack a field.
        return pa.record_batch([array], [name]), _source((name,))
    rows, read = pa.RecordBatch.from_struct_array(array), columns_of(source)
    names = [name for name in rows.schema.names if read is None or name in read]
    return rows.select(names), source
