"""Arrow files and Arrow streams: read and rewritten by record batches."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import iter_unpack, unpack_from
from typing import Any

import orjson
import pyarrow as pa

from decon_core.config.sources import Source
from decon_core.corpus.formats.shard_format import PART_BYTES
from decon_core.corpus.formats.tables import (
    TableFormat,
    TablePart,
    TableRewriter,
    rows_per_batch,
)
from decon_core.corpus.shard_file import ShardFile
from decon_core.errors import CorpusError, Problem
from decon_core.storage.paths import RemotePath, stamp_of

_FILE = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_TAIL = 4 + len(_FILE)  # the length of the footer of a file, and its last bytes
_MOST_PADDING = 64  # bytes between the batches and the footer
_BLOCKS = (8, 10)  # entries in the table of the footer: dictionaries, batches
_ANOTHER = "where other data follows: write each table to a file of its own"


class Arrow(TableFormat):
    """Arrow IPC: a stream, or a file with a footer. The suffix does not tell which."""

    suffixes = (".arrow", ".feather")
    magics = ((_FILE + b"\x00\x00", "an Arrow file"), (_END[:4], "an Arrow stream"))

    def columns(self, path: Path) -> Sequence[str]:
        return list(_open(path)[1].names)

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[TablePart]:
        _require_no_selection(file.path)
        yield from super().parts(file, source, part_bytes=part_bytes)

    def batches(
        self, path: Path, wanted: set[str], batch_bytes: int, rows: Sequence[range]
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        del rows  # all batches are read
        first, n_bytes = 0, stamp_of(path).n_bytes
        for batch in _open(path, wanted)[2]:
            for column in batch.columns:
                _require_in_bounds(column)
            step = rows_per_batch(batch.num_rows, batch.nbytes, batch_bytes)
            for at in range(0, batch.num_rows, step):
                yield first + at, batch.slice(at, step), n_bytes
            first += batch.num_rows

    def first_batches(self, path: Path, most: int) -> Iterator[pa.RecordBatch]:
        del most  # a batch is read as a whole
        return _open(path)[2]

    def rewrite_tables(self, path: Path, target: Path, rewriter: TableRewriter) -> None:
        """Rewrite an Arrow file as a file, and an Arrow stream as a stream."""
        is_file, schema, batches = _open(path)
        create_table = pa.ipc.new_file if is_file else pa.ipc.new_stream
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with create_table(str(target), schema, options=options) as writer:
            for batch in batches:
                changed = rewriter.changed(pa.Table.from_batches([batch]))
                # Keep the number of batches, including empty ones.
                (left,) = changed.combine_chunks().to_batches() or [batch.slice(0, 0)]
                writer.write_batch(left)


def _require_no_selection(path: Path) -> None:
    """Raise `CorpusError` if the rows of a `save_to_disk` folder are chosen by another file."""
    try:
        state = orjson.loads((path.parent / "state.json").read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(state, dict) and state.get("_indices_files"):
        found = "a selection of rows in state.json (_indices_files)"
        remedy = "save the dataset again: dataset.flatten_indices().save_to_disk(...)"
        raise CorpusError(Problem(str(path), found, "all rows of the data files", remedy))


def _open(
    path: Path, wanted: set[str] | None = None
) -> tuple[bool, pa.Schema, Iterator[pa.RecordBatch]]:
    """Open with the wanted columns (None: all); return whether a file, schema, and batches."""
    with path.open("rb") as file:
        is_file = file.read(len(_FILE)) == _FILE
        if not is_file:  # Arrow accepts a stream that is cut between two batches
            file.seek(max(0, file.seek(0, io.SEEK_END) - len(_END)))
            if file.read() != _END:
                raise EOFError("truncated: the stream has no end mark")
    file, reader = _arrow_reader(path, None, is_file=is_file)
    if wanted is not None:
        columns = [at for at, name in enumerate(reader.schema.names) if name in wanted]
        file, reader = _arrow_reader(path, columns, is_file=is_file)
    batches = _batches_of_file(file, reader) if is_file else _batches_of_stream(file, reader)
    return is_file, reader.schema, batches


def _arrow_reader(path: Path, columns: Sequence[int] | None, *, is_file: bool) -> tuple[Any, Any]:
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    read = pa.ipc.open_file if is_file else pa.ipc.open_stream
    # `OSFile` if possible: a Python file passes bytes through Python objects, in twice the memory.
    is_remote = isinstance(path, RemotePath)
    file = pa.PythonFile(path.open("rb")) if is_remote else pa.OSFile(str(path))
    return file, read(file, options=options)


def _batches_of_stream(file: Any, reader: Any) -> Iterator[pa.RecordBatch]:
    yield from reader
    if (stop := file.tell()) < file.size():
        raise EOFError(f"its stream ends at byte {stop}, {_ANOTHER}")


def _batches_of_file(file: Any, reader: Any) -> Iterator[pa.RecordBatch]:
    file.seek(file.size() - _TAIL)
    n_bytes = int.from_bytes(file.read(4), "little")
    file.seek(file.size() - _TAIL - n_bytes)
    before, stop = file.tell(), _stop_of_batches(file.read(n_bytes))
    if stop and before - stop > _MOST_PADDING:  # readers find the last footer, and the first rows
        raise EOFError(f"its batches end at byte {stop}, {_ANOTHER}")
    yield from map(reader.get_batch, range(reader.num_record_batches))


def _stop_of_batches(footer: bytes) -> int:
    """Return where the last batch ends by the footer of an Arrow file (a flatbuffer); 0: none."""
    (root,) = unpack_from("<I", footer)
    (to_fields,) = unpack_from("<i", footer, root)
    fields = root - to_fields
    stops = [0]
    (n_bytes,) = unpack_from("<H", footer, fields)
    for at in _BLOCKS:
        (offset,) = unpack_from("<H", footer, fields + at) if at < n_bytes else (0,)
        if offset:
            (start,) = unpack_from("<I", footer, root + offset)
            start += root + offset
            (n,) = unpack_from("<I", footer, start)
            blocks = iter_unpack("<qiiq", footer[start + 4 : start + 4 + 24 * n])
            stops += [place + n_meta + n_body for place, n_meta, _, n_body in blocks]
    return max(stops)


def _require_in_bounds(column: pa.Array) -> None:
    """Raise `ArrowInvalid` if offsets or indices are out of bounds; invalid UTF-8 is accepted."""
    column.validate()
    kind = column.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            _require_in_bounds(column.field(index))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = pa.nulls(len(column.values))
        type(column).from_arrays(column.offsets, values).validate(full=True)
        _require_in_bounds(column.values)
    elif pa.types.is_dictionary(kind):
        pa.DictionaryArray.from_arrays(column.indices, pa.nulls(len(column.dictionary)))
        _require_in_bounds(column.dictionary)
    else:
        as_bytes = column.view(_BYTES[kind]) if kind in _BYTES else column
        as_bytes.validate(full=True)


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


SHARD_FORMATS = (Arrow(),)
