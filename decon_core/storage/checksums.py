"""A checksum in every file of a store, verified before anything in the file is used.

The xxh3-128 digest of a file is kept in the file itself, so that the file stays one thing that is
replaced whole: in the key-value metadata of Parquet and Arrow, as the last key of a JSON object, in
a comment at the end of a page, behind the last block of a DuckDB database. A writer keeps the place
with zeros (`EMPTY`) and `seal` puts in the digest of the file with these zeros. Ordinary readers of
these formats ignore it.

A file without a checksum, as earlier versions wrote, is refused like one whose checksum is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import xxhash

from decon_core.errors import DamagedError, Problem

NAME = "checksum"
_MARK = b"xxh3-128:"
_N_DIGITS = 32
_ZEROS = b"0" * _N_DIGITS
EMPTY = (_MARK + _ZEROS).decode()
N_BYTES = len(EMPTY)

REMEDY = (
    "`decon-assets run --verify` removes what is damaged and makes it again "
    "(`decon-assets scan` does so by itself)"
)

# A checksum lies this close to the end of a file: metadata of wide tables takes some 20 kB.
_TAIL = 1 << 20
# Files from this size on are mapped into memory, not read: they need no memory of their own.
_LEAST_MAPPED = 1 << 20
_READ_AT_ONCE = 1 << 22


def sealed(content: bytes) -> bytes:
    """Content with its digest in the last place that it keeps for one."""
    at = _place(content)
    if at is None or content[at : at + _N_DIGITS] != _ZEROS:
        raise ValueError("no place for a checksum")
    digest = xxhash.xxh3_128_hexdigest(content).encode()
    return content[:at] + digest + content[at + _N_DIGITS :]


def seal(path: Path) -> None:
    """Put the digest of a file into the last place in it that is kept for one."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        first = file.seek(max(size - _TAIL, 0))
        tail = file.read()
        at = _place(tail)
        if at is None or tail[at : at + _N_DIGITS] != _ZEROS:
            raise ValueError(f"{path}: no place for a checksum")
        digest = xxhash.xxh3_128()
        file.seek(0)
        while chunk := file.read(_READ_AT_ONCE):
            digest.update(chunk)
        file.seek(first + at)
        file.write(digest.hexdigest().encode())


def sealed_page(text: str) -> bytes:
    """A page of HTML or Markdown with its checksum in a comment at its end."""
    end = "" if text.endswith("\n") else "\n"
    return sealed(f"{text}{end}<!-- {EMPTY} -->\n".encode())


def seal_page(path: Path) -> None:
    """Add such a comment to a page that was written to a file."""
    with path.open("ab") as file:
        file.write(f"\n<!-- {EMPTY} -->\n".encode())
    seal(path)


def seal_database(path: Path) -> None:
    """Add a checksum behind the last block of a DuckDB database, which DuckDB does not read."""
    with path.open("ab") as file:
        file.write(EMPTY.encode())
    seal(path)


def read_verified(path: Path) -> bytes:
    """The content of a file whose checksum is right."""
    content = path.read_bytes()
    require_whole(content, path)
    return content


def map_verified(path: Path) -> pa.Buffer:
    """The same as a buffer; a large file is mapped into memory."""
    if path.stat().st_size < _LEAST_MAPPED:
        return pa.py_buffer(read_verified(path))
    with pa.memory_map(str(path)) as file:
        content = file.read_buffer()
    require_whole(memoryview(content), path)
    return content


def require_whole(content: bytes | memoryview, path: Path) -> None:
    """Raise unless the checksum in a file's content is that of the content."""
    if found := _fault(content):
        raise DamagedError(damaged(path, found))


def require_undamaged_database(path: Path) -> None:
    """Raise when a database has a checksum, and it is wrong.

    Databases of earlier versions have none; DuckDB itself verifies every block that it reads.
    """
    content = _mapped(path)
    if bytes(content[-N_BYTES:]).startswith(_MARK):
        require_whole(content, path)


def fault_of(path: Path) -> str | None:
    """What is wrong with a file that should have a checksum; None if nothing is."""
    return _fault(_mapped(path))


def is_whole(path: Path) -> bool:
    """Whether a file is there and its checksum is right."""
    return path.is_file() and fault_of(path) is None


def damaged(path: Path, found: str) -> Problem:
    """A file whose content is not what was written."""
    return Problem(str(path), f"a damaged file ({found})", "the content as written", REMEDY)


def without_checksum(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    """The metadata of a schema as it was before a checksum was added."""
    rest = {key: value for key, value in (metadata or {}).items() if key != NAME.encode()}
    return rest or None


def _mapped(path: Path) -> memoryview:
    if path.stat().st_size < _LEAST_MAPPED:
        return memoryview(path.read_bytes())
    with pa.memory_map(str(path)) as file:
        return memoryview(file.read_buffer())


def _place(tail: bytes) -> int | None:
    """Where the digits of the last checksum begin."""
    at = tail.rfind(_MARK)
    return None if at < 0 or at + N_BYTES > len(tail) else at + len(_MARK)


def _fault(content: bytes | memoryview) -> str | None:
    if not content:
        return "it is empty"
    first = max(len(content) - _TAIL, 0)
    tail = bytes(content[first:])
    at = _place(tail)
    if at is None:
        return "it has no checksum"
    start = first + at
    digest = xxhash.xxh3_128(content[:start])
    digest.update(_ZEROS)
    digest.update(content[start + _N_DIGITS :])
    if digest.hexdigest().encode() != tail[at : at + _N_DIGITS]:
        return "its checksum is not that of its content"
    return None
