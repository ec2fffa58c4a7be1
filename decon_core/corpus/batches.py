"""Fast version of `corpus.shards.read_shard`: read a shard in batches of texts.

Rows, texts and unreadable rows are exactly the same. A kernel parses most lines, and most table
columns are used as they are; the slow reader handles everything unusual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable
from decon_core.corpus.lines import LineBlock, blocks_of, line_blocks, row_of_line
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import open_shard
from decon_core.corpus.tables import rows_not_utf8, rows_of_table, table_batches
from decon_core.kernels import json_lines
from decon_core.kernels.arrays import alloc_array
from decon_core.storage.compression import LINE_FORMATS, format_of
from decon_core.storage.paths import parse_path

_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of documents as one byte array, and the unreadable rows between them."""

    text: npt.NDArray[np.uint8]  # UTF-8; the documents are slices of it
    starts: npt.NDArray[np.int64]  # of each document within the text
    stops: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]  # row number of each document in the shard, ascending
    n_characters: int
    unreadable: list[Unreadable]
    reread: Callable[[int], Document | Unreadable | None]  # read a row again, by its number
    invalid: list[InvalidUtf8] = field(default_factory=list)  # of the documents

    def document(self, at: int) -> Document:
        """Read the document at a position again, with all its fields."""
        return cast("Document", self.reread(int(self.rows[at])))


@dataclass(frozen=True, eq=False)
class Block:
    """An unparsed part of a shard; may be parsed in another thread."""

    read: Callable[[], Batch]
    position: int  # approximate progress: offset in the compressed file


def read_blocks(
    shard: Shard, source: Source, *, block_bytes: int = _BLOCK_BYTES
) -> Iterator[Block]:
    """Yield the blocks of a shard in order. Raises as `read_shard` does, after the same rows."""
    path = parse_path(shard.path)
    with open_shard(shard) as file:
        if format_of(path) in LINE_FORMATS:
            for block in line_blocks(file, path, block_bytes=block_bytes):
                yield Block(partial(read_lines, block, source), file.tell())
        else:
            row = 0
            for batch in table_batches(file, path, source, batch_bytes=block_bytes):
                yield Block(partial(_read_table, batch, row, source), file.tell())
                row += batch.num_rows


def compile_reader(source: Source) -> None:
    """Compile the line kernel by running it on an empty line."""
    for block in blocks_of(b"{}\n", block_bytes=64):
        read_lines(block, source)


@dataclass(frozen=True, eq=False)
class _Field:
    """The path of a text field, as the kernel takes it."""

    path: npt.NDArray[np.uint8]
    key_starts: npt.NDArray[np.int64]


def _field_of(source: Source) -> _Field | None:
    """Return the text field; None if the kernel cannot read it."""
    keys = source.text.encode().split(b".") if isinstance(source.text, str) else []
    if not all(keys) or not keys:
        return None
    sizes = [len(key) + 1 for key in keys]
    # Copied because a read-only array would make Numba compile the kernel again.
    path = np.frombuffer(b".".join(keys), np.uint8).copy()
    return _Field(path, np.cumsum([0, *sizes], dtype=np.int64))


def read_lines(block: LineBlock, source: Source) -> Batch:
    """Parse a block of lines into a batch."""
    field = _field_of(source)
    if field is None:
        reread = partial(_row_of_line, block, block.edges, source)
        return _batch(_NO_TEXTS, [reread(row) for row in block.rows], reread)
    n = block.n_lines
    line_starts = np.empty(n + 1, np.int64)
    reread = partial(_row_of_line, block, line_starts, source)
    text = alloc_array(block.n_bytes + json_lines.PADDING, np.uint8)
    starts, stops, documents, unusual = np.empty((4, n), np.int64)
    n_documents, n_unusual, n_characters = json_lines.read_lines(
        block.lines,
        block.n_bytes,
        field.path,
        field.key_starts,
        text,
        starts,
        stops,
        documents,
        unusual,
        line_starts,
    )
    plain = _Texts(
        text,
        starts[:n_documents],
        stops[:n_documents],
        documents[:n_documents] + block.row,
        int(n_characters),
    )
    others = [reread(block.row + line) for line in unusual[:n_unusual].tolist()]
    return _batch(plain, others, reread)


def _row_of_line(
    block: LineBlock, line_starts: npt.NDArray[np.int64], source: Source, row: int
) -> Document | Unreadable | None:
    start, stop = line_starts[row - block.row], line_starts[row - block.row + 1]
    line = block.lines[start:stop].tobytes()
    return row_of_line(line, row, block.offset + int(start), source)


def _read_table(table: pa.RecordBatch, first: int, source: Source) -> Batch:
    reread = partial(_row_of_table, table, first, source)
    column = _text_column(table, source)
    if column is None:
        return _batch(_NO_TEXTS, list(rows_of_table(table, first, source)), reread)
    text, starts, stops = _bytes_of(column)
    counts = np.empty(starts.size, np.int64)
    json_lines.count_characters(text, starts, stops, counts)
    counts[~column.is_valid().to_numpy(zero_copy_only=False)] = -1
    for name, other in zip(table.schema.names, table.columns, strict=True):
        if name != source.text:  # checked by the kernel; another column may also be invalid
            counts[rows_not_utf8(other)] = -1
    (good,) = np.nonzero(counts >= 0)
    (others,) = np.nonzero(counts < 0)
    plain = _Texts(text, starts[good], stops[good], good + first, int(counts[good].sum()))
    return _batch(plain, [reread(row) for row in (others + first).tolist()], reread)


def _row_of_table(
    table: pa.RecordBatch, first: int, source: Source, row: int
) -> Document | Unreadable:
    return next(rows_of_table(table.slice(row - first, 1), row, source))


def _text_column(table: pa.RecordBatch, source: Source) -> pa.Array | None:
    """Return the text column as a string array; None if the slow reader has to read it."""
    if not isinstance(source.text, str) or table.schema.names.count(source.text) != 1:
        return None
    if not table.num_rows:
        return None  # an empty column may have no buffers
    column = table.column(source.text)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        # Cast as bytes: the slow reader handles invalid UTF-8, a string cast would raise.
        column = column.view(pa.binary_view()).cast(pa.large_binary()).view(pa.large_string())
    return column if column.type in (pa.string(), pa.large_string()) else None


def _bytes_of(
    column: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes of a column, and where each text starts and stops."""
    _, offsets, content = column.buffers()
    width = np.int32 if column.type == pa.string() else np.int64
    count = len(column) + 1
    bounds = np.frombuffer(offsets, width, count, column.offset * np.dtype(width).itemsize)
    text = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]].copy()
    bounds = bounds.astype(np.int64) - int(bounds[0])
    return text, bounds[:-1], bounds[1:]


@dataclass(frozen=True, eq=False)
class _Texts:
    """Documents read the fast way."""

    text: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    n_characters: int


_NO_OFFSETS = np.empty(0, np.int64)
_NO_TEXTS = _Texts(np.empty(0, np.uint8), _NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS, 0)


def _batch(
    plain: _Texts,
    others: Sequence[Document | Unreadable | None],
    reread: Callable[[int], Document | Unreadable | None],
) -> Batch:
    """Combine the texts read the fast way with the rows that the slow reader read."""
    documents = [row for row in others if isinstance(row, Document)]
    unreadable = [row for row in others if isinstance(row, Unreadable)]
    if documents:
        plain = _merged(plain, documents)
    return Batch(
        plain.text,
        plain.starts,
        plain.stops,
        plain.rows,
        plain.n_characters,
        unreadable,
        reread,
        [document.invalid for document in documents if document.invalid],
    )


def _merged(plain: _Texts, documents: Sequence[Document]) -> _Texts:
    texts = [document.text.encode() for document in documents]
    bounds = plain.text.size + np.cumsum([0, *map(len, texts)], dtype=np.int64)
    rows = np.concatenate([plain.rows, np.array([row.row for row in documents], np.int64)])
    order = np.argsort(rows)
    return _Texts(
        text=np.concatenate([plain.text, np.frombuffer(b"".join(texts), np.uint8)]),
        starts=np.concatenate([plain.starts, bounds[:-1]])[order],
        stops=np.concatenate([plain.stops, bounds[1:]])[order],
        rows=rows[order],
        n_characters=plain.n_characters + sum(len(document.text) for document in documents),
    )
