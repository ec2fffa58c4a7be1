"""Shards in, documents out. Nothing is guessed, and nothing that cannot be read goes unseen.

A row that is not what the source says it is becomes an `Unreadable` with its place and the reason;
a shard that breaks off or cannot be decompressed raises. Rows keep their number and, in line
formats, their bytes, so that an untouched document can be written back as it was.
"""

from __future__ import annotations

import glob
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from decon_core.config import Source
from decon_core.errors import CorpusError, Problem
from decon_core.streams import DAMAGE, compression_of, decompressed, format_of

LINE_FORMATS = (".jsonl", ".json", ".ndjson")
FORMATS = (*LINE_FORMATS, ".parquet")

# A shard is read twice only if its size or time changed since its content was last hashed.
_HASH_CHUNK = 1 << 22
_PARQUET_ROWS = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file of training text, as it was when it was registered."""

    source: str
    name: str  # relative to the fixed part of the source's glob: unique within the source
    path: str
    n_bytes: int
    modified_ns: int
    content: str  # hash of the file's bytes
    fingerprint: str  # of the content and of how it is read: what its tiles are named by


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Shards of one source that are scanned and mixed together. Never changes its members."""

    name: str
    source: Source
    shards: tuple[Shard, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Pack:
        return Pack(
            name=value["name"],
            source=Source(**value["source"]),
            shards=tuple(Shard(**shard) for shard in value["shards"]),
        )


@dataclass(frozen=True)
class Document:
    """One row: a text, and the bytes that it came from where the format has such."""

    row: int
    id: str | None
    text: str
    raw: bytes | None


@dataclass(frozen=True)
class Unreadable:
    """A row that is not a document: where it is and why."""

    row: int
    offset: int | None  # of its first byte in the uncompressed file, in line formats
    reason: str
    detail: str
    raw: bytes | None = None


# Finding and packing shards -----------------------------------------------------------------------


def find_shards(source: Source, *, folder: Path, known: Mapping[str, Shard]) -> list[Shard]:
    """The shards that a source's glob finds today, by name. `known` (by path) saves re-hashing."""
    pattern = str(Path(glob.escape(str(folder))) / source.path)
    base = folder / _fixed_part(source.path)
    paths = sorted(Path(found) for found in glob.glob(pattern, recursive=True))  # noqa: PTH207
    problems = [
        Problem(str(path), f"format {format_of(path)!r}", f"one of {', '.join(FORMATS)}")
        for path in paths
        if format_of(path) not in FORMATS
    ]
    if not paths:
        problems.append(
            Problem(f"source {source.name!r}", f"no file matches {pattern}", "at least one shard")
        )
    if problems:
        raise CorpusError(problems)
    return [_shard(source, path, base, known.get(str(path))) for path in paths]


def _fixed_part(pattern: str) -> Path:
    parts = Path(pattern).parts
    wild = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:wild])


def _shard(source: Source, path: Path, base: Path, known: Shard | None) -> Shard:
    status = path.stat()
    is_known = known and (known.n_bytes, known.modified_ns) == (status.st_size, status.st_mtime_ns)
    content = known.content if known and is_known else hash_file(path)
    reading = json.dumps([content, format_of(path), source.text, source.messages, source.id])
    return Shard(
        source=source.name,
        name=path.relative_to(base).as_posix(),
        path=str(path),
        n_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        content=content,
        fingerprint=sha256(reading.encode()).hexdigest()[:32],
    )


def hash_file(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def plan_packs(
    source: Source,
    shards: Sequence[Shard],
    *,
    existing: Iterable[Pack],
    pack_shards: int,
    first_number: int = 0,
) -> tuple[list[Pack], list[Pack]]:
    """Packs for today's shards, and the existing packs that must go.

    A pack whose members are all still there stays as it is. Shards that are in no such pack are put
    into new ones, numbered from `first_number` or above the existing ones: a number is never used
    again, or Dagster would take the new pack's cells for the old one's.
    """
    today = {(shard.name, shard.fingerprint): shard for shard in shards}
    kept: list[Pack] = []
    retired: list[Pack] = []
    for pack in sorted(existing, key=lambda pack: pack.name):
        members = [(shard.name, shard.fingerprint) for shard in pack.shards]
        if pack.source == source and all(member in today for member in members):
            # As they lie today: the whole project may have moved since.
            kept.append(replace(pack, shards=tuple(today[member] for member in members)))
        else:
            retired.append(pack)
    packed = {(shard.name, shard.fingerprint) for pack in kept for shard in pack.shards}
    new = [shard for key, shard in sorted(today.items()) if key not in packed]
    numbers = [int(pack.name.rpartition("-")[2]) for pack in (*kept, *retired)]
    first = max([*numbers, first_number - 1]) + 1
    groups = [new[at : at + pack_shards] for at in range(0, len(new), pack_shards)]
    kept += [
        Pack(name=f"{source.name}-{number:04}", source=source, shards=tuple(group))
        for number, group in enumerate(groups, start=first)
    ]
    return kept, retired


# Reading ------------------------------------------------------------------------------------------


def read_shard(shard: Shard, source: Source) -> Iterator[Document | Unreadable]:
    """All rows of a shard, in order. Raises `CorpusError` when it is damaged or was changed.

    The bytes are hashed as they are read, and a difference raises after the last row: whoever
    writes something must have seen the end first.
    """
    path = Path(shard.path)
    if not path.is_file():
        raise CorpusError(Problem(shard.path, "no such file", "a registered shard", _CHANGED))
    with path.open("rb") as file:
        hashing = _Hashing(file)
        if format_of(path) in LINE_FORMATS:
            yield from _read_lines(hashing, path, source)
        else:
            _require(hashing, shard)  # first: libraries say odd things about half-changed tables
            file.seek(0)
            yield from _read_parquet(file, path, source)
        _require(hashing, shard)


def _require(hashing: _Hashing, shard: Shard) -> None:
    if hashing.finish() != shard.content:
        raise CorpusError(Problem(shard.path, "other content", "what was registered", _CHANGED))


_CHANGED = "register the corpus again (`decon-assets register`): a changed shard is another shard"


class _Hashing(io.RawIOBase):
    """A file that takes the hash of all that is read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = xxhash.xxh3_128()
        self._n_hashed = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        # Decompressors may go back a few bytes; those were hashed already.
        fresh = self._file.tell() - self._n_hashed
        if fresh > 0:
            self._digest.update(block[len(block) - fresh :])
            self._n_hashed += fresh
        return len(block)

    def finish(self) -> str:
        """The hash of the whole file, reading what nobody asked for."""
        self._file.seek(self._n_hashed)
        while block := self._file.read(_HASH_CHUNK):
            self._digest.update(block)
            self._n_hashed += len(block)
        return str(self._digest.hexdigest())


def _read_lines(raw: io.RawIOBase, path: Path, source: Source) -> Iterator[Document | Unreadable]:
    row, offset = -1, 0
    try:
        stored = cast("BinaryIO", io.BufferedReader(raw, _HASH_CHUNK))
        for row, line in enumerate(decompressed(stored, compression_of(path))):
            if line.strip():
                text = line.removeprefix(_BYTE_ORDER_MARK) if row == 0 else line
                yield _document_of_line(text, line, row, offset, source)
            offset += len(line)
    except DAMAGE as error:
        raise CorpusError(
            Problem(
                f"{path}: after {row + 1} rows, byte {offset} of the uncompressed text",
                f"damaged or cut off ({error})",
                "a whole file",
                "replace the shard, or take it out of the corpus",
            )
        ) from None


def _document_of_line(
    text: bytes, line: bytes, row: int, offset: int, source: Source
) -> Document | Unreadable:
    try:
        value = _decode(text)
    except ValueError as error:
        return Unreadable(row, offset, "not JSON", str(error), line)
    if not isinstance(value, dict):
        return Unreadable(row, offset, "not an object", type(value).__name__, line)
    return _document(value, row, offset, source, line)


def _decode(line: bytes) -> object:
    """A JSON line; bytes that are not UTF-8, and lone surrogates, become replacement characters."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        # Slower, and takes what others write: NaN, invalid UTF-8, escaped lone surrogates.
        try:
            return json.loads(line.decode("utf-8", errors="replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _document(
    value: Mapping[str, Any], row: int, offset: int | None, source: Source, raw: bytes | None
) -> Document | Unreadable:
    try:
        text = _text(value, source)
    except _NotADocumentError as error:
        return Unreadable(row, offset, error.reason, error.detail, raw)
    found = _field(value, source.id) if source.id else None
    identity = None if found is None or found is _ABSENT else str(found)
    return Document(
        row, identity and _without_lone_surrogates(identity), _without_lone_surrogates(text), raw
    )


def _without_lone_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _NotADocumentError(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail


_ABSENT = object()


def _field(value: object, path: str) -> object:
    """The value of a nested field. A key that itself holds dots is found, too."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if not rest or not isinstance(value, dict) or head not in value:
        return _ABSENT
    return _field(value[head], rest)


def _text(value: Mapping[str, Any], source: Source) -> str:
    path = source.text or source.messages or ""
    found = _field(value, path)
    if found is _ABSENT:
        raise _NotADocumentError("field missing", path)
    if found is None:
        raise _NotADocumentError("field is null", path)
    return _conversation(found, path) if source.messages else _plain(found, path)


def _plain(found: object, path: str) -> str:
    if not isinstance(found, str):
        raise _NotADocumentError("field is not text", f"{path} is {type(found).__name__}")
    return found


def _conversation(found: object, path: str) -> str:
    """All turns of a conversation, one below the other."""
    if not isinstance(found, list):
        raise _NotADocumentError("not a list of messages", f"{path} is {type(found).__name__}")
    turns = [_turn(message, f"{path}.{at}") for at, message in enumerate(found)]
    return "\n\n".join(turn for turn in turns if turn)


def _turn(message: object, path: str) -> str:
    content = message.get("content", _ABSENT) if isinstance(message, dict) else _ABSENT
    if content is _ABSENT:
        raise _NotADocumentError("message without content", path)
    if content is None:
        return ""  # a turn that only calls a tool
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        if len(parts) == len(content) and all(isinstance(part, str) for part in parts):
            return "\n".join(part for part in parts if part)
    return _plain(content, f"{path}.content")


def _read_parquet(raw: BinaryIO, path: Path, source: Source) -> Iterator[Document | Unreadable]:
    wanted = [field for field in (source.text, source.messages, source.id) if field]
    roots = {field.partition(".")[0] for field in wanted} | set(wanted)
    try:
        file = pq.ParquetFile(raw)
        columns = [name for name in file.schema_arrow.names if name in roots]
        row = 0
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
            for value in batch.to_pylist():
                yield _document(value, row, None, source, None)
                row += 1
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise CorpusError(
            Problem(
                str(path),
                f"not a readable parquet file ({error})",
                "a whole file",
                "replace the shard, or take it out of the corpus",
            )
        ) from None
