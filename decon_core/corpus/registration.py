"""Register the shards of a corpus as packs, and list what changed since they were registered."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from glob import glob
from hashlib import sha256
from itertools import chain
from pathlib import Path

from decon_core.config.load import Config
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, list_source, plan_packs, shards_in
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.storage.checksums import hash_file
from decon_core.storage.drafts import remove
from decon_core.storage.files import read_json, update_json, write_json
from decon_core.storage.listing import Listing, Skipped
from decon_core.storage.paths import RemotePath, parse_path
from decon_core.storage.store import Store
from decon_core.wording import counted

# Upper limit of the time for a partition's Dagster events on the machine of docs/benchmarks-grid.md
# (SQLite, or Postgres in batches; one by one, Postgres takes more than three times as long).
PARTITION_SECONDS = 0.013
MANY_PARTITIONS = 10_000  # a grid of this size takes two minutes to fill for the first time


def list_packs(store: Store) -> list[Pack]:
    """Return the registered packs, sorted by name."""
    return [Pack.from_json(read_json(path)) for path in _manifests(store.pack("any").parent)]


def _manifests(folder: Path) -> list[Path]:
    """Return the pack manifests of a folder, without other files that a system may create there."""
    paths = (path for path in folder.glob("*.json") if not path.name.startswith("."))
    return sorted(path for path in paths if path.stem.rpartition("-")[2].isdigit())


def packs_of(store: Store, names: Iterable[str]) -> list[Pack]:
    """Return registered packs by name; raise MissingError for unknown ones, as mistyped keys."""
    registered = {pack.name: pack for pack in list_packs(store)}
    names = dict.fromkeys(names)
    remedy = "create packs with `decon-assets register`; do not add partition keys by hand"
    MissingError.raise_for(
        Problem(f"pack {name!r}", "no such pack", "a registered pack", remedy)
        for name in names
        if name not in registered
    )
    return [registered[name] for name in names]


@dataclass(frozen=True)
class PackChanges:
    """The packs as they should be registered, and the differences from the present state."""

    current: list[Pack]
    retired: list[Pack]  # registered packs to be removed
    gone: list[str]  # paths of registered shards that are missing or changed
    new: list[str]  # paths of shards that are new or changed
    renamed: list[tuple[str, str]]  # old and new paths of shards with the same content
    skipped: list[Skipped]  # beside the shards: what no source reads

    def why_retired(self, pack: Pack) -> str:
        """Return why a pack is to be removed."""
        name = pack.source.name
        if name not in {kept.source.name for kept in self.current}:
            return f"source {name!r} is no longer configured"
        is_gone = any(not s.may_be_read or s.path in self.gone for s in pack.shards)
        return "shards are gone or changed" if is_gone else f"settings of source {name!r} changed"

    @property
    def by_shard(self) -> list[tuple[str, str]]:
        """The path of each shard that differs from its registration, and what changed."""
        new, gone = {*self.new}, {*self.gone}
        since = "since it was registered"
        return [
            *((path, f"{'changed' if path in new else 'removed'} {since}") for path in self.gone),
            *((path, "new or changed, not registered yet") for path in sorted(new - gone)),
            *((old, f"renamed to {new_path} {since}") for old, new_path in self.renamed),
        ]

    @cached_property
    def versions(self) -> dict[str, str]:
        """A digest of the present shards of each pack, also of those to be removed."""
        present = {(s.source, s.name): s.fingerprint for pack in self.current for s in pack.shards}
        return {
            pack.name: sha256(
                " ".join(present.get((s.source, s.name), "gone") for s in pack.shards).encode()
            ).hexdigest()[:16]
            for pack in (*self.current, *self.retired)
        }


def changes_of_packs(config: Config, store: Store, other_files: Iterable[Path]) -> PackChanges:
    """Compare the registered packs with the corpus on disk; changes nothing.

    `other_files`: those that the configuration reads beside its shards, so that they do not count
    as skipped.
    """
    before, sources = list_packs(store), config.corpus.sources
    registered = [shard for pack in before for shard in pack.shards]
    known = {shard.path: shard for shard in registered}
    numbers = _next_numbers(store, before)
    names = {source.name for source in sources}
    current: list[Pack] = []
    retired = [pack for pack in before if pack.source.name not in names]
    listings = [list_source(source, folder=config.folder) for source in sources]
    _require_one_source_each(sources, listings)
    for source, listing in zip(sources, listings, strict=True):
        kept, removed = plan_packs(
            source,
            shards_in(listing, source, known=known),
            existing=[pack for pack in before if pack.source.name == source.name],
            packing=config.corpus.packing[source.name],
            first_number=numbers.get(source.name, 0),
        )
        current += kept
        retired += removed
    renamed = _renamed(before, current)
    present = {(s.source, s.name, s.content) for pack in current for s in pack.shards}
    present |= {(old.source, old.name, old.content) for old, _ in renamed}
    gone = [
        s.path for s in registered if s.may_be_read and (s.source, s.name, s.content) not in present
    ]
    known_shards = {(s.source, s.name, s.fingerprint) for s in registered}
    known_shards |= {(new.source, new.name, new.fingerprint) for _, new in renamed}
    new = [
        shard.path
        for pack in current
        for shard in pack.shards
        if (shard.source, shard.name, shard.fingerprint) not in known_shards
    ]
    return PackChanges(
        current,
        retired,
        sorted(gone),
        sorted(new),
        sorted((old.path, new.path) for old, new in renamed),
        _skipped(listings, other_files, str(config.store), _left_out(config)),
    )


def _require_one_source_each(sources: Sequence[Source], listings: Sequence[Listing]) -> None:
    """Raise `CorpusError` if two sources have the same file: each of its rows would count twice."""
    source_of: dict[str, str] = {}
    both: dict[tuple[str, str], list[str]] = {}
    for source, listing in zip(sources, listings, strict=True):
        for path, _ in listing.files:
            if (first := source_of.setdefault(path, source.name)) != source.name:
                both.setdefault((first, source.name), []).append(path)
    remedy = "narrow `path` under [[corpus.source]], so that each file has one source"
    CorpusError.raise_for(
        Problem(f"sources {first!r} and {second!r}", f"both match {_named(paths)}", remedy=remedy)
        for (first, second), paths in both.items()
    )


def _named(paths: Sequence[str]) -> str:
    others = f" and {counted(len(paths) - 1, 'other file')}" if len(paths) > 1 else ""
    return f"{paths[0]}{others}"


def _next_numbers(store: Store, packs: Iterable[Pack]) -> dict[str, int]:
    """Return for each source the first pack number that was never used."""
    numbers: dict[str, int] = {}
    used = [pack.name for pack in packs]
    used += [path.stem for path in _manifests(store.retired_packs)]
    for name in used:
        source, _, number = name.rpartition("-")
        numbers[source] = max(numbers.get(source, 0), int(number) + 1)
    return numbers


def _renamed(before: Iterable[Pack], current: Iterable[Pack]) -> list[tuple[Shard, Shard]]:
    """Return the renamed shards of packs that are kept: the old and the new shard."""
    known = {pack.name: pack for pack in before}
    return [
        (old, new)
        for pack in current
        if pack.name in known
        for old, new in zip(known[pack.name].shards, pack.shards, strict=True)
        if old.name != new.name
    ]


def _left_out(config: Config) -> list[Skipped]:
    """Return the files that `init` could not read and that are still in the list."""
    why = "listed under left_out in decon.toml"
    paths = (
        path
        for pattern in config.corpus.left_out
        for path in glob(str(config.folder / pattern), include_hidden=True)  # noqa: PTH207 - may be absolute
    )
    return [Skipped(path, why, is_on_purpose=False) for path in sorted({*paths})]


def _skipped(
    listings: Sequence[Listing],
    other_files: Iterable[Path],
    store: str,
    left_out: Sequence[Skipped] = (),
) -> list[Skipped]:
    """Return what lies beside the shards, and is neither read nor listed by another source."""
    read = {path for listing in listings for path, _ in listing.files}
    read |= {str(path) for path in other_files}
    entered = {os.path.dirname(path) for path in read}  # noqa: PTH120 - 100,000 paths as strings
    entered |= {str(folder) for path in map(Path, entered) for folder in path.parents}
    by_path: dict[str, Skipped] = {}
    for skipped in chain(left_out, *(listing.skipped for listing in listings)):
        path = skipped.path.rstrip("/")
        if path in read or path in entered or path == store:
            continue
        if path not in by_path or by_path[path].is_on_purpose > skipped.is_on_purpose:
            by_path[path] = skipped
    return sorted(by_path.values())


def all_skipped_in(store: Store) -> list[Skipped]:
    """Return what was skipped at the last registration, with absolute paths."""
    listed = read_json(store.skipped)["skipped"] if store.skipped.is_file() else []
    return [Skipped(**file) for file in listed]


def skipped_in(store: Store, folder: Path) -> tuple[Skipped, ...]:
    """Return the files that were skipped at the last registration, but not on purpose.

    Their paths are relative to the folder, or are only names: reports may be published.
    """
    files = [file for file in all_skipped_in(store) if not file.is_on_purpose]
    start = f"{folder.absolute()}{os.sep}"
    return tuple(
        replace(
            file,
            path=file.path.removeprefix(start)
            if file.path.startswith(start)
            else file.path.rstrip("/").rpartition("/")[2],
        )
        for file in files
    )


def register_packs(changes: PackChanges, store: Store, *, may_retire: bool = False) -> list[Path]:
    """Update the registered packs to match the corpus; return the other mixtures that were removed.

    The mixtures of retired and of unknown packs are removed, or their documents would remain in the
    clean corpus.
    Raises CorpusError if most of the corpus is gone and not `may_retire`: more likely a mount is
    missing.
    """
    if not may_retire:
        require_most_there(changes, store)
    update_json(store.skipped, {"skipped": [asdict(skipped) for skipped in changes.skipped]})
    for pack in changes.current:
        for path in (store.pack_copy(pack.name), store.pack(pack.name)):
            update_json(path, pack.to_json())
    for pack in changes.retired:
        write_json(store.retired_packs / f"{pack.name}.json", pack.to_json())
        for folder in store.mixtures_of(pack.name):
            remove(folder)
        for path in (store.pack(pack.name), store.pack_copy(pack.name)):
            remove(path)
    # Their documents are those of other packs, too, and no later benchmark would clean them.
    without_pack = store.without_pack(store.pack_names)
    for folder in without_pack:
        remove(folder)
    return without_pack


def require_most_there(changes: PackChanges, store: Store) -> None:
    """Raise CorpusError if more than half of the registered shards are gone or changed."""
    n_registered = sum(len(pack.shards) for pack in list_packs(store))
    if len(changes.gone) > max(1, n_registered // 2):
        failure = (
            f"{len(changes.gone)} of {n_registered} registered shards are gone or changed, for "
            f"example {changes.gone[0]}"
        )
        remedy = (
            "check that the corpus is mounted; to remove the packs and mixtures of these shards, "
            "use --retire"
        )
        raise CorpusError(Problem("", failure, remedy=remedy))


def changed_shards(packs: Iterable[Pack]) -> Iterator[Problem | None]:
    """Read all local shards; yield for each a problem, or None if it is as it was registered."""
    for shard in chain.from_iterable(pack.shards for pack in packs):
        path = parse_path(shard.path)
        if isinstance(path, RemotePath) or not os.access(path, os.R_OK):
            continue  # registering compares its tag, or tells that it is gone; scanning, the rest
        is_same = hash_file(path) == shard.content
        found = "its content changed since it was registered"
        remedy = "`decon-assets run` scans it again"
        yield None if is_same else Problem(shard.path, found, remedy=remedy)


def forget_stamps(store: Store, paths: Collection[str]) -> None:
    """Let the next registration hash these shards, whatever their size and date."""
    for pack in list_packs(store):
        if any(shard.path in paths for shard in pack.shards):
            shards = (
                replace(shard, tag="") if shard.path in paths else shard for shard in pack.shards
            )
            write_json(store.pack(pack.name), replace(pack, shards=tuple(shards)).to_json())


def grid_warning(packs: Sequence[Pack], n_benchmarks: int) -> str | None:
    """Return a warning if the grid is so large that Dagster's events take minutes, else None."""
    n_partitions = len(packs) * n_benchmarks
    if n_partitions <= MANY_PARTITIONS:
        return None
    minutes = round(n_partitions * PARTITION_SECONDS / 60)
    per_pack = _shards_per_pack(packs, most_packs=MANY_PARTITIONS // n_benchmarks)
    remedy = (
        f"Set corpus.pack_shards = {per_pack} for {MANY_PARTITIONS:,} partitions or fewer"
        if per_pack
        else "Fewer sources give fewer packs"
    )
    return (
        f"{counted(len(packs), 'pack')} × {counted(n_benchmarks, 'benchmark')} = "
        f"{counted(n_partitions, 'partition')}: Dagster needs about {minutes} minutes to write the "
        f"events of a first run to SQLite. {remedy}; existing packs do not change, so this takes "
        "effect only in a new store or for a source with a new name"
    )


def _shards_per_pack(packs: Iterable[Pack], *, most_packs: int) -> int | None:
    """Return the smallest pack size that needs at most `most_packs` packs; None if impossible."""
    n_shards = Counter[str]()
    for pack in packs:
        n_shards[pack.source.name] += len(pack.shards)
    sizes = range(1, max(n_shards.values()) + 1)
    few = (size for size in sizes if sum(-(-n // size) for n in n_shards.values()) <= most_packs)
    return next(few, None)
