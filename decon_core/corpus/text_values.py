"""What a string in a row is: text, a short value, encoded bytes, or JSON.

`kernels/string_values.py` decides the same in compiled code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import unquote

LEAST_WORDS = 8  # words of a text: they are separated by white space, and have a letter or digit
LEAST_LETTERS = 24  # letters of a text in a script without spaces
LEAST_BYTES = 2 * LEAST_WORDS - 1
_LEAST_JOINED = 16  # words of a text whose words are joined, as in a URL
_LONGEST_SHOWN, _MOST_WORDS_SHOWN = 48, 3  # characters and words of a key that is named
LEAST_ENCODED = 64  # characters of base64 that are recognised
_MOST_LEVELS = 200  # of a row; Python and pickle fail at some hundreds
TOO_DEEP = f"nested more than {_MOST_LEVELS} levels deep"
_MAX_DEPTH = 4  # levels of objects whose fields are listed

_LETTER = re.compile(rb"[0-9A-Za-z\x80-\xff]")
_WIDE_SPACE = re.compile("[\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# Thai, Lao, Tibetan, Burmese, Khmer, Tai, Balinese, from the CJK radicals on to Yi, Javanese; their
# compatibility forms.
_UNSPACED = re.compile(
    rb"\xe0[\xb8-\xbf]|\xe1[\x80-\x82\x9e\x9f\xa5-\xaa\xac\xad]|\xe2[\xba-\xbf]"
    rb"|[\xe3-\xe9][\x80-\xbf]|\xea[\x80-\x93\xa6\xa7\xa9]|\xef[\xa4-\xab\xbc-\xbe]"
    rb"|\xf0[\xa0-\xbf]"
)
# Signs between the words of a URL or of a name of a file, and letters of scripts without spaces.
_JOINT = re.compile(rb"(?:[-_+]|%20)(?=[A-Za-z%\x80-\xff])")
_QUOTED = re.compile(rb"%[Ee][3-9]")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}\r?\n)*[A-Za-z0-9+/_-]+={0,2}\s*", re.ASCII)
_SEPARATORS = "+/_-"  # words may be joined by them
_LEAST_BETWEEN = 12  # characters for each of them, or it is no base64: that has half as many
_DATA_URI = re.compile(  # text may follow one
    r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[^;,\s]*)?)*;base64,[A-Za-z0-9+/=_%-]*\s*",
    re.ASCII,
)
_FIRST_BYTES = 4096  # bytes that decide whether a value is text
ENCODED = "<base64>"  # the last step to text that a string holds as base64
HEX = "<hex>"  # the last step to text that a string holds as hex digits
TOKENS = "<tokens>"  # the last step to a list of token ids, or of the bytes of a text
BLOB = "<data>"  # the last step to base64 that is no text, such as a picture
UNKNOWN = "<unknown>"  # the last step to base64 of an archive in which no text was found
# Why what has such a step was not read.
REASONS = {
    ENCODED: "base64",
    HEX: "hex",
    TOKENS: "token ids",
    BLOB: "base64",
    UNKNOWN: "base64 of unknown content",
}
_MARK = re.compile(
    "<(data|base64|hex|tokens|unknown)>"
)  # a key of a row must not pass for such a step
LEAST_NUMBERS = 16  # token ids of a text
LEAST_CODES = 64  # numbers that are the bytes of a text
_PRINTABLE = re.compile(rb"[\x09-\x0d\x20-\x7e\x80-\xff]")
_CODE_OF_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_ESCAPE_OF_JSON = re.compile(r'\\["\\nu]')  # that JSON which was encoded twice has
_CONTROL = re.compile("[\\x00-\\x08\\x0e-\\x1f\ufffd]")


def is_text(value: str) -> bool:
    """Return whether a string is long enough to hold a question: some words, or many letters."""
    if 4 * len(value) < LEAST_BYTES:
        return False
    content = (value if value.isascii() else _WIDE_SPACE.sub(" ", value)).encode()
    words = filter(_LETTER.search, content.split())
    if len([*islice(words, LEAST_WORDS)]) == LEAST_WORDS:
        return True
    return n_unspaced(value) >= LEAST_LETTERS


def n_unspaced(value: str) -> int:
    """Return how many letters of scripts without spaces a string has."""
    return 0 if value.isascii() else len(_UNSPACED.findall(value.encode()))


def is_joined(value: str) -> bool:
    """Return whether a string is a text whose words are joined, as in a URL or an identifier."""
    content = value.encode()
    n_quoted = len(_QUOTED.findall(content))
    return len(_JOINT.findall(content)) + 1 >= _LEAST_JOINED or n_quoted >= LEAST_LETTERS


def is_text_of_label(value: str) -> bool:
    """Return whether the value of a label is a text, which may be encoded as a URL is."""
    if value.startswith("data:") and is_text(unquote(value)):
        return True
    return is_text(value) or is_joined(value)


def shown_key(key: str) -> str:
    """Return a key as messages name it: `*` if it is a sentence, which may be text of an item.

    A key with `<data>` is named with `‹data›`: only what was found to be base64 has the mark.
    """
    is_sentence = len(key) > _LONGEST_SHOWN or len(key.split()) > _MOST_WORDS_SHOWN
    return "*" if is_sentence and not key.startswith("[role=") else _MARK.sub(r"‹\1›", key)


def holds_no_text(path: str, n_values: int) -> bool:
    """Return whether what was counted at a shown path is base64 that is no text."""
    return path.endswith(BLOB) and n_values > 0


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


def is_encoded(value: str) -> bool:
    """Return whether a string is base64 or a data URI with base64, which no text is."""
    if value.startswith("data:"):
        return bool(_DATA_URI.fullmatch(value))
    if len(value) < LEAST_ENCODED or not _BASE64.fullmatch(value):
        return False
    return has_few_separators(value)


def has_few_separators(value: str) -> bool:
    """Return whether base64 is no words that are joined by its signs that are no letters."""
    return _LEAST_BETWEEN * sum(map(value.count, _SEPARATORS)) <= len(value)


def n_tokens(values: Sequence[object], *, is_named: bool) -> int:
    """Return how many whole numbers in a list are a text; 0 if they are none.

    `is_named`: its field is one of token ids. Other numbers may be the bytes of a text.
    """
    if len(values) < LEAST_NUMBERS:
        return 0
    numbers = [value for value in values if type(value) is int and value >= 0]
    if is_named:
        return len(numbers) if len(numbers) >= LEAST_NUMBERS else 0
    n = len(numbers)
    codes = bytes(number for number in numbers if number < 256)
    n_letters, n_spaces = len(_CODE_OF_LETTER.findall(codes)), codes.count(b" ")
    n_printable = len(_PRINTABLE.findall(codes))
    is_text = 10 * n_printable >= 9 * n and 2 * n_letters >= n and 16 * n_spaces >= n
    return n if n >= LEAST_CODES and is_text else 0


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


def text_of_bytes(value: bytes) -> str:
    """Return the text that bytes hold, which may be padded with zeros; empty if they hold none.

    At most a tenth of a text is control characters, or bytes that are not UTF-8.
    """
    first = value[:_FIRST_BYTES].rstrip(b"\0").decode("utf-8", "replace")
    if 10 * len(_CONTROL.findall(first)) > len(first):
        return ""
    return value.rstrip(b"\0").decode("utf-8", "replace")


def decoded(value: str) -> dict[str, Any] | list[Any] | str | None:
    """Return the object or list that a string holds as JSON, or the string that has escapes there.

    None if there is no string in it, or if an object in it has a key twice: then the string is read
    as it is. So is a text in quotation marks with commands of LaTeX such as `\\frac` and `\\text`,
    whose first letters would be escapes.
    """
    text = value.strip(" \t\r\n")
    is_string = len(text) > 1 and text[0] == text[-1] == '"' and _ESCAPE_OF_JSON.search(text)
    if not is_string and not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return None
    try:
        parsed: dict[str, Any] | list[Any] | str = _parsed(text)
    except (ValueError, RecursionError):
        return None
    return parsed if _has_string(parsed) else None


def _has_string(value: object) -> bool:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict | list):
            waiting += inner.values() if isinstance(inner, dict) else inner
        elif isinstance(inner, str) and inner:
            return True
    return False
