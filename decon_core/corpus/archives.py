"""What packed bytes and archives hold: gzip, zlib, xz, bzip2, zip and tar, by their first bytes."""

from __future__ import annotations

import lzma
import re
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from contextlib import suppress

FIRST_BYTES = 4096  # bytes that decide what is encoded or packed
_GZIP, _ZLIB, _ZIP = b"\x1f\x8b", b"\x78", b"PK\3"
PACKED = (_GZIP, _ZLIB, _ZIP)  # beginnings of bytes that are unpacked
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


def contents_of(content: bytes) -> list[bytes]:
    """Return the first bytes of what packed bytes or an archive hold; empty if it is none."""
    if content.startswith(_MEMBER):
        return [inner for _, inner in _files_of_zip(content)]
    if _is_tar(content):
        return [*_files_of_tar(content)]
    return [unpacked] if (unpacked := _unpacked(content)) else []


def may_hold_text(content: bytes) -> bool:
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
        return unpack(content, FIRST_BYTES)
    return b""


def _inflated(content: bytes, form: int) -> bytes:
    try:
        return zlib.decompressobj(form).decompress(content, FIRST_BYTES)
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
