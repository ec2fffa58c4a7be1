"""Turn rows into documents: the text, the positions of its parts, or why a row has no text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decon_core.config.load import Source
from decon_core.errors import Problem

_SEPARATOR = "\n\n"  # between the parts of a document


@dataclass(frozen=True)
class Part:
    """The span of a turn, or of one of several fields, in a document."""

    path: str  # `messages[2]`, `chosen[0]`, `prompt`
    start: int  # in characters
    stop: int


@dataclass(frozen=True)
class InvalidUtf8:
    """Bytes of a row that are not UTF-8; in its text they are replaced by U+FFFD."""

    row: int
    offset: int | None  # of the first such byte in the uncompressed file; None in tables
    detail: str


@dataclass(frozen=True)
class Document:
    """A row with its text and, in line formats, its bytes."""

    row: int
    id: str | None
    text: str
    raw: bytes | None
    parts: tuple[Part, ...] = ()  # of a conversation or of several fields
    invalid: InvalidUtf8 | None = None  # None: all bytes read are UTF-8


@dataclass(frozen=True)
class Unreadable:
    """A row that is not a document, its position and the reason."""

    row: int
    offset: int | None  # of its first byte in the uncompressed file; None in tables
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
    try:
        text, parts = _text(value, source)
    except _NotADocumentError as error:
        return Unreadable(row, offset, error.reason, error.detail, raw)
    return Document(row, id_of(value, source), text, raw, parts, invalid)


def id_of(value: Mapping[str, Any], source: Source) -> str | None:
    """Return the id of a row; None if it has none or the source has no id field."""
    field = _field(value, source.id) if source.id else None
    identity = None if field is None or field is _ABSENT else str(field)
    return identity and without_lone_surrogates(identity)


def field_value(value: Mapping[str, Any], path: str) -> object:
    """Return the value of a nested field of a row; None if it has none."""
    field = _field(value, path)
    return None if field is _ABSENT else field


def not_a_document(path: Path, row: int, found: str) -> Problem:
    """Describe a row that was scanned as a document and cannot be parsed now."""
    remedy = "register the corpus again (`decon-assets register`), or remove the row"
    return Problem(f"{path}: row {row}", found, "a document, as it was scanned", remedy)


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _NotADocumentError(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail


_ABSENT = object()


def _field(value: object, path: str) -> object:
    """Return the value of a nested field, or `_ABSENT`. Keys may contain dots themselves."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if not rest or not isinstance(value, dict) or head not in value:
        return _ABSENT
    return _field(value[head], rest)


def _text(value: Mapping[str, Any], source: Source) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a row and the spans of its parts; no parts for a single field."""
    if isinstance(source.text, str):
        text = _require_text(_require_field(value, source.text), source.text)
        return without_lone_surrogates(text), ()
    texts: list[tuple[str, str]] = []
    if source.messages:
        texts = _turns(_require_field(value, source.messages), source.messages, source.roles)
    for path in source.text or ():
        field = _require_field(value, path)
        is_list = isinstance(field, list)
        texts += _turns(field, path) if is_list else [(path, _require_text(field, path))]
    return joined_parts((path, without_lone_surrogates(text)) for path, text in texts)


def joined_parts(texts: Iterable[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a document of several parts, and their spans; empty parts are left out."""
    parts, pieces, start = [], [], 0
    for path, text in texts:
        if text:
            pieces.append(text)
            parts.append(Part(path, start, start + len(text)))
            start = parts[-1].stop + len(_SEPARATOR)
    return _SEPARATOR.join(pieces), tuple(parts)


def _require_field(value: Mapping[str, Any], path: str) -> object:
    field = _field(value, path)
    if field is _ABSENT:
        raise _NotADocumentError("field missing", path)
    if field is None:
        raise _NotADocumentError("field is null", path)
    return field


def _require_text(field: object, path: str) -> str:
    if not isinstance(field, str):
        raise _NotADocumentError("field is not text", f"{path} is {type(field).__name__}")
    return field


def _turns(field: object, path: str, roles: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return (path, text) of each turn of a conversation with one of the roles (empty: all)."""
    if not isinstance(field, list):
        raise _NotADocumentError("not a list of messages", f"{path} is {type(field).__name__}")
    turns = []
    for at, message in enumerate(field):
        # Published conversations have either {role, content} or {from, value}.
        if roles:
            role = message.get("role", message.get("from")) if isinstance(message, dict) else None
            if not isinstance(role, str):
                raise _NotADocumentError("message without a role", f"{path}[{at}]")
        if not roles or role in roles:
            turns.append((f"{path}[{at}]", _turn(message, f"{path}[{at}]")))
    return turns


def _turn(message: object, path: str) -> str:
    """Return the text of a turn."""
    key = "value" if isinstance(message, dict) and "content" not in message else "content"
    content = message.get(key, _ABSENT) if isinstance(message, dict) else _ABSENT
    if content is _ABSENT:
        raise _NotADocumentError("message without content", path)
    if content is None:
        return ""  # a turn that only calls a tool
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        if len(parts) == len(content) and all(isinstance(part, str) for part in parts):
            return "\n".join(part for part in parts if part)
    return _require_text(content, f"{path}.{key}")
