"""The JSON of rows and in strings, and how messages name what is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from decon_core.corpus.string_kinds import StringKind
from decon_core.text.characters import LIKE_ESCAPES

_LONGEST_SHOWN, _MOST_WORDS_SHOWN = 48, 3  # characters and words of a key that is named
_MOST_LEVELS = 200  # of a row; Python and pickle fail at some hundreds
TOO_DEEP = f"nested more than {_MOST_LEVELS} levels deep"
_MAX_DEPTH = 4  # levels of objects whose fields are listed
# A key of a row must not pass for the last step of a path to what is encoded.
_MARK = re.compile(f"<({'|'.join(kind.step[1:-1] for kind in StringKind if kind.step)})>")
_ESCAPE_OF_JSON = re.compile(r'\\["\\nu]')  # that JSON which was encoded twice has
# An escape; and a name, if it may also be a command of LaTeX.
_ESCAPED = re.compile(r"\\(?:([bfnrt][A-Za-z]+)|.)", re.DOTALL)
_COMMANDS = LIKE_ESCAPES | {"flat", "footnote", "forall", "frac", "rangle", "rho", "right", "rm"}


def shown_key(key: str) -> str:
    """Return a key as messages name it: `*` if it is a sentence, which may be text of an item.

    A key with `<data>` is named with `‹data›`: only what was found to be base64 has the mark.
    """
    is_sentence = len(key) > _LONGEST_SHOWN or len(key.split()) > _MOST_WORDS_SHOWN
    return "*" if is_sentence and not key.startswith("[role=") else _MARK.sub(r"‹\1›", key)


def leaves(
    value: Mapping[str, Any], prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, object]]:
    """Yield the values that are not objects, with their dotted paths as used in decon.toml."""
    for key, item in value.items():
        path = f"{prefix}{shown_key(key)}"
        if isinstance(item, dict) and item and depth < _MAX_DEPTH:
            yield from leaves(item, f"{path}.", depth + 1)
        else:
            yield path, item


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class KeyTwiceError(ValueError):
    """An object has a key twice, and the first value may hold text, which parsers drop."""


def _parsed(text: str) -> Any:
    """Parse JSON. Raises `KeyTwiceError`, and `ValueError` for what is no JSON."""
    return json.loads(text, object_pairs_hook=_object_of)


def _object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        before = dict[str, Any]()
        for key, member in members:
            if before.get(key) and isinstance(before[key], str | dict | list):
                raise KeyTwiceError(f"duplicate key `{without_lone_surrogates(key)}`")
            before[key] = member
    return value


def parsed_row(content: bytes) -> Any:
    """Parse the JSON of a row, with U+FFFD in place of invalid UTF-8. Raises `ValueError`."""
    try:
        value = _parsed(content.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if content.count(b"[") + content.count(b"{") > _MOST_LEVELS and _is_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def _is_deep(value: object) -> bool:
    """Return whether a row is nested too deeply to be passed on and written again."""
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(_MOST_LEVELS):
        members = (of.values() if isinstance(of, dict) else of for of in level)
        level = [inner for of in members for inner in of if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def fault_of(error: ValueError) -> tuple[str, str]:
    """Return why a row cannot be parsed: reason and detail."""
    return ("a key twice" if isinstance(error, KeyTwiceError) else "not JSON"), str(error)


def decoded(value: str) -> dict[str, Any] | list[Any] | str | None:
    """Return the object or list that a string holds as JSON, or the string that has escapes there.

    None if there is no string in it, or if an object in it has a key twice: then the string is read
    as it is. So is a text in quotation marks with commands of LaTeX such as `\\frac` and `\\nabla`,
    whose first letters would be escapes. Canonical text knows both.
    """
    text = value.strip(" \t\r\n")
    is_string = len(text) > 1 and text[0] == text[-1] == '"' and _ESCAPE_OF_JSON.search(text)
    if not is_string and not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return None
    if is_string and _has_latex(text):
        return None
    try:
        parsed: dict[str, Any] | list[Any] | str = _parsed(text)
    except (ValueError, RecursionError):
        return None
    return parsed if _has_string(parsed) else None


def _has_latex(text: str) -> bool:
    """Return whether an escape of JSON is the beginning of a command; no text has backspaces."""
    names = filter(None, _ESCAPED.findall(text))
    return any(name[0] == "b" or name in _COMMANDS for name in names)


def _has_string(value: object) -> bool:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict | list):
            waiting += inner.values() if isinstance(inner, dict) else inner
        elif isinstance(inner, str) and inner:
            return True
    return False
