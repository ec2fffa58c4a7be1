"""Shards that are tables: read in record batches, and rewritten without converting other columns.

Most text columns are used as they are; rows with anything unusual are parsed singly.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.compiled_rows import batch_of
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable, document_of, id_of
from decon_core.corpus.fields import field_tree
from decon_core.corpus.formats.recognize import fault_of_bytes
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
from decon_core.corpus.formats.table_strings import UnusualColumnError, strings_of_table
from decon_core.corpus.formats.table_values import (
    array_of,
    bytes_of_strings,
    is_utf8,
    json_values,
    value_of,
    values_of_table,
)
from decon_core.corpus.shard_file import ShardFile, changed, too_long
from decon_core.errors import CorpusError, Problem
from decon_core.kernels.arrays import Bools
from decon_core.storage.compression import suffix_of
from decon_core.storage.paths import RemotePath

_MAX_ROWS = 4096  # per batch
_MOST_ROWS = 1 << 62  # more rows than any table has


@dataclass(frozen=True, eq=False)
class TablePart(Part):
    """Rows of a table."""

    table: pa.RecordBatch

    def document(self, row: int, source: Source) -> Document | Unreadable:
        return next(TablePart(self.path, row, 1, self._slice(row)).documents(source))

    def documents(self, source: Source) -> Iterator[Document | Unreadable]:
        for row, (value, columns) in enumerate(values_of_table(self.table), start=self.row):
            invalid = InvalidUtf8(row, None, f"in {', '.join(columns)}") if columns else None
            fault = self._fault_of_bytes(row, columns) if columns else None
            if fault:
                yield Unreadable(row, None, *fault)
            else:
                yield document_of(value, row, source, invalid=invalid)

    def _fault_of_bytes(self, row: int, columns: Iterable[str]) -> tuple[str, str] | None:
        scalars = (self.table.column(name)[row - self.row] for name in columns)
        return fault_of_bytes(b" ".join(map(bytes_of_strings, scalars)))

    def _slice(self, row: int) -> pa.RecordBatch:
        return self.table.slice(row - self.row, 1)

    def batch(self, source: Source) -> Batch:
        tree = field_tree(source)
        try:
            if tree.roles:
                return super().batch(source)
            strings, is_unusual, fields = strings_of_table(self.table, tree)
        except UnusualColumnError:
            return super().batch(source)
        reread = partial(self.document, source=source)
        return batch_of(strings, is_unusual, source, fields, first_row=self.row, reread=reread)

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
            value, read = values[row - self.row]
            yield JsonRow(row, value, None, read)


class TableFormat(ShardFormat):
    """A format of tables that Arrow reads."""

    @abstractmethod
    def columns(self, path: Path) -> Sequence[str]:
        """Return the names of all columns."""

    @abstractmethod
    def batches(
        self, path: Path, wanted: set[str], batch_bytes: int, rows: Sequence[range]
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        """Yield these columns in batches of about `batch_bytes` that have some of these rows.

        Each comes with its first row, and with the bytes of the file that were read until then. A
        format that cannot skip batches yields the others, too.
        """

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
        try:
            # Checked first: Arrow's errors on half-changed tables are misleading.
            with file.unchanged() as copy:
                columns = self._columns_of(source, copy, path)
                for row, batch, _ in self.batches(copy, columns, part_bytes, [range(_MOST_ROWS)]):
                    if not row:
                        _require_different_fields(batch.schema.types, path)
                    _require_short(batch, row, file)
                    yield TablePart(path, row, batch.num_rows, batch)
        except (pa.ArrowException, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of the disk, not of the file
            found = f"an unreadable {suffix_of(path)[1:]} file ({error})"
            remedy = "replace the shard, or remove it from the corpus"
            raise CorpusError(Problem(str(path), found, "a complete file", remedy)) from None

    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place]
    ) -> Iterator[tuple[TablePart, int]]:
        wanted = {place.row: place for place in places}
        rows = [range(place.row, place.row + place.n_rows) for place in places]
        try:
            columns = self._columns_of(source, path, path)
            for row, batch, n in self.batches(path, columns, PART_BYTES, rows):
                if wanted.pop(row, None) == Place(row, batch.num_rows):
                    yield TablePart(path, row, batch.num_rows, batch), n
        except (pa.ArrowException, EOFError):
            raise CorpusError(changed(path)) from None
        if wanted:
            raise CorpusError(changed(path))

    def _columns_of(self, source: Source | None, copy: Path, path: Path) -> set[str]:
        """Return the columns that are read of a shard; all columns if unread text is counted."""
        columns = self.columns(copy)
        _require_different(columns, path)
        named = columns_of(source) if source else None
        return {*columns} if named is None else named

    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any]]:
        for batch in self.first_batches(path, most):
            yield from (value for value, _ in values_of_table(batch.slice(0, most)))

    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        rewriter = TableRewriter(source, decide(None))
        with file.unchanged() as copy, raising_corpus_errors(file.path):
            self.rewrite_tables(copy, target, rewriter)
        return rewriter.ids


def _require_different(names: Sequence[str], path: Path) -> None:
    """Raise if a name comes twice: only one of the columns would be read."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        found, remedy = f"two columns called {twice[0]!r}", "rename one of them"
        raise CorpusError(Problem(str(path), found, "different names", remedy))


def _require_different_fields(kinds: Iterable[pa.DataType], path: Path) -> None:
    for kind in kinds:
        if pa.types.is_struct(kind):
            _require_different([field.name for field in kind], path)
        if pa.types.is_nested(kind):
            _require_different_fields([kind.field(at).type for at in range(kind.num_fields)], path)
        if isinstance(kind, pa.BaseExtensionType):
            _require_different_fields([kind.storage_type], path)


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


# Rewriting ---------------------------------------------------------------------------------------


class TableRewriter:
    """Applies changes to the consecutive tables of a shard, and collects ids of changed rows."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source, self._changes = source, changes
        self._row = 0  # first row of the next table
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
                old = table.slice(row - first, 1)
                values = self._changes.values.get(row)
                if not values:  # U+FFFD in place of invalid UTF-8
                    columns = [name for name in table.column_names if read is None or name in read]
                    scalars = {name: old.column(name)[0] for name in columns}
                    values = {name: value_of(s) for name, s in scalars.items() if not is_utf8(s)}
                pieces.append(with_values(old, values))
                at = row - first + 1
        pieces.append(_filter(table, is_left, at, table.num_rows))
        return pa.concat_tables(pieces).combine_chunks()


def _filter(table: pa.Table, is_left: Bools, start: int, stop: int) -> pa.Table:
    """Return the rows of a range that are left."""
    left, piece = is_left[start:stop], table.slice(start, stop - start)
    try:
        return piece.filter(left)
    except pa.ArrowNotImplementedError:  # a column type that supports slicing, but not filtering
        edges = np.flatnonzero(np.diff(left, prepend=False, append=False)).tolist()
        runs = [piece.slice(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        return pa.concat_tables([piece.slice(0, 0), *runs])


def _ids(table: pa.Table, first: int, source: Source, rows: list[int]) -> Ids:
    names = [source.id, source.id.partition(".")[0]] if source.id else []
    name = next((name for name in names if name in table.column_names), None)
    if name is None:
        return dict.fromkeys(rows)
    column = table.column(name)
    return {row: id_of({name: value_of(column[row - first])}, source) for row in rows}


def with_values(row: pa.Table, value: Mapping[str, Any]) -> pa.Table:
    """Set the columns of a row that changed; Python would round some types of the others."""
    for name, column in value.items():
        at = row.schema.get_field_index(name)
        before = row.column(at)[0]
        if is_utf8(before) and value_of(before) == column:
            continue
        kind = row.schema.field(at)
        row = row.set_column(at, kind, array_of([column], kind.type))
    return row


def columns_of(source: Source) -> set[str] | None:
    """Return the columns that may contain the fields of a source; None: all are looked at."""
    if not source.paths or EVERYTHING not in source.ignore:
        return None
    fields = [field for field in (*source.paths, source.id) if field]
    return {re.split(r"[.\[]", field, maxsplit=1)[0] for field in fields} | set(fields)


@contextmanager
def raising_corpus_errors(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into a `CorpusError` that names the table."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        found = f"the types of its columns cannot be written row by row ({error})"
        remedy = 'use cut = "documents", which rewrites fewer rows, or convert the table'
        raise CorpusError(Problem(str(path), found, remedy=remedy)) from None
