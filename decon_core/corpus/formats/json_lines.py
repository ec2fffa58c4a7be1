"""JSON Lines: an object per line. A kernel reads most lines, Python everything unusual."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.compiled_rows import batch_of, fields_of, strings_of_lines
from decon_core.corpus.documents import (
    Document,
    InvalidUtf8,
    Unreadable,
    document_of,
    not_a_document,
)
from decon_core.corpus.fields import field_tree
from decon_core.corpus.formats.lines import LineBlock, LineFormat, blocks_of, with_replacements
from decon_core.corpus.formats.recognize import fault_of_bytes
from decon_core.corpus.formats.sessions import is_session, session_of
from decon_core.corpus.formats.shard_format import PART_BYTES, JsonRow, Value
from decon_core.corpus.row_json import fault_of, parsed_row
from decon_core.corpus.shard_file import ShardFile
from decon_core.errors import CorpusError
from decon_core.kernels import json_lines
from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.jit import is_worth_compiling
from decon_core.storage.compression import BYTE_ORDER_MARK, open_bytes

_MAX_LINE_BYTES = 16 << 20  # longer lines are usually a mistake, not a document
_SECONDS_PER_BYTE = 10e-9  # time to parse lines one by one
_N_FIRST_ROWS = 50  # rows that are read in Python, to know their fields


class JsonBlock(LineBlock):
    def document(self, row: int, source: Source) -> Document | Unreadable | None:
        return self._document(row, self.edges, source)

    def _document(self, row: int, edges: Integers, source: Source) -> Document | Unreadable | None:
        start, stop = edges[row - self.row], edges[row - self.row + 1]
        line, offset = self.lines[start:stop].tobytes(), self.offset + int(start)
        if not _without_mark(line, row).strip():
            return None
        if fault := fault_of_bytes(line):
            return Unreadable(row, offset, *fault, line)
        try:
            value = parsed_row(_without_mark(line, row))
        except ValueError as error:
            return Unreadable(row, offset, *fault_of(error), line)
        if not isinstance(value, dict):
            return Unreadable(row, offset, "not an object", type(value).__name__, line)
        invalid = _invalid_in_line(line, row, offset)
        return document_of(value, row, source, offset=offset, raw=line, invalid=invalid)

    def batch(self, source: Source) -> Batch:
        tree = field_tree(source)
        if tree.roles or not is_worth_compiling(
            json_lines.read_lines, self.n_bytes, seconds_per_byte=_SECONDS_PER_BYTE
        ):
            return super().batch(source)
        if tree.compiled is None:
            for row in self.rows[:_N_FIRST_ROWS]:
                self.document(row, source)  # its fields are known then
        fields = fields_of(tree)
        strings, status, edges = strings_of_lines(self.lines, self.n_bytes, self.n_rows, fields)
        is_unusual = status == json_lines.UNUSUAL
        reread = partial(self._document, edges=edges, source=source)
        return batch_of(strings, is_unusual, source, fields, first_row=self.row, reread=reread)

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        for row, _, line in self.lines_at(rows):
            try:
                value = parsed_row(_without_mark(line, row))
            except ValueError as error:
                found = f"a line that cannot be parsed ({error})"
                raise CorpusError(not_a_document(self.path, row, found)) from None
            yield row, value

    def json_rows(self, rows: Iterable[int], changed: Mapping[int, Value]) -> Iterator[JsonRow]:
        for row, _, line in self.lines_at(rows):
            if row in changed:
                yield JsonRow(row, changed[row], None)
            else:
                content = _without_mark(line.rstrip(b"\r\n"), row)
                kept = with_replacements(content).encode()
                yield JsonRow(row, _row_or_none(content), kept)


class JsonLines(LineFormat):
    suffixes = (".jsonl", ".ndjson")
    block = JsonBlock

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[LineBlock]:
        blocks = super().parts(file, source, part_bytes=part_bytes)
        first = next(blocks, None)
        if first is not None and is_session(first):
            yield session_of([first, *blocks])
        elif first is not None:
            yield first
            yield from blocks

    def block_at(self, path: Path, place: Place, lines: Bytes) -> LineBlock:
        block = super().block_at(path, place, lines)
        if place.n_rows == 1 and block.n_lines > 1:
            return session_of([block])
        return block

    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any] | None]:
        del most  # read one by one
        with open_bytes(path) as file:
            line = file.readline(_MAX_LINE_BYTES).removeprefix(BYTE_ORDER_MARK)
            while line:
                if line.strip():
                    value = _row_or_none(line)
                    yield value if isinstance(value, dict) else None
                line = file.readline(_MAX_LINE_BYTES)

    def line_of(self, value: Value, *, like: bytes) -> bytes:
        """Serialize a row like the old line: same escaping, byte order mark and line break."""
        head = BYTE_ORDER_MARK if like.startswith(BYTE_ORDER_MARK) else b""
        return head + dumped(value, like=like) + like[len(like.rstrip(b"\r\n")) :]


def compile_line_reader(source: Source) -> None:
    """Compile the kernels that read lines, unless they may be compiled later."""
    for block in blocks_of(b"{}\n", JsonBlock, block_bytes=64):
        block.batch(source)


def dumped(value: Value, *, like: bytes) -> bytes:
    """Serialize a value in ASCII, or in UTF-8 if the old bytes are not ASCII."""
    try:
        return json.dumps(value, ensure_ascii=like.isascii()).encode()
    except UnicodeEncodeError:  # a lone surrogate in a field that is not the text
        return json.dumps(value).encode()


def _without_mark(line: bytes, row: int) -> bytes:
    return line.removeprefix(BYTE_ORDER_MARK) if row == 0 else line


def _row_or_none(content: bytes) -> object:
    try:
        return parsed_row(content)
    except ValueError:
        return None


def _invalid_in_line(line: bytes, row: int, offset: int) -> InvalidUtf8 | None:
    """Return where a line has invalid UTF-8; None if it has none."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        n_places = with_replacements(line).count("\N{REPLACEMENT CHARACTER}")
        n_places -= line.count("\N{REPLACEMENT CHARACTER}".encode())
        others = f" (and {n_places - 1} more)" if n_places > 1 else ""
        detail = f"0x{line[error.start]:02X} at byte {error.start} of the line{others}"
        return InvalidUtf8(row, offset + error.start, detail)
    return None


SHARD_FORMATS = (JsonLines(),)
