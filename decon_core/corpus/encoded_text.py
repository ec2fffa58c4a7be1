"""What a string encodes as base64 or as hex digits: text, or something else."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import Sequence
from itertools import islice, pairwise
from urllib.parse import unquote

from decon_core.corpus.text_values import (
    BLOB,
    ENCODED,
    HEX,
    LEAST_ENCODED,
    LEAST_LETTERS,
    LEAST_WORDS,
    TOKENS,
    has_few_separators,
    is_encoded,
    is_text,
    n_unspaced,
    text_of_bytes,
)

_FIRST_BYTES = 4096  # bytes that decide what is encoded
FIRST_ENCODED = _FIRST_BYTES // 3 * 4
_MOST_NESTED = 2  # times that what was decoded is unpacked or decoded again
# Lines of base64 in a text. They have few separators, and more words than pictures in SVG.
LEAST_RUN = 60  # letters of base64 in one line
_LINE = rf"[A-Za-z0-9+/_-]{{{LEAST_RUN},}}"
_RUN = re.compile(rf"{_LINE}(?:\r?\n{_LINE})*", re.ASCII)
_FIRST_LETTERS = 16  # letters of a run that are looked at first
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f\s]+)", re.ASCII)
_WORD = re.compile(r"(?<!\S)[^\W\d_]+[,.;:!?]?(?!\S)")
_GZIP, _ZLIB, _ZIP = b"\x1f\x8b", b"\x78", b"PK\3"
_ZIP_HEADER = 30  # bytes before the name of the first file


def content_step(value: str, *, is_named: bool = False) -> str:
    """Return the last step of the path to what a string encodes: text or something else.

    The step is empty if the string is too short to be base64. `is_named`: its field is one of
    token ids.
    """
    if len(value) < LEAST_ENCODED:
        return ""
    head = value[value.find(",") + 1 :][:FIRST_ENCODED]  # a data URI has a comma, base64 none
    if is_text(_text_in(_bytes_of_hex(head))):
        return HEX
    if is_text(_text_in(_bytes_of_base64(head))):
        return ENCODED
    return TOKENS if is_named else BLOB


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
    for letters, zeros in ((content[::2], content[1::2]), (content[1::2], content[::2])):
        if 10 * zeros.count(0) > 9 * len(zeros):
            return text_of_bytes(letters)
    unpacked = _unpacked(content) if depth else b""
    if unpacked:
        return _text_in(unpacked, depth - 1)
    text = text_of_bytes(content)
    if depth and is_encoded(text):
        return _text_in(_bytes_of_hex(text) or _bytes_of_base64(text), depth - 1)
    return text


def _unpacked(content: bytes) -> bytes:
    """Return the first bytes that gzip, zlib or a zip file hold; empty if it is none."""
    form, packed = zlib.MAX_WBITS, content
    if content.startswith(_GZIP):
        form += 16
    elif content.startswith(_ZIP) and len(content) > _ZIP_HEADER:
        sizes = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
        form, packed = -zlib.MAX_WBITS, content[_ZIP_HEADER + sum(sizes) :]
        if not content[8]:  # stored as it is
            return packed
    elif not content.startswith(_ZLIB) or int.from_bytes(content[:2], "big") % 31:
        return b""
    try:
        return zlib.decompressobj(form).decompress(packed, _FIRST_BYTES)
    except zlib.error:
        return b""


def runs_in(text: str) -> list[str]:
    """Return what may be text as base64 in a string with other text."""
    if max(map(len, text.split()), default=0) < LEAST_RUN:  # fast
        return []
    return [run for run in _RUN.findall(text) if _may_be_text(run)]


def _may_be_text(run: str) -> bool:
    """Return whether the first bytes that base64 encodes may be UTF-8, or packed text."""
    first = _bytes_of_base64(run[:_FIRST_LETTERS])
    if first.startswith((_GZIP, _ZLIB, _ZIP)):
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
    return n_words >= LEAST_WORDS or n_unspaced(text) >= LEAST_LETTERS
