"""Shards that are tables: read in record batches, and rewritten without converting other columns.

Most text columns are used as they are; rows with anything unusual are parsed one by one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.load import Source
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable, document_of, id_of
from decon_core.corpus.formats.shard_format import (
    PART_BYTES,
    Changes,
    Decide,
    Ids,
    JsonRow,
    Part,
    ShardFormat,
    Value,
)
from decon_core.corpus.formats.table_values import (
    array_of,
    is_utf8,
    json_values,
    rows_not_utf8,
    value_of,
    values_of_table,
)
from decon_core.corpus.shard_file import ShardFile, changed, too_long
from decon_core.errors import CorpusError, Problem
from decon_core.kernels import json_lines
from decon_core.storage.compression import suffix_of
from decon_core.storage.paths import RemotePath, stamp_of

_MAX_ROWS = 4096  # per batch


@dataclass(frozen=True, eq=False)
class TablePart(Part):
    """Rows of a table."""

    table: pa.RecordBatch

    def document(self, row: int, source: Source) -> Document | Unreadable:
        return next(TablePart(self.path, row, 1, self._slice(row)).documents(source))

    def documents(self, source: Source) -> Iterator[Document | Unreadable]:
        for row, (value, columns) in enumerate(values_of_table(self.table), start=self.row):
            invalid = InvalidUtf8(row, None, f"in {', '.join(columns)}") if columns else None
            yield document_of(value, row, source, invalid=invalid)

    def _slice(self, row: int) -> pa.RecordBatch:
        return self.table.slice(row - self.row, 1)

    def batch(self, source: Source) -> Batch:
        table, column = self.table, _text_column(self.table, source)
        if column is None:
            return super().batch(source)
        text, starts, stops = _bytes_of(column)
        counts = np.empty(starts.size, np.int64)
        json_lines.count_characters(text, starts, stops, counts)
        counts[~column.is_valid().to_numpy(zero_copy_only=False)] = -1
        for name, other in zip(table.schema.names, table.columns, strict=True):
            if name != source.text:  # checked by the kernel; another column may also be invalid
                counts[rows_not_utf8(other)] = -1
        (good,) = np.nonzero(counts >= 0)
        (others,) = np.nonzero(counts < 0)
        rows, n_characters = good + self.row, int(counts[good].sum())
        reread = partial(self.document, source=source)
        batch = Batch(text, starts[good], stops[good], rows, n_characters, [], reread)
        return batch.with_rows(map(reread, (others + self.row).tolist()))

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        for row in rows:
            ((value, _),) = values_of_table(self._slice(row))
            yield row, value

    def json_rows(self, rows: Iterable[int], changed: Mapping[int, Value]) -> Iterator[JsonRow]:
        numbers = [*rows]
        if not numbers:
            return
        with raising_corpus_errors(self.path):
            values = json_values(self.table)
            for row in set(numbers) & set(changed):
                old = pa.Table.from_batches([self._slice(row)])
                (new,) = with_values(old, changed[row]).combine_chunks().to_batches()
                (values[row - self.row],) = json_values(new)
        for row in numbers:
            yield row, values[row - self.row], None


class TableFormat(ShardFormat):
    """A format of tables that Arrow reads."""

    @abstractmethod
    def columns(self, path: Path) -> Sequence[str]:
        """Return the names of all columns."""

    @abstractmethod
    def batches(self, path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield these columns in batches of about `batch_bytes`."""

    def batches_at(
        self, path: Path, wanted: set[str], batch_bytes: int, rows: Sequence[range]
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        """Yield batches with some of these rows: first row, batch, and bytes read until then.

        Like `batches`, perhaps with other batches between them.
        """
        del rows  # formats override this if they can skip batches
        first = 0
        for batch in self.batches(path, wanted, batch_bytes):
            yield first, batch, stamp_of(path).n_bytes
            first += batch.num_rows

    @abstractmethod
    def first_batches(self, path: Path, most: int) -> Iterator[pa.RecordBatch]:
        """Yield all columns in batches, the first of which is read without the rest."""

    @abstractmethod
    def rewrite_tables(self, path: Path, target: Path, rewriter: TableRewriter) -> None:
        """Write each group of rows as `rewriter` changes it."""

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[TablePart]:
        path = file.path
        file.require_unchanged()  # first: Arrow's errors on half-changed tables are misleading
        row = 0
        try:
            columns = columns_of(source) if source else set(self.columns(path))
            for batch in self.batches(path, columns, part_bytes):
                _require_short(batch, row, file)
                yield TablePart(path, row, batch.num_rows, batch)
                row += batch.num_rows
            file.require_in_place()  # Arrow opens the file again after it was hashed
        except (pa.ArrowException, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of the disk, not of the file
            found = f"not a readable {suffix_of(path)[1:]} file ({error})"
            remedy = "replace the shard, or remove it from the corpus"
            raise CorpusError(Problem(str(path), found, "a whole file", remedy)) from None

    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place], *, points: Path | None = None
    ) -> Iterator[tuple[TablePart, int]]:
        del points  # tables are found by their row groups and batches
        wanted = {place.row: place for place in places}
        rows = [range(place.row, place.row + place.n_rows) for place in places]
        try:
            for row, batch, n in self.batches_at(path, columns_of(source), PART_BYTES, rows):
                if wanted.pop(row, None) == Place(row, batch.num_rows):
                    yield TablePart(path, row, batch.num_rows, batch), n
        except (pa.ArrowException, EOFError):
            raise CorpusError(changed(path)) from None
        if wanted:
            raise CorpusError(changed(path))

    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any]]:
        for batch in self.first_batches(path, most):
            yield from (value for value, _ in values_of_table(batch.slice(0, most)))

    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        rewriter = TableRewriter(source, decide(None))
        file.require_unchanged()
        with raising_corpus_errors(file.path):
            self.rewrite_tables(file.path, target, rewriter)
        return rewriter.ids


def _require_short(batch: pa.RecordBatch, first: int, file: ShardFile) -> None:
    """Raise `CorpusError` if a row of a batch is over the limit."""
    if batch.nbytes <= file.max_row_bytes:
        return
    for at in range(batch.num_rows):
        if batch.slice(at, 1).nbytes > file.max_row_bytes:
            raise too_long(file.path, first + at, None, file.max_row_bytes)


def rows_per_batch(n_rows: int, n_bytes: int, batch_bytes: int) -> int:
    """Return how many rows take about `batch_bytes`, if `n_rows` take `n_bytes`."""
    return max(1, min(_MAX_ROWS, n_rows * batch_bytes // max(n_bytes, 1)))


def readable(path: Path) -> Any:
    """Return a local path as it is, and a remote path as an open file, for pyarrow."""
    return path.open("rb") if isinstance(path, RemotePath) else path


def _text_column(table: pa.RecordBatch, source: Source) -> pa.Array | None:
    """Return the text column as a string array; None if the slow reader has to read it."""
    # An empty column may have no buffers.
    is_one = isinstance(source.text, str) and table.schema.names.count(source.text) == 1
    if not is_one or not table.num_rows:
        return None
    return as_strings(table.column(source.text))


def as_strings(column: pa.Array) -> pa.Array | None:
    """Return a column of texts as a string array with offsets; None if it has another type."""
    if pa.types.is_dictionary(column.type):
        # Arrow cannot decode a dictionary of string views.
        values = as_strings(column.dictionary)
        if values is None:
            return None
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
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


# Rewriting ---------------------------------------------------------------------------------------


class TableRewriter:
    """Applies changes to the consecutive tables of a shard, and collects ids of changed rows."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source, self._changes = source, changes
        self._row = 0  # of the next table
        self.ids: Ids = {}

    def changed(self, table: pa.Table) -> pa.Table:
        """Return the next table with its changes."""
        first = self._row
        self._row += table.num_rows
        touched = self._changes.within(range(first, self._row))
        if not touched:
            return table
        self.ids |= _ids(table, first, self._source, touched)
        is_left = np.ones(table.num_rows, np.bool_)
        is_left[np.array(touched) - first] = False
        pieces, at, read = [], 0, columns_of(self._source)
        for row in touched:
            if row not in self._changes.gone:
                pieces.append(_filter(table, is_left, at, row - first))
                one = table.slice(row - first, 1)
                values = self._changes.values.get(row)
                if not values:  # U+FFFD in place of invalid UTF-8
                    columns = [name for name in table.column_names if name in read]
                    scalars = {name: one.column(name)[0] for name in columns}
                    values = {name: value_of(s) for name, s in scalars.items() if not is_utf8(s)}
                pieces.append(with_values(one, values))
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
    names = [source.id, source.id.partition(".")[0]] if source.id else []
    name = next((name for name in names if name in table.column_names), None)
    if name is None:
        return dict.fromkeys(rows)
    column = table.column(name)
    return {row: id_of({name: value_of(column[row - first])}, source) for row in rows}


def with_values(row: pa.Table, value: Mapping[str, Any]) -> pa.Table:
    """Set columns of a row. The others are not converted: Python would round some types."""
    for name, column in value.items():
        at = row.schema.get_field_index(name)
        kind = row.schema.field(at)
        row = row.set_column(at, kind, array_of([column], kind.type))
    return row


def columns_of(source: Source) -> set[str]:
    """Return the columns that may contain the fields of a source."""
    texts = (source.text,) if isinstance(source.text, str) else source.text or ()
    fields = [field for field in (*texts, source.messages, source.id) if field]
    return {field.partition(".")[0] for field in fields} | set(fields)


@contextmanager
def raising_corpus_errors(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into a `CorpusError` that names the table."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        found = f"columns that cannot be written row by row ({error})"
        remedy = 'use cut = "documents", which does this for fewer rows, or convert the table'
        raise CorpusError(Problem(str(path), found, "columns of other types", remedy)) from None
