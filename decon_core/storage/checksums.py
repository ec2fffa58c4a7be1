"""Checksums embedded in the files of a store, verified before a file is used.

A file and its checksum are replaced together, and other readers of the formats ignore it. A writer
first writes a placeholder of zeros (`EMPTY`); `seal` replaces it with the xxh3-128 digest of the
file including the zeros. A file without a checksum is refused like one with a wrong checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from decon_core.errors import DamagedError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "checksum"
_MARK = b"xxh3-128:"
_N_DIGITS = 32
_ZEROS = b"0" * _N_DIGITS
EMPTY = (_MARK + _ZEROS).decode()
N_BYTES = len(EMPTY)
_NOTE = b"\nnote:"

REMEDY = (
    "run `decon-assets run --verify`: it deletes damaged files and builds them again "
    "(`decon-assets scan` does so without an option)"
)

# Checksums are searched for in this many bytes at the end: metadata of wide tables takes ~20 kB.
_TAIL_BYTES = 1 << 20
# Files of at least this size are memory-mapped instead of read, to save memory.
_MIN_MAPPED_BYTES = 1 << 20


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, for files without a checksum of their own."""
    with path.open("rb") as file:
        return file_digest(file, xxhash.xxh3_128).hexdigest()


def sealed(content: bytes) -> bytes:
    """Return the content with its digest in place of the last placeholder."""
    at = _placeholder_offset(content)
    digest = xxhash.xxh3_128_hexdigest(content).encode()
    return content[:at] + digest + content[at + _N_DIGITS :]


def seal(path: Path, *, end: str = "") -> None:
    """Append `end`, and replace the last placeholder in the file with the digest of the file."""
    with path.open("r+b") as file:
        size = file.seek(0, 2) + file.write(end.encode())
        first = file.seek(max(size - _TAIL_BYTES, 0))
        at = _placeholder_offset(file.read())
        file.seek(0)
        digest = file_digest(file, xxhash.xxh3_128)
        file.seek(first + at)
        file.write(digest.hexdigest().encode())


def sealed_page(text: str) -> bytes:
    """Return an HTML or Markdown page with its checksum in a comment at the end."""
    end = "" if text.endswith("\n") else "\n"
    return sealed(f"{text}{end}<!-- {EMPTY} -->\n".encode())


def seal_page(path: Path) -> None:
    """Append a checksum comment to an HTML or Markdown file."""
    seal(path, end=f"\n<!-- {EMPTY} -->\n")


def seal_database(path: Path, note: Mapping[str, Any] | None = None) -> None:
    """Append a note, if any, and a checksum to a DuckDB database, which ignores both."""
    seal(path, end=f"{_NOTE.decode()}{json.dumps(note)}{EMPTY}" if note else EMPTY)


def note_in_database(path: Path) -> Mapping[str, Any]:
    """Return the note that was appended to a database; it is empty if there is none."""
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - _TAIL_BYTES, 0))
        _, mark, note = file.read().rpartition(_NOTE)
    is_last = mark and note[-N_BYTES:].startswith(_MARK)
    return dict(json.loads(note[:-N_BYTES])) if is_last else {}


def read_verified(path: Path) -> bytes:
    """Return the content of a file after verifying its checksum."""
    content = path.read_bytes()
    require_whole(content, path)
    return content


def map_verified(path: Path) -> pa.Buffer:
    """Like `read_verified`, as an Arrow buffer; a large file is memory-mapped."""
    content = _mapped(path)
    require_whole(memoryview(content), path)
    return content


def require_whole(content: bytes | memoryview, path: Path) -> None:
    """Raise `DamagedError` if the content of a file does not match its checksum."""
    if fault := _fault(content):
        raise DamagedError(damaged(path, fault))


def require_undamaged_database(path: Path) -> None:
    """Raise `DamagedError` if a database has a wrong checksum.

    A database that another program changed has none; DuckDB verifies every block that it reads.
    """
    content = memoryview(_mapped(path))
    if bytes(content[-N_BYTES:]).startswith(_MARK):
        require_whole(content, path)


def fault_of(path: Path) -> str | None:
    """Return what is wrong with a file that should have a checksum, or None."""
    return _fault(memoryview(_mapped(path)))


def is_whole(path: Path) -> bool:
    """Return whether a file exists and matches its checksum."""
    return path.is_file() and fault_of(path) is None


def damaged(path: Path, fault: str) -> Problem:
    """Describe a damaged file, with the remedy."""
    return Problem(str(path), f"the file is damaged: {fault}", remedy=REMEDY)


def without_checksum(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    """Return the metadata of a schema without the checksum; None if nothing else is in it."""
    rest = {key: value for key, value in (metadata or {}).items() if key != NAME.encode()}
    return rest or None


def _mapped(path: Path) -> pa.Buffer:
    import pyarrow as pa

    if path.stat().st_size < _MIN_MAPPED_BYTES:
        return pa.py_buffer(path.read_bytes())
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def _placeholder_offset(tail: bytes) -> int:
    at = _checksum_offset(tail)
    if at is None or tail[at : at + _N_DIGITS] != _ZEROS:
        raise ValueError("no checksum placeholder")
    return at


def _checksum_offset(tail: bytes) -> int | None:
    """Return the offset of the digits of the last checksum, or None."""
    at = tail.rfind(_MARK)
    return None if at < 0 or at + N_BYTES > len(tail) else at + len(_MARK)


def _fault(content: bytes | memoryview) -> str | None:
    if not content:
        return "it is empty"
    first = max(len(content) - _TAIL_BYTES, 0)
    tail = bytes(content[first:])
    at = _checksum_offset(tail)
    if at is None:
        return "it has no checksum"
    start = first + at
    digest = xxhash.xxh3_128(content[:start])
    digest.update(_ZEROS)
    digest.update(content[start + _N_DIGITS :])
    if digest.hexdigest().encode() != tail[at : at + _N_DIGITS]:
        return "its content does not match its checksum"
    return None
