"""Compressed files as lines of bytes, and back.

A truncated file must raise. The obvious calls do not all do that: `zstandard`'s stream reader hands
out what it has and stops, so frames are followed by hand here.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

COMPRESSIONS = (".gz", ".zst", ".zstd", ".bz2", ".xz")


class DamagedStreamError(Exception):
    """Bytes that cannot be decompressed, where the library has no error of its own for it."""


# What decompressors raise on bytes that are not, or no longer, what they should be. EOFError says
# that the file was cut off.
DAMAGE = (
    DamagedStreamError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zstandard.ZstdError,
)

_CHUNK = 1 << 20
_ZSTD_STEP = 1 << 14


def compression_of(path: Path) -> str:
    """`.gz`, `.zst`, … or an empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def format_of(path: Path) -> str:
    """The suffix below the compression: `.jsonl` of `a.jsonl.gz`."""
    inner = path.with_suffix("") if compression_of(path) else path
    return inner.suffix.lower()


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The uncompressed bytes of a file. Reading past damage raises one of `DAMAGE`."""
    with path.open("rb") as file:
        yield decompressed(file, compression_of(path))


def decompressed(file: BinaryIO, compression: str) -> BinaryIO:
    """The uncompressed bytes behind an open file.

    A compressed file of no bytes at all is cut off: a whole one has a header, even around nothing.
    """
    if compression and not file.read(1):
        raise EOFError("the file is empty")
    file.seek(0)
    match compression:
        case ".gz":
            return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
        case ".zst" | ".zstd":
            return cast("BinaryIO", io.BufferedReader(_ZstdFrames(file), _CHUNK))
        case ".bz2":
            return cast("BinaryIO", _Bz2(file))
        case ".xz":
            return cast("BinaryIO", lzma.LZMAFile(file))
        case _:
            return file


@contextmanager
def create(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """A file to write uncompressed bytes to. The same bytes in give the same bytes on disk."""
    with path.open("wb") as file:
        match compression:
            case ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            case ".zst" | ".zstd":
                # One thread: the frame layout of several depends on the machine.
                compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
                with compressor.stream_writer(file, closefd=False) as packed:
                    yield cast("IO[bytes]", packed)
            case ".bz2":
                with bz2.BZ2File(file, "wb") as packed:
                    yield cast("IO[bytes]", packed)
            case ".xz":
                with lzma.LZMAFile(file, "wb") as packed:
                    yield cast("IO[bytes]", packed)
            case _:
                yield file


class _Bz2(bz2.BZ2File):
    """Says "damaged" in the same way as the others: the module raises a bare OSError."""

    def read(self, size: int | None = -1) -> bytes:
        with _damage():
            return super().read(-1 if size is None else size)

    def readline(self, size: int | None = -1) -> bytes:  # type: ignore[override]
        with _damage():
            return super().readline(-1 if size is None else size)


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise  # the disk's fault, not the file's
        raise DamagedStreamError(str(error)) from error


class _ZstdFrames(io.RawIOBase):
    """All frames of a zstd file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        # `zstd --long=31` needs the large window; it is only allocated when a frame asks for it.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._pending = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._ready:
            # Small steps: a few bytes may stand for very many.
            chunk = self._pending or self._file.read(_ZSTD_STEP)
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the file ends inside a zstd frame")
                return 0
            self._pending = b""
            self._frame = self._frame or self._decompressor.decompressobj()
            self._ready = memoryview(self._frame.decompress(chunk))
            if self._frame.eof:
                self._pending = self._frame.unused_data
                self._frame = None
        n = min(len(view), len(self._ready))
        view[:n] = self._ready[:n]
        self._ready = self._ready[n:]  # of a memoryview: nothing is copied
        return n
