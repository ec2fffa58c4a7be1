"""Rewrite a shard without some rows and with changes to others.

In line formats, unchanged lines keep their bytes: they are copied in ranges, at the speed of
decompression and compression. Changes may be decided per block, so that the shard is decompressed
once. Tables keep their columns and row groups.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, id_of
from decon_core.corpus.lines import (
    BYTE_ORDER_MARK,
    LineBlock,
    line_blocks,
    lines_of,
    row_of_line,
    with_replacements,
)
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import open_shard
from decon_core.corpus.tables import open_arrow, readable, replaced_in_row, value_of
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import LINE_FORMATS, compression_of, create, format_of
from decon_core.storage.paths import parse_path

_BLOCK_BYTES = 4 << 20

Ids = dict[int, str | None]


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes to the rows of a shard or a block."""

    gone: frozenset[int]
    values: Mapping[int, dict[str, Any]]  # new values, by row
    # Rows in which only bytes that are not UTF-8 are replaced by replacement characters.
    replaced: frozenset[int] = frozenset()

    @cached_property
    def rows(self) -> list[int]:
        """All changed rows, in order."""
        return sorted(self.gone | set(self.values) | self.replaced)

    def within(self, rows: range) -> list[int]:
        """Return the changed rows in a range."""
        return self.rows[bisect_left(self.rows, rows.start) : bisect_left(self.rows, rows.stop)]


# Returns the changes to a block of lines.
Decide = Callable[[LineBlock], Changes]


def has_lines(shard: Shard) -> bool:
    """Return whether a shard has a line format and can be rewritten block by block."""
    return format_of(parse_path(shard.path)) in LINE_FORMATS


def rewrite(shard: Shard, source: Source, target: Path, changes: Changes) -> Ids:
    """Write a shard with these changes; return the ids of the changed rows."""
    path = parse_path(shard.path)
    form = format_of(path)
    if form in LINE_FORMATS:
        return rewrite_lines(shard, source, target, lambda _: changes)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_shard(shard) as file:
        file.require_unchanged()
        write = _rewrite_parquet if form == ".parquet" else _rewrite_arrow
        with raising_corpus_errors(path):
            return write(path, source, target, changes)


@contextmanager
def raising_corpus_errors(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into a `CorpusError` that names the table."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise CorpusError(
            Problem(
                str(path),
                f"columns that cannot be written row by row ({error})",
                "columns of other types",
                'use cut = "documents", which does this for fewer rows, or convert the table',
            )
        ) from None


# Lines --------------------------------------------------------------------------------------------


def rewrite_lines(shard: Shard, source: Source, target: Path, decide: Decide) -> Ids:
    """Write a shard of lines; `decide` returns the changes to each block after it was read."""
    target.parent.mkdir(parents=True, exist_ok=True)
    ids: Ids = {}
    path = parse_path(shard.path)
    with open_shard(shard) as file, create(target, compression_of(target)) as out:
        for block in line_blocks(file, path, block_bytes=_BLOCK_BYTES):
            changes = decide(block)
            at = 0
            for row, start, stop in lines_of(block, changes.within(block.rows)):
                out.write(block.lines[at:start].data)
                at = stop
                line = block.lines[start:stop].tobytes()
                document = row_of_line(line, row, block.offset + start, source)
                ids[row] = document.id if isinstance(document, Document) else None
                if row in changes.values:
                    out.write(_line(changes.values[row], like=line))
                elif row not in changes.gone:
                    out.write(with_replacements(line).encode())
            out.write(block.lines[at : block.n_bytes].data)
    return ids


def _line(value: Mapping[str, Any], *, like: bytes) -> bytes:
    """Serialize a row like the old line: same escaping, byte order mark and line break."""
    try:
        line = json.dumps(value, ensure_ascii=like.isascii()).encode()
    except UnicodeEncodeError:  # a lone surrogate in a field that is not the text
        line = json.dumps(value).encode()
    head = BYTE_ORDER_MARK if like.startswith(BYTE_ORDER_MARK) else b""
    return head + line + like[len(like.rstrip(b"\r\n")) :]


# Tables -------------------------------------------------------------------------------------------


def _rewrite_parquet(path: Path, source: Source, target: Path, changes: Changes) -> Ids:
    file = pq.ParquetFile(readable(path))
    ids: Ids = {}
    first = 0
    with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as writer:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            writer.write_table(_changed(group, first, source, changes, ids))
            first += group.num_rows
    return ids


def _rewrite_arrow(path: Path, source: Source, target: Path, changes: Changes) -> Ids:
    """Rewrite an Arrow file as a file, and an Arrow stream as a stream."""
    table = open_arrow(path)
    ids: Ids = {}
    create_table = pa.ipc.new_file if table.is_file else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    first = 0
    with create_table(str(target), table.schema, options=options) as writer:
        for batch in table.batches:
            rows = pa.Table.from_batches([batch])
            changed = _changed(rows, first, source, changes, ids)
            # Keep the number of batches, including empty ones.
            (left,) = changed.combine_chunks().to_batches() or [batch.slice(0, 0)]
            writer.write_batch(left)
            first += batch.num_rows
    return ids


def _changed(table: pa.Table, first: int, source: Source, changes: Changes, ids: Ids) -> pa.Table:
    """Apply changes to the rows of a table, whose first row has the number `first`."""
    touched = changes.within(range(first, first + table.num_rows))
    if not touched:
        return table
    ids |= _ids(table, first, source, touched)
    is_left = np.ones(table.num_rows, np.bool_)
    is_left[np.array(touched) - first] = False
    pieces, at = [], 0
    for row in touched:
        if row not in changes.gone:
            pieces.append(_filter(table, is_left, at, row - first))
            one = table.slice(row - first, 1)
            values = changes.values.get(row)
            pieces.append(with_values(one, values or replaced_in_row(one, source)))
            at = row - first + 1
    pieces.append(_filter(table, is_left, at, table.num_rows))
    return pa.concat_tables(pieces).combine_chunks()


def _filter(table: pa.Table, is_left: npt.NDArray[np.bool_], start: int, stop: int) -> pa.Table:
    """Return the rows of a range that are left."""
    left, some = is_left[start:stop], table.slice(start, stop - start)
    try:
        return some.filter(left)
    except pa.ArrowNotImplementedError:  # a column type that supports slicing, but not filtering
        edges = np.flatnonzero(np.diff(left, prepend=False, append=False)).tolist()
        pieces = [some.slice(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        return pa.concat_tables([some.slice(0, 0), *pieces])


def _ids(table: pa.Table, first: int, source: Source, rows: list[int]) -> Ids:
    if not source.id:
        return dict.fromkeys(rows)
    name = source.id if source.id in table.column_names else source.id.partition(".")[0]
    if name not in table.column_names:
        return dict.fromkeys(rows)
    column = table.column(name)
    return {row: id_of({name: value_of(column[row - first])}, source) for row in rows}


def with_values(row: pa.Table, value: Mapping[str, Any]) -> pa.Table:
    """Set columns of a row. The others are not converted: Python would round some types."""
    for name, column in value.items():
        at = row.schema.get_field_index(name)
        kind = row.schema.field(at)
        row = row.set_column(at, kind, pa.array([column], kind.type))
    return row
