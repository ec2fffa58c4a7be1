"""Read Parquet files, Arrow files and Arrow streams in batches of rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable, document_of
from decon_core.corpus.shard_file import ShardFile
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import format_of
from decon_core.storage.paths import RemotePath

_BUFFER = 1 << 22  # bytes
_MAX_ROWS = 4096  # per batch
_ARROW_FILE = b"ARROW1"
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def table_batches(
    file: ShardFile, path: Path, source: Source | None, *, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield a table in batches of about `batch_bytes`, with the columns that a source reads.

    Without a source: with all columns. Raises `CorpusError` if the file is changed or damaged.
    """
    file.require_unchanged()  # first: Arrow's errors on half-changed tables are misleading
    read = _parquet_batches if format_of(path) == ".parquet" else _arrow_batches
    try:
        columns = _columns_of(source) if source else set(_all_columns(path))
        yield from read(path, columns, batch_bytes)
        file.require_in_place()  # Arrow opens the file again after it was hashed
    except (pa.ArrowException, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the disk, not of the file
        raise CorpusError(
            Problem(
                str(path),
                f"not a readable {format_of(path)[1:]} file ({error})",
                "a whole file",
                "replace the shard, or remove it from the corpus",
            )
        ) from None


def _columns_of(source: Source) -> set[str]:
    """Return the columns that may contain the fields of a source."""
    texts = (source.text,) if isinstance(source.text, str) else source.text or ()
    fields = [field for field in (*texts, source.messages, source.id) if field]
    return {field.partition(".")[0] for field in fields} | set(fields)


def _all_columns(path: Path) -> list[str]:
    if format_of(path) == ".parquet":
        return list(pq.read_schema(readable(path)).names)
    return list(open_arrow(path).schema.names)


def _parquet_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    # `pre_buffer` would keep the compressed bytes of the whole file in memory. No threads: scans
    # use one core per shard.
    file = pq.ParquetFile(readable(path), pre_buffer=False, buffer_size=_BUFFER)
    columns = [name for name in file.schema_arrow.names if name in wanted]
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        n_bytes = sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if chunk.path_in_schema in wanted or chunk.path_in_schema.partition(".")[0] in wanted
        )
        yield from file.iter_batches(
            batch_size=_batch_rows(group.num_rows, n_bytes, batch_bytes),
            row_groups=[number],
            columns=columns,
            use_threads=False,
        )


def _batch_rows(n_rows: int, n_bytes: int, batch_bytes: int) -> int:
    return max(1, min(_MAX_ROWS, n_rows * batch_bytes // max(n_bytes, 1)))


def _arrow_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    for batch in open_arrow(path, wanted).batches:
        for column in batch.columns:
            _require_in_bounds(column)
        step = _batch_rows(batch.num_rows, batch.nbytes, batch_bytes)
        for at in range(0, batch.num_rows, step):
            yield batch.slice(at, step)


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """An Arrow file or stream; its batches can be read once."""

    is_file: bool
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def open_arrow(path: Path, wanted: set[str] | None = None) -> ArrowTable:
    """Open an Arrow file or stream, with the wanted columns (None: all)."""
    with path.open("rb") as file:
        is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
        if not is_file:
            _require_end(file)
    reader = _arrow_reader(path, None, is_file=is_file)
    if wanted is not None:
        columns = [at for at, name in enumerate(reader.schema.names) if name in wanted]
        reader = _arrow_reader(path, columns, is_file=is_file)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
    return ArrowTable(is_file, reader.schema, batches)


def _arrow_reader(path: Path, columns: Sequence[int] | None, *, is_file: bool) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    read = pa.ipc.open_file if is_file else pa.ipc.open_stream
    # `OSFile` if possible: a Python file passes bytes through Python objects, in twice the memory.
    is_remote = isinstance(path, RemotePath)
    file = pa.PythonFile(path.open("rb")) if is_remote else pa.OSFile(str(path))
    return read(file, options=options)


def readable(path: Path) -> Any:
    """Return a local path as it is, and a remote path as an open file, for pyarrow."""
    return path.open("rb") if isinstance(path, RemotePath) else path


def _require_end(file: BinaryIO) -> None:
    """Raise `EOFError` if a stream has no end mark: Arrow accepts one cut between two batches."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - len(_ARROW_END)))
    if file.read() != _ARROW_END:
        raise EOFError("truncated: the stream has no end mark")


def _require_in_bounds(column: pa.Array) -> None:
    """Raise `ArrowInvalid` if offsets or indices are out of bounds; invalid UTF-8 is accepted."""
    if pa.types.is_dictionary(column.type):
        pa.DictionaryArray.from_arrays(column.indices, pa.nulls(len(column.dictionary)))
        _require_in_bounds(column.dictionary)
    else:
        column.view(_as_bytes(column.type)).validate(full=True)


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    """Return the same type with binary in place of strings."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_bytes(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_bytes(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_as_bytes(kind.value_type)))
    return _BYTES.get(kind, kind)


def rows_of_table(
    batch: pa.RecordBatch, first: int, source: Source
) -> Iterator[Document | Unreadable]:
    """Yield the rows of a batch as documents; `first`: the number of its first row."""
    for row, (value, columns) in enumerate(values_of_table(batch), start=first):
        invalid = InvalidUtf8(row, None, f"in {', '.join(columns)}") if columns else None
        yield document_of(value, row, source, invalid=invalid)


def values_of_table(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the rows of a batch as Python values, with the names of columns with invalid UTF-8."""
    try:
        for value in batch.to_pylist():
            yield value, []
        return
    except UnicodeDecodeError:
        pass
    names = batch.schema.names
    for row in zip(*batch.columns, strict=True):
        value = {name: value_of(scalar) for name, scalar in zip(names, row, strict=True)}
        yield value, [n for n, scalar in zip(names, row, strict=True) if not _is_utf8(scalar)]


def replaced_in_row(row: pa.Table, source: Source) -> dict[str, Any]:
    """Return the values with invalid UTF-8 among a source's columns, with U+FFFD instead."""
    columns = _columns_of(source)
    scalars = {name: row.column(name)[0] for name in row.column_names if name in columns}
    return {name: value_of(one) for name, one in scalars.items() if not _is_utf8(one)}


def _is_utf8(scalar: Any) -> bool:
    try:
        scalar.as_py()
    except UnicodeDecodeError:
        return False
    return True


def value_of(scalar: Any) -> Any:
    """Return a scalar as a Python value, with U+FFFD in place of invalid UTF-8."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        kind = scalar.type
    if pa.types.is_dictionary(kind) or pa.types.is_union(kind):
        return value_of(scalar.value)
    if pa.types.is_struct(kind):
        return {field.name: value_of(scalar[at]) for at, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(value_of(item[0]), value_of(item[1])) for item in scalar.values]
    if pa.types.is_nested(kind):
        return [value_of(item) for item in scalar.values]
    return scalar.as_buffer().to_pybytes().decode("utf-8", errors="replace")


def rows_not_utf8(column: pa.Array) -> list[int]:
    """Return the rows of a column with invalid UTF-8 at any depth."""
    if _is_valid(column):
        return []
    return [at for at in range(len(column)) if not _is_valid(column.slice(at, 1))]


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
