"""`.json`: an array of objects, an object that holds the rows, or one object per line.

A document is read value by value, so that an array may be longer than memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from decon_core.config.sources import MAX_ROW_BYTES, Source
from decon_core.corpus.batches import Place
from decon_core.corpus.fields import FieldTree
from decon_core.corpus.formats.json_lines import JsonLines, dumped
from decon_core.corpus.formats.records import Record, RecordFormat
from decon_core.corpus.formats.shard_format import PART_BYTES, Decide, Ids, Part, Value
from decon_core.corpus.row_json import TOO_DEEP, fault_of, parsed_row
from decon_core.corpus.row_texts import text_of_row
from decon_core.corpus.shard_file import ShardFile, too_long
from decon_core.corpus.string_kinds import is_text
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import (
    BYTE_ORDER_MARK,
    DAMAGE,
    buffered,
    compression_of,
    open_bytes,
)
from decon_core.wording import counted

ROW_KEYS = ("data", "rows", "examples")  # keys of an object that holds the rows
_LINES = JsonLines()
_STEP = 1 << 18
_SPACE = re.compile(r"[ \t\r\n]*")
_IN_STRING = ("Unterminated", "Invalid control")
_LONGEST_SIGN = 16  # bytes of a literal or an escape
_BYTES = re.compile(r"[\x80-\xff]+")


class Json(RecordFormat):
    """JSON in a file: lines of objects, or a document with the rows.

    A document is an array of objects; an object with the rows in an array under `data`, `rows` or
    `examples`; an object of columns, which are lists of the same length; or one row.
    """

    suffixes = (".json",)

    def parts(
        self, file: ShardFile, source: Source | None, *, part_bytes: int = PART_BYTES
    ) -> Iterator[Part]:
        reader = _LINES.parts if _has_lines(file) else super().parts
        return reader(file, source, part_bytes=part_bytes)

    def parts_at(
        self, path: Path, source: Source, places: Sequence[Place]
    ) -> Iterator[tuple[Part, int]]:
        with open_bytes(path) as stream:
            is_lines = _holds_lines(stream, source.max_row_bytes)
        reader = _LINES.parts_at if is_lines else super().parts_at
        return reader(path, source, places)

    def first_rows(self, path: Path, most: int) -> Iterator[Mapping[str, Any] | None]:
        with open_bytes(path) as stream:
            is_lines = _holds_lines(stream, MAX_ROW_BYTES)
        reader = _LINES.first_rows if is_lines else super().first_rows
        return reader(path, most)

    def rewrite(self, file: ShardFile, source: Source, target: Path, decide: Decide) -> Ids:
        rewrite = _LINES.rewrite if _has_lines(file) else super().rewrite
        return rewrite(file, source, target, decide)

    def records(
        self, stream: BinaryIO, path: Path, max_row_bytes: int
    ) -> Generator[Record, None, None]:
        return _Document(stream, path, max_row_bytes).records()

    def encoded(self, value: Value, record: Record) -> bytes:
        # A row of columns has no bytes in the file: it is written with the others at the end.
        return dumped(value, like=record.raw) if record.raw else b""

    def tail(self, end: Record, changed: Mapping[int, Value | None]) -> bytes:
        """Return the end of a document; of one of columns, that is the whole document."""
        if end.value is None or not changed:
            return end.gap
        columns: dict[str, list[Any]] = {name: [] for name in end.value}
        for row, cells in enumerate(zip(*end.value.values(), strict=True)):
            value = changed.get(row, dict(zip(columns, cells, strict=True)))
            for name, cell in (value or {}).items():
                columns[name].append(cell)
        return dumped(columns, like=end.gap)


def _has_lines(file: ShardFile) -> bool:
    """Return whether an open shard has an object per line; reading begins anew afterwards."""
    try:
        stream = buffered(cast("BinaryIO", file), compression_of(file.path))
        return _holds_lines(stream, file.max_row_bytes)
    except DAMAGE:
        return True  # the reader of lines says where
    finally:
        file.seek(0)


def _holds_lines(stream: BinaryIO, max_bytes: int) -> bool:
    """Return whether a text has an object per line, by its first line and what follows it."""
    line = b"\n"
    while line.isspace():
        line = stream.readline(max_bytes + 1).removeprefix(BYTE_ORDER_MARK)
    if not line.lstrip().startswith(b"{"):
        return not line.lstrip().startswith(b"[")
    if len(line) > max_bytes:
        return False
    text = line.decode("latin-1")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        # The value may go on in the next line, but not within a string.
        return error.pos < len(text.rstrip()) or error.msg.startswith(_IN_STRING)
    except (ValueError, RecursionError):
        return True
    is_only = not any(map(bytes.strip, iter(partial(stream.readline, _STEP), b"")))
    return not is_only or (_rows_key(value) is None and not _are_columns(value))


def _rows_key(value: Mapping[str, Any]) -> str | None:
    """Return the key of an object's rows; None if it holds none, or texts beside them."""
    for key in ROW_KEYS:
        rows = value.get(key)
        if isinstance(rows, list) and (not rows or isinstance(rows[0], dict)):
            others = {name: other for name, other in value.items() if name != key}
            return None if _text_in(others) else key
    return None


def _are_columns(value: object) -> bool:
    """Return whether an object consists of lists of one length, which are not turns or rows."""
    if not isinstance(value, dict) or not value:
        return False
    columns = [*value.values()]
    if not all(isinstance(column, list) for column in columns):
        return False
    has_objects = any(isinstance(cell, dict) for column in columns for cell in column)
    if len({*map(len, columns)}) > 1 or (has_objects and len(value) == 1):
        return False
    return not any(is_text(_as_utf8(key)) for key in value)  # such a key is the text of a row


def _text_in(members: Value) -> str:
    """Return the text of an object beside its rows, as it would be read; empty if it has none."""
    try:
        members = _as_utf8(members)
    except RecursionError:
        return "nested too deeply to be read"
    read = text_of_row(members, FieldTree(Source(name="", path="")))
    text = " ".join(slot.text for slot in (*read.visible, *read.hidden))
    return text if is_text(text) else ""


def _as_utf8(value: Any) -> Any:
    """Return a value whose strings were decoded as Latin-1, but for their escapes."""
    if isinstance(value, dict):
        return {_as_utf8(key): _as_utf8(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [*map(_as_utf8, value)]
    if not isinstance(value, str):
        return value
    return _BYTES.sub(lambda part: part[0].encode("latin-1").decode("utf-8", "replace"), value)


class _Document:
    """The rows of a JSON document. Only the value that is being read is in memory.

    The bytes are decoded as Latin-1: a character is a byte then, and JSON's own signs are the same.
    """

    def __init__(self, stream: BinaryIO, path: Path, max_row_bytes: int) -> None:
        self._stream, self._path, self._max = stream, path, max_row_bytes
        # Rows are parsed again: here numbers may have thousands of digits.
        self._decode = json.JSONDecoder(strict=False, parse_int=float).raw_decode
        self._text, self._is_whole = "", False  # a part of the file, and whether it is the last
        # Offsets in the file: of the text, of the next byte to be read, of the first not yielded.
        self._base = self._at = self._mark = 0
        self._row = 0

    def records(self) -> Generator[Record, None, None]:
        if self._peek() == "\xef":
            self._at += len(BYTE_ORDER_MARK)
        columns: Value | None = None
        while columns is None and (sign := self._peek()):
            if sign == "[":
                yield from self._elements()
            elif sign == "{":
                columns = yield from self._object()
            else:
                yield self._record()
        yield Record(gap=self._taken(), value=columns, is_end=True)

    def _elements(self) -> Iterator[Record]:
        """Yield the elements of an array, and go beyond its end."""
        self._at += 1
        is_first = True
        while self._peek() != "]":
            if not is_first:
                self._step_over(",")
            yield self._record(follows=not is_first)
            is_first = False
        self._at += 1

    def _object(self) -> Generator[Record, None, Value | None]:
        """Yield the rows of an object, or the object as a row; return it if it has columns."""
        start, members = self._at, dict[str, Any]()
        self._at += 1
        while self._peek() != "}":
            if members:
                self._step_over(",")
            key = self._key()
            if key in ROW_KEYS and self._begins_rows() and not _text_in(members):
                yield from self._elements()
                self._pass_rest(key)
                return None
            if key in members:
                raise self._broken(f"key {key!r} twice", self._at)
            members[key] = self._value()
            if self._at - start > self._max:
                raise too_long(self._path, self._row, start, self._max)
        self._at += 1
        if not self._row and _are_columns(members) and not self._peek():
            try:
                columns: Value = parsed_row(self._bytes(start, self._at))
            except ValueError as error:
                raise self._broken(str(error), start) from None
            for cells in zip(*columns.values(), strict=True):
                yield Record(value=dict(zip(columns, cells, strict=True)))
            return columns
        stop, self._at = self._at, start
        gap, self._at = self._taken(), stop
        yield self._record_of(start, gap=gap)
        return None

    def _pass_rest(self, key: str) -> None:
        """Go beyond the members of an object that follow on its rows, which may be no texts."""
        while self._peek() != "}":
            self._step_over(",")
            name = self._key()
            if text := _text_in({name: self._value()}):
                where = f"{self._path}: key {name!r}, next to the rows under {key!r}"
                remedy = f"write one row per line, for example with `jq -c '.{key}[]'`"
                raise CorpusError(Problem(where, f"text ({text[:40]!r})", "only rows", remedy))
        self._at += 1

    def _key(self) -> str:
        key = self._value()
        if not isinstance(key, str):
            raise self._broken("expected a key", self._at)
        self._step_over(":")
        return key

    def _step_over(self, sign: str) -> None:
        """Go beyond a sign, and the space that follows."""
        if self._peek() != sign:
            raise self._broken(f"expected {sign!r}", self._at)
        self._at += 1
        self._peek()

    def _begins_rows(self) -> bool:
        """Return whether an array of objects or an empty array follows."""
        at = self._at
        is_array = self._peek() == "["
        self._at += 1
        holds_objects = is_array and self._peek() in ("{", "]")
        self._at = at
        return holds_objects

    def _record(self, *, follows: bool = False) -> Record:
        """Read a row; if it `follows` another row, the bytes before it separate them."""
        between, start = self._taken(), self._at
        self._value()
        if follows:
            return self._record_of(start, separator=between)
        return self._record_of(start, gap=between)

    def _record_of(self, offset: int, *, gap: bytes = b"", separator: bytes = b"") -> Record:
        self._row += 1
        raw = self._taken()
        record = Record(gap=gap, separator=separator, raw=raw, offset=offset)
        try:
            value = parsed_row(raw)
        except ValueError as error:
            return replace(record, fault=fault_of(error))
        if isinstance(value, dict):
            return replace(record, value=value)
        return replace(record, fault=("not an object", type(value).__name__))

    def _value(self) -> Any:
        """Parse the next value, and go beyond it."""
        start = self._at
        while True:
            try:
                value, stop = self._decode(self._text, start - self._base)
            except json.JSONDecodeError as error:
                is_near_end = error.pos >= len(self._text) - _LONGEST_SIGN
                may_be_cut = is_near_end or error.msg.startswith("Unterminated")
                if self._is_whole or not may_be_cut:
                    raise self._broken(error.msg, self._base + error.pos) from None
            except RecursionError:
                raise self._broken(TOO_DEEP, start) from None
            else:
                if stop < len(self._text) or self._is_whole:
                    self._at = self._base + stop
                    if self._at - start > self._max:
                        raise too_long(self._path, self._row, start, self._max)
                    return value
            if self._base + len(self._text) - start > self._max:
                raise too_long(self._path, self._row, start, self._max)
            self._read_on()

    def _broken(self, why: str, at: int) -> CorpusError:
        where = f"{self._path}: after {counted(self._row, 'row')}, byte {at} of the text"
        remedy = "correct or replace the shard, or remove it from the corpus"
        return CorpusError(Problem(where, f"text that is not JSON ({why})", "JSON", remedy))

    def _peek(self) -> str:
        """Go to the next sign that is no space, and return it; empty at the end."""
        while True:
            at = _SPACE.match(self._text, self._at - self._base).end()  # type: ignore[union-attr] # matches always
            self._at = self._base + at
            if at < len(self._text):
                return self._text[at]
            if self._is_whole:
                return ""
            self._read_on()

    def _read_on(self) -> None:
        """Read at least as much as is in memory, so that long values are parsed a few times."""
        self._text = self._text[self._mark - self._base :]
        self._base = self._mark
        content = self._stream.read(max(_STEP, len(self._text)))
        self._is_whole = not content
        self._text += content.decode("latin-1")

    def _taken(self) -> bytes:
        """Return what was read since the last call."""
        start, self._mark = self._mark, self._at
        return self._bytes(start, self._at)

    def _bytes(self, start: int, stop: int) -> bytes:
        return self._text[start - self._base : stop - self._base].encode("latin-1")


SHARD_FORMATS = (Json(),)
