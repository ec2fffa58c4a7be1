"""Shards whose rows are ranges of bytes, but not lines: JSON documents, CSV, tar archives.

Rows are read one by one in Python, and never more of the file than a part. What is not changed is
written back as the same bytes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from decon_core.config.sources import MAX_ROW_BYTES, Source
from decon_core.corpus.batches import Place
from decon_core.corpus.documents import (
    Document,
    InvalidUtf8,
    Unreadable,
    document_of,
    not_a_document,
)
from decon_core.corpus.formats.recognize import fault_of_bytes, require_text, require_utf8
from decon_core.corpus.formats.shard_format import (
    PART_BYTES,
    Decide,
    Ids,
    JsonRow,
    Part,
    ShardFormat,
    Value,
)
from decon_core.corpus.shard_file import ShardFile, changed, damaged
from decon_core.errors import CorpusError
from decon_core.storage.compression import (
    DAMAGE,
    HEAD,
    buffered,
    compression_of,
    create,
    open_bytes,
)
from decon_core.storage.paths import stamp_of

_MOST_ROWS = 4096  # rows of a part


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row as bytes of its file, or what follows the last row."""

    gap: bytes = b""  # bytes before the row that belong to no row
    separator: bytes = b""  # then, bytes between this row and the one before, if both are kept
    raw: bytes = b""
    offset: int = 0  # position of `raw` in the uncompressed file
    value: Value | None = None  # None: a blank row, or an unreadable one
    fault: tuple[str, str] | None = None  # why the row cannot be read: reason and detail
    is_end: bool = False  # no row: `gap` is the rest of the file

    def invalid(self, row: int) -> InvalidUtf8 | None:
        """Return where the row has bytes that are not UTF-8."""
        try:
            self.raw.decode()
        except UnicodeDecodeError as error:
            detail = f"0x{self.raw[error.start]:02X} at byte {error.start} of the row"
            return InvalidUtf8(row, self.offset + error.start, detail)
        return None


@dataclass(frozen=True, eq=False)
class RecordPart(Part):
    """Some records of a shard."""

    records: Sequence[Record]
    is_text: bool  # whether the bytes of a record should be UTF-8

    @property
    def place(self) -> Place:
        first, last = self.records[0], self.records[-1]
        stop = last.offset + len(last.raw)
        return Place(self.row, self.n_rows, first.offset, stop - first.offset)

    def document(self, row: int, source: Source) -> Document | Unreadable | None:
        record = self.records[row - self.row]
        offset, raw = record.offset, record.raw
        fault = (fault_of_bytes(raw) if self.is_text else None) or record.fault
        if fault:
            return Unreadable(row, offset, *fault, raw)
        if record.value is None:
            return None
        invalid = record.invalid(row) if self.is_text else None
        return document_of(record.value, row, source, offset=offset, raw=raw, invalid=invalid)

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        for row in rows:
            record = self.records[row - self.row]
            if record.value is None:
                why = ": ".join(record.fault or ("a blank row",))
                raise CorpusError(not_a_document(self.path, row, why))
            yield row, record.value

    def json_rows(self, rows: Iterable[int], changed: Mapping[int, Value]) -> Iterator[JsonRow]:
        for row in rows:
            yield JsonRow(row, changed.get(row, self.records[row - self.row].value), None)


class RecordFormat(ShardFormat):
    """A format whose rows are ranges of bytes."""

    is_utf8 = True  # whether the bytes of a row should be UTF-8

    @abstractmethod
    def records(
        self, stream: BinaryIO, path: Path, max_row_bytes: int
    ) -> Generator[Record, None, None]:
        """Yield the rows of an uncompressed shard, and its end.

        Raises `CorpusError` at a row that is longer, or where the form of the file is broken.
        """

    @abstractmethod
    def encoded(self, value: Value, record: Record) -> bytes:
        """Return a changed row in the form of the old row."""

    def tail(self, end: Record, changed: Mapping[int, Value | None]) -> bytes:
        """Return the end of a shard, of which these rows are changed or gone (None)."""
        del changed
        return end.gap

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[Part]:
        del source  # rows are read whole
        row, records, n_bytes, error = 0, list[Record](), 0, None
        try:
            for record in self._records_of(file):
                if record.is_end:
                    continue
                records.append(record)
                n_bytes += len(record.raw)
                if n_bytes >= part_bytes or len(records) == _MOST_ROWS:
                    yield self._part(file.path, row, records)
                    row, records, n_bytes = row + len(records), [], 0
        except CorpusError as raised:
            error = raised
        if records:
            yield self._part(file.path, row, records)
        if error:
            raise error

    def _part(self, path: Path, row: int, records: Sequence[Record]) -> RecordPart:
        return RecordPart(path, row, len(records), records, self.is_utf8)

    def _records_of(self, file: ShardFile) -> Iterator[Record]:
        """Yield the rows of an open shard, and its end."""
        path, row, offset = file.path, 0, 0
        try:
            stream = buffered(cast("BinaryIO", file), compression_of(path))
            require_text(stream.peek(HEAD)[:HEAD], path)
            if self.is_utf8:
                require_utf8(stream.peek(HEAD)[:HEAD], path)
            for record in self.records(stream, path, file.max_row_bytes):
                yield record
                row, offset = row + 1, record.offset + len(record.raw)
        except DAMAGE as error:
            raise damaged(path, row, offset, error) from None

    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place]
    ) -> Iterator[tuple[Part, int]]:
        n_bytes = stamp_of(path).n_bytes
        with (
            open_bytes(path) as stream,
            closing(self.records(stream, path, source.max_row_bytes)) as all_records,
        ):
            row = 0  # the next one to be read
            for place in places:
                n_between, row = max(place.row - row, 0), place.row + place.n_rows
                following = islice(all_records, n_between, n_between + place.n_rows)
                records = [record for record in following if not record.is_end]
                part = self._part(path, place.row, records)
                if not records or part.place != place:
                    raise CorpusError(changed(path))
                yield part, n_bytes

    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any] | None]:
        del most  # read one by one
        try:
            with (
                open_bytes(path) as stream,
                closing(self.records(stream, path, MAX_ROW_BYTES)) as records,
            ):
                for record in records:
                    if record.value is not None or record.fault:
                        yield record.value
        except CorpusError:
            yield None

    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        changes, ids, has_previous = decide(None), dict[int, str | None](), False
        changed_rows = {*changes.rows}
        with create(target, compression_of(target)) as out:
            for row, record in enumerate(self._records_of(file)):
                if record.is_end:
                    gone: dict[int, Value | None] = dict.fromkeys(changes.gone)
                    out.write(self.tail(record, {**gone, **changes.values}))
                    break
                out.write(record.gap)
                has_previous &= bool(record.separator)
                if row in changed_rows:
                    document = self._part(file.path, row, [record]).document(row, source)
                    ids[row] = document.id if isinstance(document, Document) else None
                if row in changes.gone:
                    continue
                if has_previous:
                    out.write(record.separator)
                if row in changes.values:
                    out.write(self.encoded(changes.values[row], record))
                elif row in changes.replaced:
                    out.write(record.raw.decode("utf-8", "replace").encode())
                else:
                    out.write(record.raw)
                has_previous = True
        return ids
