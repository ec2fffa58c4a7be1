"""Shards, the files of training text, and their grouping into packs."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import PackLimits, Source
from decon_core.corpus.formats import is_shard, known_suffixes
from decon_core.errors import CorpusError, Problem
from decon_core.storage.checksums import hash_file
from decon_core.storage.compression import compression_of, suffix_of
from decon_core.storage.listing import Listing, Skipped, list_pattern
from decon_core.storage.paths import (
    RemotePath,
    Stamp,
    fixed_part,
    is_url,
    naming_unreachable,
    parse_path,
    stamp_of,
)

if TYPE_CHECKING:
    from decon_core.corpus.sample import Sample

_NO_PERMISSION = "no permission: "  # before the path, as the content of a shard


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A file of training text, in its registered state."""

    source: str
    name: str  # relative to the fixed part of the source's glob: unique within the source
    path: str
    n_bytes: int
    modified_ns: int
    content: str  # hash of the file's bytes, or `Stamp.content_at` of a remote file
    fingerprint: str  # identifies the content and how it is read; names its scan results
    tag: str = ""  # tag of the file's stamp
    sample: Sample | None = None  # sample of its documents that are read; None: all

    @property
    def stamp(self) -> Stamp:
        """Size, date and tag of the file when it was registered."""
        return Stamp(self.n_bytes, self.modified_ns, self.tag)

    @property
    def may_be_read(self) -> bool:
        """Whether the permissions of the file let this user read it when it was registered."""
        return not self.content.startswith(_NO_PERMISSION)


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Shards of one source that are scanned and filtered together. Its members never change."""

    name: str
    source: Source
    shards: tuple[Shard, ...]

    def to_json(self) -> dict[str, Any]:
        value = asdict(self)
        for shard in value["shards"]:
            if shard["sample"] is None:
                del shard["sample"]
        return value

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Pack:
        return Pack(
            name=value["name"],
            source=Source(**value["source"]),
            shards=tuple(map(_shard_from, value["shards"])),
        )


def _shard_from(value: Mapping[str, Any]) -> Shard:
    if not value.get("sample"):
        return Shard(**value)
    from decon_core.corpus.sample import Sample

    return Shard(**{**value, "sample": Sample(**value["sample"])})


def find_shards(source: Source, *, folder: Path, known: Mapping[str, Shard]) -> list[Shard]:
    """Return the shards that match a source's glob now, in order of their paths.

    A shard in `known` (by path) is hashed again only if its size, date or tag changed. Raises
    `CorpusError` if there is no shard, or one has a name that is not UTF-8.
    """
    return shards_in(list_source(source, folder=folder), source, known=known)


def list_source(source: Source, *, folder: Path) -> Listing:
    """List the shards that match a source's glob now, and what is skipped, without opening them."""
    relative = parse_path(source.path)
    fixed = fixed_part(relative)
    # The name of `folder` may contain wildcard characters, which are no part of the pattern.
    base = fixed if is_url(source.path) else folder / fixed
    return only_shards(list_pattern(base, relative.parts[len(fixed.parts) :]))


def only_shards(listing: Listing) -> Listing:
    """Move files of unknown formats to what is skipped."""
    files, skipped = [], listing.skipped.copy()
    for path, stamp in listing.files:
        if is_shard(Path(path)):
            files.append((path, stamp))
        else:
            skipped.append(Skipped(path, "no format of shards", False, stamp.n_bytes))
    return replace(listing, files=files, skipped=sorted(skipped))


def shards_in(listing: Listing, source: Source, *, known: Mapping[str, Shard]) -> list[Shard]:
    """Return the files of a listing as shards; raise `CorpusError` if there are none."""
    files = _in_order(listing)
    require_names_in_utf8(path for path, _ in files)
    if not files:
        found = f"no shard that matches {source.path}{listing.instead}"
        expected = f"files in {known_suffixes()}"
        remedy = "correct its path, or delete its [[corpus.source]] table from decon.toml"
        raise CorpusError(Problem(f"source {source.name!r}", found, expected, remedy))
    base = listing.base
    return [shard_at(source, path, base, known.get(str(path)), stamp) for path, stamp in files]


def files_of(source: Source, *, folder: Path) -> list[tuple[Path, Stamp]]:
    """Return the files that match a source's glob now, sorted by path, without opening them."""
    return _in_order(list_source(source, folder=folder))


def _in_order(listing: Listing) -> list[tuple[Path, Stamp]]:
    return sorted((parse_path(path), stamp) for path, stamp in listing.files)


def require_names_in_utf8(paths: Iterable[Path]) -> None:
    """Raise `CorpusError` if a file name is not UTF-8: no output could contain it."""
    problems = [
        Problem(name, "a name that is not UTF-8", "a UTF-8 name", "rename the file or its folder")
        for path in paths
        if (name := os.fsencode(path).decode("utf-8", "backslashreplace")) != str(path)
    ]
    CorpusError.raise_for(sorted(problems, key=str))


def shard_at(
    source: Source, path: Path, base: Path, known: Shard | None = None, stamp: Stamp | None = None
) -> Shard:
    """Return a file as a shard, named relative to `base`.

    It is hashed unless its stamp stands for its content, or `known` has the same stamp. A file that
    this user may not read is a shard as well; its scan fails.
    """
    stamp = stamp or stamp_of(path)
    if known and known.stamp == stamp and known.may_be_read:
        content = known.content
    else:
        content = stamp.content_at(path) or _content_of(path, stamp, known)
    # What decides the text of rows. Text that is ignored is counted all the same.
    settings = [source.paths, source.roles, source.layout, source.id, EVERYTHING in source.ignore]
    identity = [content, suffix_of(path), *settings]
    if compression_of(path):  # the same bytes may be unreadable with another suffix
        identity.append(compression_of(path))
    return Shard(
        source=source.name,
        name=path.relative_to(base).as_posix(),
        path=str(path),
        n_bytes=stamp.n_bytes,
        modified_ns=stamp.modified_ns,
        content=content,
        fingerprint=sha256(json.dumps(identity).encode()).hexdigest()[:32],
        tag=stamp.tag,
    )


def _content_of(path: Path, stamp: Stamp, known: Shard | None) -> str:
    """Return the hash of a file; if this user may not read it, what is known of it."""
    if isinstance(path, RemotePath):
        with naming_unreachable(path):
            return hash_file(path)
    try:
        return hash_file(path)
    except PermissionError:
        is_same = known and (known.n_bytes, known.modified_ns) == stamp[:2]
        return known.content if known and is_same else f"{_NO_PERMISSION}{path}"


FILES = "files"  # key in a manifest: the hash of each file in its folder


def hashes_below(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in files}


def changed_files(folder: Path, hashes: Mapping[str, str]) -> Iterator[Problem]:
    """Compare files below a folder with the hashes that they had when they were written."""
    for name, expected in hashes.items():
        path = folder / name
        found = "the file is missing"
        if path.is_file():
            changed = "its content changed since it was written"
            found = changed if hash_file(path) != expected else ""
        if found:
            remedy = f"delete {folder} and run `decon-assets run`"
            yield Problem(str(path), found, remedy=remedy)


def plan_packs(
    source: Source,
    shards: Sequence[Shard],
    *,
    existing: Iterable[Pack],
    packing: PackLimits,
    first_number: int = 0,
) -> tuple[list[Pack], list[Pack]]:
    """Return the packs for the current shards, and the existing packs to retire.

    A pack is kept if all its members still exist, in the same order, even under other names. The
    other shards go into new packs, numbered from `first_number` or above the existing ones. Numbers
    are never reused: Dagster would take the partitions of the new pack for those of the old pack.
    """
    kept, retired, free = _assign(source, shards, sorted(existing, key=lambda pack: pack.name))
    numbers = [int(pack.name.rpartition("-")[2]) for pack in (*kept, *retired)]
    first = max([*numbers, first_number - 1]) + 1
    new = [
        Pack(name=f"{source.name}-{number:04}", source=source, shards=tuple(group))
        for number, group in enumerate(_group(free, packing), start=first)
    ]
    return [*kept, *new], retired


def _assign(
    source: Source, shards: Sequence[Shard], packs: Sequence[Pack]
) -> tuple[list[Pack], list[Pack], list[Shard]]:
    """Return the packs to keep, with their current shards; the packs to retire; the other shards.

    Packs whose members all have their old names are assigned first, so that packs with renamed
    members take no shard away from them.
    """
    free = {(shard.name, shard.fingerprint): shard for shard in shards}
    kept: list[Pack] = []
    renamed: list[Pack] = []
    for pack in packs:
        keys = _keys(pack)
        if all(key in free for key in keys):
            shards_of_pack = tuple(free.pop(key) for key in keys)
            kept.append(replace(pack, source=source, shards=shards_of_pack))
        else:
            renamed.append(pack)
    retired: list[Pack] = []
    for number, pack in enumerate(renamed):
        reserved = {key for other in renamed[number + 1 :] for key in _keys(other)}
        members = _members_by_content(pack, free, reserved)
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
    pack: Pack, free: Mapping[tuple[str, str], Shard], reserved: Collection[tuple[str, str]]
) -> tuple[Shard, ...] | None:
    """Return a shard for each member, by name or else by content; None if one has no shard.

    Of several files with the same content the first by name is taken, preferring names that are not
    `reserved` by other packs: any would do, but the choice is deterministic.
    """
    keys_of_pack = set(_keys(pack))
    spare: defaultdict[str, list[Shard]] = defaultdict(list)
    for key, shard in sorted(free.items(), key=lambda item: (item[0] in reserved, item[0])):
        if key not in keys_of_pack:
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


def _group(shards: Iterable[Shard], packing: PackLimits) -> list[list[Shard]]:
    """Group shards in order, within the limits; a shard over a limit is a group alone."""
    groups: list[list[Shard]] = []
    n_bytes = 0
    for shard in shards:
        if not groups or packing.is_full(len(groups[-1]), n_bytes, shard.n_bytes):
            groups.append([])
            n_bytes = 0
        groups[-1].append(shard)
        n_bytes += shard.n_bytes
    return groups
