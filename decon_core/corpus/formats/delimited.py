"""CSV and TSV: records of cells, named by the first record."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from decon_core.corpus.formats.records import Record, RecordFormat
from decon_core.corpus.formats.shard_format import Value
from decon_core.corpus.shard_file import too_long
from decon_core.corpus.string_kinds import is_text
from decon_core.storage.compression import BYTE_ORDER_MARK
from decon_core.wording import counted


class Delimited(RecordFormat):
    """Cells between delimiters, in UTF-8.

    CSV has quotes as in RFC 4180. TSV has none: an unpaired quote would swallow whole lines.
    """

    why_unreadable = "more or fewer cells than the first row, or a wrong quotation mark"

    def __init__(self, suffix: str, delimiter: str, *, has_quotes: bool) -> None:
        self.suffixes = (suffix,)  # type: ignore[misc] # one class for both formats
        self._delimiter, self._has_quotes = delimiter, has_quotes

    def records(
        self, stream: BinaryIO, path: Path, max_row_bytes: int
    ) -> Generator[Record, None, None]:
        lines = _Lines(stream, path, max_row_bytes)
        try:
            yield from self._records(lines)
        finally:
            lines.detach()  # or the stream would be closed with them

    def _records(self, lines: _Lines) -> Iterator[Record]:
        csv.field_size_limit(sys.maxsize)  # the default refuses texts over 128 kB
        quoting = csv.QUOTE_MINIMAL if self._has_quotes else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=self._delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type] # the stubs want literals
        names: Sequence[str] | None = None
        gap = b""
        while True:
            cells, fault = _next(reader)
            if cells is None and fault is None:
                yield Record(gap=gap, is_end=True)
                return
            raw, offset = lines.taken()
            if names is None and cells:
                if _are_names(cells):
                    names = cells
                    gap += raw
                    continue
                names = [f"column{number}" for number in range(len(cells))]
            if cells and len(cells) != len(names or ()):
                expected = counted(len(names or ()), "cell")
                fault = f"not {expected}", counted(len(cells), "cell")
            if cells and any("\0" in cell for cell in cells):
                fault = "not text", "NUL bytes: is the file in UTF-16?"
            value = None if fault or not cells else dict(zip(names or (), cells, strict=True))
            yield Record(gap=gap, raw=raw, offset=offset, value=value, fault=fault)
            gap = b""
            lines.row += 1

    def encoded(self, value: Value, record: Record) -> bytes:
        end = record.raw[len(record.raw.rstrip(b"\r\n")) :].decode()
        mark = BYTE_ORDER_MARK if record.raw.startswith(BYTE_ORDER_MARK) else b""
        if not self._has_quotes:
            return mark + (self._delimiter.join(value.values()) + end).encode()
        text = io.StringIO(newline="")
        is_quoted = record.raw.removeprefix(mark).startswith(b'"')
        quoting = csv.QUOTE_ALL if is_quoted else csv.QUOTE_MINIMAL
        style = {"delimiter": self._delimiter, "lineterminator": end or "\n", "quoting": quoting}
        writer = csv.writer(text, **style)  # type: ignore[arg-type] # the stubs want literals
        writer.writerow(value.values())
        return mark + text.getvalue().removesuffix("" if end else "\n").encode()


def _next(reader: Iterator[list[str]]) -> tuple[list[str] | None, tuple[str, str] | None]:
    """Return the next cells, or why they cannot be read; neither at the end."""
    try:
        return [_valid(cell) for cell in next(reader)], None
    except StopIteration:
        return None, None
    except csv.Error as error:
        return None, ("not CSV", str(error))


def _valid(cell: str) -> str:
    """Replace bytes that are not UTF-8, which are lone surrogates here, with U+FFFD."""
    if cell.isascii():
        return cell
    return cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether the first cells are the names of the columns."""
    is_different = len({*cells}) == len(cells)
    return is_different and not any(is_text(cell) or is_number(cell) for cell in cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class _Lines:
    """The lines of a text, with the bytes of those that were read since the last row."""

    def __init__(self, stream: BinaryIO, path: Path, max_row_bytes: int) -> None:
        self.row = 0  # the row that is being read
        self._text = io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="")
        self._path, self._max = path, max_row_bytes
        self._offset = self._n_bytes = 0
        self._pieces: list[bytes] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._max + 1)
        if not line:
            raise StopIteration
        raw = line.encode("utf-8", "surrogateescape")
        is_first = not self._offset and not self._pieces
        self._pieces.append(raw)
        self._n_bytes += len(raw)
        if self._n_bytes > self._max:
            raise too_long(self._path, self.row, self._offset, self._max)
        return line.removeprefix("\ufeff") if is_first else line

    def detach(self) -> None:
        self._text.detach()

    def taken(self) -> tuple[bytes, int]:
        """Return the bytes of a row that was read, and where they begin."""
        raw, offset = b"".join(self._pieces), self._offset
        self._pieces, self._n_bytes = [], 0
        self._offset += len(raw)
        return raw, offset


SHARD_FORMATS = (
    Delimited(".csv", ",", has_quotes=True),
    Delimited(".tsv", "\t", has_quotes=False),
)
