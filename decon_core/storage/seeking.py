"""Reads ranges of the uncompressed bytes of a file, and as little else as possible.

A gz file is entered at *restart points*: offsets with the 32 kB of text before them, one for every
few megabytes. They are found when the file is read again for the first time, and kept. Other
compressed files are read from the beginning.
"""

from __future__ import annotations

import io
import logging
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from decon_core.storage.checksums import EMPTY, N_BYTES, is_whole, map_verified, seal
from decon_core.storage.compression import DamagedStreamError, compression_of, unpack
from decon_core.storage.files import atomic_path
from decon_core.storage.paths import RemotePath

_note_once = cache(logging.getLogger(__name__).warning)

_STEP = 1 << 18
_FAR = 1 << 62  # above every offset


@contextmanager
def open_ranges(path: Path, points: Path | None = None) -> Iterator[_StreamRanges | _GzRanges]:
    """Open a file to read ranges of its uncompressed bytes.

    `points` is the file with the restart points of a local gz file; it is made if it is missing.
    Without one, and where a file has no such points, everything before a range is read too.
    """
    compression = compression_of(path)
    is_local_gz = compression == ".gz" and not isinstance(path, RemotePath)
    if points and is_local_gz and (opened := _open_gz(path, points)):
        # A thread of a file that is left open would abort the process at its end.
        with opened:
            yield _GzRanges(opened)
        return
    with path.open("rb") as file:
        yield _StreamRanges(file, compression)


class _StreamRanges:
    """Reads ranges in ascending order; of a compressed file, also everything before them."""

    def __init__(self, file: BinaryIO, compression: str) -> None:
        self._file = file
        self._stream = unpack(file, compression) if compression else None
        self._at = 0  # uncompressed offset of the stream
        self._step = memoryview(bytearray(_STEP))
        self.n_bytes_read = 0  # of the file

    def read(self, offset: int, into: memoryview) -> None:
        """Fill a buffer. Raises one of `DAMAGE` if the file is damaged or ends before."""
        if self._stream is None:
            self._file.seek(offset)
            _fill(self._file, into)
            self.n_bytes_read += len(into)
            return
        while self._at < offset:
            skipped = self._step[: offset - self._at]
            _fill(self._stream, skipped)
            self._at += len(skipped)
        _fill(self._stream, into)
        self._at += len(into)
        self.n_bytes_read = self._file.tell()


def _fill(stream: Any, into: memoryview) -> None:
    n_filled = 0
    while n_filled < len(into):
        n = stream.readinto(into[n_filled:])
        if not n:
            raise EOFError("the file is truncated")
        n_filled += n


# gz -----------------------------------------------------------------------------------------------


class _GzRanges:
    """Reads a gz file from its restart points."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened
        # Uncompressed offsets in bytes, compressed ones in bits.
        self._starts = sorted((at, bits) for bits, at in opened.block_offsets().items())
        self.n_bytes_read = 0
        self._end = 0  # end of what was read last

    def read(self, offset: int, into: memoryview) -> None:
        _, n_bits = self._starts[max(bisect_right(self._starts, (offset, _FAR)) - 1, 0)]
        try:
            self._opened.seek(offset)
            _fill(self._opened, into)
            end = self._opened.tell_compressed() // 8
        except (ValueError, RuntimeError) as error:
            raise DamagedStreamError(str(error)) from error
        self.n_bytes_read += max(end - max(n_bits // 8, self._end), 0)
        self._end = end


def _open_gz(path: Path, points: Path) -> Any | None:
    """Open a gz file with its restart points; None if none can be found in it.

    To find them, the whole file is decompressed once. The package for it is optional: without it
    the same bytes are read, from the beginning of the file each time.
    """
    try:
        import rapidgzip
    except ImportError:
        _note_once(
            "gz shards are read again from the beginning because the package rapidgzip is not "
            "installed (pip install 'decon-assets[sketch]')"
        )
        return None
    with ExitStack() as closing:
        try:
            # More than one thread would read ahead, more than is wanted.
            opened = closing.enter_context(rapidgzip.open(str(path), parallelization=1))
            if is_whole(points):
                opened.import_index(io.BytesIO(memoryview(map_verified(points))[:-N_BYTES]))
            else:
                with atomic_path(points) as draft:
                    with draft.open("wb") as index:
                        opened.export_index(index)
                    seal(draft, end=EMPTY)
        except (ValueError, RuntimeError):
            # Damaged, or with zeros after the last member, which `unpack` accepts.
            return None
        closing.pop_all()
        return opened
