"""Turn rows into documents: the text, the positions of its parts, or why a row has no text."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decon_core.config.sources import Source
from decon_core.corpus.fields import FieldTree, field_tree
from decon_core.corpus.origins import Origins
from decon_core.corpus.row_json import leaves, without_lone_surrogates
from decon_core.corpus.row_texts import SEPARATOR, Keys, Slot, text_of_row
from decon_core.corpus.string_kinds import StringKind, is_encoded, kind_of_encoded
from decon_core.errors import Problem
from decon_core.kernels.string_kinds import LEAST_WORDS


@dataclass(frozen=True)
class Part:
    """The span of a string of a row in its document."""

    path: str  # `messages[2].content`
    start: int  # offset in characters
    stop: int
    is_hidden: bool = False
    keys: Keys = field(default=(), compare=False)  # path from the row to the string
    # Other places of the row with the same text.
    copies: tuple[Keys, ...] = field(default=(), compare=False)

    @property
    def places(self) -> tuple[Keys, ...]:
        """Everywhere that the row has the string."""
        return (self.keys, *self.copies)


@dataclass(frozen=True)
class InvalidUtf8:
    """Bytes of a row that are not UTF-8; in its text they are replaced by U+FFFD."""

    row: int
    offset: int | None  # first such byte in the uncompressed file; None in tables
    detail: str


@dataclass(frozen=True)
class Document:
    """A row with its text and, in line formats, its bytes.

    The text is what a model sees, then what is hidden in the row. Detectors search both apart.
    """

    row: int
    id: str | None
    text: str
    raw: bytes | None
    parts: tuple[Part, ...] = ()
    invalid: InvalidUtf8 | None = None  # None: all bytes read are UTF-8
    # Texts that are not read, by path: how many, and their bytes. In a row without text, also what
    # it holds instead, as no text.
    unread: Mapping[str, Sequence[int]] = field(default_factory=dict, compare=False)
    origins: Origins = field(default_factory=dict, compare=False)

    def part_at(self, character: int) -> Part | None:
        """Return the string of the row that holds a character of the text."""
        at = bisect_right(self.parts, character, key=lambda part: part.start)
        return self.parts[max(at - 1, 0)] if self.parts else None

    @property
    def hidden_start(self) -> int | None:
        """Where the hidden text begins, in characters; None if there is none."""
        return next((part.start for part in self.parts if part.is_hidden), None)

    @property
    def visible(self) -> str:
        """The text that a model sees."""
        start = self.hidden_start
        return self.text if start is None else self.text[: max(start - len(SEPARATOR), 0)]

    @property
    def without_hidden(self) -> Document:
        """The document as a model sees it."""
        parts = tuple(part for part in self.parts if not part.is_hidden)
        return replace(self, text=self.visible, parts=parts)

    @property
    def stretches(self) -> list[tuple[str, int]]:
        """The texts that are searched apart, and the character of the text where each begins."""
        start = self.hidden_start
        if start is None:
            return [(self.text, 0)]
        return [(self.visible, 0), (self.text[start:], start)]


@dataclass(frozen=True)
class Unreadable:
    """A row that is not a document, its position and the reason."""

    row: int
    offset: int | None  # first byte in the uncompressed file; None in tables
    reason: str
    detail: str
    raw: bytes | None = None


def document_of(
    value: Mapping[str, Any],
    row: int,
    source: Source,
    *,
    offset: int | None = None,
    raw: bytes | None = None,
    invalid: InvalidUtf8 | None = None,
) -> Document | Unreadable:
    """Turn a parsed row into a document."""
    tree = field_tree(source)
    read = text_of_row(value, tree)
    fault = None if read.visible or read.hidden else _fault_of_fields(value, tree)
    placeholder = read.layout.placeholder
    if not fault and placeholder and field_value(value, placeholder):
        fault = "text is published elsewhere", placeholder
    if fault:
        return Unreadable(row, offset, *fault, raw)
    text, parts = joined_parts(
        (slot, is_hidden)
        for slots, is_hidden in ((read.visible, False), (read.hidden, True))
        for slot in slots
    )
    identity = id_of(value, source)
    unread: dict[str, Sequence[int]] = {**read.unread}
    if not parts:
        unread = {**_held_instead(value), **unread}
    return Document(row, identity, text, raw, parts, invalid, unread, read.origins)


def id_of(value: Mapping[str, Any], source: Source) -> str | None:
    """Return the id of a row; None if it has none or the source has no id field."""
    identity = field_value(value, source.id) if source.id else None
    return None if identity is None else without_lone_surrogates(str(identity))


def field_value(value: Mapping[str, Any], path: str) -> object:
    """Return the value of a nested field of a row; None if it has none."""
    field = _field(value, path)
    return None if field is _ABSENT else field


def not_a_document(path: Path, row: int, found: str) -> Problem:
    """Describe a row that was scanned as a document and cannot be parsed now."""
    remedy = "run the command again (it reads the row as it is now), or remove the row"
    found = f"the row can no longer be read as it was scanned: {found}"
    return Problem(f"{path}: row {row}", found, remedy=remedy)


def joined_parts(slots: Iterable[tuple[Slot, bool]]) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a document of several strings, each with whether it is hidden."""
    parts, pieces, start = [], [], 0
    for slot, is_hidden in slots:
        pieces.append(slot.text)
        stop = start + len(slot.text)
        parts.append(Part(slot.path, start, stop, is_hidden, slot.keys, slot.copies))
        start = stop + len(SEPARATOR)
    return SEPARATOR.join(pieces), tuple(parts)


def _held_instead(value: Mapping[str, Any]) -> dict[str, Sequence[int]]:
    """Return the fields that a row without text holds instead, as no text, with about their bytes.

    A row with an empty text may be without text: then only long lists count, as of token ids,
    bytes, and what is encoded.
    """
    values = [*leaves(value)]
    is_empty = any(inner in ("", None) for _, inner in values)
    sizes = Counter[str]()
    for path, inner in values:
        if isinstance(inner, str) and is_encoded(inner):
            is_hex = kind_of_encoded(inner) is StringKind.HEX
            sizes[f"{path}.{(StringKind.HEX if is_hex else StringKind.BASE64).step}"] += len(inner)
        is_long = isinstance(inner, list | dict | bytes) and len(inner) >= LEAST_WORDS
        if is_long or (inner and isinstance(inner, _HELD) and not is_empty):
            sizes[path] += len(inner if isinstance(inner, bytes) else str(inner))
    return {path: (0, n_bytes) for path, n_bytes in sizes.items()}


_HELD = (list, dict, bytes, int, float)
_ABSENT = object()


def _field(value: object, path: str) -> object:
    """Return the value of a nested field, or `_ABSENT`. Keys may contain dots themselves."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if not rest or not isinstance(value, dict) or head not in value:
        return _ABSENT
    return _field(value[head], rest)


def _fault_of_fields(value: Mapping[str, Any], tree: FieldTree) -> tuple[str, str] | None:
    """Return why the fields that a source names cannot hold the text of a row without text.

    Reason and detail; None if nothing is wrong. A list, an object or an empty string may be without
    text.
    """
    for path in tree.paths:
        content = _field(value, path.partition("[")[0])
        if content is _ABSENT:
            return "field missing", path
        if content is None:
            return "field is null", path
        if not isinstance(content, str | list | dict) and content != b"":
            return "field is not text", f"{path} is {type(content).__name__}"
    return None
