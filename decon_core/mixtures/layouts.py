"""Documents in the layouts that trainers read: Dolma's lines, and parquet as Hugging Face has it.

`rows_of` reads documents of shards of any format, one way for all; `open_layout` writes them. Both
layouts hold the same: `id`, `text` and `source` as texts, and every other field of the row. A line
that has these three already keeps its bytes; one that lacks `id` or `source` gets them at its end.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, document_of, id_of, without_lone_surrogates
from decon_core.corpus.lines import BYTE_ORDER_MARK, line_blocks, lines_of, with_replacements
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import open_shard
from decon_core.corpus.tables import table_batches
from decon_core.errors import CorpusError, Problem
from decon_core.mixtures.rewrite import (
    Changes,
    Ids,
    naming_columns,
    with_values,
)
from decon_core.storage.compression import LINE_FORMATS, create, format_of
from decon_core.storage.paths import parse_path

Kind = Literal["dolma", "parquet"]
Value = dict[str, Any]

# What documents are read by again once they are in a layout.
TEXT, ID = "text", "id"

_AT_ONCE = 4 << 20  # bytes
_NONE_CHANGED: Mapping[int, Value] = {}

# A row group is what a reader unpacks at once, and what is held here until it is full.
_GROUP_CHARACTERS = 32 << 20
_GROUP_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Row:
    """A document with all that belongs to it."""

    source: Source  # where in the row the text is
    shard: str  # name of its shard in the corpus
    number: int  # row in the shard
    value: Value  # parsed; of tables what JSON has no form for as text
    # As it lies there, without byte order mark and line break; None: of a table, or changed.
    line: bytes | None


# Reading ------------------------------------------------------------------------------------------


def rows_of(
    shard: Shard,
    source: Source,
    rows: Sequence[int] | None = None,
    *,
    changed: Mapping[int, Value] = _NONE_CHANGED,
) -> Iterator[Row]:
    """Documents of a shard, in order, some at a time: these rows (ascending), or all.

    A row of `changed` says what stands there; of a table these are the columns that do.
    """
    path = parse_path(shard.path)
    wanted = None if rows is None else np.array(rows, np.int64)
    read = _rows_of_lines if format_of(path) in LINE_FORMATS else _rows_of_table
    for row in read(shard, source, wanted, changed):
        if rows is not None or isinstance(_document(row), Document):
            yield row


def _document(row: Row) -> object:
    return document_of(row.value, row.number, row.source)


def _within(wanted: npt.NDArray[np.int64] | None, first: int, n: int) -> list[int]:
    """The rows that are asked for, of a stretch."""
    if wanted is None:
        return [*range(first, first + n)]
    start, stop = np.searchsorted(wanted, [first, first + n])
    found: list[int] = wanted[start:stop].tolist()
    return found


def _is_behind(wanted: npt.NDArray[np.int64] | None, row: int) -> bool:
    """Whether no row from this one on is asked for."""
    return wanted is not None and not (wanted.size and wanted[-1] >= row)


def _rows_of_lines(
    shard: Shard,
    source: Source,
    wanted: npt.NDArray[np.int64] | None,
    changed: Mapping[int, Value],
) -> Iterator[Row]:
    with open_shard(shard) as file:
        for block in line_blocks(file, parse_path(shard.path), block_bytes=_AT_ONCE):
            numbers = _within(wanted, block.row, block.n_lines)
            for number, start, stop in lines_of(block, numbers):
                line = block.lines[start:stop].tobytes().rstrip(b"\r\n")
                if number == 0:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                if number in changed:
                    yield Row(source, shard.name, number, changed[number], None)
                    continue
                value, line = _parsed(line)
                if isinstance(value, dict):
                    yield Row(source, shard.name, number, value, line)
                elif wanted is not None:
                    raise _no_document(shard, number)
            if _is_behind(wanted, block.row + block.n_lines):
                break  # what is left is read to see that nothing changed, and not unpacked


def _parsed(line: bytes) -> tuple[object, bytes]:
    """What a line says, as the corpus is read (nothing, if that is no JSON), and the line in UTF-8.

    Replacement characters take the place of bytes that are not UTF-8, in both.
    """
    found = None
    try:
        found = orjson.loads(line)
        if _is_exact(found):
            return found, line
    except (orjson.JSONDecodeError, RecursionError):
        pass
    text = with_replacements(line)
    try:  # slower, and takes what others write
        return json.loads(text), text.encode()
    except (ValueError, RecursionError):  # no JSON; or an integer of thousands of digits
        return found, text.encode()


def _is_exact(value: object) -> bool:
    """Whether no number can be an integer beyond 64 bits: orjson makes floats of these."""
    if isinstance(value, dict):
        return all(map(_is_exact, value.values()))
    if isinstance(value, list):
        return all(map(_is_exact, value))
    return not isinstance(value, float) or abs(value) < 2**63


def _no_document(shard: Shard, number: int) -> CorpusError:
    return CorpusError(
        Problem(
            f"{shard.path}: row {number}",
            "no object of JSON",
            "a document, as it was scanned",
            "register the corpus again (`decon-assets register`)",
        )
    )


def _rows_of_table(
    shard: Shard,
    source: Source,
    wanted: npt.NDArray[np.int64] | None,
    changed: Mapping[int, Value],
) -> Iterator[Row]:
    path = parse_path(shard.path)
    first = 0
    with open_shard(shard) as file:
        for batch in table_batches(file, path, None, batch_bytes=_AT_ONCE):
            numbers = _within(wanted, first, batch.num_rows)
            if numbers:
                with naming_columns(path):
                    values = _values(batch)
                    for number in set(numbers) & set(changed):
                        row = pa.Table.from_batches([batch.slice(number - first, 1)])
                        (made,) = with_values(row, changed[number]).combine_chunks().to_batches()
                        (values[number - first],) = _values(made)
                for number in numbers:
                    yield Row(source, shard.name, number, values[number - first], None)
            first += batch.num_rows
            if _is_behind(wanted, first):
                break


# Values of tables ---------------------------------------------------------------------------------


def _values(batch: pa.RecordBatch) -> list[Value]:
    names = batch.schema.names
    if len({*names}) < len(names):
        raise ValueError("two of one name")
    columns = [_column(column) for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column(column: pa.Array) -> list[Any]:
    if _is_json(column.type):
        try:
            values: list[Any] = column.to_pylist()
        except UnicodeDecodeError:
            pass
        else:
            return values
    return [_json_form(scalar) for scalar in column]


_types = pa.types
_IS_SCALAR = (
    *(_types.is_null, _types.is_boolean, _types.is_integer, _types.is_floating),
    *(_types.is_string, _types.is_large_string, _types.is_string_view),
)
_IS_LIST = (
    *(_types.is_list, _types.is_large_list, _types.is_fixed_size_list),
    *(_types.is_list_view, _types.is_large_list_view),
)
_IS_BYTES = (
    *(_types.is_binary, _types.is_large_binary),
    *(_types.is_fixed_size_binary, _types.is_binary_view),
)


def _is(kind: pa.DataType, *tests: Any) -> bool:
    return any(test(kind) for test in tests)


def _is_json(kind: pa.DataType) -> bool:
    """Whether Python's values of this type are JSON's, and say the same."""
    if _types.is_struct(kind):
        return all(_is_json(field.type) for field in kind)
    if _is(kind, *_IS_LIST, _types.is_dictionary):
        return _is_json(kind.value_type)
    return _is(kind, *_IS_SCALAR)


def _json_form(scalar: Any) -> Any:
    """A table's value as JSON can say it, with nothing lost: Python would round some."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if _is(kind, _types.is_dictionary, _types.is_union, _types.is_run_end_encoded):
        return _json_form(scalar.value)
    if isinstance(kind, pa.BaseExtensionType):
        return _json_form(scalar.value)
    if _types.is_struct(kind):
        return {field.name: _json_form(scalar[at]) for at, field in enumerate(kind)}
    if _types.is_map(kind):
        return [[_json_form(item[0]), _json_form(item[1])] for item in scalar.values]
    if _types.is_nested(kind):
        return [_json_form(item) for item in scalar.values]
    if _is(kind, *_IS_BYTES):
        return b64encode(scalar.as_py()).decode()
    if _types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if _types.is_temporal(kind):
        return _iso(scalar)
    return _plain(scalar)


def _plain(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode("utf-8", errors="replace")


def _iso(scalar: Any) -> Any:
    """A time as ISO 8601 writes it, to the last digit; an interval as months, days, nanoseconds."""
    kind = scalar.type
    if _types.is_interval(kind):
        return list(scalar.as_py())
    if _types.is_date32(kind):
        return str(np.datetime64(scalar.value, "D"))
    if _types.is_duration(kind):
        return _iso_duration(scalar.value, kind.unit)
    text = str(np.datetime64(scalar.value, "ms" if _types.is_date64(kind) else kind.unit))
    if _types.is_time(kind):
        return text.partition("T")[2]
    return text + "Z" if _types.is_timestamp(kind) and kind.tz else text  # zones keep UTC inside


_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _iso_duration(n: int, unit: str) -> str:
    whole, rest = divmod(abs(n), 10 ** _DIGITS[unit])
    fraction = f".{rest:0{_DIGITS[unit]}}" if unit != "s" else ""
    return f"{'-' * (n < 0)}PT{whole}{fraction}S"


# What a row is in a layout ------------------------------------------------------------------------


def _fields(row: Row) -> dict[str, str]:
    """Its id, text and source."""
    value, source = row.value, row.source
    told = value.get("source")
    return {
        "id": _id(row),
        "text": value["text"] if source.text == "text" else _text(row),
        "source": told if isinstance(told, str) else source.name,
    }


def _id(row: Row) -> str:
    """What decon.toml names as the id, else the field of that name, else shard and row."""
    source, own = row.source, row.value.get("id")
    if source.id in (None, "id") and (own is None or isinstance(own, str)):
        found = own
    else:
        found = id_of(row.value, source if source.id else replace(source, id="id"))
    return f"{row.shard}:{row.number}" if found is None else found


def _text(row: Row) -> str:
    found = _document(row)
    if not isinstance(found, Document):
        raise CorpusError(
            Problem(f"{row.source.name}, {row.shard}: row {row.number}", str(found), "a document")
        )
    return found.text


def _is_moved(source: Source) -> bool:
    """Whether the text stands in one field of another name."""
    return isinstance(source.text, str) and source.text != "text"


def _rest(value: Value, source: Source, fields: Mapping[str, str]) -> Value:
    """All else of a row. What stood under the names of the three and is not that stays, aside."""
    if _is_moved(source):
        value, _ = _taken(value, str(source.text))
    rest = {name: found for name, found in value.items() if name not in fields}
    for name, meant in fields.items():
        if name in value and value[name] != meant:
            rest = _set_aside(rest, name, value[name])
    return rest


def _taken(value: Value, path: str) -> tuple[Value, Any]:
    """A row without a nested field, and the field. A key may itself hold dots."""
    if path in value:
        return {name: found for name, found in value.items() if name != path}, value[path]
    head, _, tail = path.partition(".")
    inner, found = _taken(value[head], tail)
    return {**value, head: inner}, found


def _set_aside(rest: Value, name: str, found: Any) -> Value:
    """With a value as `metadata.<name>`, or beside the metadata where that is taken."""
    metadata = rest.get("metadata", {})
    if isinstance(metadata, dict) and name not in metadata:
        return {**rest, "metadata": {**metadata, name: found}}
    name = f"metadata_{name}"
    while name in rest:
        name += "_"
    return {**rest, name: found}


def _json(value: Value, row: Row, *, ascii_only: bool = False) -> bytes:
    try:
        return _dumped(value, ascii_only=ascii_only)
    except RecursionError:
        raise CorpusError(
            Problem(
                f"{row.source.name}, {row.shard}: row {row.number}",
                "lists or objects that are nested too deeply to be written",
                "at most some hundred levels",
                "take the row out of the corpus",
            )
        ) from None


_ENCODE = {
    flag: json.JSONEncoder(ensure_ascii=flag, allow_nan=False).encode for flag in (False, True)
}


def _dumped(value: Value, *, ascii_only: bool) -> bytes:
    try:
        return _ENCODE[ascii_only](value).encode()
    except UnicodeEncodeError:  # half a character, in a field that nobody looked at
        return _dumped(value, ascii_only=True)
    except ValueError:  # a number that is none
        return _dumped(_without_nan(value), ascii_only=ascii_only)


def _without_nan(value: Any) -> Any:
    """Numbers that JSON has no form for, as texts."""
    if isinstance(value, dict):
        return {name: _without_nan(found) for name, found in value.items()}
    if isinstance(value, list):
        return [_without_nan(found) for found in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)  # NaN, Infinity, -Infinity
    return value


# Writing ------------------------------------------------------------------------------------------


class Layout(ABC):
    """A file that documents are added to."""

    suffix: ClassVar[str]

    @abstractmethod
    def add(self, row: Row) -> None: ...


@contextmanager
def open_layout(kind: Kind, target: Path) -> Iterator[Layout]:
    """A file of documents, whole once the block has ended."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "dolma":
        with create(target, ".zst") as out:
            yield Dolma(out)
        return
    with pq.ParquetWriter(target, PARQUET, compression="zstd", use_dictionary=["source"]) as writer:
        layout = Parquet(writer)
        yield layout
        layout.flush()


class Dolma(Layout):
    """Lines of JSON with `id`, `text` and `source`, in zstd."""

    suffix = ".jsonl.zst"

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def add(self, row: Row) -> None:
        self._out.write(_line(row) + b"\n")


def _line(row: Row) -> bytes:
    fields = _fields(row)
    if row.line is None or not _keeps_bytes(row.value, row.source, fields):
        return _json({**fields, **_rest(row.value, row.source, fields)}, row)
    lacking = {name: found for name, found in fields.items() if name not in row.value}
    if not lacking:
        return row.line
    added = _json(lacking, row, ascii_only=row.line.isascii())
    end = row.line.rindex(b"}")
    return row.line[:end] + b", " + added.removeprefix(b"{") + row.line[end + 1 :]


def _keeps_bytes(value: Value, source: Source, fields: Mapping[str, str]) -> bool:
    """Whether a line says the three as it is, or but for some that can be added to it."""
    return (
        not _is_moved(source)
        and "text" in value
        and all(value[name] == found for name, found in fields.items() if name in value)
    )


# One for all files: a reader takes them for parts of one table.
PARQUET = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("source", pa.string()),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("metadata", pa.string()),
    ]
)


class Parquet(Layout):
    """The columns that loaders look for; all other fields of a row as one JSON object."""

    suffix = ".parquet"

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._columns: dict[str, list[Any]] = {name: [] for name in PARQUET.names}
        self._n_characters = 0

    def add(self, row: Row) -> None:
        fields = _fields(row)
        left, messages = _messages(row)
        metadata = _json(_rest(left, row.source, fields), row, ascii_only=True).decode()
        texts = {name: without_lone_surrogates(text) for name, text in fields.items()}
        for name, found in {**texts, "messages": messages, "metadata": metadata}.items():
            self._columns[name].append(found)
        self._n_characters += len(fields["text"]) + len(metadata)
        self._n_characters += sum(len(turn["content"]) for turn in messages or ())
        n_rows = len(self._columns["id"])
        if self._n_characters >= _GROUP_CHARACTERS or n_rows >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what was added as a row group."""
        if self._columns["id"]:
            self._writer.write_table(pa.table(self._columns, schema=PARQUET))
        self._columns = {name: [] for name in PARQUET.names}
        self._n_characters = 0


def _messages(row: Row) -> tuple[Value, list[dict[str, str]] | None]:
    """A row without its turns, and these, if they are roles and texts and nothing else."""
    if row.source.messages:
        left, turns = _taken(row.value, row.source.messages)
        if all(_is_plain_turn(turn) for turn in turns):
            return left, turns
    return row.value, None


def _is_plain_turn(turn: object) -> bool:
    if not isinstance(turn, dict) or turn.keys() != {"role", "content"}:
        return False
    return all(
        isinstance(text, str) and text == without_lone_surrogates(text) for text in turn.values()
    )


LAYOUTS: Mapping[Kind, type[Layout]] = {"dolma": Dolma, "parquet": Parquet}


def write_layout(
    kind: Kind,
    shard: Shard,
    source: Source,
    target: Path,
    changes: Changes,
    rows: Sequence[int],
) -> Ids:
    """Write what is left of a shard's documents; the ids of all rows that were touched."""
    ids: Ids = dict.fromkeys(changes.rows)
    with open_layout(kind, target) as out:
        for row in rows_of(shard, source, rows, changed=changes.values):
            if row.number in ids:
                ids[row.number] = id_of(row.value, source)
            if row.number not in changes.gone:
                out.add(row)
    return ids
