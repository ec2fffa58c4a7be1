"""An open shard that verifies that it is the registered file."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any, BinaryIO

import xxhash

from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import HEAD
from decon_core.storage.drafts import draft_name, sweep_beside
from decon_core.storage.paths import RemotePath, naming_unreachable, stamp_of
from decon_core.wording import counted, size

if TYPE_CHECKING:
    from decon_core.corpus.packs import Shard

_CHUNK_BYTES = 1 << 22
REGISTER = "run the command again (in the Dagster UI: `decon-assets register` first)"


NO_PERMISSION = "no permission to read the file"


def no_permission(path: str) -> Problem:
    """Describe a shard that this user may not read."""
    remedy = "give this user read permission, then run the command again"
    return Problem(path, NO_PERMISSION, remedy=remedy)


def changed(path: Path) -> Problem:
    """Describe a shard that is not the registered file."""
    return Problem(str(path), "the file changed since it was registered", remedy=REGISTER)


def too_long(path: Path, row: int, offset: int | None, max_bytes: int) -> CorpusError:
    """Return the error of a row over the limit; `offset` of an uncompressed file, if known."""
    at = "" if offset is None else f", byte {offset} of the uncompressed file"
    return CorpusError(
        Problem(
            f"{path}: row {row}{at}",
            f"a row of more than {size(max_bytes)}",
            f"rows of at most {size(max_bytes)}",
            "raise max_row_bytes ([corpus] in decon.toml, --max-row-bytes of scan), which takes "
            "more memory, or remove the row",
        )
    )


def damaged(path: Path, row: int, offset: int, error: object) -> CorpusError:
    """Return the error of a shard that cannot be read beyond a row."""
    where = f"{path}: after {counted(row, 'row')}, byte {offset} of the uncompressed text"
    remedy = "replace the shard, or remove it from the corpus"
    found = f"the data is damaged or truncated ({error})"
    return CorpusError(Problem(where, found, remedy=remedy))


def require_as_registered(path: Path, shard: Shard) -> None:
    """Raise `CorpusError` if size, date or remote tag of a file differ from those of its shard."""
    stamp = stamp_of(path)
    # A strong tag tells more than a date. Tags of local files differ on nodes with copies.
    is_same_date = stamp.modified_ns == shard.modified_ns or stamp.content_at(path)
    is_same_tag = stamp.tag == shard.tag or not isinstance(path, RemotePath)
    if stamp.n_bytes != shard.n_bytes or not is_same_date or not is_same_tag:
        raise CorpusError(changed(path))


class ShardFile(io.RawIOBase):
    """An open shard that hashes what is read from it, unless its stamp stands for its content."""

    def __init__(self, file: BinaryIO, path: Path, shard: Shard, max_row_bytes: int) -> None:
        self.path, self.max_row_bytes = path, max_row_bytes
        self._file = file
        self._shard = shard
        self._digest = None if shard.stamp.content_at(path) else xxhash.xxh3_128()
        self._n_read = 0  # bytes read from the beginning of the file, without gaps
        self._opened = _file_identity(path, file)

    def close(self) -> None:
        """Leave the file open, which buffers over it would close: its opener closes it."""

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
        with naming_unreachable(self.path):
            n = self._file.readinto(view)  # type: ignore[attr-defined] # BinaryIO's stub lacks it
        # Readers may go back a few bytes, which were hashed already.
        fresh = self._file.tell() - self._n_read
        if fresh > 0:
            self._note(view[n - fresh : n])
        return int(n)

    def _note(self, fresh: bytes | memoryview) -> None:
        if self._digest:
            self._digest.update(fresh)
        self._n_read += len(fresh)

    def head(self) -> bytes:
        """Return the first bytes, without moving the position."""
        with naming_unreachable(self.path):
            head = self._file.read(HEAD)
        self._file.seek(0)
        return head

    def require_unchanged(self) -> None:
        """Read the rest of the file, and raise `CorpusError` if it is not the registered file."""
        self._file.seek(self._n_read)
        with naming_unreachable(self.path):
            while block := self._file.read(_CHUNK_BYTES):
                self._note(block)
        if self._digest:
            if self._digest.hexdigest() != self._shard.content:
                raise CorpusError(changed(self.path))
            return
        require_as_registered(self.path, self._shard)
        if self._n_read != self._shard.n_bytes:
            found = f"received only {self._n_read:,} of {self._shard.n_bytes:,} bytes"
            remedy = "run the command again; the connection may have ended too early"
            raise CorpusError(Problem(str(self.path), found, remedy=remedy))

    @contextmanager
    def unchanged(self) -> Iterator[Path]:
        """Yield the path of the registered file, for libraries that open it again.

        A remote file is downloaded once, into the temporary folder.
        """
        if not isinstance(self.path, RemotePath):
            self.require_unchanged()
            yield self.path
            if _file_identity(self.path) != self._opened:
                found = "the file was modified while it was read"
                raise CorpusError(Problem(str(self.path), found, remedy=REGISTER))
            return
        sweep_beside(Path(gettempdir()))  # copies of processes that were killed
        with NamedTemporaryFile(prefix=f"{draft_name('shard')}.") as copy:
            shutil.copyfileobj(self, copy, _CHUNK_BYTES)
            copy.flush()
            self.require_unchanged()
            yield Path(copy.name)


def _file_identity(path: Path, file: BinaryIO | None = None) -> tuple[object, ...]:
    """Return what distinguishes a file from another one at its path."""
    if isinstance(path, RemotePath):
        return stamp_of(path)
    status = os.fstat(file.fileno()) if file else path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
