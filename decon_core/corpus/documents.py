"""Rows to documents: the text of a row, where its turns stand in it, and why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decon_core.config.load import Source
from decon_core.errors import Problem

_BETWEEN = "\n\n"  # the parts of a document


@dataclass(frozen=True)
class Part:
    """Where a turn, or one of several fields, stands in a document."""

    path: str  # `messages[2]`, `chosen[0]`, `prompt`
    start: int  # in characters
    stop: int


@dataclass(frozen=True)
class InvalidUtf8:
    """Bytes of a row that are not UTF-8; in its text they are U+FFFD, the replacement character."""

    row: int
    offset: int | None  # of the first such byte in the uncompressed file, in line formats
    detail: str


@dataclass(frozen=True)
class Document:
    """One row: a text, and the bytes that it came from where the format has such."""

    row: int
    id: str | None
    text: str
    raw: bytes | None
    parts: tuple[Part, ...] = ()  # of a conversation or of several fields
    invalid: InvalidUtf8 | None = None  # None: all bytes of the row that were read are UTF-8


@dataclass(frozen=True)
class Unreadable:
    """A row that is not a document: where it is and why."""

    row: int
    offset: int | None  # of its first byte in the uncompressed file, in line formats
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
    """What the value of a row says, wherever it came from."""
    try:
        text, parts = _text(value, source)
    except _NotADocumentError as error:
        return Unreadable(row, offset, error.reason, error.detail, raw)
    return Document(row, id_of(value, source), text, raw, parts, invalid)


def id_of(value: Mapping[str, Any], source: Source) -> str | None:
    """A row's own id, if the source names a field for it."""
    found = _field(value, source.id) if source.id else None
    identity = None if found is None or found is _ABSENT else str(found)
    return identity and without_lone_surrogates(identity)


def not_a_document(path: Path, row: int, found: str) -> Problem:
    """What to say of a row that was scanned, and cannot be taken apart now."""
    remedy = "register the corpus again (`decon-assets register`), or take the row out of it"
    return Problem(f"{path}: row {row}", found, "a document, as it was scanned", remedy)


def without_lone_surrogates(text: str) -> str:
    """Half characters become replacement characters: no encoding has them."""
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
    """The value of a nested field. A key that itself holds dots is found, too."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if not rest or not isinstance(value, dict) or head not in value:
        return _ABSENT
    return _field(value[head], rest)


def _text(value: Mapping[str, Any], source: Source) -> tuple[str, tuple[Part, ...]]:
    """The text of a row, and where its parts stand in it, if it has such."""
    if isinstance(source.text, str):
        return without_lone_surrogates(_plain(_given(value, source.text), source.text)), ()
    texts: list[tuple[str, str]] = []
    if source.messages:
        texts = _turns(_given(value, source.messages), source.messages, source.roles)
    for path in source.text or ():
        found = _given(value, path)
        texts += _turns(found, path) if isinstance(found, list) else [(path, _plain(found, path))]
    return _joined(texts)


def _joined(texts: Sequence[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """Texts by path, one below the other; empty ones leave no trace."""
    parts, pieces, start = [], [], 0
    for path, text in texts:
        if text:
            pieces.append(without_lone_surrogates(text))
            parts.append(Part(path, start, start + len(pieces[-1])))
            start = parts[-1].stop + len(_BETWEEN)
    return _BETWEEN.join(pieces), tuple(parts)


def _given(value: Mapping[str, Any], path: str) -> object:
    found = _field(value, path)
    if found is _ABSENT:
        raise _NotADocumentError("field missing", path)
    if found is None:
        raise _NotADocumentError("field is null", path)
    return found


def _plain(found: object, path: str) -> str:
    if not isinstance(found, str):
        raise _NotADocumentError("field is not text", f"{path} is {type(found).__name__}")
    return found


def _turns(found: object, path: str, roles: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The turns of a conversation, by path; of all roles, unless some are named."""
    if not isinstance(found, list):
        raise _NotADocumentError("not a list of messages", f"{path} is {type(found).__name__}")
    turns = [(f"{path}[{at}]", message) for at, message in enumerate(found)]
    return [
        (place, _turn(message, place))
        for place, message in turns
        if not roles or _role(message, place) in roles
    ]


def _role(message: object, path: str) -> str:
    # Published conversations have either {role, content} or {from, value}.
    role = message.get("role", message.get("from")) if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise _NotADocumentError("message without a role", path)
    return role


def _turn(message: object, path: str) -> str:
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
    return _plain(content, f"{path}.{key}")
