"""Read and write tables as Parquet and Arrow files with checksums."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.errors import DamagedError
from decon_core.storage.checksums import (
    EMPTY,
    NAME,
    damaged,
    map_verified,
    require_whole,
    seal,
    sealed,
    without_checksum,
)
from decon_core.storage.files import atomic_path

if TYPE_CHECKING:  # takes 0.04 s to import, which a run with nothing to do does without
    import pyarrow.compute as pc

Array = npt.NDArray[np.generic]

_ROWS_PER_GROUP = 1 << 16
_FEWEST_BYTES_FOR_THREADS = 1 << 23
_ABOUT = "about"


def write_parquet(path: Path, table: pa.Table) -> None:
    write_tables(path, table.schema, [table])


@contextmanager
def parquet_writer(
    draft: Path, schema: pa.Schema, *, store_schema: bool = True
) -> Iterator[pq.ParquetWriter]:
    """Open a Parquet file for writing; its checksum is added if the block succeeds."""
    with pq.ParquetWriter(draft, schema, compression="zstd", store_schema=store_schema) as writer:
        yield writer
        writer.add_key_value_metadata({NAME: EMPTY})
    seal(draft)


def read_parquet(
    path: Path,
    *,
    schema: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    filters: pc.Expression | None = None,
) -> pa.Table:
    """Read a Parquet file, or some columns and rows of it, after verifying its checksum."""
    content, names = map_verified(path), None if columns is None else [*columns]
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        stored = file.schema_arrow
        is_as_asked = schema is None or stored.equals(schema)
        if filters is None and is_as_asked and {*stored.names}.issuperset(names or ()):
            # Faster, as it needs no dataset. A small file is read faster without threads.
            table = file.read(columns=names, use_threads=len(content) >= _FEWEST_BYTES_FOR_THREADS)
        else:
            table = pq.read_table(
                pa.BufferReader(content), schema=schema, columns=names, filters=filters
            )
    except pa.ArrowInvalid as error:
        raise DamagedError(damaged(path, str(error))) from None
    return table.replace_schema_metadata(without_checksum(table.schema.metadata))


def numbered(table: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number the different values of some columns in order of first occurrence."""
    numbers = np.zeros(table.num_rows, np.int64)
    for name in columns:
        codes = _codes(table[name].combine_chunks())
        n = codes.max(initial=0) + 1
        if n > 1:
            numbers = _codes(pa.array(numbers * n + codes)) if numbers.any() else codes
    return numbers


def _codes(values: pa.Array) -> npt.NDArray[np.int64]:
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(values, null_encoding="encode")
    return np.asarray(coded.indices.to_numpy(), np.int64)


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file after verifying its checksum."""
    return pq.ParquetFile(pa.BufferReader(map_verified(path)))


def write_table_draft(
    draft: Path, tables: Iterable[pa.Table], schema: pa.Schema, *, about: object = None
) -> None:
    """Write a file of scan results to a draft, which the caller renames; take tables one at a time.

    The Arrow schema is left out: it would be two thirds of a file without rows. `about` is a
    JSON value that `read_about` returns.
    """
    groups = row_groups(tables)
    first = next(groups, None)
    if first is None and about is None:
        draft.write_bytes(_empty(schema)[1])
        return
    with parquet_writer(draft, schema, store_schema=False) as writer:
        for group in chain([schema.empty_table() if first is None else first], groups):
            writer.write_table(group)
        if about is not None:
            writer.add_key_value_metadata({_ABOUT: json.dumps(about, sort_keys=True)})


def read_about(path: Path) -> Any:  # the caller knows what it wrote
    """Return the JSON value that was written with scan results, without reading the rows."""
    try:
        return about_in(_metadata_of(path))
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(damaged(path, str(error))) from None


def _metadata_of(path: Path) -> pq.FileMetaData:
    """Return the end of a Parquet file, which is not verified."""
    try:
        return pq.read_metadata(path)
    except (pa.ArrowException, OSError):  # Arrow raises OSError for most broken files
        map_verified(path)
        raise  # the file is whole: a failure of the disk, or it is gone


def about_in(metadata: pq.FileMetaData) -> Any:
    return json.loads(metadata.metadata[_ABOUT.encode()])


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return an empty table."""
    return _empty(schema)[0]


def has_no_rows(path: Path, schema: pa.Schema) -> bool:
    """Return whether such a file has no rows, in a tenth of the time of opening it."""
    empty = _empty(schema)[1]
    return path.stat().st_size == len(empty) and path.read_bytes() == empty


def count_rows(path: Path, schema: pa.Schema) -> int:
    """Return the number of rows of such a file, from its end alone, which is not verified."""
    return 0 if has_no_rows(path, schema) else int(_metadata_of(path).num_rows)


def _empty(schema: pa.Schema) -> tuple[pa.Table, bytes]:
    """Return a table without rows and the content of its file."""
    return _empty_of(schema.serialize().to_pybytes())  # equal schemas may differ in metadata


# Most scan results have no rows, and building a file takes longer than writing it.
@lru_cache(maxsize=64)
def _empty_of(schema: bytes) -> tuple[pa.Table, bytes]:
    table, sink = pa.ipc.read_schema(pa.py_buffer(schema)).empty_table(), pa.BufferOutputStream()
    options = {"compression": "zstd", "store_schema": False, "use_dictionary": False}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({NAME: EMPTY})
    return table, sealed(bytes(sink.getvalue()))


def contents_with_rows(paths: Iterable[Path], schema: pa.Schema) -> list[bytes]:
    """Return the verified contents of the files of scan results that have rows.

    A file without rows is compared byte by byte with the expected content, which verifies it too.
    """
    _, empty = _empty(schema)
    contents = []
    for path in paths:
        content = path.read_bytes()
        if content != empty:
            require_whole(content, path)
            contents.append(content)
    return contents


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables in groups that do not depend on the tables' sizes."""
    waiting = None
    for table in tables:
        waiting = table if waiting is None else pa.concat_tables([waiting, table])
        while waiting.num_rows >= _ROWS_PER_GROUP:
            yield waiting.slice(0, _ROWS_PER_GROUP).combine_chunks()
            waiting = waiting.slice(_ROWS_PER_GROUP)
    if waiting is not None and waiting.num_rows:
        yield waiting.combine_chunks()


def write_tables(
    path: Path, schema: pa.Schema, tables: Iterable[pa.Table], *, is_synced: bool = True
) -> None:
    """Write tables of one schema to one file, taking one at a time; each becomes a row group."""
    with atomic_path(path, is_synced=is_synced) as draft, parquet_writer(draft, schema) as writer:
        for table in tables:
            writer.write_table(table)


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write uncompressed Arrow IPC, so that readers can memory-map it."""
    metadata = {**(table.schema.metadata or {}), NAME: EMPTY}
    kept = table.replace_schema_metadata(metadata)
    with atomic_path(path) as draft:
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, kept.schema) as writer:
            writer.write_table(kept)
        seal(draft)


def read_arrow(path: Path) -> pa.Table:
    """Memory-map an Arrow file as a table after verifying its checksum."""
    content = map_verified(path)
    try:
        table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
    except pa.ArrowInvalid as error:
        raise DamagedError(damaged(path, str(error))) from None
    return table.replace_schema_metadata(without_checksum(table.schema.metadata))


def write_arrays(
    path: Path,
    arrays: Mapping[str, Array],
    *,
    schema: pa.Schema | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write arrays of any lengths to one Arrow file: one row, with a list in every column."""
    columns = {
        name: pa.LargeListArray.from_arrays([0, values.size], pa.array(values))
        for name, values in arrays.items()
    }
    table = pa.table(columns)
    if schema is not None:
        table = table.select(schema.names).cast(schema)
    write_arrow(path, table.replace_schema_metadata(about))


def _as_mapped(values: pa.Array) -> Array:
    """Return values as a NumPy view. Arrow's `to_numpy` imports pandas first, up to 0.3 s."""
    kind = values.type.to_pandas_dtype()
    content = values.buffers()[1] if len(values) else b""
    return np.frombuffer(content, kind, len(values), values.offset * kind().itemsize)


def map_arrays(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Memory-map what `write_arrays` wrote, so that all processes share one copy."""
    table = read_arrow(path)
    arrays = {name: _as_mapped(table[name].chunk(0).values) for name in table.column_names}
    metadata = table.schema.metadata or {}
    about = {key.decode(): value.decode() for key, value in metadata.items()}
    return arrays, about
