"""Look up a recipe's `prompt`, `passage` and other texts in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from decon_core.benchmarks.fields import (
    AbsentFieldError,
    FieldError,
    Row,
    describe,
    is_empty,
    text_of,
    value_at,
)
from decon_core.benchmarks.recipe import FieldText, JoinedText, LastParagraph, MessagesText, Text
from decon_core.benchmarks.transforms import apply_transforms

# The two published chat formats, and the role names of the second one.
_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value")
_ROLE_ALIASES = {"human": "user", "gpt": "assistant"}


def text_in(row: Row, source: Text) -> str | None:
    """Return a text of a row, or None if its field is empty."""
    return text_of(value_in(row, source), name_of(source))


def value_in(row: Row, source: Text) -> object:
    """Return the transformed value of a text source; may be a list."""
    match source:
        case FieldText():
            try:
                value = value_at(row, source.field)
            except AbsentFieldError:
                if source.is_optional:
                    return None
                raise
            return apply_transforms(value, source.transforms, source.field)
        case JoinedText():
            texts = (text_of(value_at(row, field), field) for field in source.fields)
            return source.separator.join(text for text in texts if text is not None)
        case MessagesText():
            return _messages_text(row, source)
        case LastParagraph():
            value = value_at(row, source.field)
            paragraphs = value.split("\n\n") if isinstance(value, str) else value
            flat = [*_flattened(paragraphs, source.field)]
            long_enough = (text for text in flat[::-1] if len(text.split()) >= source.min_words)
            return next(long_enough, None)


def name_of(source: Text) -> str:
    return " + ".join(source.fields) if isinstance(source, JoinedText) else source.field


def _messages_text(row: Row, source: MessagesText) -> str:
    messages = value_at(row, source.field)
    if not isinstance(messages, list | tuple | None):
        raise FieldError(source.field, describe(messages), "a list of messages")
    roles = {_role_name(role) for role in source.roles}
    texts = []
    for position, message in enumerate(messages or ()):
        if not isinstance(message, Mapping):
            expected = "a message (an object with role and content, or from and value)"
            raise FieldError(f"{source.field}.{position}", describe(message), expected)
        if not roles or _role_of(message, source.field) in roles:
            texts.append(_content_of(message, source))
    if source.append_field is not None:
        texts.append(text_of(value_at(row, source.append_field), source.append_field))
    return "\n".join(text for text in texts if text is not None)


def _role_name(role: str) -> str:
    return _ROLE_ALIASES.get(role.lower(), role.lower())


def _role_of(message: Mapping[str, object], field: str) -> str:
    for key in _ROLE_KEYS:
        if isinstance(role := message.get(key), str):
            return _role_name(role)
    raise FieldError(field, describe(message), "a message with a role")


def _content_of(message: Mapping[str, object], source: MessagesText) -> str | None:
    """Return the content of a message: text, or a list of parts, some with text."""
    keys = (source.content_field,) if source.content_field else _CONTENT_KEYS
    key = next((key for key in keys if key in message), None)
    if key is None:
        expected = f"a message with {' or '.join(keys)}"
        raise AbsentFieldError(source.field, describe(message), expected)
    content = message[key]
    if not isinstance(content, list | tuple):
        return text_of(content, source.field)
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    texts = [text_of(part, source.field) for part in parts]
    return "\n".join(text for text in texts if text is not None) or None


def _flattened(value: object, field: str) -> Iterator[str]:
    """Yield the texts in nested lists; papers are published as sections of paragraphs."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flattened(item, field)
    elif not is_empty(value):
        yield text_of(value, field) or ""
