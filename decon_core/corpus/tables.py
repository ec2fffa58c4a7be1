"""Shards that are tables: parquet, Arrow files and Arrow streams, some rows at a time."""

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
_MOST_ROWS = 4096
_ARROW_FILE = b"ARROW1"
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def table_batches(
    file: ShardFile, path: Path, source: Source | None, *, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a table, about so many bytes at a time, with the columns that a source reads.

    Without a source: with all of them.
    """
    file.require_unchanged()  # first: libraries say odd things about half-changed tables
    read = _parquet_batches if format_of(path) == ".parquet" else _arrow_batches
    try:
        wanted = _wanted(source) if source else set(_columns(path))
        yield from read(path, wanted, batch_bytes)
        file.require_in_place()  # the libraries open it once more, after it was hashed
    except (pa.ArrowException, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise CorpusError(
            Problem(
                str(path),
                f"not a readable {format_of(path)[1:]} file ({error})",
                "a whole file",
                "replace the shard, or take it out of the corpus",
            )
        ) from None


def _wanted(source: Source) -> set[str]:
    """The columns that may hold one of the fields."""
    texts = (source.text,) if isinstance(source.text, str) else source.text or ()
    fields = [field for field in (*texts, source.messages, source.id) if field]
    return {field.partition(".")[0] for field in fields} | set(fields)


def _columns(path: Path) -> list[str]:
    if format_of(path) == ".parquet":
        return list(pq.read_schema(readable(path)).names)
    return list(open_arrow(path).schema.names)


def _parquet_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    # `pre_buffer` would hold what was compressed of the whole file. One core per shard is enough.
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
            batch_size=_rows_at_once(group.num_rows, n_bytes, batch_bytes),
            row_groups=[number],
            columns=columns,
            use_threads=False,
        )


def _rows_at_once(n_rows: int, n_bytes: int, batch_bytes: int) -> int:
    return max(1, min(_MOST_ROWS, n_rows * batch_bytes // max(n_bytes, 1)))


def _arrow_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    for batch in open_arrow(path, wanted).batches:
        for column in batch.columns:
            _require_sound(column)
        step = _rows_at_once(batch.num_rows, batch.nbytes, batch_bytes)
        for at in range(0, batch.num_rows, step):
            yield batch.slice(at, step)


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """An Arrow file or stream, to be read once."""

    is_file: bool
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def open_arrow(path: Path, wanted: set[str] | None = None) -> ArrowTable:
    """The batches as they are, of the wanted columns only if some are named."""
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
    # Not an open file, where there is a choice: its bytes would go through Python objects, in twice
    # the memory.
    is_remote = isinstance(path, RemotePath)
    file = pa.PythonFile(path.open("rb")) if is_remote else pa.OSFile(str(path))
    return read(file, options=options)


def readable(path: Path) -> Any:
    """What the library opens itself, or the open file where it could not."""
    return path.open("rb") if isinstance(path, RemotePath) else path


def _require_end(file: BinaryIO) -> None:
    """A stream that breaks off between two batches looks whole to the library."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - len(_ARROW_END)))
    if file.read() != _ARROW_END:
        raise EOFError("cut off: the stream has no end mark")


def _require_sound(column: pa.Array) -> None:
    """Raise when offsets or indices point outside. That a text is not UTF-8 is no such damage."""
    if pa.types.is_dictionary(column.type):
        pa.DictionaryArray.from_arrays(column.indices, pa.nulls(len(column.dictionary)))
        _require_sound(column.dictionary)
    else:
        column.view(_as_bytes(column.type)).validate(full=True)


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    """The same type without texts in it."""
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
    """All rows of a batch; a text that is not UTF-8 does not cost the others."""
    for row, (value, bad) in enumerate(values_of_table(batch), start=first):
        invalid = InvalidUtf8(row, None, f"in {', '.join(bad)}") if bad else None
        yield document_of(value, row, source, invalid=invalid)


def values_of_table(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """The rows of a batch in Python, each with the names of its columns that are not UTF-8."""
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
    """The columns that a source reads in which a row is not UTF-8, with replacement characters."""
    wanted = _wanted(source)
    scalars = {name: row.column(name)[0] for name in row.column_names if name in wanted}
    return {name: value_of(one) for name, one in scalars.items() if not _is_utf8(one)}


def _is_utf8(scalar: Any) -> bool:
    try:
        scalar.as_py()
    except UnicodeDecodeError:
        return False
    return True


def value_of(scalar: Any) -> Any:
    """A table's value in Python; bytes that are not UTF-8 become replacement characters."""
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
    """The rows of a column whose texts are not UTF-8, however deep they lie; none of most."""
    if _is_sound(column):
        return []
    return [at for at in range(len(column)) if not _is_sound(column.slice(at, 1))]


def _is_sound(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
