"""Streaming decompression that detects damage, compression, and format detection.

A truncated file or trailing garbage must raise. `zstandard`'s stream reader stops silently, and the
standard library ignores what follows a bz2 or xz stream, so members and frames are tracked here.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import zstandard
from isal import igzip_lib


class DamagedStreamError(Exception):
    """Bytes that cannot be decompressed, where the library has no error class for it."""


# What decompressors raise on invalid or damaged bytes. EOFError: the file is truncated.
DAMAGE = (
    DamagedStreamError,
    EOFError,
    cast("type[Exception]", igzip_lib.IsalError),  # the stub declares it as an instance
    lzma.LZMAError,
    zstandard.ZstdError,
)

_BUFFER = 1 << 20
_STEP = 1 << 18  # fits the processor's cache together with its output
ZSTD_HEAD = 5  # the magic number and the byte that gives the header's length
ZSTD_SKIPPABLE = b"\x2a\x4d\x18"

HEAD = 16  # number of bytes that show the type of a file


def sniff(head: bytes) -> tuple[str, str] | None:
    """Detect a compression from the first bytes: a description and suffix, or None."""
    if head[1:4] == ZSTD_SKIPPABLE and head[0] >> 4 == 5:
        return "a zstd file", ".zst"
    found = ((one.kind, suffix) for suffix, one in _PACKINGS.items() if head.startswith(one.magic))
    return next(found, None)


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
    with path.open("rb") as file:
        raw = _raw_stream(file, compression_of(path))
        yield cast("BinaryIO", io.BufferedReader(raw, _BUFFER)) if raw else file


def read_chunks(file: BinaryIO, compression: str) -> Iterator[memoryview]:
    """Yield the uncompressed bytes up to the first damage in chunks; the buffer is reused."""
    raw = _raw_stream(file, compression) or file
    step = memoryview(bytearray(_STEP))
    while n := raw.readinto(step):  # type: ignore[union-attr] # BinaryIO's stub lacks it
        yield step[:n]


def _raw_stream(file: BinaryIO, compression: str) -> io.RawIOBase | None:
    if not compression:
        return None
    if not file.read(1):  # truncated: even without content it would have a header
        raise EOFError("the file is empty")
    file.seek(0)
    return unpack(file, compression)


def unpack(file: BinaryIO, compression: str) -> io.RawIOBase:
    """Decompress a file from where it stands: the beginning of a member or frame."""
    return _PACKINGS[compression].unpack(file)


@contextmanager
def create(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file that compresses what is written to it. The result is reproducible."""
    with path.open("wb") as file:
        packing = _PACKINGS.get(compression)
        with packing.pack(file) if packing else nullcontext(file) as packed:
            yield packed


class _Members(io.RawIOBase):
    """Stream of all members of a gz, bz2 or xz file.

    Zeros after the last member are padding, as on tapes; anything else there is damage.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], Any]) -> None:
        self._file = file
        self._start = start
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
            except OSError as error:  # from bz2
                raise DamagedStreamError(str(error)) from error
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


class _Zstd(io.RawIOBase):
    """Stream of all frames of a zstd file."""

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
        # `readinto1`: garbage after a frame must not swallow the frame's last bytes.
        n = self._reader.readinto1(buffer)
        if not n and not self._frames.is_at_end:
            raise DamagedStreamError("the decompressor stopped before the end")
        return n


class _WholeFrames:
    """Input of a zstd reader that raises if the file ends inside a frame.

    `stream_reader` accepts such an end. The input is therefore tracked here from block to block
    (RFC 8878, 3.1.1), which looks at only a few bytes in a hundred thousand.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.is_at_end = False
        self._file = file
        self._n_skipped = 0  # bytes left to skip until the next header
        self._head = b""
        self._n_head = ZSTD_HEAD
        self._read_head = self._frame
        self._has_checksum = False

    def read(self, size: int) -> bytes:
        packed = self._file.read(size)
        if packed:
            self._track(packed)
        elif self._head or self._n_skipped or self._read_head != self._frame:
            raise EOFError("the file ends inside a zstd frame")
        self.is_at_end = not packed
        return packed

    def _track(self, packed: bytes) -> None:
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
        if head[1:4] == ZSTD_SKIPPABLE and head[0] >> 4 == 5:
            self._head, self._n_head, self._read_head = head[4:], 4, self._skippable
            return
        # If this is no frame, the decompressor itself raises.
        descriptor = head[4]
        is_single = descriptor >> 5 & 1
        n_size = (is_single, 2, 4, 8)[descriptor >> 6]
        self._n_skipped = (1 - is_single) + (0, 1, 2, 4)[descriptor & 3] + n_size
        self._has_checksum = bool(descriptor >> 2 & 1)
        self._n_head, self._read_head = 3, self._block

    def _skippable(self, head: bytes) -> None:
        self._n_skipped = int.from_bytes(head, "little")
        self._n_head, self._read_head = ZSTD_HEAD, self._frame

    def _block(self, head: bytes) -> None:
        value = int.from_bytes(head, "little")
        is_repeated_byte = (value >> 1 & 3) == 1
        self._n_skipped = 1 if is_repeated_byte else value >> 3
        if value & 1:
            self._n_skipped += 4 * self._has_checksum
            self._n_head, self._read_head = ZSTD_HEAD, self._frame


class _Packing(NamedTuple):
    """A compression: what its files look like, and how they are read and written."""

    kind: str
    magic: bytes
    unpack: Callable[[BinaryIO], io.RawIOBase]
    pack: Callable[[BinaryIO], AbstractContextManager[Any]]


def _in_members(start: Callable[[], Any]) -> Callable[[BinaryIO], io.RawIOBase]:
    return partial(_Members, start=start)


def _gzip(file: BinaryIO) -> AbstractContextManager[Any]:
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _zstd(file: BinaryIO) -> AbstractContextManager[Any]:
    # One thread: with several the frame layout depends on the machine.
    return zstandard.ZstdCompressor(3, write_checksum=True).stream_writer(file, closefd=False)


_GZIP_MEMBER = partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP)
_BZ2, _XZ = partial(bz2.open, mode="wb"), partial(lzma.open, mode="wb")
_PACKINGS = {
    ".gz": _Packing("a gzip file", b"\x1f\x8b", _in_members(_GZIP_MEMBER), _gzip),
    ".zst": _Packing("a zstd file", b"\x28\xb5\x2f\xfd", _Zstd, _zstd),
    ".zstd": _Packing("a zstd file", b"\x28\xb5\x2f\xfd", _Zstd, _zstd),
    ".bz2": _Packing("a bzip2 file", b"BZh", _in_members(bz2.BZ2Decompressor), _BZ2),
    ".xz": _Packing("an xz file", b"\xfd7zXZ\x00", _in_members(lzma.LZMADecompressor), _XZ),
}
COMPRESSIONS = tuple(_PACKINGS)
