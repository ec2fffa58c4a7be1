"""Open a shard, check its format, and verify that it is the registered file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from decon_core.corpus.packs import Shard
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import (
    COMPRESSIONS,
    HEAD,
    LINE_FORMATS,
    TABLE_FORMATS,
    compression_of,
    format_of,
    sniff,
)
from decon_core.storage.paths import RemotePath, naming_unreachable, parse_path, stamp_of

_CHUNK_BYTES = 1 << 22
_REGISTER = "register the corpus again (`decon-assets register`)"


@contextmanager
def open_shard(shard: Shard) -> Iterator[ShardFile]:
    """Open a shard. Raises `CorpusError` at the end if it is not the registered file."""
    path = parse_path(shard.path)
    if not path.is_file():
        raise CorpusError(Problem(shard.path, "no such file", "a registered shard", _REGISTER))
    with path.open("rb") as file:
        shard_file = ShardFile(file, shard)
        _require_format(shard_file.head(), path)
        yield shard_file
        shard_file.require_unchanged()


class ShardFile(io.RawIOBase):
    """An open shard that hashes everything read from it."""

    def __init__(self, file: BinaryIO, shard: Shard) -> None:
        self._file = file
        self._shard = shard
        self._digest = xxhash.xxh3_128()
        self._n_hashed = 0
        self._opened = _file_identity(parse_path(shard.path), file)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        with naming_unreachable(self._shard.path):
            n = self._file.readinto(view)  # type: ignore[attr-defined] # BinaryIO's stub lacks it
        # Readers may go back a few bytes, which were hashed already.
        fresh = self._file.tell() - self._n_hashed
        if fresh > 0:
            self._digest.update(view[n - fresh : n])
            self._n_hashed += fresh
        return int(n)

    def head(self) -> bytes:
        """Return the first bytes, without moving the position."""
        head = self._file.read(HEAD)
        self._file.seek(0)
        return head

    def require_unchanged(self) -> None:
        """Hash the rest of the file, and raise `CorpusError` if it is not the registered file."""
        self._file.seek(self._n_hashed)
        while block := self._file.read(_CHUNK_BYTES):
            self._digest.update(block)
            self._n_hashed += len(block)
        if self._digest.hexdigest() != self._shard.content:
            path = self._shard.path
            raise CorpusError(
                Problem(path, "different content", "the registered content", _REGISTER)
            )

    def require_in_place(self) -> None:
        """Raise `CorpusError` if the path no longer leads to the open file."""
        path = self._shard.path
        if _file_identity(parse_path(path)) != self._opened:
            raise CorpusError(
                Problem(path, "a file modified while it was read", "an unchanged file", _REGISTER)
            )


def _file_identity(path: Path, file: BinaryIO | None = None) -> tuple[object, ...]:
    """Return what distinguishes a file from another one at its path."""
    if isinstance(path, RemotePath):
        return stamp_of(path)
    status = os.fstat(file.fileno()) if file else path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _require_format(head: bytes, path: Path) -> None:
    """Raise `CorpusError` if the first bytes of a file do not match its suffix."""
    compression, form = compression_of(path), format_of(path)
    detected = sniff(head)
    if detected is None:
        return  # damaged or empty: the reader raises
    kind, suffix = detected
    expected = (compression or form).replace(".zstd", ".zst").replace(".feather", ".arrow")
    if expected in LINE_FORMATS:
        expected = ""
    if suffix != expected:
        raise CorpusError(misnamed(path, kind, suffix))


def misnamed(path: Path, kind: str, suffix: str) -> Problem:
    """Describe a file whose suffix does not match its content."""
    stem = path.with_suffix("") if compression_of(path) else path
    form = format_of(path) if format_of(path) in LINE_FORMATS else ".jsonl"
    if suffix in TABLE_FORMATS:
        remedy = f"rename it to {stem.with_suffix(suffix).name}"
    elif suffix in ("", *COMPRESSIONS):
        remedy = f"rename it to {stem.with_suffix(form).name}{suffix}, if it contains JSON lines"
    else:
        remedy = "unpack it"
    suffixes = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
    return Problem(
        str(path),
        f"{kind} by its first bytes",
        f"{suffixes}, as its name says",
        f"{remedy}, and {_REGISTER}",
    )
