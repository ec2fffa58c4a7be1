"""Parquet: read and rewritten by row groups."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.corpus.formats.tables import TableFormat, TableRewriter, readable, rows_per_batch

_BUFFER = 1 << 22  # bytes


class Parquet(TableFormat):
    suffixes = (".parquet",)
    magics = ((b"PAR1", "a parquet file"),)

    def columns(self, path: Path) -> Sequence[str]:
        return list(pq.read_schema(readable(path)).names)

    def batches(
        self, path: Path, wanted: set[str], batch_bytes: int, rows: Sequence[range]
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        # `pre_buffer` would keep the compressed bytes of the whole file in memory. No threads:
        # scans use one core per shard.
        file = pq.ParquetFile(readable(path), pre_buffer=False, buffer_size=_BUFFER)
        columns = [name for name in file.schema_arrow.names if name in wanted]
        n_read = row = 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            first, row = row, row + group.num_rows
            if not any(part.start < row and first < part.stop for part in rows):
                continue
            chunks = [
                chunk
                for chunk in map(group.column, range(group.num_columns))
                if chunk.path_in_schema in wanted
                or chunk.path_in_schema.partition(".")[0] in wanted
            ]
            n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
            n_read += sum(chunk.total_compressed_size for chunk in chunks)
            for batch in file.iter_batches(
                batch_size=rows_per_batch(group.num_rows, n_bytes, batch_bytes),
                row_groups=[number],
                columns=columns,
                use_threads=False,
            ):
                yield first, batch, n_read
                first += batch.num_rows

    def first_batches(self, path: Path, most: int) -> Iterator[pa.RecordBatch]:
        yield from pq.ParquetFile(readable(path)).iter_batches(batch_size=most)

    def rewrite_tables(self, path: Path, target: Path, rewriter: TableRewriter) -> None:
        file = pq.ParquetFile(readable(path))
        with pq.ParquetWriter(target, file.schema_arrow, compression=_codecs(file)) as writer:
            for number in range(file.num_row_groups):
                writer.write_table(rewriter.changed(file.read_row_group(number)))


def _codecs(file: pq.ParquetFile) -> str | dict[str, str]:
    """Return how the columns of a file are compressed, in its first group of rows."""
    if not file.num_row_groups:
        return "zstd"
    group = file.metadata.row_group(0)
    names = [group.column(at).compression for at in range(group.num_columns)]
    codecs = ["NONE" if name == "UNCOMPRESSED" else name for name in names]
    if not all(name == "NONE" or pa.Codec.is_available(name.lower()) for name in codecs):
        return "zstd"
    if len({*codecs}) == 1:
        return codecs[0]
    # Nested columns may get other names.
    empty = io.BytesIO()
    pq.write_table(file.schema_arrow.empty_table(), empty)
    schema = pq.ParquetFile(empty).schema
    return {schema.column(at).path: codec for at, codec in enumerate(codecs)}


SHARD_FORMATS = (Parquet(),)
