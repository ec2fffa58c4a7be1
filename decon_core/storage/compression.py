"""Compressed files as lines of bytes, and back.

A truncated file must raise, and so must one with something else behind its end. The obvious calls
do not all do that: `zstandard`'s stream reader hands out what it has and stops, and the standard
library takes what it does not know behind a bz2 or xz stream for nothing. So members and frames are
followed by hand here. However much a few bytes stand for, they become bytes a step at a time.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast

import zstandard
from isal import igzip_lib

COMPRESSIONS = (".gz", ".zst", ".zstd", ".bz2", ".xz")
LINE_FORMATS = (".jsonl", ".json", ".ndjson")
TABLE_FORMATS = (".parquet", ".arrow", ".feather")
FORMATS = (*LINE_FORMATS, *TABLE_FORMATS)


class DamagedStreamError(Exception):
    """Bytes that cannot be decompressed, where the library has no error of its own for it."""


# What decompressors raise on bytes that are not, or no longer, what they should be. EOFError says
# that the file was cut off.
DAMAGE = (
    DamagedStreamError,
    EOFError,
    cast("type[Exception]", igzip_lib.IsalError),  # the stub takes it for an instance
    lzma.LZMAError,
    zstandard.ZstdError,
)

_BUFFER = 1 << 20
_STEP = 1 << 18  # fits the processor's cache, with what becomes of it
_ZSTD_HEAD = 5  # the magic number, and the byte that tells how long the header is
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"


# How files begin, what that is, and the suffix that goes with it.
_KINDS = (
    (b"\x1f\x8b", "a gzip file", ".gz"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", ".zst"),
    (b"BZh", "a bzip2 file", ".bz2"),
    (b"\xfd7zXZ\x00", "an xz file", ".xz"),
    (b"PAR1", "a parquet file", ".parquet"),
    (b"ARROW1\x00\x00", "an Arrow file", ".arrow"),
    (b"\xff\xff\xff\xff", "an Arrow stream", ".arrow"),
    (b"PK\x03\x04", "a zip archive", ".zip"),
)
HEAD = 16  # bytes that tell what a file is


def sniff(head: bytes) -> tuple[str, str] | None:
    """What a file is by its first bytes, and the suffix for that; nothing, if they do not tell."""
    if head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5:
        return "a zstd file", ".zst"
    for magic, kind, suffix in _KINDS:
        if head.startswith(magic):
            return kind, suffix
    is_text = bool(head) and all(byte >= 0x20 or byte in b"\t\n\r" for byte in head)
    return ("plain text", "") if is_text else None


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
    raw = _opened(file, compression)
    return cast("BinaryIO", io.BufferedReader(raw, _BUFFER)) if raw else file


def read_chunks(file: BinaryIO, compression: str) -> Iterator[memoryview]:
    """The uncompressed bytes behind an open file, some at a time; each is gone with the next.

    What can be read before the first damage comes first, whoever reads it.
    """
    raw = _opened(file, compression) or file
    step = memoryview(bytearray(_STEP))
    while n := raw.readinto(step):  # type: ignore[union-attr] # BinaryIO's stub lacks it
        yield step[:n]


def _opened(file: BinaryIO, compression: str) -> io.RawIOBase | None:
    if not compression:
        return None
    if not file.read(1):
        raise EOFError("the file is empty")
    file.seek(0)
    match compression:
        case ".gz":
            gz = partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP)
            return _Members(file, cast("Callable[[], _Decompressor]", gz))
        case ".bz2":
            return _Members(file, bz2.BZ2Decompressor)
        case ".xz":
            return _Members(file, lzma.LZMADecompressor)
        case _:
            return _Zstd(file)


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


class _Members(io.RawIOBase):
    """All members of a gz, bz2 or xz file, one after the other.

    Zeros behind them are padding, as on tapes; anything else there is damage.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], _Decompressor]) -> None:
        self._file = file
        self._start = start
        self._member: _Decompressor | None = start()
        self._pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type] # the base class says object
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        """Some bytes; none at the end. However many they stand for, `most` of them at a time."""
        while self._member or self._has_member():
            member = self._member = self._member or self._start()
            packed = b""
            if member.needs_input:
                packed = self._pending or self._file.read(_STEP)
                self._pending = b""
                if not packed:
                    raise EOFError("the file is cut off")
            with _damage():
                data = member.decompress(packed, most)
            if member.eof:
                self._pending = member.unused_data
                self._member = None
            if data:
                return data
        return b""

    def _has_member(self) -> bool:
        while not (pending := self._pending.lstrip(b"\0")):
            self._pending = self._file.read(_STEP)
            if not self._pending:
                return False
        self._pending = pending
        return True


class _Decompressor(Protocol):
    @property
    def needs_input(self) -> bool: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@contextmanager
def _damage() -> Iterator[None]:
    """Says "damaged" in the same way for all: bz2 raises a bare OSError."""
    try:
        yield
    except OSError as error:
        raise DamagedStreamError(str(error)) from error


class _Zstd(io.RawIOBase):
    """All frames of a zstd file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        # `zstd --long=31` needs the large window; it is only allocated when a frame asks for it.
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)
        self._frames = _WholeFrames(file)
        self._reader = decompressor.stream_reader(
            cast("IO[bytes]", self._frames), read_size=_STEP, read_across_frames=True
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        # As much as there is at once: what stands behind a frame must not cost its last bytes.
        n = self._reader.readinto1(buffer)
        if not n and not self._frames.is_at_end:
            raise DamagedStreamError("the decompressor stopped before the end")
        return n


class _WholeFrames:
    """Hands out the bytes of a zstd file, and raises where it ends before a frame does.

    `stream_reader` takes such an end for a good one. So its input is followed here, from block to
    block (RFC 8878, 3.1.1): a few bytes in a hundred thousand.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.is_at_end = False
        self._file = file
        self._n_skipped = 0  # bytes that say nothing about where the next block is
        self._head = b""
        self._n_head = _ZSTD_HEAD
        self._read_head = self._frame
        self._has_checksum = False

    def read(self, size: int) -> bytes:
        packed = self._file.read(size)
        if packed:
            self._follow(packed)
        elif self._head or self._n_skipped or self._read_head != self._frame:
            raise EOFError("the file ends inside a zstd frame")
        self.is_at_end = not packed
        return packed

    def _follow(self, packed: bytes) -> None:
        at = 0
        while at < len(packed):
            if self._n_skipped:
                step = min(self._n_skipped, len(packed) - at)
                self._n_skipped -= step
            else:
                step = min(self._n_head - len(self._head), len(packed) - at)
                self._head += packed[at : at + step]
                if len(self._head) == self._n_head:
                    head, self._head = self._head, b""
                    self._read_head(head)
            at += step

    def _frame(self, head: bytes) -> None:
        if head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5:
            self._head, self._n_head, self._read_head = head[4:], 4, self._skippable
            return
        # Of anything else than a frame the decompressor says itself what it thinks.
        described = head[4]
        is_single = described >> 5 & 1
        n_size = (is_single, 2, 4, 8)[described >> 6]
        self._n_skipped = (1 - is_single) + (0, 1, 2, 4)[described & 3] + n_size
        self._has_checksum = bool(described >> 2 & 1)
        self._n_head, self._read_head = 3, self._block

    def _skippable(self, head: bytes) -> None:
        self._n_skipped = int.from_bytes(head, "little")
        self._n_head, self._read_head = _ZSTD_HEAD, self._frame

    def _block(self, head: bytes) -> None:
        value = int.from_bytes(head, "little")
        is_repeated_byte = (value >> 1 & 3) == 1
        self._n_skipped = 1 if is_repeated_byte else value >> 3
        if value & 1:
            self._n_skipped += 4 * self._has_checksum
            self._n_head, self._read_head = _ZSTD_HEAD, self._frame
