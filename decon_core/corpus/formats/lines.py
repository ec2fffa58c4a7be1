"""Shards of lines, compressed or not: split into blocks at line breaks, and rewritten line by line.

Unchanged lines keep their bytes: they are copied in ranges, at the speed of decompression and
compression. Changes are decided block by block, so that the shard is decompressed once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

import numpy as np

from decon_core.config.sources import Source
from decon_core.corpus.batches import Place
from decon_core.corpus.documents import id_of
from decon_core.corpus.formats.recognize import require_text, require_utf8
from decon_core.corpus.formats.shard_format import PART_BYTES, Decide, Ids, Part, ShardFormat, Value
from decon_core.corpus.shard_file import ShardFile, changed, damaged, too_long
from decon_core.errors import CorpusError
from decon_core.kernels.arrays import Bytes, Integers, alloc_array
from decon_core.kernels.json_tokens import LINE_BREAK, PADDING
from decon_core.storage.compression import (
    DAMAGE,
    HEAD,
    buffered,
    compression_of,
    create,
    read_chunks,
)

_SEARCH_BYTES = 1 << 16  # per step
_N_RESERVED = PADDING + 1  # bytes after the last line
_SKIPPED_BYTES = 1 << 18  # per step


@dataclass(frozen=True, eq=False)
class LineBlock(Part):
    """Complete lines of a shard. Only the last line of a shard may have no line break."""

    lines: Bytes  # a line break and `PADDING` bytes follow after `n_bytes`
    n_bytes: int
    offset: int  # first byte in the uncompressed shard

    @property
    def place(self) -> Place:
        return Place(self.row, self.n_rows, self.offset, self.n_bytes)

    @property
    def n_lines(self) -> int:
        return _n_lines(self.lines[: self.n_bytes])

    @cached_property
    def edges(self) -> Integers:
        """The start of each line, and the end of the last line."""
        breaks = np.flatnonzero(self.lines[: self.n_bytes] == LINE_BREAK) + 1
        return np.concatenate([[0], breaks[: self.n_rows - 1], [self.n_bytes]])

    def lines_at(self, rows: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield row number, start within the block, and bytes of some lines."""
        for row in rows:
            start, stop = self.edges[row - self.row : row - self.row + 2].tolist()
            yield row, start, self.lines[start:stop].tobytes()


class LineFormat(ShardFormat):
    """A format with one row per line."""

    block: ClassVar[type[LineBlock]]

    @abstractmethod
    def line_of(self, value: Value, *, like: bytes) -> bytes:
        """Return the line of a changed row, in the form of the old line."""

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[LineBlock]:
        """Yield a shard in blocks of complete lines, of about `part_bytes` or one longer line.

        Raises `CorpusError` on damage, after all lines that end before it.
        """
        del source  # lines are read whole
        path = file.path
        cutter = _Cutter(self.block, path, part_bytes, file.max_row_bytes)
        damage: Exception | None = None
        try:
            chunks = read_chunks(cast("BinaryIO", file), compression_of(path))
            for number, piece in enumerate(chunks):
                if number == 0:
                    require_text(bytes(piece[:HEAD]), path)
                    require_utf8(bytes(piece[:HEAD]), path)
                yield from cutter.blocks(piece)
        except DAMAGE as error:
            damage = error
        yield from cutter.rest(is_whole=damage is None)
        if damage is not None:
            raise damaged(path, cutter.row, cutter.offset, damage)

    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place]
    ) -> Iterator[tuple[LineBlock, int]]:
        del source  # lines are read whole
        try:
            for place, lines, n_bytes_read in _lines_at(path, places):
                block = self.block_at(path, place, lines)
                if block.n_lines != place.n_rows:
                    raise CorpusError(changed(path))
                yield block, n_bytes_read
        except DAMAGE:
            raise CorpusError(changed(path)) from None

    def block_at(self, path: Path, place: Place, lines: Bytes) -> LineBlock:
        """Return the lines that were read at a place."""
        return self.block(path, place.row, place.n_rows, lines, place.n_bytes, place.offset)

    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        ids: Ids = {}
        with create(target, compression_of(target)) as out:
            for block in self.parts(file, source):
                changes = decide(block)
                rows, at = changes.within(block.rows), 0
                ids |= dict.fromkeys(rows)
                named = [row for row in rows if row not in changes.unreadable] if source.id else []
                # Not as documents: their text, which is not needed, takes ten times as long.
                ids |= {row: id_of(value, source) for row, value in block.values(named)}
                for row, start, line in block.lines_at(rows):
                    out.write(block.lines[at:start].data)
                    at = start + len(line)
                    if row in changes.values:
                        out.write(self.line_of(changes.values[row], like=line))
                    elif row not in changes.gone:
                        out.write(with_replacements(line).encode())
                out.write(block.lines[at : block.n_bytes].data)
        return ids


def _lines_at(path: Path, places: Sequence[Place]) -> Iterator[tuple[Place, Bytes, int]]:
    """Yield the lines at some places, and how much of the file has been read so far.

    A compressed file is read from its beginning. Raises one of `DAMAGE`.
    """
    compression, at, n_bytes_read = compression_of(path), 0, 0
    with path.open("rb") as file:
        stream = buffered(cast("BinaryIO", file), compression)
        for place in places:
            if not compression:
                stream.seek(place.offset)
            while compression and at < place.offset:
                skipped = stream.read(min(place.offset - at, _SKIPPED_BYTES))
                if not skipped:
                    raise EOFError("the file is truncated")
                at += len(skipped)
            lines = alloc_array(place.n_bytes + _N_RESERVED, np.uint8)
            if stream.readinto(lines.data[: place.n_bytes]) < place.n_bytes:
                raise EOFError("the file is truncated")
            lines[place.n_bytes] = LINE_BREAK
            at += place.n_bytes
            n_bytes_read = file.tell() if compression else n_bytes_read + place.n_bytes
            yield place, lines, n_bytes_read


def with_replacements(line: bytes) -> str:
    """Decode a line, with U+FFFD in place of invalid UTF-8."""
    return line.decode("utf-8", errors="replace")


def blocks_of(
    lines: bytes, block: type[LineBlock], *, block_bytes: int = PART_BYTES
) -> Iterator[LineBlock]:
    """Yield lines in memory as blocks."""
    cutter = _Cutter(block, Path(), block_bytes, len(lines))
    yield from cutter.blocks(memoryview(lines))
    yield from cutter.rest(is_whole=True)


class _Cutter:
    """Splits a stream of bytes into blocks of complete lines."""

    def __init__(
        self, block: type[LineBlock], path: Path, block_bytes: int, max_row_bytes: int
    ) -> None:
        self.row = self.offset = 0  # position of the next block
        self._max_row_bytes = max_row_bytes
        self._block, self._path = block, path
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
                elif self._filled > self._max_row_bytes:
                    raise too_long(self._path, self.row, self.offset, self._max_row_bytes)
                else:
                    self._searched = self._filled
                    self._move(0, min(2 * self._filled, self._max_row_bytes + 1))

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
        block = self._block(self._path, self.row, n_lines, self._buffer, stop, self.offset)
        if stop > self._max_row_bytes:
            (too_long_rows,) = np.nonzero(np.diff(block.edges) > self._max_row_bytes)
            if too_long_rows.size:
                at = int(too_long_rows[0])
                offset = block.offset + int(block.edges[at])
                raise too_long(self._path, block.row + at, offset, self._max_row_bytes)
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


def _end_of_last_line(buffer: Bytes, start: int, stop: int) -> int:
    """Return the offset after the last line break; 0 if there is none."""
    while stop > start:
        first = max(start, stop - _SEARCH_BYTES)
        at = buffer[first:stop].tobytes().rfind(b"\n")
        if at >= 0:
            return first + at + 1
        stop = first
    return 0


def _n_lines(lines: Bytes) -> int:
    # Count in pieces, so that the results of the comparisons stay in the processor's cache.
    counts = (
        int(np.count_nonzero(lines[at : at + _SEARCH_BYTES] == LINE_BREAK))
        for at in range(0, lines.size, _SEARCH_BYTES)
    )
    return sum(counts) + int(lines[-1] != LINE_BREAK)
