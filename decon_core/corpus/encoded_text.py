"""What a string encodes as base64 or as hex digits: text, or something else."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from itertools import islice, pairwise
from urllib.parse import unquote

from decon_core.corpus.escaped_text import is_escaped_text
from decon_core.corpus.fields import Field
from decon_core.corpus.packed_text import FIRST_BYTES, GZIP, ZIP, ZLIB, contents_of, may_hold_text
from decon_core.corpus.text_values import (
    BLOB,
    ENCODED,
    HEX,
    LEAST_ENCODED,
    LEAST_LETTERS,
    LEAST_WORDS,
    TOKENS,
    UNKNOWN,
    has_few_separators,
    is_encoded,
    is_text,
    n_unspaced,
    text_of_bytes,
)

FIRST_ENCODED = FIRST_BYTES // 3 * 4
_MOST_NESTED = 2  # times that what was decoded is unpacked or decoded again
# Lines of base64 in a text. They have few separators, and more words than pictures in SVG.
LEAST_RUN = 60  # letters of base64 in one line
_LINE = rf"[A-Za-z0-9+/_-]{{{LEAST_RUN},}}"
_RUN = re.compile(rf"{_LINE}(?:\r?\n{_LINE})*", re.ASCII)
_FIRST_LETTERS = 16  # letters of a run that are looked at first
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f\s]+)", re.ASCII)
_WORD = re.compile(r"(?<!\S)[^\W\d_]+[,.;:!?]?(?!\S)")


def content_step(value: str, *, is_named: bool = False) -> str:
    """Return the last step of the path to what a string encodes: text or something else.

    The step is empty if the string is too short to be base64. `is_named`: its field is one of
    token ids.
    """
    if len(value) < LEAST_ENCODED:
        return ""
    head = value[value.find(",") + 1 :][:FIRST_ENCODED]  # a data URI has a comma, base64 none
    if _is_text(_text_in(_bytes_of_hex(head))):
        return HEX
    content = _bytes_of_base64(head)
    if _is_text(_text_in(content)):
        return ENCODED
    return TOKENS if is_named else UNKNOWN if may_hold_text(content) else BLOB


def content_steps(values: Sequence[str], at: Field) -> list[str]:
    """Return the steps of the strings of one field of a row; those of a list may be lines."""
    steps = [content_step(value, is_named=at.has_tokens) for value in values]
    if at.key is None and len(values) > 1 and BLOB in steps:
        of_lines = content_step("".join(values)[:FIRST_ENCODED])
        if of_lines in (ENCODED, HEX):
            return [of_lines if step == BLOB else step for step in steps]
    return steps


def _is_text(text: str) -> bool:
    return is_text(text) or is_escaped_text(text)


def _bytes_of_hex(value: str) -> bytes:
    digits = _HEX.fullmatch(value)
    if not digits:
        return b""
    pairs = "".join(digits[1].split())
    return bytes.fromhex(pairs[: len(pairs) // 2 * 2])


def _bytes_of_base64(value: str) -> bytes:
    letters = re.sub(r"[^A-Za-z0-9+/]", "", unquote(value).replace("-", "+").replace("_", "/"))
    return b64decode(letters[: len(letters) // 4 * 4])


def _text_in(content: bytes, depth: int = _MOST_NESTED) -> str:
    """Return the text that bytes hold, also as UTF-16, packed or encoded again; empty if none."""
    if depth and (contents := contents_of(content)):
        return "\n".join(_text_in(inner, depth - 1) for inner in contents)
    for letters, zeros in ((content[::2], content[1::2]), (content[1::2], content[::2])):
        if 10 * zeros.count(0) > 9 * len(zeros):
            return text_of_bytes(letters)
    text = text_of_bytes(content)
    if depth and is_encoded(text):
        return _text_in(_bytes_of_hex(text) or _bytes_of_base64(text), depth - 1)
    return text


def runs_in(text: str) -> list[str]:
    """Return what may be text as base64 in a string with other text."""
    if max(map(len, text.split()), default=0) < LEAST_RUN:  # fast
        return []
    return [run for run in _RUN.findall(text) if _may_be_text(run)]


def _may_be_text(run: str) -> bool:
    """Return whether the first bytes that base64 encodes may be UTF-8, or packed text."""
    first = _bytes_of_base64(run[:_FIRST_LETTERS])
    if first.startswith((GZIP, ZLIB, ZIP)):
        return True
    return not any(
        (byte >= 0xC0) if behind < 0x80 or behind >= 0xC0 else (byte < 0x80)
        for byte, behind in pairwise(first)
    )


def hold_sentence(runs: Sequence[str]) -> bool:
    """Return whether runs of one field encode a text, each by itself or all together."""
    likely = [run for run in runs if has_few_separators(run)]
    contents = [_bytes_of_base64(run[:FIRST_ENCODED]) for run in likely]
    return any(_has_sentence(_text_in(content)) for content in (b"".join(contents), *contents))


def _has_sentence(text: str) -> bool:
    """Return whether a text has words between white space: SVG has few, though it is a text."""
    n_words = sum(1 for _ in islice(_WORD.finditer(text), LEAST_WORDS))
    is_sentence = n_words >= LEAST_WORDS or n_unspaced(text) >= LEAST_LETTERS
    return is_sentence or is_escaped_text(text)
