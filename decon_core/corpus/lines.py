"""JSON Lines shards: split into blocks at line breaks, and parsed line by line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import orjson

from decon_core.config.load import Source
from decon_core.corpus.documents import (
    Document,
    InvalidUtf8,
    Unreadable,
    document_of,
    not_a_document,
)
from decon_core.corpus.shard_file import ShardFile, misnamed
from decon_core.errors import CorpusError, Problem
from decon_core.kernels.arrays import alloc_array
from decon_core.kernels.json_lines import LINE_BREAK, PADDING
from decon_core.storage.compression import DAMAGE, HEAD, compression_of, read_chunks, sniff
from decon_core.wording import counted

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEARCH_BYTES = 1 << 16  # per step
_N_RESERVED = PADDING + 1  # bytes after the last line


@dataclass(frozen=True, eq=False)
class LineBlock:
    """Complete lines of a shard. Only the last line of a shard may have no line break."""

    lines: npt.NDArray[np.uint8]  # a line break and `PADDING` bytes follow after `n_bytes`
    n_bytes: int
    n_lines: int
    row: int  # of the first line
    offset: int  # of the first line, in the uncompressed shard

    @property
    def rows(self) -> range:
        return range(self.row, self.row + self.n_lines)

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """The start of each line, and the end of the last one."""
        breaks = np.flatnonzero(self.lines[: self.n_bytes] == LINE_BREAK) + 1
        return np.concatenate([[0], breaks[: self.n_lines - 1], [self.n_bytes]])


def line_blocks(file: ShardFile, path: Path, *, block_bytes: int) -> Iterator[LineBlock]:
    """Yield a shard in blocks of complete lines, of about `block_bytes` or one longer line.

    Raises `CorpusError` on damage, after all lines that end before it.
    """
    cutter = _Cutter(block_bytes)
    damage: Exception | None = None
    try:
        for number, piece in enumerate(read_chunks(cast("BinaryIO", file), compression_of(path))):
            if number == 0:
                _require_lines(bytes(piece[:HEAD]), path)
            yield from cutter.blocks(piece)
    except DAMAGE as error:
        damage = error
    yield from cutter.rest(is_whole=damage is None)
    if damage is not None:
        raise CorpusError(
            Problem(
                f"{path}: after {counted(cutter.row, 'row')}, byte {cutter.offset} of the "
                "uncompressed text",
                f"damaged or cut off ({damage})",
                "a whole file",
                "replace the shard, or remove it from the corpus",
            )
        )


def blocks_of(lines: bytes, *, block_bytes: int) -> Iterator[LineBlock]:
    """Yield lines in memory as blocks."""
    cutter = _Cutter(block_bytes)
    yield from cutter.blocks(memoryview(lines))
    yield from cutter.rest(is_whole=True)


def lines_of(block: LineBlock, rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield row number, start and stop of the lines of some rows in a block."""
    for row in rows:
        at = row - block.row
        yield row, int(block.edges[at]), int(block.edges[at + 1])


def _require_lines(head: bytes, path: Path) -> None:
    """Raise `CorpusError` if the decompressed bytes are not text but another file format."""
    detected = sniff(head)
    if detected and detected[1]:
        kind, suffix = detected
        raise CorpusError(misnamed(path.with_suffix(""), kind, suffix))


class _Cutter:
    """Splits a stream of bytes into blocks of complete lines."""

    def __init__(self, block_bytes: int) -> None:
        self.row = self.offset = 0  # of the next block
        self._block_bytes = block_bytes
        self._filled = 0
        self._searched = 0  # no line break before this offset
        self._buffer = alloc_array(block_bytes + _N_RESERVED, np.uint8)

    def blocks(self, piece: memoryview) -> Iterator[LineBlock]:
        fresh = np.frombuffer(piece, np.uint8)
        while fresh.size:
            step = min(self._buffer.size - _N_RESERVED - self._filled, fresh.size)
            self._buffer[self._filled : self._filled + step] = fresh[:step]
            self._filled += step
            fresh = fresh[step:]
            if fresh.size:
                stop = _end_of_last_line(self._buffer, self._searched, self._filled)
                if stop:
                    yield self._cut(stop)
                else:
                    self._searched = self._filled
                    self._move(0, 2 * self._filled)

    def rest(self, *, is_whole: bool) -> Iterator[LineBlock]:
        """Yield the last lines; of a truncated shard without the incomplete last line."""
        stop = self._filled
        if not is_whole:
            stop = _end_of_last_line(self._buffer, self._searched, stop)
        if stop:
            self._buffer[self._filled] = LINE_BREAK
            yield self._cut(stop)

    def _cut(self, stop: int) -> LineBlock:
        n_lines = _n_lines(self._buffer[:stop])
        block = LineBlock(self._buffer, stop, n_lines, self.row, self.offset)
        self._move(stop, max(self._block_bytes, 2 * (self._filled - stop)))
        self.row += n_lines
        self.offset += stop
        self._searched = self._filled
        return block

    def _move(self, start: int, size: int) -> None:
        """Move the remaining bytes into a new buffer."""
        left = self._buffer[start : self._filled]
        self._buffer = alloc_array(size + _N_RESERVED, np.uint8)
        self._buffer[: left.size] = left
        self._filled = left.size


def _end_of_last_line(buffer: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """Return the offset after the last line break; 0 if there is none."""
    while stop > start:
        first = max(start, stop - _SEARCH_BYTES)
        at = buffer[first:stop].tobytes().rfind(b"\n")
        if at >= 0:
            return first + at + 1
        stop = first
    return 0


def _n_lines(lines: npt.NDArray[np.uint8]) -> int:
    # In pieces, so that the results of the comparisons stay in the processor's cache.
    counts = (
        int(np.count_nonzero(lines[at : at + _SEARCH_BYTES] == LINE_BREAK))
        for at in range(0, lines.size, _SEARCH_BYTES)
    )
    return sum(counts) + int(lines[-1] != LINE_BREAK)


def rows_of_lines(block: LineBlock, source: Source) -> Iterator[Document | Unreadable]:
    """Yield the rows of a block, without blank lines."""
    offset = block.offset
    lines = io.BytesIO(block.lines[: block.n_bytes].tobytes())
    for row, line in enumerate(lines, start=block.row):
        document = row_of_line(line, row, offset, source)
        if document:
            yield document
        offset += len(line)


def row_of_line(line: bytes, row: int, offset: int, source: Source) -> Document | Unreadable | None:
    """Parse a line; None if it is blank."""
    if not line.strip():
        return None
    text = line.removeprefix(BYTE_ORDER_MARK) if row == 0 else line
    return _document_of_line(text, line, row, offset, source)


def _document_of_line(
    text: bytes, line: bytes, row: int, offset: int, source: Source
) -> Document | Unreadable:
    try:
        value, is_plain = parsed(text)
    except ValueError as error:
        return Unreadable(row, offset, "not JSON", str(error), line)
    if not isinstance(value, dict):
        return Unreadable(row, offset, "not an object", type(value).__name__, line)
    invalid = None if is_plain else invalid_in_line(line, row, offset)
    return document_of(value, row, source, offset=offset, raw=line, invalid=invalid)


def parsed(line: bytes) -> tuple[object, bool]:
    """Parse a JSON line; return its value and whether it is known to be valid JSON in UTF-8.

    Invalid UTF-8 and lone surrogates become replacement characters. Raises `ValueError`.
    """
    try:
        return orjson.loads(line), True
    except orjson.JSONDecodeError:
        # Slower, but accepts NaN, invalid UTF-8 and escaped lone surrogates.
        try:
            return json.loads(with_replacements(line)), False
        except RecursionError:
            raise ValueError("nested too deeply") from None


def with_replacements(line: bytes) -> str:
    """Decode a line, with U+FFFD in place of invalid UTF-8."""
    return line.decode("utf-8", errors="replace")


def invalid_in_line(line: bytes, row: int, offset: int) -> InvalidUtf8 | None:
    """Return where a line has invalid UTF-8, or None. `offset`: of the line in the file."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        n_places = with_replacements(line).count("\N{REPLACEMENT CHARACTER}")
        n_places -= line.count("\N{REPLACEMENT CHARACTER}".encode())
        more = f" and in {n_places - 1} more places" if n_places > 1 else ""
        detail = f"0x{line[error.start]:02X} at byte {error.start} of the line{more}"
        return InvalidUtf8(row, offset + error.start, detail)
    return None


def values_of_lines(
    block: LineBlock, path: Path, rows: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and value of some rows of a block. Raises `CorpusError` if one is not JSON."""
    for row, start, stop in lines_of(block, rows):
        line = block.lines[start:stop].tobytes()
        text = line.removeprefix(BYTE_ORDER_MARK) if row == 0 else line
        try:  # not orjson: it turns a long integer into a float
            value = json.loads(with_replacements(text))
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                not_a_document(path, row, f"a line that cannot be parsed ({error})")
            ) from None
        yield row, value
