"""What a shard format does: split a shard into parts, read their rows, and rewrite the shard.

A new format is a subclass of `ShardFormat`, or of `LineFormat`, if its rows are lines, in a file of
its own here, which lists its instances in `SHARD_FORMATS`; `recognize.py` finds them by itself.
`RecordFormat` is for rows that are other ranges of bytes, `TableFormat` for tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.shard_file import ShardFile
from decon_core.kernels.arrays import Integers

Value = dict[str, Any]
Ids = dict[int, str | None]  # ids of documents by row

PART_BYTES = 4 << 20
NONE_CHANGED: Mapping[int, Value] = {}


class JsonRow(NamedTuple):
    """A row as a JSON value."""

    row: int
    value: object  # what JSON has no form for is a string; None: not JSON
    line: bytes | None  # the line, if it holds that value
    # The row as a scan reads it, if a value is of a type that JSON has no form for.
    read: Value | None = None


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """Consecutive rows of a shard, in memory."""

    path: Path  # file of the shard
    row: int  # number of its first row
    n_rows: int

    @property
    def place(self) -> Place:
        return Place(self.row, self.n_rows)

    @property
    def rows(self) -> range:
        return range(self.row, self.row + self.n_rows)

    def within(self, rows: Integers | None) -> list[int]:
        """Return those of some rows (ascending; None: all) that are in this part."""
        if rows is None:
            return [*self.rows]
        start, stop = np.searchsorted(rows, [self.rows.start, self.rows.stop])
        inside: list[int] = rows[start:stop].tolist()
        return inside

    @abstractmethod
    def document(self, row: int, source: Source) -> Document | Unreadable | None:
        """Read a row; None if it is blank."""

    def documents(self, source: Source) -> Iterator[Document | Unreadable]:
        """Yield all rows that are not blank."""
        for row in self.rows:
            if document := self.document(row, source):
                yield document

    def batch(self, source: Source) -> Batch:
        """Read all rows as one batch. Formats override this with something faster."""
        return Batch.of_rows(self.documents(source), partial(self.document, source=source))

    @abstractmethod
    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        """Yield these rows with their fields; of a table only those that the source reads.

        Raises `CorpusError` if a row cannot be parsed.
        """

    def json_rows(self, rows: Iterable[int], changed: Mapping[int, Value]) -> Iterator[JsonRow]:
        """Yield these rows as JSON values, without loss.

        `changed` holds new values of rows, as `values` returns them.
        """
        for row, value in self.values([*rows]):
            yield JsonRow(row, value | changed.get(row, {}), None)


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes to the rows of a shard or of a part of it."""

    gone: frozenset[int]
    values: Mapping[int, Value]  # new values, by row
    # Rows in which only bytes that are not UTF-8 are replaced by replacement characters.
    replaced: frozenset[int] = frozenset()
    unreadable: frozenset[int] = frozenset()  # rows that are gone and no documents: without an id

    @cached_property
    def rows(self) -> list[int]:
        """All changed rows, in order."""
        return sorted(self.gone | set(self.values) | self.replaced)

    def within(self, rows: range) -> list[int]:
        """Return the changed rows in a range."""
        return self.rows[bisect_left(self.rows, rows.start) : bisect_left(self.rows, rows.stop)]


# Returns the changes to a part of a shard, or to the whole shard (None).
Decide = Callable[[Part | None], Changes]


class ShardFormat(ABC):
    """A format of shards."""

    suffixes: ClassVar[tuple[str, ...]]  # the usual one first
    # First bytes of a file, and what to call it. Files of a format without any are text.
    magics: ClassVar[tuple[tuple[bytes, str], ...]] = ()
    # Why a row cannot be read, for messages about many such rows.
    why_unreadable: ClassVar[str] = "not a JSON object, or one with a duplicate key"

    @property
    def is_text(self) -> bool:
        return not self.magics

    @abstractmethod
    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[Part]:
        """Split a shard into parts of about `part_bytes`, with the fields that a source reads.

        Without a source: with all fields. Raises `CorpusError` if the file is damaged.
        """

    @abstractmethod
    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place]
    ) -> Iterator[tuple[Part, int]]:
        """Yield parts that `parts` yielded at these places, and how much of the file was read yet.

        The rest of the file is read only where the format cannot seek. Raises `CorpusError` if
        there is no such part any more.
        """

    @abstractmethod
    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any] | None]:
        """Yield up to `most` or a few more rows as objects; None for an unreadable row."""

    @abstractmethod
    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        """Write a shard with changes to some rows; return the ids of the changed rows.

        `target` has the suffixes of the shard. The rest of the shard, its compression and its
        schema stay as they are.
        """
