"""Streaming decompression that detects damage, compression, and format detection.

A truncated file or trailing garbage must raise. The standard library ignores what follows a bz2 or
xz stream, so members and frames are tracked here.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from isal import igzip_lib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class DamagedStreamError(Exception):
    """Bytes that cannot be decompressed, where the library has no error class for it."""


# What decompressors raise on invalid or damaged bytes. EOFError: the file is truncated.
DAMAGE = (
    DamagedStreamError,
    EOFError,
    cast("type[Exception]", igzip_lib.IsalError),  # the stub declares it as an instance
    lzma.LZMAError,
    zstd.ZstdError,
)

_BUFFER = 1 << 20
_STEP = 1 << 18  # fits the processor's cache together with its output

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD = 16  # number of bytes that show the type of a file


def sniff(head: bytes) -> tuple[str, str] | None:
    """Detect a compression from the first bytes: a description and suffix, or None."""
    if _is_zstd_skippable(head):
        return "a zstd file", ".zst"
    for suffix, packing in _PACKINGS.items():
        if head.startswith(packing.magic):
            return packing.kind, suffix
    return None


def _is_zstd_skippable(head: bytes) -> bool:
    return head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5


def _begins_stream(head: bytes) -> bool:
    """Return whether bytes begin a compressed stream, or may begin one if there are very few."""
    magics = (packing.magic for packing in _PACKINGS.values())
    return any(head.startswith(magic) or magic.startswith(head) for magic in magics) or (
        _is_zstd_skippable(head)
    )


def compression_of(path: Path) -> str:
    """Return the compression suffix (`.gz`, `.zst`, …), or an empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def suffix_of(path: Path) -> str:
    """Return the suffix without the compression: `.jsonl` for `a.jsonl.gz`."""
    inner = path.with_suffix("") if compression_of(path) else path
    return inner.suffix.lower()


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file as uncompressed bytes. Reading damaged bytes raises one of `DAMAGE`."""
    compression = compression_of(path)
    with path.open("rb") as file:
        yield cast("BinaryIO", buffered(file, compression)) if compression else file


def buffered(file: BinaryIO, compression: str) -> io.BufferedReader:
    """Return the uncompressed bytes of an open file as a buffered stream."""
    return io.BufferedReader(_raw_stream(file, compression), _BUFFER)


def read_chunks(file: BinaryIO, compression: str) -> Iterator[memoryview]:
    """Yield the uncompressed bytes up to the first damage in chunks; the buffer is reused."""
    raw = _raw_stream(file, compression)
    step = memoryview(bytearray(_STEP))
    while n := raw.readinto(step):
        yield step[:n]


def _raw_stream(file: BinaryIO, compression: str) -> io.RawIOBase:
    if not compression:
        return cast("io.RawIOBase", file)  # `BinaryIO` lacks `readinto`
    if not file.read(1):  # truncated: even without content it would have a header
        raise EOFError("the file is empty")
    file.seek(0)
    return _PACKINGS[compression].unpack(file)


@contextmanager
def create(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file that compresses what is written to it. The result is reproducible."""
    with path.open("wb") as file:
        packing = _PACKINGS.get(compression)
        with packing.pack(file) if packing else nullcontext(file) as packed:
            yield packed


class _Members(io.RawIOBase):
    """Stream of all members of a gz, bz2 or xz file, or frames of a zstd file.

    Padding after the last member is skipped; anything else there is damage.
    """

    def __init__(self, file: BinaryIO, *, start: Callable[[], Any], padding: bytes = b"\0") -> None:
        self._file = file
        self._start = start
        self._padding = padding
        self._member: Any = start()
        self._pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type] # the base class says object
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, max_bytes: int) -> bytes:
        """Return up to `max_bytes` uncompressed bytes; empty at the end."""
        while self._member or self._has_member():
            member = self._member = self._member or self._start()
            packed = b""
            if member.needs_input:
                packed = self._pending or self._file.read(_STEP)
                self._pending = b""
                if not packed:
                    raise EOFError("the file is truncated")
            try:
                data: bytes = member.decompress(packed, max_bytes)
            except OSError as error:  # bz2 raises it
                raise DamagedStreamError(str(error)) from error
            if member.eof:
                self._pending = member.unused_data
                self._member = None
            if data:
                return data
        return b""

    def _has_member(self) -> bool:
        while not (pending := self._pending.lstrip(self._padding)):
            self._pending = self._file.read(_STEP)
            if not self._pending:
                return False
        if len(pending) < HEAD:
            pending += self._file.read(_STEP)
        if not _begins_stream(pending):
            raise DamagedStreamError("there is other data after the end of the compressed stream")
        self._pending = pending
        return True


class _Packing(NamedTuple):
    """A compression: what its files look like, and how they are read and written."""

    kind: str
    magic: bytes
    unpack: Callable[[BinaryIO], io.RawIOBase]
    pack: Callable[[BinaryIO], AbstractContextManager[Any]]


def _gzip(file: BinaryIO) -> AbstractContextManager[Any]:
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _zstd(file: BinaryIO) -> AbstractContextManager[Any]:
    # One thread: with several the frame layout depends on the machine.
    setting = zstd.CompressionParameter
    options: dict[int, int] = {setting.compression_level: 3, setting.checksum_flag: 1}
    packed = zstd.ZstdFile(file, "wb", options=options)
    packed.write(b"")  # begins a frame, which a file without content has, too
    return packed


_GZIP_MEMBER = partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP)
# `zstd --long=31` needs the large window; it is only allocated when a frame asks for it.
_ZSTD_FRAME = partial(
    zstd.ZstdDecompressor, options={zstd.DecompressionParameter.window_log_max: 31}
)
_READ_ZSTD = partial(_Members, start=_ZSTD_FRAME, padding=b"")
_READ_BZ2 = partial(_Members, start=bz2.BZ2Decompressor)
_READ_XZ = partial(_Members, start=lzma.LZMADecompressor)
_WRITE_BZ2, _WRITE_XZ = partial(bz2.open, mode="wb"), partial(lzma.open, mode="wb")
_ZSTD = _Packing("a zstd file", b"\x28\xb5\x2f\xfd", _READ_ZSTD, _zstd)
_PACKINGS = {
    ".gz": _Packing("a gzip file", b"\x1f\x8b", partial(_Members, start=_GZIP_MEMBER), _gzip),
    ".zst": _ZSTD,
    ".zstd": _ZSTD,
    ".bz2": _Packing("a bzip2 file", b"BZh", _READ_BZ2, _WRITE_BZ2),
    ".xz": _Packing("an xz file", b"\xfd7zXZ\x00", _READ_XZ, _WRITE_XZ),
}
COMPRESSIONS = tuple(_PACKINGS)
