"""Read all rows of a shard, or some of them, in any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.lines import line_blocks, rows_of_lines, values_of_lines
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import open_shard
from decon_core.corpus.tables import rows_of_table, table_batches, values_of_table
from decon_core.storage.compression import LINE_FORMATS, format_of
from decon_core.storage.paths import parse_path

_LINE_BLOCK_BYTES = 1 << 20
_BATCH_BYTES = 4 << 20


def read_shard(shard: Shard, source: Source) -> Iterator[Document | Unreadable]:
    """Yield all rows of a shard in order. Raises `CorpusError` if it is damaged or has changed.

    The bytes are hashed while they are read, so a changed shard raises only after the last row:
    callers must not commit results before the end.
    """
    path = parse_path(shard.path)
    with open_shard(shard) as file:
        if format_of(path) in LINE_FORMATS:
            for block in line_blocks(file, path, block_bytes=_LINE_BLOCK_BYTES):
                yield from rows_of_lines(block, source)
        else:
            row = 0
            for batch in table_batches(file, path, source, batch_bytes=_BATCH_BYTES):
                yield from rows_of_table(batch, row, source)
                row += batch.num_rows


def values_of(
    shard: Shard, source: Source, rows: Iterable[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield some rows in order: all fields in line formats, the columns of the source in tables."""
    wanted = sorted(rows)
    path = parse_path(shard.path)
    if not wanted:
        return
    numbers = np.array(wanted, np.int64)
    with open_shard(shard) as file:
        if format_of(path) in LINE_FORMATS:
            for block in line_blocks(file, path, block_bytes=_BATCH_BYTES):
                first, last = np.searchsorted(numbers, [block.row, block.row + block.n_lines])
                yield from values_of_lines(block, path, wanted[first:last])
            return
        first = 0
        for batch in table_batches(file, path, source, batch_bytes=_BATCH_BYTES):
            while wanted and wanted[0] < first + batch.num_rows:
                row = wanted.pop(0)
                ((value, _),) = values_of_table(batch.slice(row - first, 1))
                yield row, value
            first += batch.num_rows
