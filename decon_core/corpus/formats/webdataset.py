"""WebDataset: tar archives, in which members with the same name before the first dot are a row."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Generator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from decon_core.corpus.formats.records import Record, RecordFormat
from decon_core.corpus.formats.shard_format import Value
from decon_core.corpus.row_json import parsed_row
from decon_core.corpus.shard_file import too_long
from decon_core.storage.compression import DamagedStreamError
from decon_core.wording import counted

KEY = "__key__"
# Members without text. They are passed over, and their row names them with their size.
MEDIA = frozenset(
    "jpg jpeg png webp gif bmp tif tiff ppm avif heic mp3 wav flac ogg opus m4a aac "  # noqa: SIM905 - a word list
    "mp4 webm mkv avi mov npy npz pt pth safetensors".split()
)
_BLOCK = tarfile.BLOCKSIZE
_STEP = 1 << 16


class WebDataset(RecordFormat):
    """Rows with a field for each member, named by what follows the first dot of its name.

    A member `json` is parsed; any other that is UTF-8 is a text. Media are passed over; of another
    member that is not UTF-8, the row is unreadable.
    """

    suffixes = (".tar",)
    is_utf8 = False

    def records(
        self, stream: BinaryIO, path: Path, max_row_bytes: int
    ) -> Generator[Record, None, None]:
        kept = _KeptBytes(stream)
        row, number = _Row(), 0
        try:
            with tarfile.open(fileobj=kept, mode="r|") as archive:
                for member in archive:
                    archive.members.clear()  # type: ignore[attr-defined] # would grow with the archive
                    stem, name = _names(member)
                    if row.members and (stem != row.stem or not stem):
                        yield row.record(kept)
                        row, number = _Row(), number + 1
                    if not member.isfile():
                        continue  # a folder or a link stays where it is
                    row.stem, row.start = stem, member.offset if not row.members else row.start
                    stop = member.offset_data + member.size
                    if stop - row.start > max_row_bytes:
                        raise too_long(path, number, row.start, max_row_bytes)
                    content = cast("BinaryIO", archive.extractfile(member)).read()
                    row.add(member, name, content)
        except tarfile.TarError as error:
            raise DamagedStreamError(str(error)) from None
        if row.members:
            yield row.record(kept)
        yield Record(gap=_end(kept, archive.offset, max_row_bytes), is_end=True)

    def encoded(self, value: Value, record: Record) -> bytes:
        """Write the members of a row whose texts changed anew, and all others as they are."""
        old, pieces, at = cast("Value", record.value), [], 0
        for span in cast("_Members", record).members:
            if span.name in value and value[span.name] != old[span.name]:
                pieces += [record.raw[at : span.start], span.with_content(value[span.name])]
                at = span.stop
        return b"".join([*pieces, record.raw[at:]])


def _end(kept: _KeptBytes, after_members: int, max_bytes: int) -> bytes:
    """Return what follows the last row: folders and links, and the zeros that end an archive.

    `tarfile` would take anything for its end.
    """
    before = after_members - kept.start
    while kept.read(_STEP):
        if kept.n_bytes > max_bytes:
            raise DamagedStreamError(f"{counted(kept.n_bytes, 'byte')} after the last member")
    stop = kept.stop
    end = kept.taken(stop)
    zeros = end[before:]
    if len(zeros) < _BLOCK or zeros.strip(b"\0"):
        raise DamagedStreamError(f"neither a header nor the end of the archive before byte {stop}")
    return end


@dataclass(frozen=True)
class _Member:
    """A member of a row, and where it is in the bytes of the row."""

    header: tarfile.TarInfo
    name: str  # name of its field
    start: int
    stop: int

    def with_content(self, value: Any) -> bytes:
        """Return the member with another text or JSON value."""
        text = json.dumps(value, ensure_ascii=False) if _is_json(self.name) else value
        content = text.encode("utf-8", "replace")
        header = copy(self.header)
        header.size = len(content)
        padding = bytes(-len(content) % _BLOCK)
        return header.tobuf(tarfile.PAX_FORMAT) + content + padding


@dataclass(frozen=True, kw_only=True)
class _Members(Record):
    members: tuple[_Member, ...] = ()


@dataclass
class _Row:
    """The members of a row, while they are read."""

    stem: str = ""
    start: int = 0
    stop: int = 0
    members: list[_Member] = field(default_factory=list)
    value: Value = field(default_factory=dict)
    fault: tuple[str, str] | None = None

    def add(self, member: tarfile.TarInfo, name: str, content: bytes) -> None:
        self.stop = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
        start, stop = member.offset - self.start, self.stop - self.start
        self.members.append(_Member(member, name, start, stop))
        self.value.setdefault(KEY, self.stem)
        if name in self.value:
            self.fault = self.fault or ("a member twice", member.name)
            return
        if name.rpartition(".")[2].lower() in MEDIA:
            self.value[name] = {"n_bytes": len(content)}
            return
        try:
            self.value[name] = parsed_row(content) if _is_json(name) else content.decode()
        except ValueError as error:
            self.fault = self.fault or (f"member {name} cannot be read", str(error))

    def record(self, kept: _KeptBytes) -> Record:
        """Return the row, with the bytes before it."""
        return _Members(
            gap=kept.taken(self.start),
            raw=kept.taken(self.stop),
            offset=self.start,
            value=None if self.fault else self.value,
            fault=self.fault,
            members=tuple(self.members),
        )


def _is_json(name: str) -> bool:
    return name.rpartition(".")[2].lower() == "json"


def _names(member: tarfile.TarInfo) -> tuple[str, str]:
    """Return the key of a member's row and the name of its field."""
    folder, slash, name = member.name.rpartition("/")
    stem, _, rest = name.partition(".")
    return folder + slash + stem, rest or "content"


class _KeptBytes(io.RawIOBase):
    """A stream that keeps what was read and not yet taken, to copy it unchanged."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._bytes = bytearray()
        self.start = 0  # first byte that is kept

    @property
    def n_bytes(self) -> int:
        """How much is kept."""
        return len(self._bytes)

    @property
    def stop(self) -> int:
        return self.start + len(self._bytes)

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self._bytes += content
        return content

    def taken(self, stop: int) -> bytes:
        """Return the bytes from the last taken one to an offset."""
        n = stop - self.start
        content = bytes(self._bytes[:n])
        del self._bytes[:n]
        self.start = stop
        return content


SHARD_FORMATS = (WebDataset(),)
