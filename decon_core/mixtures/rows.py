"""Read single fields and whole rows of a shard, which licenses and cuts need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch
from decon_core.corpus.formats import Part
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import read_blocks, values_of

Value = dict[str, Any]


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads rows of a part that is in memory, or of a whole shard, which every call reads again."""

    shard: Shard
    source: Source
    part: Part | None = None

    def texts(self, field: str) -> Iterator[tuple[int, str]]:
        """Yield row number and value of a field, for all rows in which it is a string."""
        named = self.source
        source = Source(name=named.name, path=named.path, text=field, ignore=(EVERYTHING,))
        if self.part:
            yield from _texts_in(self.part.batch(source))
        else:
            for block in read_blocks(self.shard, source):
                yield from _texts_in(block.read())

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        """Yield row number and fields of these rows (ascending); of tables only text columns."""
        part = self.part
        return part.values(rows) if part else values_of(self.shard, self.source, rows)


def _texts_in(batch: Batch) -> Iterator[tuple[int, str]]:
    known: dict[bytes, str] = {}
    # Slicing bytes is five times as fast as slicing the array.
    text = batch.text[: batch.stops.max(initial=0)].tobytes()
    columns = (batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist())
    for row, start, stop in zip(*columns, strict=True):
        name = text[start:stop]
        if name not in known:
            known[name] = name.decode()
        yield row, known[name]
