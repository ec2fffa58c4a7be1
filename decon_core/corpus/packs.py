"""Shards: files of training text, found and packed. What is in them is read in `reading`."""

from __future__ import annotations

import glob
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import xxhash

from decon_core.config.load import Packing, Source
from decon_core.errors import CorpusError, Problem
from decon_core.storage.compression import FORMATS, compression_of, format_of
from decon_core.storage.paths import (
    RemotePath,
    Stamp,
    expand_glob,
    fixed_part,
    is_hidden,
    is_url,
    parse_path,
    stamp_of,
)

_HASHED_AT_ONCE = 1 << 22  # bytes


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


# Finding and packing shards -----------------------------------------------------------------------


def find_shards(source: Source, *, folder: Path, known: Mapping[str, Shard]) -> list[Shard]:
    """The shards that a source's glob finds today, by name.

    One that is `known` (by path) is read again only if its size or time changed since.
    """
    found = files_of(source, folder=folder)
    require_names_in_utf8(path for path, _ in found)
    problems = [
        Problem(str(path), f"format {format_of(path)!r}", f"one of {', '.join(FORMATS)}")
        for path, _ in found
        if format_of(path) not in FORMATS
    ]
    if not found:
        told = f"no file matches {parse_path(source.path, base=folder)}"
        problems.append(Problem(f"source {source.name!r}", told, "at least one shard"))
    if problems:
        raise CorpusError(problems)
    # The folder itself may hold what looks like a wildcard.
    is_whole = is_url(source.path)
    base = (
        fixed_part(parse_path(source.path)) if is_whole else folder / fixed_part(Path(source.path))
    )
    return [shard_at(source, path, base, known.get(str(path)), stamp) for path, stamp in found]


def files_of(source: Source, *, folder: Path) -> list[tuple[Path, Stamp]]:
    """The files that a source's glob finds today, by path. None of them is opened."""
    return sorted((parse_path(path), stamp) for path, stamp in stamps_of(source, folder=folder))


def stamps_of(source: Source, *, folder: Path) -> list[tuple[str, Stamp]]:
    """The same as texts, in any order: of 100,000 files, paths take longer than the looking."""
    pattern = parse_path(source.path, base=Path(glob.escape(str(folder))))
    if isinstance(pattern, RemotePath):
        n_fixed = len(fixed_part(pattern).parts)
        return [
            (str(path), stamp)
            for path, stamp in expand_glob(str(pattern))
            if not is_hidden(path.parts[n_fixed:], pattern.parts[n_fixed:])
        ]
    own = Path(source.path)
    n_fixed, named = len((folder / fixed_part(own)).parts), own.parts[len(fixed_part(own).parts) :]
    found = []
    for path in glob.glob(str(pattern), recursive=True):  # noqa: PTH207 - 100,000 paths as texts
        parts = path.split(os.sep)  # noqa: PTH206 - as above
        if is_hidden(parts[n_fixed:], named):
            continue
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


FILES = "files"  # key in a manifest: the hash of each file in its folder


def hash_file(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_HASHED_AT_ONCE):
            digest.update(chunk)
    return digest.hexdigest()


def hashes_below(folder: Path) -> dict[str, str]:
    """The hash of every file in a folder and below it, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in files}


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
