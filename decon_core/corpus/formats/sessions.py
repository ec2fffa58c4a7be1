"""Logs of coding agents: JSON lines of different shapes, of which a file is one document.

Claude Code, Codex, Pi and others write a file per session. Its row has the lines as a list, so that
a match is in `lines[12].message.content`. Mixtures keep or drop it whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import orjson

from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch
from decon_core.corpus.documents import Document, Unreadable, document_of
from decon_core.corpus.formats.lines import LineBlock
from decon_core.corpus.formats.recognize import fault_of_bytes
from decon_core.corpus.formats.shard_format import JsonRow, Part, Value
from decon_core.corpus.row_json import KeyTwiceError, fault_of, parsed_row
from decon_core.corpus.row_texts import WholeRow
from decon_core.kernels.arrays import Integers, alloc_array
from decon_core.kernels.json_tokens import LINE_BREAK, PADDING

N_FIRST_LINES = 5  # a session shows within these lines
_FIRST_TYPES = ("session", "session_meta")


@dataclass(frozen=True, eq=False)
class SessionBlock(LineBlock):
    """All lines of a session, as one row."""

    @property
    def n_lines(self) -> int:
        return 1  # they are one row

    @cached_property
    def edges(self) -> Integers:
        return np.array([0, self.n_bytes])

    def document(self, row: int, source: Source) -> Document | Unreadable | None:
        content = self.lines[: self.n_bytes].tobytes()
        if fault := fault_of_bytes(content):
            return Unreadable(row, self.offset, *fault, content)
        try:
            value = self._value(content)
        except ValueError as error:
            return Unreadable(row, self.offset, *fault_of(error), content)
        return document_of(value, row, source, offset=self.offset, raw=content)

    def batch(self, source: Source) -> Batch:
        return Part.batch(self, source)

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        for row in rows:
            yield row, self._value(self.lines[: self.n_bytes].tobytes())

    def json_rows(self, rows: Iterable[int], changed: Mapping[int, Value]) -> Iterator[JsonRow]:
        del changed  # it is never cut
        for row, value in self.values([*rows]):
            yield JsonRow(row, value, None)

    @staticmethod
    def _value(content: bytes) -> WholeRow:
        lines = []
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                lines += [parsed_row(line)] if line.strip() else []
            except KeyTwiceError as error:
                raise KeyTwiceError(f"line {number}: {error}") from None
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
        return WholeRow(lines=lines)


def is_session(block: LineBlock) -> bool:
    """Return whether a file is a session, by its first lines."""
    first = range(block.row, block.row + min(block.n_rows, N_FIRST_LINES))
    return block.row == 0 and any(
        is_of_session(_parsed(line)) for _, _, line in block.lines_at(first)
    )


def _parsed(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def is_of_session(value: object) -> bool:
    """Return whether a line is of the log of an agent."""
    if not isinstance(value, dict):
        return False
    is_first = value.get("type") in _FIRST_TYPES and not {"text", "messages"} & value.keys()
    is_claude = {"sessionId", "uuid", "message"} <= value.keys()
    return is_first or is_claude or (value.get("type") == "summary" and "leafUuid" in value)


def session_of(blocks: Sequence[LineBlock]) -> SessionBlock:
    """Return the blocks of a file as one row."""
    contents = [block.lines[: block.n_bytes] for block in blocks]
    n_bytes = sum(content.size for content in contents)
    lines = alloc_array(n_bytes + 1 + PADDING, np.uint8)
    np.concatenate(contents, out=lines[:n_bytes])
    lines[n_bytes] = LINE_BREAK
    return SessionBlock(blocks[0].path, 0, 1, lines, n_bytes, 0)
