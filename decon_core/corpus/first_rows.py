"""The first rows of a file, and what their fields contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.corpus.formats import format_of
from decon_core.storage.compression import DAMAGE

Row = Mapping[str, Any]

MOST_ROWS = 50  # read per file
_MAX_DEPTH = 4  # levels of objects

MIN_CHARACTERS = 20  # of a text field without a usual name
_MIN_WORDS = 3  # of prose: a URL, a date or an id has fewer
_PUNCTUATION = ".,;:!?()[]{}\"'*`"
_FIRST_IDEOGRAPH = "\u2e80"  # from here on: scripts without spaces between words


@dataclass(frozen=True, eq=False)
class Sample:
    """The first rows of a file."""

    path: Path
    rows: tuple[Row, ...]
    n_unreadable: int = 0
    damage: str = ""  # why the file cannot be read, or not beyond some row


@dataclass(frozen=True)
class Field:
    """A field, and the kinds of its values in the sampled rows."""

    name: str
    kinds: tuple[str, ...]
    n_rows: int
    n_characters: int  # average length of its texts
    has_prose: bool  # in some row

    def __str__(self) -> str:
        length = f", {self.n_characters} characters" if "text" in self.kinds else ""
        name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in self.name)
        return f"{name} ({' or '.join(self.kinds)}{length})"


def sample(path: Path) -> Sample:
    """Read the first rows of a shard. Damage is noted, not raised."""
    rows: list[Row | None] = []
    damage = ""
    try:
        rows.extend(islice(format_of(path).first_rows(path, MOST_ROWS), MOST_ROWS))
    except (*DAMAGE, pa.ArrowException, OSError) as error:
        damage = f"{error}" or type(error).__name__
    readable = tuple(row for row in rows if row is not None)
    return Sample(path, readable, len(rows) - len(readable), damage)


def fields_of(rows: Sequence[Row]) -> list[Field]:
    """Return the fields of rows in order of first appearance."""
    kinds: dict[str, Counter[str]] = {}
    n_characters: Counter[str] = Counter()
    with_prose: set[str] = set()
    for row in rows:
        for path, value in leaves(row):
            kinds.setdefault(path, Counter())[kind_of(value)] += 1
            if isinstance(value, str):
                n_characters[path] += len(value)
                with_prose |= {path} if is_prose(value) else set()
    return [
        Field(
            path,
            tuple(sorted(counts)),
            counts.total(),
            n_characters[path] // max(counts["text"], 1),
            path in with_prose,
        )
        for path, counts in kinds.items()
    ]


def is_prose(text: str) -> bool:
    """Return whether a text may be a question or an answer, not a URL, date or id."""
    if len(text) < MIN_CHARACTERS:
        return False
    words = (word.strip(_PUNCTUATION) for word in text.split())
    n_words = sum(word.isalpha() and not word.isupper() for word in words)
    return n_words >= _MIN_WORDS or any(char >= _FIRST_IDEOGRAPH for char in text)


def leaves(value: Row, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    """Yield the values that are not objects, with their dotted paths as used in decon.toml."""
    for key, item in value.items():
        path = f"{prefix}{key}"
        if isinstance(item, dict) and item and depth < _MAX_DEPTH:
            yield from leaves(item, f"{path}.", depth + 1)
        else:
            yield path, item


def kind_of(value: object) -> str:
    """Return the kind of a value in a word, for messages."""
    if value and isinstance(value, list):
        turns = [one for one in value if isinstance(one, dict) and _is_turn(one.keys())]
        return "messages" if len(turns) == len(value) else "list"
    names = {str: "text", bool: "boolean", int: "number", float: "number", dict: "object"}
    names |= {list: "list", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _is_turn(keys: AbstractSet[str]) -> bool:
    return keys >= {"role", "content"} or keys >= {"from", "value"}
