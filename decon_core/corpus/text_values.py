"""What a string in a row is: text, a short value, encoded bytes, or JSON.

`kernels/string_values.py` decides the same in compiled code.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

LEAST_WORDS = 8  # of a text; words are what white space separates, if they have a letter or digit
LEAST_LETTERS = 24  # of a text in a script without spaces
LEAST_BYTES = 2 * LEAST_WORDS - 1
LEAST_ENCODED = 64  # characters of base64 that are recognised

_LETTER = re.compile(rb"[0-9A-Za-z\x80-\xff]")
# Thai, Lao, Burmese, Khmer, and from the CJK radicals on to Yi; their compatibility forms.
_UNSPACED = re.compile(
    rb"\xe0[\xb8-\xbb]|\xe1[\x80-\x82\x9e\x9f]|\xe2[\xba-\xbf]|[\xe3-\xe9][\x80-\xbf]"
    rb"|\xef[\xa4-\xab]|\xf0[\xa0-\xbf]"
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}\r?\n)*[A-Za-z0-9+/_-]+={0,2}\s*", re.ASCII)
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]\S*\s*")  # text may follow one


def is_text(value: str) -> bool:
    """Return whether a string is long enough to hold a question: some words, or many letters."""
    if 4 * len(value) < LEAST_BYTES:
        return False
    content = value.encode()
    words = filter(_LETTER.search, content.split())
    if len([*islice(words, LEAST_WORDS)]) == LEAST_WORDS:
        return True
    return not content.isascii() and len(_UNSPACED.findall(content)) >= LEAST_LETTERS


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_encoded(value: str) -> bool:
    """Return whether a string is a data URI or base64, which no text is."""
    if value.startswith("data:"):
        return bool(_DATA_URI.fullmatch(value))
    return len(value) >= LEAST_ENCODED and bool(_BASE64.fullmatch(value))


class KeyTwiceError(ValueError):
    """An object has a key twice, and the first value may hold text, which parsers drop."""


def parsed(text: str) -> Any:
    """Parse JSON. Raises `KeyTwiceError`, and `ValueError` for what is no JSON."""
    return json.loads(text, object_pairs_hook=_object_of)


def _object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        before = dict[str, Any]()
        for key, member in members:
            if before.get(key) and isinstance(before[key], str | dict | list):
                raise KeyTwiceError(f"key `{without_lone_surrogates(key)}` twice")
            before[key] = member
    return value


def parsed_row(content: bytes) -> Any:
    """Parse the JSON of a row, with U+FFFD in place of invalid UTF-8. Raises `ValueError`."""
    try:
        return parsed(content.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def fault_of(error: ValueError) -> tuple[str, str]:
    """Return why a row cannot be parsed: reason and detail."""
    return ("a key twice" if isinstance(error, KeyTwiceError) else "not JSON"), str(error)


def text_of_bytes(value: bytes) -> str:
    """Return the text that bytes hold: UTF-8 without zeros. All else is no text, but empty."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


def decoded(value: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or list that a string holds as JSON, if there is a string in it.

    None if an object in it has a key twice: then the string is read as it is.
    """
    text = value.strip(" \t\r\n")
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return None
    try:
        found = parsed(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) and _has_string(found) else None


def _has_string(value: object) -> bool:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict | list):
            waiting += inner.values() if isinstance(inner, dict) else inner
        elif isinstance(inner, str) and inner:
            return True
    return False
