"""The shards of a folder scan: which files they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decon_core.config.load import Source
from decon_core.corpus.formats import is_shard, known_suffixes
from decon_core.corpus.packs import Pack, Shard, require_names_in_utf8, shard_at
from decon_core.errors import CorpusError, Problem
from decon_core.report.tables import ONLY_SOURCE
from decon_core.storage.files import read_json, write_json
from decon_core.storage.paths import files_at, is_hidden, is_url, parse_path, stamp_of
from decon_core.storage.store import Store

_NAME = f"{ONLY_SOURCE}-0000"  # of the pack


@dataclass(frozen=True)
class CorpusFiles:
    """The files at the path of a corpus."""

    base: Path  # names of shards are relative to it
    shards: list[Path]
    others: list[str]  # files that are not shards
    n_bytes_of_others: int
    n_set_aside: int  # files that end like shards, but whose names begin with `_` or `.`


def corpus_files(path: str, out: Path) -> CorpusFiles:
    """Return the shards of a folder, glob or single file, local or remote, without those in `out`.

    Below a folder and for wildcards, files and folders whose names begin with `_` or `.` are left
    out. A file given by its full name is always a shard.
    """
    where = parse_path(path.rstrip("/")) if is_url(path) else Path(os.path.abspath(path))  # noqa: PTH100
    base, found, named = files_at(where)
    out = Path(os.path.abspath(out))  # noqa: PTH100 - not resolved: links keep their names
    found = [file for file in found if not file.is_relative_to(out)]
    set_aside = {file for file in found if is_hidden(file.relative_to(base).parts, named)}
    found = [file for file in found if file not in set_aside]
    require_names_in_utf8(found)
    shards = [file for file in found if is_shard(file)]
    others = [file for file in found if not is_shard(file)]
    if not shards or (others and named):
        names = [file.relative_to(base).as_posix() for file in others]
        what = f"no shard, but {some(names)}" if names else "no such file or folder"
        if set_aside and not names:
            what = f"only names that begin with _ or .: {some(sorted(map(str, set_aside)))}"
        expected = f"files that end in {known_suffixes()}, or compressed ones"
        raise CorpusError(Problem(path, what, expected))
    return CorpusFiles(
        base,
        shards,
        [file.relative_to(base).as_posix() for file in others],
        sum(stamp_of(file).n_bytes for file in others),
        sum(is_shard(file) for file in set_aside),
    )


def some(names: Sequence[str]) -> str:
    """Return the first of these names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def pack_of(source: Source, *, out: Path, known: Mapping[str, Shard]) -> tuple[Pack, list[str]]:
    """Return the shards at a source's path as a pack, and the names of the other files there."""
    corpus = corpus_files(source.path, out)
    return _pack(source, corpus.shards, corpus.base, known), corpus.others


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
