"""An open shard: what it is by its first bytes, and whether it is what was registered."""

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

_HASHED_AT_ONCE = 1 << 22  # bytes
_CHANGED = "register the corpus again (`decon-assets register`): a changed shard is another shard"


@contextmanager
def open_shard(shard: Shard) -> Iterator[ShardFile]:
    """The bytes of a shard. Raises at the end when they are not those that were registered."""
    path = parse_path(shard.path)
    if not path.is_file():
        raise CorpusError(Problem(shard.path, "no such file", "a registered shard", _CHANGED))
    with path.open("rb") as file:
        reading = ShardFile(file, shard)
        _require_kind(reading.head(), path)
        yield reading
        reading.require_unchanged()


class ShardFile(io.RawIOBase):
    """An open shard that takes the hash of all that is read from it."""

    def __init__(self, file: BinaryIO, shard: Shard) -> None:
        self._file = file
        self._shard = shard
        self._digest = xxhash.xxh3_128()
        self._n_hashed = 0
        self._opened = _as_it_lies(parse_path(shard.path), file)

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
        # Readers may go back a few bytes; those were hashed already.
        fresh = self._file.tell() - self._n_hashed
        if fresh > 0:
            self._digest.update(view[n - fresh : n])
            self._n_hashed += fresh
        return int(n)

    def head(self) -> bytes:
        """The first bytes. Nothing counts as read."""
        head = self._file.read(HEAD)
        self._file.seek(0)
        return head

    def require_unchanged(self) -> None:
        """Read what nobody asked for, and raise when this is not the file that was registered."""
        self._file.seek(self._n_hashed)
        while block := self._file.read(_HASHED_AT_ONCE):
            self._digest.update(block)
            self._n_hashed += len(block)
        if self._digest.hexdigest() != self._shard.content:
            path = self._shard.path
            raise CorpusError(Problem(path, "other content", "what was registered", _CHANGED))

    def require_in_place(self) -> None:
        """Raise when this is not the file any more that the path leads to."""
        path = self._shard.path
        if _as_it_lies(parse_path(path)) != self._opened:
            raise CorpusError(
                Problem(path, "a file written meanwhile", "an unchanged one", _CHANGED)
            )


def _as_it_lies(path: Path, file: BinaryIO | None = None) -> tuple[object, ...]:
    """What tells a file from another one of its name; of an open one, as it was opened."""
    if isinstance(path, RemotePath):
        return stamp_of(path)
    status = os.fstat(file.fileno()) if file else path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _require_kind(head: bytes, path: Path) -> None:
    """Raise when a file is, by its first bytes, something else than its name says."""
    compression, form = compression_of(path), format_of(path)
    found = sniff(head)
    if found is None:
        return  # damaged, or empty: the reader says so
    kind, suffix = found
    expected = (compression or form).replace(".zstd", ".zst").replace(".feather", ".arrow")
    if expected in LINE_FORMATS:
        expected = ""
    if suffix != expected:
        raise CorpusError(misnamed(path, kind, suffix))


def misnamed(path: Path, kind: str, suffix: str) -> Problem:
    """What to say of a file that its name calls something else."""
    stem = path.with_suffix("") if compression_of(path) else path
    form = format_of(path) if format_of(path) in LINE_FORMATS else ".jsonl"
    if suffix in TABLE_FORMATS:
        remedy = f"rename it to {stem.with_suffix(suffix).name}"
    elif suffix in ("", *COMPRESSIONS):
        remedy = f"rename it to {stem.with_suffix(form).name}{suffix}, if it holds lines of JSON"
    else:
        remedy = "unpack it"
    said = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
    return Problem(
        str(path),
        f"the bytes of {kind}",
        f"what the name says, {said}",
        f"{remedy}, and register the corpus again (`decon-assets register`)",
    )
