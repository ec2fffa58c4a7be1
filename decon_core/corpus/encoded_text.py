"""What a string encodes as base64 or as hex digits, also packed: text, or something else."""

from __future__ import annotations

import lzma
import re
import zlib
from base64 import b64decode
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from urllib.parse import unquote

from decon_core.corpus.fields import Field
from decon_core.corpus.text_as_numbers import is_escaped_text
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
    return TOKENS if is_named else UNKNOWN if _may_hold_text(content) else BLOB


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
    if depth and (contents := _contents_of(content)):
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
    is_sentence = n_words >= LEAST_WORDS or n_unspaced(text) >= LEAST_LETTERS
    return is_sentence or is_escaped_text(text)


# Packed bytes and archives -----------------------------------------------------------------------

_GZIP, _ZLIB, _ZIP = b"\x1f\x8b", b"\x78", b"PK\3"
_MEMBER = b"PK\3\4"  # begins a file in a zip file
_ZIP_HEADER = 30  # bytes before the name of a file
_BLOCK = 512  # bytes of a header in a tar file, to whose multiple contents are padded
# zip, xz, bzip2, zstd, 7z, RAR, old Office files, PDF.
_ARCHIVE = re.compile(
    rb"PK\x03\x04|\xfd7zXZ\x00|BZh[1-9]1AY&SY|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07"
    rb"|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|%PDF-"
)
# Names of files in a zip file of arrays or of the weights of a model.
_WEIGHTS = re.compile(rb".+\.npy|(?:.*/)?(?:data\.pkl|data/\d+|byteorder|version)")


def _contents_of(content: bytes) -> list[bytes]:
    """Return the first bytes of what packed bytes or an archive hold; empty if it is none."""
    if content.startswith(_MEMBER):
        return [inner for _, inner in _files_of_zip(content)]
    if _is_tar(content):
        return [*_files_of_tar(content)]
    return [unpacked] if (unpacked := _unpacked(content)) else []


def _may_hold_text(content: bytes) -> bool:
    """Return whether bytes in which no text was found are an archive that may hold some."""
    if content.startswith(_MEMBER):
        return not all(_WEIGHTS.fullmatch(name) for name, _ in _files_of_zip(content))
    inner = _unpacked(content)
    return bool(_ARCHIVE.match(content)) or _is_tar(content) or _is_tar(inner)


def _unpacked(content: bytes) -> bytes:
    if content.startswith(_GZIP):
        return _inflated(content, zlib.MAX_WBITS + 16)
    if content.startswith(_ZLIB) and int.from_bytes(content[:2], "big") % 31 == 0:
        return _inflated(content, zlib.MAX_WBITS)
    unpack: Callable[[bytes, int], bytes]
    if content.startswith(b"\xfd7zXZ"):
        unpack = lzma.LZMADecompressor().decompress
    elif content.startswith(b"BZh"):
        unpack = BZ2Decompressor().decompress
    else:
        return b""
    with suppress(OSError, lzma.LZMAError):
        return unpack(content, _FIRST_BYTES)
    return b""


def _inflated(content: bytes, form: int) -> bytes:
    try:
        return zlib.decompressobj(form).decompress(content, _FIRST_BYTES)
    except zlib.error:
        return b""


def _files_of_zip(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names of the files in a zip file, and the first bytes of each."""
    at = 0
    while at >= 0:
        behind = content.find(_MEMBER, at + 4)
        file = content[at : behind if behind >= 0 else len(content)]
        n_name, n_extra = (int.from_bytes(file[n : n + 2], "little") for n in (26, 28))
        packed = file[_ZIP_HEADER + n_name + n_extra :]
        is_stored = file[8:9] == b"\0"
        name = file[_ZIP_HEADER : _ZIP_HEADER + n_name]
        yield name, packed if is_stored else _inflated(packed, -zlib.MAX_WBITS)
        at = behind


def _is_tar(content: bytes) -> bool:
    return content[257:262] == b"ustar"


def _files_of_tar(content: bytes) -> Iterator[bytes]:
    at = 0
    while _is_tar(content[at:]):
        digits = content[at + 124 : at + 136].strip(b"\0 ")
        if digits.strip(b"01234567"):
            return  # a broken header, or a file of more than 8 GB
        n_bytes = int(digits or b"0", 8)
        at += _BLOCK
        yield content[at : at + n_bytes]
        at += -(-n_bytes // _BLOCK) * _BLOCK
