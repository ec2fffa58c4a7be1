"""Rows of a shard to be looked into: all of them, or those of a block that is at hand.

What only a row itself can tell (its license, what is left of it once a leak is cut out) is asked of
either in the same way. A block costs no second reading of the shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from decon_core.config.load import Source
from decon_core.corpus.batches import Batch, read_blocks, read_lines
from decon_core.corpus.lines import LineBlock, values_of_lines
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import values_of
from decon_core.storage.paths import parse_path

Value = dict[str, Any]


class Rows(Protocol):
    """Whoever has the rows."""

    @property
    def shard(self) -> Shard: ...

    def texts(self, field: str) -> Iterator[tuple[int, str]]:
        """A field of all rows in which it is a text."""

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        """All fields of these rows, which ascend; of tables those that hold a text."""


@dataclass(frozen=True)
class RowsOfShard:
    """All rows of a shard. It is read anew at each question."""

    shard: Shard
    source: Source

    def texts(self, field: str) -> Iterator[tuple[int, str]]:
        for block in read_blocks(self.shard, _reading(self.source, field)):
            yield from _texts_in(block.read())

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        return values_of(self.shard, self.source, rows)


@dataclass(frozen=True, eq=False)
class RowsOfBlock:
    """The rows of a block of lines."""

    block: LineBlock
    shard: Shard
    source: Source

    def texts(self, field: str) -> Iterator[tuple[int, str]]:
        return _texts_in(read_lines(self.block, _reading(self.source, field)))

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        return values_of_lines(self.block, parse_path(self.shard.path), rows)


def _reading(source: Source, field: str) -> Source:
    """A source whose text is another field."""
    return replace(source, text=field, messages=None, roles=())


def _texts_in(batch: Batch) -> Iterator[tuple[int, str]]:
    known: dict[bytes, str] = {}
    # As bytes at once: an array to cut each one from takes five times as long.
    text = batch.text[: batch.stops.max(initial=0)].tobytes()
    for row, start, stop in zip(
        batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist(), strict=True
    ):
        name = text[start:stop]
        if name not in known:
            known[name] = name.decode()
        yield row, known[name]
