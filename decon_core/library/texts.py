"""Split texts in memory into blocks, as the blocks of a shard.

Texts become string arrays, and these are read by the reader of table shards: a null is an
unreadable row there, and invalid UTF-8 is replaced and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.fields import describe
from decon_core.config.load import Source
from decon_core.corpus.batches import Block
from decon_core.corpus.formats.shard_format import PART_BYTES
from decon_core.corpus.formats.table_strings import as_strings
from decon_core.corpus.formats.tables import TablePart
from decon_core.corpus.text_values import without_lone_surrogates
from decon_core.errors import InputError, Problem

# An iterable of strings and None, an Arrow array, a polars series, or, with the name of a column, a
# table or a data set of the Hugging Face library.
Texts: TypeAlias = "Iterable[str | None] | Any"

TEXT = "text"
_SOURCE = Source(name="texts", path="texts", text=TEXT)
_MAX_ROWS = 1 << 16  # of a block: texts may be empty
_DATASET_ROWS = 1 << 10  # that are read of a data set at once: their texts may be long
_EXPECTED = "strings: a list, an Arrow array, a polars series, or a table and its column"


def blocks_of(
    texts: Texts, *, column: str | None = None, block_bytes: int = PART_BYTES
) -> Iterator[Block]:
    """Yield the texts in blocks of about `block_bytes`; rows count from 0.

    The type of the texts is checked at once, before the first block is asked for.
    """
    return _blocks(_arrays(texts, column, block_bytes), block_bytes)


def _blocks(arrays: Iterable[pa.Array], block_bytes: int) -> Iterator[Block]:
    row = 0
    for array in _joined(arrays, block_bytes):
        table = pa.record_batch([array], [TEXT])
        part = TablePart(Path("texts"), row, len(array), table)
        yield Block(partial(part.batch, _SOURCE), position=row, place=part.place)
        row += len(array)


def _arrays(texts: Any, column: str | None, block_bytes: int) -> Iterator[pa.Array]:
    """Return an iterator of string arrays, each of about `block_bytes` or less."""
    if isinstance(texts, str | bytes):
        if isinstance(texts, bytes):
            raise InputError(Problem("texts", "bytes", _EXPECTED, "Decode them."))
        remedy = "For one string, call `check`."
        raise InputError(Problem("texts", "one string", _EXPECTED, remedy))
    if hasattr(texts, "select_columns") and hasattr(texts, "with_format"):
        chunks = _of_dataset(texts, _required(texts.column_names, column))
    elif hasattr(texts, "column_names") or hasattr(texts, "get_column"):
        names = texts.column_names if hasattr(texts, "column_names") else texts.columns
        chunks = _of_arrow(texts[_required(names, column)])
    elif column is not None:
        found = f"{describe(texts)} and the column {column!r}"
        expected = "a column only for a table or a data set"
        raise InputError(Problem("texts", found, expected))
    elif isinstance(texts, pa.Array | pa.ChunkedArray) or hasattr(texts, "__arrow_c_stream__"):
        chunks = _of_arrow(texts)
    elif isinstance(texts, Iterable):
        return _of_strings(texts, block_bytes)
    else:
        raise InputError(Problem("texts", describe(texts), _EXPECTED))
    return chain.from_iterable(_split(chunk, block_bytes) for chunk in chunks)


def _required(names: Iterable[str] | None, column: str | None) -> str:
    """Return the name of the column with the texts; raise `InputError` if there is none."""
    known = None if names is None else [*names]  # None: a streamed data set that names none
    if column is None or (known is not None and column not in known):
        found = "no name of a column" if column is None else f"no column {column!r}"
        among = f": {', '.join(known)}" if known else ""
        expected = f"the name of a column with texts{among}"
        raise InputError(Problem("column", found, expected, "Pass column=..."))
    return column


def _of_dataset(dataset: Any, column: str) -> Iterator[pa.Array]:
    """Yield a column of a data set, whose format has no effect, as arrays."""
    formatted = dataset.select_columns([column]).with_format("arrow")
    for table in formatted.iter(batch_size=_DATASET_ROWS):
        yield from _of_arrow(table.column(column))


def _of_arrow(texts: Any) -> Iterator[pa.Array]:
    """Return the chunks of an array, series or other object with the Arrow stream interface."""
    chunked = texts if isinstance(texts, pa.Array) else pa.chunked_array(texts)
    kind = chunked.type.value_type if pa.types.is_dictionary(chunked.type) else chunked.type
    if not any(
        is_kind(kind)
        for is_kind in (
            *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
            pa.types.is_null,
        )
    ):
        remedy = "Cast it to strings, or name another column."
        raise InputError(Problem("texts", f"a column of {chunked.type}", "strings", remedy))
    return iter([chunked] if isinstance(chunked, pa.Array) else chunked.chunks)


def _split(chunk: pa.Array, block_bytes: int) -> Iterator[pa.Array]:
    """Yield slices of a chunk of about `block_bytes`, as strings with offsets."""
    for first in range(0, len(chunk), _MAX_ROWS):
        some = chunk.slice(first, _MAX_ROWS)
        is_null = pa.types.is_null(some.type)
        rows: Any = pa.nulls(len(some), pa.string()) if is_null else as_strings(some)
        ends = np.cumsum(pc.fill_null(pc.binary_length(rows), 0).to_numpy(), dtype=np.int64)
        start = n_before = 0
        while start < len(rows):
            found = int(np.searchsorted(ends, n_before + block_bytes, side="right"))
            stop = max(start + 1, found)
            yield rows.slice(start, stop - start)
            start, n_before = stop, int(ends[stop - 1])


def _of_strings(texts: Iterable[object], block_bytes: int) -> Iterator[pa.Array]:
    some: list[str | None] = []
    n_characters = 0
    for number, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise InputError(Problem(f"text {number}", describe(text), "a string or None"))
        some.append(text)
        n_characters += len(text or "")
        if n_characters >= block_bytes or len(some) >= _MAX_ROWS:
            yield _array(some)
            some, n_characters = [], 0
    yield _array(some)


def _array(texts: list[str | None]) -> pa.Array:
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        clean = [text and without_lone_surrogates(text) for text in texts]
        return pa.array(clean, pa.large_string())


def _joined(arrays: Iterable[pa.Array], block_bytes: int) -> Iterator[pa.Array]:
    """Join short arrays: each block has costs of its own."""
    some: list[pa.Array] = []
    n_rows = n_bytes = 0
    for array in arrays:
        size = pc.sum(pc.binary_length(array)).as_py() or 0
        if some and (n_bytes + size > block_bytes or n_rows + len(array) > _MAX_ROWS):
            yield _concatenated(some)
            some, n_rows, n_bytes = [], 0, 0
        if len(array):
            some.append(array)
            n_rows, n_bytes = n_rows + len(array), n_bytes + size
    if some:
        yield _concatenated(some)


def _concatenated(arrays: list[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays([array.cast(pa.large_string()) for array in arrays])
