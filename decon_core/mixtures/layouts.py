"""Write documents in the layouts that trainers read: Dolma's JSON lines, and Hugging Face Parquet.

`rows_of` reads documents from shards of any format; `open_layout` opens a file to write them to.
Both layouts have the strings `id`, `text` and `source` and every other field of the row. A JSON
line that already has these three keeps its bytes; a missing `id` or `source` is appended to it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of, id_of
from decon_core.corpus.formats import format_of
from decon_core.corpus.formats.shard_format import NONE_CHANGED, Value
from decon_core.corpus.packs import Shard
from decon_core.corpus.row_json import without_lone_surrogates
from decon_core.corpus.shard_file import REGISTER
from decon_core.corpus.shards import open_shard
from decon_core.errors import CorpusError, Problem
from decon_core.index.text_weights import encode_texts
from decon_core.kernels.arrays import Integers
from decon_core.storage.compression import create
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import FixedVocabulary

Kind = Literal["dolma", "parquet"]
SUFFIXES: Mapping[Kind, str] = {"dolma": ".jsonl.zst", "parquet": ".parquet"}

# Field names of both layouts, used to read the documents back.
TEXT, ID = "text", "id"

# A row group is held in memory until it is full; readers decompress it as a whole.
_GROUP_CHARACTERS = 32 << 20
_GROUP_ROWS = 1 << 16

_HIDDEN_CHARACTERS = 1 << 22  # encoded together


@dataclass(frozen=True, eq=False)
class Row:
    """A document and its origin."""

    source: Source  # says which field holds the text
    shard: str  # name of its shard in the corpus
    number: int  # row in the shard
    value: Value  # parsed; table values without a JSON equivalent are strings
    # The original line without byte order mark and line break; None for tables and changed rows.
    line: bytes | None
    read: Value | None = None  # the row as it was scanned; None: the same as `value`

    @property
    def scanned(self) -> Value:
        return self.value if self.read is None else self.read

    @cached_property
    def document(self) -> Document:
        """The document of the row, as it was scanned."""
        document = document_of(self.scanned, self.number, self.source)
        if not isinstance(document, Document):
            where = f"{self.source.name}, {self.shard}: row {self.number}"
            raise CorpusError(Problem(where, str(document), "a document"))
        return document


Add = Callable[[Row], object]  # adds a document to a file
Opened = AbstractContextManager[tuple[Add, dict[str, int]]]  # with the counts for a manifest


def rows_of(
    shard: Shard,
    source: Source,
    rows: Sequence[int] | None = None,
    *,
    changed: Mapping[int, Value] = NONE_CHANGED,
) -> Iterator[Row]:
    """Yield documents of a shard in order: these rows (ascending), or all.

    `changed` holds new values of rows; for tables, of the columns that changed.
    """
    wanted = None if rows is None else np.array(rows, np.int64)
    with open_shard(shard, source) as file:
        for part in format_of(file.path).parts(file, None):
            for number, value, line, read in part.json_rows(part.within(wanted), changed):
                if not isinstance(value, dict):
                    if wanted is not None:
                        where = f"{shard.path}: row {number}"
                        found = "the row is no longer the document that was scanned"
                        raise CorpusError(Problem(where, found, remedy=REGISTER))
                    continue
                row = Row(source, shard.name, number, value, line, read)
                document = None if wanted is not None else document_of(row.scanned, number, source)
                if wanted is not None or isinstance(document, Document):
                    yield row
            if wanted is not None and not (wanted.size and wanted[-1] >= part.rows.stop):
                break  # the rest is only read for the checksum, not decompressed


def _fields(row: Row) -> dict[str, str]:
    """Return the `id`, `text` and `source` of a row."""
    text = row.scanned.get("text")
    if row.source.text != "text" or not isinstance(text, str):
        text = row.document.visible
    return {"id": id_in(row), "text": text, "source": source_in(row)}


def source_in(row: Row) -> str:
    """Return the `source` field of a row, else the name of its source in decon.toml."""
    name = row.value.get("source")
    return name if isinstance(name, str) else row.source.name


def id_in(row: Row) -> str:
    """Return the id field of the source, else the `id` field, else shard and row number."""
    source, field = row.source, row.scanned.get("id")
    if source.id in (None, "id") and (field is None or isinstance(field, str)):
        name = field
    else:
        name = id_of(row.scanned, source if source.id else replace(source, id="id"))
    return f"{row.shard}:{row.number}" if name is None else name


def _is_moved(source: Source) -> bool:
    """Return whether the text is in a single field that is not called `text`."""
    return isinstance(source.text, str) and source.text != "text"


def _rest(value: Value, source: Source, fields: Mapping[str, str]) -> Value:
    """Return all other fields of a row.

    Other values under the names `id`, `text` and `source` move to the metadata.
    """
    if _is_moved(source):
        value, _ = _pop(value, str(source.text))
    rest = {name: other for name, other in value.items() if name not in fields}
    for name, written in fields.items():
        if name in value and value[name] != written:
            rest = _with_metadata(rest, name, value[name])
    return rest


def _pop(value: Value, path: str) -> tuple[Value, Any]:
    """Return a row without a nested field, and that field. Keys may contain dots."""
    if path in value:
        return {name: other for name, other in value.items() if name != path}, value[path]
    head, _, tail = path.partition(".")
    inner, popped = _pop(value[head], tail)
    return {**value, head: inner}, popped


def _with_metadata(rest: Value, name: str, value: Any) -> Value:
    """Add a value as `metadata.<name>`; as `metadata_<name>` if that is taken."""
    metadata = rest.get("metadata", {})
    if isinstance(metadata, dict) and name not in metadata:
        return {**rest, "metadata": {**metadata, name: value}}
    name = f"metadata_{name}"
    while name in rest:
        name += "_"
    return {**rest, name: value}


def _json(value: Value, *, ascii_only: bool = False) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False).encode()
    except UnicodeEncodeError:  # a lone surrogate in a field that is not the text
        return _json(value, ascii_only=True)
    except ValueError:  # NaN or infinity
        return _json(_without_nan(value), ascii_only=ascii_only)


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinities by strings."""
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)  # NaN, Infinity, -Infinity
    return value


@contextmanager
def open_layout(kind: Kind, target: Path, policy: Policy) -> Iterator[tuple[Add, dict[str, int]]]:
    """Open a file of documents; yield what adds one, and the count of hidden tokens, if any.

    Both are complete when the `with` block ends.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden, counts = HiddenTokens(policy), dict[str, int]()
    with _open_file(kind, target) as write:

        def add(row: Row) -> None:
            write(row)
            hidden.add(row)

        yield add, counts
    counts |= hidden.counts


@contextmanager
def _open_file(kind: Kind, target: Path) -> Iterator[Add]:
    if kind == "dolma":
        with create(target, ".zst") as out:
            yield lambda row: out.write(_line(row) + b"\n")
        return
    with pq.ParquetWriter(target, PARQUET, compression="zstd", use_dictionary=["source"]) as writer:
        groups = RowGroups(writer, PARQUET, largest=_GROUP_CHARACTERS, most_rows=_GROUP_ROWS)
        yield lambda row: groups.add(*_parquet_row(row))
        groups.flush()


def _line(row: Row) -> bytes:
    """Return a row as a line; its own with what is missing, if nothing in it has to change."""
    fields, value = _fields(row), row.value
    is_right = (
        not _is_moved(row.source)
        and "text" in value
        and all(value[name] == text for name, text in fields.items() if name in value)
    )
    if row.line is None or not is_right:
        return _json({**fields, **_rest(value, row.source, fields)})
    missing = {name: text for name, text in fields.items() if name not in value}
    if not missing:
        return row.line
    added = _json(missing, ascii_only=row.line.isascii())
    end = row.line.rindex(b"}")
    return row.line[:end] + b", " + added.removeprefix(b"{") + row.line[end + 1 :]


# The same schema for all files, as readers treat them as parts of one table.
PARQUET = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "text", "source")),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("metadata", pa.string()),
    ]
)


class RowGroups:
    """The rows of a Parquet file; those of a row group are in memory until it is full."""

    def __init__(
        self, writer: pq.ParquetWriter, schema: pa.Schema, *, largest: int, most_rows: float = inf
    ) -> None:
        self._writer, self._schema = writer, schema
        self._largest, self._most_rows = largest, most_rows
        self._rows: list[Mapping[str, Any]] = []
        self._size = 0

    def add(self, row: Mapping[str, Any], size: int) -> None:
        self._rows.append(row)
        self._size += size
        if self._size >= self._largest or len(self._rows) >= self._most_rows:
            self.flush()

    def flush(self) -> None:
        """Write the collected rows as a row group."""
        if self._rows:
            columns = {name: [row[name] for row in self._rows] for name in self._schema.names}
            self._writer.write_table(pa.table(columns, schema=self._schema))
        self._rows, self._size = [], 0


def _parquet_row(row: Row) -> tuple[dict[str, Any], int]:
    """Return the columns that loaders expect, and the number of characters.

    Other fields go into one JSON object.
    """
    fields, value, messages = _fields(row), row.value, None
    path = "messages" if isinstance(row.value.get("messages"), list) else None
    if row.source.paths:
        path = row.source.messages
    if path:
        rest, turns = _pop(row.value, path)
        if all(_is_plain_turn(turn) for turn in turns):
            value, messages = rest, turns
    metadata = _json(_rest(value, row.source, fields), ascii_only=True).decode()
    texts = {name: without_lone_surrogates(text) for name, text in fields.items()}
    n_characters = sum(len(turn["content"]) for turn in messages or ())
    n_characters += len(fields["text"]) + len(metadata)
    return {**texts, "messages": messages, "metadata": metadata}, n_characters


def _is_plain_turn(turn: object) -> bool:
    if not isinstance(turn, dict) or turn.keys() != {"role", "content"}:
        return False
    return all(
        isinstance(text, str) and text == without_lone_surrogates(text) for text in turn.values()
    )


class HiddenTokens:
    """Counts the tokens of hidden text in rows: a layout has it, though not in the field `text`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._texts: list[str] = []
        self._n_characters = self._n_tokens = 0

    def add(self, row: Row) -> None:
        if (
            row.source.paths or row.document.hidden_start is None
        ):  # fields that are named are visible
            return
        self._texts.append(text := row.document.text[row.document.hidden_start :])
        self._n_characters += len(text)
        if self._n_characters >= _HIDDEN_CHARACTERS:
            self._encode()

    def _encode(self) -> None:
        self._n_tokens += int(n_tokens_of(self._policy, self._texts).sum())
        self._texts, self._n_characters = [], 0

    @property
    def counts(self) -> dict[str, int]:
        """The count for a manifest; none if there is nothing hidden."""
        if self._texts:
            self._encode()
        return {"n_hidden_tokens": self._n_tokens} if self._n_tokens else {}


def n_tokens_of(policy: Policy, texts: Sequence[str]) -> Integers:
    """Return the number of canonical tokens of each text."""
    vocabulary = FixedVocabulary(np.empty(0, np.int64))
    return encode_texts(texts, vocabulary, load_tokenizer(policy.tokenizer_str), policy).lengths
