"""The shards of a folder scan: which files they are, and by which fields each is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decon_core.config.load import Source
from decon_core.corpus.formats import known_suffixes
from decon_core.corpus.guess_fields import as_option, sample, source_for, unread_fields, with_fields
from decon_core.corpus.packs import Pack, Shard, only_shards, require_names_in_utf8, shard_at
from decon_core.errors import CorpusError, Problem
from decon_core.report.tables import ONLY_SOURCE
from decon_core.storage.files import read_json, write_json
from decon_core.storage.listing import Skipped, list_path
from decon_core.storage.paths import is_url, parse_path
from decon_core.storage.store import Store

UnreadNames = Mapping[str, Sequence[str]]  # by shard: fields that are not read


@dataclass(frozen=True)
class CorpusFiles:
    """The files at the path of a corpus."""

    base: Path  # names of shards are relative to it
    shards: list[Path]
    skipped: list[Skipped]  # paths are relative to the base


def corpus_files(path: str, out: Path) -> CorpusFiles:
    """Return the shards of a folder, glob or single file, local or remote, without those in `out`.

    Raises `CorpusError` if there is no shard.
    """
    where = parse_path(path.rstrip("/")) if is_url(path) else Path(os.path.abspath(path))  # noqa: PTH100
    # `out` is not resolved: links keep their names.
    listing = only_shards(list_path(where, without=[Path(os.path.abspath(out))]))  # noqa: PTH100
    require_names_in_utf8(listing.paths)
    if not listing.files:
        found = f"no shard{listing.instead or ': no such file or folder'}"
        expected = f"files that end in {known_suffixes()}, or compressed ones"
        raise CorpusError(Problem(path, found, expected))
    start = f"{listing.base}".rstrip("/") + "/"
    skipped = [replace(one, path=one.path.removeprefix(start)) for one in listing.skipped]
    return CorpusFiles(listing.base, listing.paths, skipped)


def some(names: Sequence[str]) -> str:
    """Return the first of these names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def pack_of(source: Source, *, out: Path, known: Mapping[str, Shard]) -> tuple[Pack, list[Skipped]]:
    """Return the shards at a source's path as a pack, and what else is there."""
    corpus = corpus_files(source.path, out)
    return _pack(0, source, corpus.shards, corpus.base, known), corpus.skipped


def packs_of(
    corpus: CorpusFiles, source: Source, store: Store, on_step: Callable[[str], None]
) -> tuple[list[Pack], UnreadNames]:
    """Return one pack per way in which files are read, and by shard the fields not read.

    If the source names no fields, each file is read by those that its first rows suggest.
    """
    is_given = bool(source.text or source.messages)
    by_source: dict[Source, list[Path]] = {}
    unread: dict[tuple[Source, tuple[str, ...], Source | None], list[Path]] = {}
    for file in corpus.shards:
        rows = sample(file).rows
        read_by = source if is_given else source_for(rows, source)
        by_source.setdefault(read_by, []).append(file)
        if names := tuple(unread_fields(read_by, rows)):
            more = with_fields(read_by, names, rows)
            unread.setdefault((read_by, names, more), []).append(file)
    for read_by, files in by_source.items():
        if not is_given and read_by.text != "text":
            where = some([file.name for file in files])
            on_step(f"fields guessed from the first rows: {as_option(read_by)} for {where}")
    for (_, names, more), files in unread.items():
        fields = f"{'field' if len(names) == 1 else 'fields'} {', '.join(map(repr, names))}"
        remedy = f"; to read all: {as_option(more)}" if more else ""
        on_step(f"not read: {fields} of {some([file.name for file in files])}{remedy}")
    before = [Pack.from_json(read_json(path)) for path in _manifests(store)]
    known = {shard.path: shard for pack in before for shard in pack.shards}
    packs = [
        _pack(number, read_by, files, corpus.base, known)
        for number, (read_by, files) in enumerate(by_source.items())
    ]
    # Saved, so that the next scan need not hash unchanged shards again.
    for path in _manifests(store)[len(packs) :]:
        path.unlink()
    for pack in packs:
        write_json(store.pack(pack.name), pack.to_json())
    by_path = {str(file): names for (_, names, _), files in unread.items() for file in files}
    shards = [shard for pack in packs for shard in pack.shards]
    return packs, {one.name: by_path[one.path] for one in shards if one.path in by_path}


def _pack(
    number: int, source: Source, files: Sequence[Path], base: Path, known: Mapping[str, Shard]
) -> Pack:
    shards = tuple(shard_at(source, file, base, known.get(str(file))) for file in files)
    return Pack(name=f"{ONLY_SOURCE}-{number:04}", source=source, shards=shards)


def _manifests(store: Store) -> list[Path]:
    return sorted(store.pack(f"{ONLY_SOURCE}-0000").parent.glob(f"{ONLY_SOURCE}-*.json"))
