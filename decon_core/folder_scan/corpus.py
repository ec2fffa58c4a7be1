"""The shards of a folder scan: which files they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decon_core.config.sources import Source
from decon_core.corpus.formats import known_suffixes
from decon_core.corpus.packs import Pack, Shard, only_shards, require_names_in_utf8, shard_at
from decon_core.errors import CorpusError, Problem
from decon_core.report.tables import ONLY_SOURCE
from decon_core.storage.files import read_json, write_json
from decon_core.storage.listing import Skipped, list_path
from decon_core.storage.paths import is_url, parse_path
from decon_core.storage.store import Store

_NAME = f"{ONLY_SOURCE}-0000"  # of the pack


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
    where = parse_path(path.rstrip("/")) if is_url(path) else Path(os.path.abspath(path))  # noqa: PTH100 - links keep their names
    # Not resolved either.
    listing = only_shards(list_path(where, without=[Path(os.path.abspath(out))]))  # noqa: PTH100
    require_names_in_utf8(listing.paths)
    if not listing.files:
        found = f"no shard{listing.instead or ': no such file or folder'}"
        expected = f"files that end in {known_suffixes()}, or compressed ones"
        raise CorpusError(Problem(path, found, expected))
    start = f"{listing.base}".rstrip("/") + "/"
    skipped = [replace(one, path=one.path.removeprefix(start)) for one in listing.skipped]
    return CorpusFiles(listing.base, listing.paths, skipped)


def pack_of(source: Source, *, out: Path, known: Mapping[str, Shard]) -> tuple[Pack, list[Skipped]]:
    """Return the shards at a source's path as a pack, and what else is there."""
    corpus = corpus_files(source.path, out)
    return _pack(source, corpus.shards, corpus.base, known), corpus.skipped


def saved_pack(corpus: CorpusFiles, source: Source, store: Store) -> Pack:
    """Return the shards as one pack. It is saved: the next scan need not hash unchanged shards."""
    path = store.pack(_NAME)
    before = [Pack.from_json(read_json(path))] if path.is_file() else []
    known = {shard.path: shard for pack in before for shard in pack.shards}
    pack = _pack(source, corpus.shards, corpus.base, known)
    write_json(path, pack.to_json())
    return pack


def _pack(source: Source, files: Sequence[Path], base: Path, known: Mapping[str, Shard]) -> Pack:
    shards = tuple(shard_at(source, file, base, known.get(str(file))) for file in files)
    return Pack(name=_NAME, source=source, shards=shards)
