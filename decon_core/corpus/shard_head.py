"""The first rows of a shard: what `init` decides by, and what an error says of an unread file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.sources import Source
from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.formats import format_of
from decon_core.corpus.formats.sessions import N_FIRST_LINES, is_of_session
from decon_core.corpus.row_json import leaves
from decon_core.corpus.row_texts import WholeRow
from decon_core.corpus.shard_file import NO_PERMISSION
from decon_core.errors import Problem
from decon_core.storage.compression import DAMAGE
from decon_core.wording import counted, quoted

Row = Mapping[str, Any]

MOST_ROWS = 50  # read per file
_MOST_FIELDS = 12  # named in a message
_TURNS = ({"role", "content"}, {"from", "value"})  # the fields of messages


@dataclass(frozen=True, eq=False)
class ShardHead:
    """The first rows of a file. The lines of an agent's log are one row, as they are in a scan."""

    path: Path
    rows: tuple[Row, ...]
    n_unreadable: int = 0
    damage: str = ""  # why the file cannot be read, or not beyond some row

    @property
    def n_rows(self) -> int:
        return len(self.rows) + self.n_unreadable

    @property
    def is_unreadable(self) -> bool:
        """Whether most rows cannot be read: the file is something else."""
        return 2 * self.n_unreadable > self.n_rows

    @property
    def why_unreadable(self) -> str:
        """Why its unreadable rows cannot be read."""
        return format_of(self.path).why_unreadable


def head_of(path: Path) -> ShardHead:
    """Read the first rows of a shard. Damage is noted, not raised."""
    read: list[Row | None] = []
    damage = ""
    try:
        read.extend(islice(format_of(path).first_rows(path, MOST_ROWS), MOST_ROWS))
    except PermissionError:
        damage = NO_PERMISSION
    except (*DAMAGE, pa.ArrowException, OSError) as error:
        damage = f"{error}" or type(error).__name__
    rows = [row for row in read if row is not None]
    n_unreadable = len(read) - len(rows)
    if any(map(is_of_session, rows[:N_FIRST_LINES])) and not damage and format_of(path).is_text:
        rows = [WholeRow(lines=rows)]
    return ShardHead(path, tuple(rows), n_unreadable, damage)


def listed_fields(rows: Iterable[Row]) -> str:
    """Name the fields of rows and what they hold in a message, the first ones of very many."""
    values: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        for path, value in leaves(row):
            values[path].append(value)
    fields = [f"{printable(path)} ({_kinds_of(of_path)})" for path, of_path in values.items()]
    n_others = len(fields) - _MOST_FIELDS
    others = [f"and {counted(n_others, 'other field')}"] if n_others > 0 else []
    return f"the fields {', '.join([*fields[:_MOST_FIELDS], *others])}" if fields else "no fields"


def _kinds_of(values: Sequence[object]) -> str:
    """Return the kinds of values in words, with the average length of texts."""
    kinds = " or ".join(sorted({*map(_kind_of, values)}))
    lengths = [len(value) for value in values if isinstance(value, str)]
    return f"{kinds}, {sum(lengths) // len(lengths)} characters" if lengths else kinds


def _kind_of(value: object) -> str:
    """Return the kind of a value in a word."""
    if value and isinstance(value, list):
        keys = [turn.keys() if isinstance(turn, dict) else set() for turn in value]
        is_turn = (any(names >= form for form in _TURNS) for names in keys)
        return "messages" if all(is_turn) else "list"
    names = {str: "text", bool: "boolean", int: "number", float: "number", dict: "object"}
    names |= {list: "list", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def no_row_read(
    path: Path, source: Source, n_rows: int, first: str, *, remedy: str = ""
) -> Problem:
    """Describe a file without readable rows: its fields, and how to read them.

    `first`: what is wrong with its first row. `remedy`: where the settings belong.
    """
    rows = head_of(path).rows
    settings = as_setting(source)
    found = f"{counted(n_rows, 'row')}, none readable{settings and f' with {settings}'} ({first})"
    everything = Source(name="", path="")
    has_text = any(not isinstance(document_of(row, 0, everything), Unreadable) for row in rows)
    if source.paths and has_text:
        option = "--messages" if source.messages else "--text"
        remedy = f"leave out {settings} ({option}) to read every text of a row{remedy}"
    else:
        remedy = "leave the file out of the corpus"
    return Problem(str(path), f"{found}; the file has {listed_fields(rows)}", "documents", remedy)


def as_setting(source: Source) -> str:
    """Format what a source reads as in a [[corpus.source]]; empty if it reads everything."""
    if source.messages:
        return f"messages = {in_toml(source.messages)}"
    return f"text = {in_toml(source.text)}" if source.text else ""


def in_toml(value: str | Sequence[str]) -> str:
    """Format a string, or a list of them, as in a TOML file."""
    if not isinstance(value, str):
        return f"[{', '.join(map(in_toml, value))}]"
    return quoted(value).replace("\x7f", "\\u007f")


def printable(text: str) -> str:
    """Replace unprintable characters, which may end a line or hide others."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
