"""Shards in, documents out. Nothing is guessed, and nothing that cannot be read goes unseen.

A row that is not what the source says it is becomes an `Unreadable` with its place and the reason;
a shard that breaks off or cannot be decompressed raises. Rows keep their number and, in line
formats, their bytes, so that an untouched document can be written back as it was.
"""

from __future__ import annotations

import glob
import io
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from decon_core.config import Packing, Source
from decon_core.errors import CorpusError, Problem
from decon_core.kernels.json_lines import LINE_BREAK, PADDING
from decon_core.places import (
    RemotePath,
    Stamp,
    fixed_part,
    found_by,
    is_url,
    place,
    stamp_of,
)
from decon_core.room import room_for
from decon_core.streams import (
    COMPRESSIONS,
    DAMAGE,
    HEAD,
    compression_of,
    format_of,
    kind_of,
    pieces,
)

LINE_FORMATS = (".jsonl", ".json", ".ndjson")
TABLE_FORMATS = (".parquet", ".arrow", ".feather")
FORMATS = (*LINE_FORMATS, *TABLE_FORMATS)

# A shard is read twice only if its size or time changed since its content was last hashed.
_HASH_CHUNK = 1 << 22
_TABLE_AT_ONCE = 4 << 20  # bytes
_MOST_ROWS = 4096
_ARROW_FILE = b"ARROW1"
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_ONCE = 1 << 20  # bytes
_SEARCHED_AT_ONCE = 1 << 16
_BEHIND = PADDING + 1
_BETWEEN = "\n\n"  # the parts of a document


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
    tag: str = ""  # what a remote store calls this content

    @property
    def stamp(self) -> Stamp:
        """What the file system said of it."""
        return Stamp(self.n_bytes, self.modified_ns, self.tag)


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
class Part:
    """Where a turn, or one of several fields, stands in a document."""

    path: str  # `messages[2]`, `chosen[0]`, `prompt`
    start: int  # in characters
    stop: int


@dataclass(frozen=True)
class Document:
    """One row: a text, and the bytes that it came from where the format has such."""

    row: int
    id: str | None
    text: str
    raw: bytes | None
    parts: tuple[Part, ...] = ()  # of a conversation or of several fields


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
    found = files_of(source, folder=folder)
    require_names_in_utf8(path for path, _ in found)
    problems = [
        Problem(str(path), f"format {format_of(path)!r}", f"one of {', '.join(FORMATS)}")
        for path, _ in found
        if format_of(path) not in FORMATS
    ]
    if not found:
        told = f"no file matches {place(source.path, base=folder)}"
        problems.append(Problem(f"source {source.name!r}", told, "at least one shard"))
    if problems:
        raise CorpusError(problems)
    # The folder itself may hold what looks like a wildcard.
    is_whole = is_url(source.path)
    base = fixed_part(place(source.path)) if is_whole else folder / fixed_part(Path(source.path))
    return [shard_at(source, path, base, known.get(str(path)), stamp) for path, stamp in found]


def files_of(source: Source, *, folder: Path) -> list[tuple[Path, Stamp]]:
    """The files that a source's glob finds today, by path. None of them is opened."""
    return sorted((place(path), stamp) for path, stamp in stamps_of(source, folder=folder))


def stamps_of(source: Source, *, folder: Path) -> list[tuple[str, Stamp]]:
    """The same as texts, in any order: of 100,000 files, paths take longer than the looking."""
    pattern = place(source.path, base=Path(glob.escape(str(folder))))
    if isinstance(pattern, RemotePath):
        return [(str(path), stamp) for path, stamp in found_by(str(pattern))]
    found = []
    for path in glob.glob(str(pattern), recursive=True):  # noqa: PTH207 - 100,000 paths as texts
        status = os.stat(path)  # noqa: PTH116 - as above
        found.append((path, Stamp(status.st_size, status.st_mtime_ns, "")))
    return found


def require_names_in_utf8(paths: Iterable[Path]) -> None:
    """Raise of names that are no text: nothing that is written could tell of such a file."""
    problems = [
        Problem(name, "a name that is not UTF-8", "one that is", "rename the file or its folder")
        for path in paths
        if (name := os.fsencode(path).decode("utf-8", "backslashreplace")) != str(path)
    ]
    if problems:
        raise CorpusError(sorted(problems, key=str))


def shard_at(
    source: Source,
    path: Path,
    base: Path,
    known: Shard | None = None,
    stamp: Stamp | None = None,
) -> Shard:
    """A file as a shard of a source, named from a folder on."""
    stamp = stamp or stamp_of(path)
    content = known.content if known and known.stamp == stamp else hash_file(path)
    reading = [content, format_of(path), source.text, source.messages, source.id]
    if not isinstance(source.text, str):
        reading.append(source.roles)
    if compression_of(path):  # under another name the same bytes may be damaged
        reading.append(compression_of(path))
    return Shard(
        source=source.name,
        name=path.relative_to(base).as_posix(),
        path=str(path),
        n_bytes=stamp.n_bytes,
        modified_ns=stamp.modified_ns,
        content=content,
        fingerprint=sha256(json.dumps(reading).encode()).hexdigest()[:32],
        tag=stamp.tag,
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
    packing: Packing,
    first_number: int = 0,
) -> tuple[list[Pack], list[Pack]]:
    """Packs for today's shards, and the existing packs that must go.

    A pack whose members are all still there stays as it is, in the same order, under whichever
    names they have today. Shards that are in no such pack are put into new ones, numbered from
    `first_number` or above the existing ones: a number is never used again, or Dagster would take
    the new pack's cells for the old one's.
    """
    kept, retired, free = _claimed(source, shards, sorted(existing, key=lambda pack: pack.name))
    numbers = [int(pack.name.rpartition("-")[2]) for pack in (*kept, *retired)]
    first = max([*numbers, first_number - 1]) + 1
    new = [
        Pack(name=f"{source.name}-{number:04}", source=source, shards=tuple(group))
        for number, group in enumerate(_filled(free, packing), start=first)
    ]
    return [*kept, *new], retired


def _claimed(
    source: Source, shards: Sequence[Shard], packs: Sequence[Pack]
) -> tuple[list[Pack], list[Pack], list[Shard]]:
    """The packs that stay, as they lie today; those that go; the shards that are left, by name.

    Those that find all members under their old names come first: what was renamed may then take
    no shard away from them.
    """
    free = {(shard.name, shard.fingerprint): shard for shard in shards}
    kept: list[Pack] = []
    renamed: list[Pack] = []
    for pack in packs:
        keys = _keys(pack)
        if all(key in free for key in keys):
            found = tuple(free.pop(key) for key in keys)
            kept.append(replace(pack, source=source, shards=found))
        else:
            renamed.append(pack)
    retired: list[Pack] = []
    for number, pack in enumerate(renamed):
        held = {key for other in renamed[number + 1 :] for key in _keys(other)}
        members = _members_by_content(pack, free, held)
        if members is None:
            retired.append(pack)
            continue
        for shard in members:
            del free[shard.name, shard.fingerprint]
        kept.append(replace(pack, source=source, shards=members))
    kept.sort(key=lambda pack: pack.name)
    return kept, retired, [shard for _, shard in sorted(free.items())]


def _keys(pack: Pack) -> list[tuple[str, str]]:
    return [(shard.name, shard.fingerprint) for shard in pack.shards]


def _members_by_content(
    pack: Pack, free: Mapping[tuple[str, str], Shard], held: Collection[tuple[str, str]]
) -> tuple[Shard, ...] | None:
    """A shard for each member: that of its name, or else one of its content; None: not for all.

    Of several files with one content it does not matter which; the first by name that no other
    pack has under this very name, so that it is always the same one.
    """
    own = set(_keys(pack))
    spare: defaultdict[str, list[Shard]] = defaultdict(list)
    for key, shard in sorted(free.items(), key=lambda item: (item[0] in held, item[0])):
        if key not in own:
            spare[shard.fingerprint].append(shard)
    members: list[Shard] = []
    for key in _keys(pack):
        if key in free:
            members.append(free[key])
        elif spare[key[1]]:
            members.append(spare[key[1]].pop(0))
        else:
            return None
    return tuple(members)


def _filled(shards: Iterable[Shard], packing: Packing) -> list[list[Shard]]:
    """Shards in order, cut before a group would pass a limit; a larger shard is one by itself."""
    groups: list[list[Shard]] = []
    n_bytes = 0
    for shard in shards:
        if not groups or packing.is_full(len(groups[-1]), n_bytes, shard.n_bytes):
            groups.append([])
            n_bytes = 0
        groups[-1].append(shard)
        n_bytes += shard.n_bytes
    return groups


# Reading ------------------------------------------------------------------------------------------


def read_shard(shard: Shard, source: Source) -> Iterator[Document | Unreadable]:
    """All rows of a shard, in order. Raises `CorpusError` when it is damaged or was changed.

    The bytes are hashed as they are read, and a difference raises after the last row: whoever
    writes something must have seen the end first.
    """
    path = place(shard.path)
    with open_shard(shard) as file:
        if format_of(path) in LINE_FORMATS:
            for block in line_blocks(file, path, block_bytes=_LINES_AT_ONCE):
                yield from rows_of_lines(block, source)
        else:
            row = 0
            for batch in table_batches(file, path, source, batch_bytes=_TABLE_AT_ONCE):
                yield from rows_of_table(batch, row, source)
                row += batch.num_rows


@contextmanager
def open_shard(shard: Shard) -> Iterator[ShardFile]:
    """The bytes of a shard. Raises at the end when they are not those that were registered."""
    path = place(shard.path)
    if not path.is_file():
        raise CorpusError(Problem(shard.path, "no such file", "a registered shard", _CHANGED))
    with path.open("rb") as file:
        reading = ShardFile(file, shard)
        _require_kind(reading.head(), path)
        yield reading
        reading.require_unchanged()


def _as_it_lies(path: Path, file: BinaryIO | None = None) -> tuple[object, ...]:
    """What tells a file from another one of its name; of an open one, as it was opened."""
    if isinstance(path, RemotePath):
        return stamp_of(path)
    status = os.fstat(file.fileno()) if file else path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


_CHANGED = "register the corpus again (`decon-assets register`): a changed shard is another shard"


class ShardFile(io.RawIOBase):
    """An open shard that takes the hash of all that is read from it."""

    def __init__(self, file: BinaryIO, shard: Shard) -> None:
        self._file = file
        self._shard = shard
        self._digest = xxhash.xxh3_128()
        self._n_hashed = 0
        self._opened = _as_it_lies(place(shard.path), file)

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
        while block := self._file.read(_HASH_CHUNK):
            self._digest.update(block)
            self._n_hashed += len(block)
        if self._digest.hexdigest() != self._shard.content:
            path = self._shard.path
            raise CorpusError(Problem(path, "other content", "what was registered", _CHANGED))

    def require_in_place(self) -> None:
        """Raise when this is not the file any more that the path leads to."""
        path = self._shard.path
        if _as_it_lies(place(path)) != self._opened:
            raise CorpusError(
                Problem(path, "a file written meanwhile", "an unchanged one", _CHANGED)
            )


def _require_kind(head: bytes, path: Path) -> None:
    """Raise when a file is, by its first bytes, something else than its name says."""
    compression, form = compression_of(path), format_of(path)
    found = kind_of(head)
    if found is None:
        return  # damaged, or empty: the reader says so
    kind, suffix = found
    expected = (compression or form).replace(".zstd", ".zst").replace(".feather", ".arrow")
    if expected in LINE_FORMATS:
        expected = ""
    if suffix != expected:
        raise CorpusError(_misnamed(path, kind, suffix))


def _misnamed(path: Path, kind: str, suffix: str) -> Problem:
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


# Lines --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LineBlock:
    """Whole lines of a shard. Only a shard's last line may lack its line break."""

    lines: npt.NDArray[np.uint8]  # a line break and `PADDING` bytes follow behind `n_bytes`
    n_bytes: int
    n_lines: int
    row: int  # of the first line
    offset: int  # of the first line, in the uncompressed shard

    @property
    def rows(self) -> range:
        return range(self.row, self.row + self.n_lines)

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """Where each line begins, and where the last one ends."""
        breaks = np.flatnonzero(self.lines[: self.n_bytes] == LINE_BREAK) + 1
        return np.concatenate([[0], breaks[: self.n_lines - 1], [self.n_bytes]])


def line_blocks(file: ShardFile, path: Path, *, block_bytes: int) -> Iterator[LineBlock]:
    """A shard cut at line breaks into blocks of about this size, or of one longer line.

    Damage raises after all lines that end before it.
    """
    cutter = _Cutter(block_bytes)
    damage: Exception | None = None
    try:
        for number, piece in enumerate(pieces(cast("BinaryIO", file), compression_of(path))):
            if number == 0:
                _require_lines(bytes(piece[:HEAD]), path)
            yield from cutter.blocks(piece)
    except DAMAGE as error:
        damage = error
    yield from cutter.rest(is_whole=damage is None)
    if damage is not None:
        raise CorpusError(
            Problem(
                f"{path}: after {cutter.row} rows, byte {cutter.offset} of the uncompressed text",
                f"damaged or cut off ({damage})",
                "a whole file",
                "replace the shard, or take it out of the corpus",
            )
        )


def blocks_of(lines: bytes, *, block_bytes: int) -> Iterator[LineBlock]:
    """Lines that are at hand, as blocks."""
    cutter = _Cutter(block_bytes)
    yield from cutter.blocks(memoryview(lines))
    yield from cutter.rest(is_whole=True)


def lines_of(block: LineBlock, rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Some of a block's rows, and where in it their lines begin and end."""
    for row in rows:
        at = row - block.row
        yield row, int(block.edges[at]), int(block.edges[at + 1])


def _require_lines(head: bytes, path: Path) -> None:
    """Raise when what was compressed is no text but another file."""
    found = kind_of(head)
    if found and found[1]:
        kind, suffix = found
        raise CorpusError(_misnamed(path.with_suffix(""), kind, suffix))


class _Cutter:
    """Takes bytes, gives blocks of whole lines."""

    def __init__(self, block_bytes: int) -> None:
        self.row = self.offset = 0  # of what was not given yet
        self._block_bytes = block_bytes
        self._filled = 0
        self._searched = 0  # no line break before this
        self._buffer = room_for(block_bytes + _BEHIND, np.uint8)

    def blocks(self, piece: memoryview) -> Iterator[LineBlock]:
        fresh = np.frombuffer(piece, np.uint8)
        while fresh.size:
            step = min(self._buffer.size - _BEHIND - self._filled, fresh.size)
            self._buffer[self._filled : self._filled + step] = fresh[:step]
            self._filled += step
            fresh = fresh[step:]
            if fresh.size:
                stop = _behind_last_line(self._buffer, self._searched, self._filled)
                if stop:
                    yield self._cut(stop)
                else:
                    self._searched = self._filled
                    self._move(0, 2 * self._filled)

    def rest(self, *, is_whole: bool) -> Iterator[LineBlock]:
        """The last lines; of a shard that breaks off without what stands before the break."""
        stop = self._filled
        if not is_whole:
            stop = _behind_last_line(self._buffer, self._searched, stop)
        if stop:
            self._buffer[self._filled] = LINE_BREAK
            yield self._cut(stop)

    def _cut(self, stop: int) -> LineBlock:
        n_lines = _n_lines(self._buffer[:stop])
        block = LineBlock(self._buffer, stop, n_lines, self.row, self.offset)
        self._move(stop, max(self._block_bytes, 2 * (self._filled - stop)))
        self.row += n_lines
        self.offset += stop
        self._searched = self._filled
        return block

    def _move(self, start: int, size: int) -> None:
        """What is left, into a buffer of its own."""
        left = self._buffer[start : self._filled]
        self._buffer = room_for(size + _BEHIND, np.uint8)
        self._buffer[: left.size] = left
        self._filled = left.size


def _behind_last_line(buffer: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """Behind the last line break; 0: there is none."""
    while stop > start:
        first = max(start, stop - _SEARCHED_AT_ONCE)
        found = buffer[first:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return first + found + 1
        stop = first
    return 0


def _n_lines(lines: npt.NDArray[np.uint8]) -> int:
    # A piece at a time: what a comparison leaves behind stays in the processor's cache.
    counts = (
        int(np.count_nonzero(lines[at : at + _SEARCHED_AT_ONCE] == LINE_BREAK))
        for at in range(0, lines.size, _SEARCHED_AT_ONCE)
    )
    return sum(counts) + int(lines[-1] != LINE_BREAK)


def rows_of_lines(block: LineBlock, source: Source) -> Iterator[Document | Unreadable]:
    offset = block.offset
    lines = io.BytesIO(block.lines[: block.n_bytes].tobytes())
    for row, line in enumerate(lines, start=block.row):
        found = row_of_line(line, row, offset, source)
        if found:
            yield found
        offset += len(line)


def row_of_line(line: bytes, row: int, offset: int, source: Source) -> Document | Unreadable | None:
    """What a line says; nothing, if it is blank."""
    if not line.strip():
        return None
    text = line.removeprefix(BYTE_ORDER_MARK) if row == 0 else line
    return _document_of_line(text, line, row, offset, source)


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
        text, parts = _text(value, source)
    except _NotADocumentError as error:
        return Unreadable(row, offset, error.reason, error.detail, raw)
    return Document(row, id_of(value, source), text, raw, parts)


def id_of(value: Mapping[str, Any], source: Source) -> str | None:
    """A row's own id, if the source names a field for it."""
    found = _field(value, source.id) if source.id else None
    identity = None if found is None or found is _ABSENT else str(found)
    return identity and without_lone_surrogates(identity)


def document_of(value: Mapping[str, Any], row: int, source: Source) -> Document | Unreadable:
    """What the value of a row says, wherever it came from."""
    return _document(value, row, None, source, None)


def values_of(
    shard: Shard, source: Source, rows: Iterable[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Some rows of a shard, in order: of lines all fields, of tables those that hold a text."""
    wanted = sorted(rows)
    path = place(shard.path)
    if not wanted:
        return
    numbers = np.array(wanted, np.int64)
    with open_shard(shard) as file:
        if format_of(path) in LINE_FORMATS:
            for block in line_blocks(file, path, block_bytes=_TABLE_AT_ONCE):
                first, last = np.searchsorted(numbers, [block.row, block.row + block.n_lines])
                yield from values_of_lines(block, path, wanted[first:last])
            return
        first = 0
        for batch in table_batches(file, path, source, batch_bytes=_TABLE_AT_ONCE):
            while wanted and wanted[0] < first + batch.num_rows:
                row = wanted.pop(0)
                yield row, batch.slice(row - first, 1).to_pylist()[0]
            first += batch.num_rows


def values_of_lines(
    block: LineBlock, path: Path, rows: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same of a block that is at hand."""
    for row, start, stop in lines_of(block, rows):
        line = block.lines[start:stop].tobytes()
        text = line.removeprefix(BYTE_ORDER_MARK) if row == 0 else line
        try:  # not orjson: it turns a long integer into a float
            value = json.loads(text.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                no_document(path, row, f"a line that cannot be parsed ({error})")
            ) from None
        yield row, value


def no_document(path: Path, row: int, found: str) -> Problem:
    """What to say of a row that was scanned, and cannot be taken apart now."""
    remedy = "register the corpus again (`decon-assets register`), or take the row out of it"
    return Problem(f"{path}: row {row}", found, "a document, as it was scanned", remedy)


def without_lone_surrogates(text: str) -> str:
    """Half characters become replacement characters: no encoding has them."""
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


def _text(value: Mapping[str, Any], source: Source) -> tuple[str, tuple[Part, ...]]:
    """The text of a row, and where its parts stand in it, if it has such."""
    if isinstance(source.text, str):
        return without_lone_surrogates(_plain(_given(value, source.text), source.text)), ()
    texts: list[tuple[str, str]] = []
    if source.messages:
        texts = _turns(_given(value, source.messages), source.messages, source.roles)
    for path in source.text or ():
        found = _given(value, path)
        texts += _turns(found, path) if isinstance(found, list) else [(path, _plain(found, path))]
    return _joined(texts)


def _joined(texts: Sequence[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """Texts by path, one below the other; empty ones leave no trace."""
    parts, pieces, start = [], [], 0
    for path, text in texts:
        if text:
            pieces.append(without_lone_surrogates(text))
            parts.append(Part(path, start, start + len(pieces[-1])))
            start = parts[-1].stop + len(_BETWEEN)
    return _BETWEEN.join(pieces), tuple(parts)


def _given(value: Mapping[str, Any], path: str) -> object:
    found = _field(value, path)
    if found is _ABSENT:
        raise _NotADocumentError("field missing", path)
    if found is None:
        raise _NotADocumentError("field is null", path)
    return found


def _plain(found: object, path: str) -> str:
    if not isinstance(found, str):
        raise _NotADocumentError("field is not text", f"{path} is {type(found).__name__}")
    return found


def _turns(found: object, path: str, roles: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The turns of a conversation, by path; of all roles, unless some are named."""
    if not isinstance(found, list):
        raise _NotADocumentError("not a list of messages", f"{path} is {type(found).__name__}")
    turns = [(f"{path}[{at}]", message) for at, message in enumerate(found)]
    return [
        (place, _turn(message, place))
        for place, message in turns
        if not roles or _role(message, place) in roles
    ]


def _role(message: object, path: str) -> str:
    # Published conversations have either {role, content} or {from, value}.
    role = message.get("role", message.get("from")) if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise _NotADocumentError("message without a role", path)
    return role


def _turn(message: object, path: str) -> str:
    key = "value" if isinstance(message, dict) and "content" not in message else "content"
    content = message.get(key, _ABSENT) if isinstance(message, dict) else _ABSENT
    if content is _ABSENT:
        raise _NotADocumentError("message without content", path)
    if content is None:
        return ""  # a turn that only calls a tool
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        if len(parts) == len(content) and all(isinstance(part, str) for part in parts):
            return "\n".join(part for part in parts if part)
    return _plain(content, f"{path}.{key}")


# Tables -------------------------------------------------------------------------------------------


def table_batches(
    file: ShardFile, path: Path, source: Source | None, *, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a table, about so many bytes at a time, with the columns that a source reads.

    Without a source: with all of them.
    """
    file.require_unchanged()  # first: libraries say odd things about half-changed tables
    read = _parquet_batches if format_of(path) == ".parquet" else _arrow_batches
    try:
        wanted = _wanted(source) if source else set(_columns(path))
        yield from read(path, wanted, batch_bytes)
        file.require_in_place()  # the libraries open it once more, after it was hashed
    except (pa.ArrowException, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise CorpusError(
            Problem(
                str(path),
                f"not a readable {format_of(path)[1:]} file ({error})",
                "a whole file",
                "replace the shard, or take it out of the corpus",
            )
        ) from None


def _wanted(source: Source) -> set[str]:
    """The columns that may hold one of the fields."""
    texts = (source.text,) if isinstance(source.text, str) else source.text or ()
    fields = [field for field in (*texts, source.messages, source.id) if field]
    return {field.partition(".")[0] for field in fields} | set(fields)


def _columns(path: Path) -> list[str]:
    if format_of(path) == ".parquet":
        return list(pq.read_schema(readable(path)).names)
    return list(open_arrow(path).schema.names)


def _parquet_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    # `pre_buffer` would hold what was compressed of the whole file. One core per shard is enough.
    file = pq.ParquetFile(readable(path), pre_buffer=False, buffer_size=_HASH_CHUNK)
    columns = [name for name in file.schema_arrow.names if name in wanted]
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        n_bytes = sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if chunk.path_in_schema in wanted or chunk.path_in_schema.partition(".")[0] in wanted
        )
        yield from file.iter_batches(
            batch_size=_rows_at_once(group.num_rows, n_bytes, batch_bytes),
            row_groups=[number],
            columns=columns,
            use_threads=False,
        )


def _rows_at_once(n_rows: int, n_bytes: int, batch_bytes: int) -> int:
    return max(1, min(_MOST_ROWS, n_rows * batch_bytes // max(n_bytes, 1)))


def _arrow_batches(path: Path, wanted: set[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    for batch in open_arrow(path, wanted).batches:
        for column in batch.columns:
            _require_sound(column)
        step = _rows_at_once(batch.num_rows, batch.nbytes, batch_bytes)
        for at in range(0, batch.num_rows, step):
            yield batch.slice(at, step)


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """An Arrow file or stream, to be read once."""

    is_file: bool
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def open_arrow(path: Path, wanted: set[str] | None = None) -> ArrowTable:
    """The batches as they are, of the wanted columns only if some are named."""
    with path.open("rb") as file:
        is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
        if not is_file:
            _require_end(file)
    reader = _arrow_reader(path, None, is_file=is_file)
    if wanted is not None:
        columns = [at for at, name in enumerate(reader.schema.names) if name in wanted]
        reader = _arrow_reader(path, columns, is_file=is_file)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
    return ArrowTable(is_file, reader.schema, batches)


def _arrow_reader(path: Path, columns: Sequence[int] | None, *, is_file: bool) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    read = pa.ipc.open_file if is_file else pa.ipc.open_stream
    # Not an open file, where there is a choice: its bytes would go through Python objects, in twice
    # the memory.
    is_remote = isinstance(path, RemotePath)
    file = pa.PythonFile(path.open("rb")) if is_remote else pa.OSFile(str(path))
    return read(file, options=options)


def readable(path: Path) -> Any:
    """What the library opens itself, or the open file where it could not."""
    return path.open("rb") if isinstance(path, RemotePath) else path


def _require_end(file: BinaryIO) -> None:
    """A stream that breaks off between two batches looks whole to the library."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - len(_ARROW_END)))
    if file.read() != _ARROW_END:
        raise EOFError("cut off: the stream has no end mark")


def _require_sound(column: pa.Array) -> None:
    """Raise when offsets or indices point outside. That a text is not UTF-8 is no such damage."""
    if pa.types.is_dictionary(column.type):
        pa.DictionaryArray.from_arrays(column.indices, pa.nulls(len(column.dictionary)))
        _require_sound(column.dictionary)
    else:
        column.view(_as_bytes(column.type)).validate(full=True)


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    """The same type without texts in it."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_bytes(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_bytes(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_as_bytes(kind.value_type)))
    return _BYTES.get(kind, kind)


def rows_of_table(
    batch: pa.RecordBatch, first: int, source: Source
) -> Iterator[Document | Unreadable]:
    try:
        values = batch.to_pylist()
    except UnicodeDecodeError:
        columns = [[_value(scalar) for scalar in column] for column in batch.columns]
        names = batch.schema.names
        values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    for row, value in enumerate(values, start=first):
        yield _document(value, row, None, source, None)


def _value(scalar: Any) -> object:
    """A table's value in Python; bytes that are not UTF-8 become replacement characters."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        kind = scalar.type
    if pa.types.is_dictionary(kind) or pa.types.is_union(kind):
        return _value(scalar.value)
    if pa.types.is_struct(kind):
        return {field.name: _value(scalar[at]) for at, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(_value(item[0]), _value(item[1])) for item in scalar.values]
    if pa.types.is_nested(kind):
        return [_value(item) for item in scalar.values]
    return scalar.as_buffer().to_pybytes().decode("utf-8", errors="replace")
