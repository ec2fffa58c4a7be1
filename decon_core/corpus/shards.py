"""Read shards of any format, and rewrite them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Block, Place
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.formats import Decide, Ids, format_of
from decon_core.corpus.formats.recognize import require_format
from decon_core.corpus.formats.shard_format import PART_BYTES, Part
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import (
    REGISTER,
    ShardFile,
    no_permission,
    require_as_registered,
)
from decon_core.errors import CorpusError, Problem
from decon_core.storage.paths import RemotePath, parse_path


def _path_of(shard: Shard) -> Path:
    path = parse_path(shard.path)
    if not path.is_file():
        raise CorpusError(Problem(shard.path, "the registered file is gone", remedy=REGISTER))
    if not isinstance(path, RemotePath) and not os.access(path, os.R_OK):
        raise CorpusError(no_permission(shard.path))
    return path


@contextmanager
def open_shard(shard: Shard, source: Source) -> Iterator[ShardFile]:
    """Open a shard. Raises `CorpusError` at the end if it is not the registered file."""
    path = _path_of(shard)
    with path.open("rb") as file:
        shard_file = ShardFile(file, path, shard, source.max_row_bytes)
        require_format(shard_file.head(), path)
        with _naming_what_takes_memory(shard.path):
            yield shard_file
        shard_file.require_unchanged()


@contextmanager
def _naming_what_takes_memory(where: str) -> Iterator[None]:
    """Turn a lack of memory, which has no name, into a `CorpusError` of this shard."""
    try:
        yield
    except MemoryError as error:
        remedy = "lower max_row_bytes, use fewer workers, or provide more memory"
        found = f"the rows do not fit in memory ({error})"
        raise CorpusError(Problem(where, found, remedy=remedy)) from None


def read_shard(shard: Shard, source: Source) -> Iterator[Document | Unreadable]:
    """Yield all rows of a shard in order. Raises `CorpusError` if it is damaged or has changed.

    The file is checked while it is read, so a changed shard raises only after the last row:
    callers must not commit results before the end.
    """
    with open_shard(shard, source) as file:
        for part in format_of(file.path).parts(file, source):
            rows = np.arange(part.rows.start, part.rows.stop)
            is_read = shard.sample.takes(shard.content, rows) if shard.sample else None
            for row in part.documents(source):
                if is_read is None or isinstance(row, Unreadable) or is_read[row.row - part.row]:
                    yield row


def _batch(part: Part, source: Source, shard: Shard) -> Batch:
    """Read the rows of a part; of a shard that is sampled, only the documents of the sample.

    All rows are parsed, so that unreadable ones are known and the documents are counted.
    """
    with _naming_what_takes_memory(f"{shard.path}: rows from {part.row} on"):
        batch = part.batch(source)
    return shard.sample.of_batch(shard.content, batch) if shard.sample else batch


def read_blocks(shard: Shard, source: Source, *, block_bytes: int = PART_BYTES) -> Iterator[Block]:
    """Yield the rows of `read_shard` in blocks, much faster.

    It raises the same errors after the same rows.
    """
    with open_shard(shard, source) as file:
        for part in format_of(file.path).parts(file, source, part_bytes=block_bytes):
            yield Block(partial(_batch, part, source, shard), file.tell(), part.place)


def read_places(shard: Shard, source: Source, places: Sequence[Place]) -> Iterator[Block]:
    """Yield some of the blocks that `read_blocks` yields, by their places in ascending order.

    `Block.position` is how much of the file was read. Not all of it is, so it is not hashed: the
    caller has to compare the texts. Raises `CorpusError` if the file was replaced, or has no such
    blocks.
    """
    path = _path_of(shard)
    require_as_registered(path, shard)
    for part, n_bytes_read in format_of(path).parts_at(path, source, places):
        yield Block(partial(_batch, part, source, shard), n_bytes_read, part.place)
    require_as_registered(path, shard)


def values_of(
    shard: Shard, source: Source, rows: Iterable[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield some rows in order: all fields in line formats, the columns of the source in tables."""
    numbers = np.array(sorted(rows), np.int64)
    if not numbers.size:
        return
    with open_shard(shard, source) as file:
        for part in format_of(file.path).parts(file, source):
            yield from part.values(part.within(numbers))


def rewrite_shard(shard: Shard, source: Source, target: Path, decide: Decide) -> Ids:
    """Write a shard with changes to some rows; return the ids of the changed rows.

    `decide` returns the changes to a part of the shard that was just read, or to the whole shard.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_shard(shard, source) as file:
        return format_of(file.path).rewrite(file, source, target, decide)
