"""What is wrong with clean benchmarks and sketches, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from decon_core.corpus.packs import FILES, Pack, changed_files
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, open_pack_sketch
from decon_core.errors import DamagedError, Problem
from decon_core.mixtures.clean_evals import MANIFEST, TABLES_FOLDER
from decon_core.storage.files import read_json
from decon_core.storage.store import Store

_ITEM = ("split", "instance_index")
_BUILD_AGAIN = "delete the folder, and `decon-assets run` builds it again"


def faults_of_clean_benchmark(store: Store, benchmark: str) -> Iterator[Problem]:
    """Check files and items of a clean benchmark against its manifest. Nothing if there is none."""
    folder = store.clean_benchmark(benchmark)
    if not (folder / MANIFEST).is_file():
        return
    manifest = read_json(folder / MANIFEST)
    yield from changed_files(folder, manifest[FILES])
    table = folder / TABLES_FOLDER / f"{benchmark}.parquet"
    if not table.is_file():
        return
    left = {*pl.read_parquet(table, columns=[*_ITEM]).unique().rows()}
    removed = {tuple(item[name] for name in _ITEM) for item in manifest["removed"]}
    if both := left & removed:
        found = f"{len(both):,} items that leaked, the first {min(both)}"
        yield Problem(str(table), found, "none of them", _BUILD_AGAIN)
    unknown = {tuple(item[name] for name in _ITEM) for item in manifest["not_checkable"]}
    if not unknown <= left or len(unknown) != manifest["n_items_not_checkable"]:
        found = f"{len(unknown & left):,} of the items that cannot be found"
        expected = f"{manifest['n_items_not_checkable']:,}"
        yield Problem(str(table), found, expected, _BUILD_AGAIN)
    if len(left) + len(removed) != manifest["n_items"] or len(left) != manifest["n_items_left"]:
        found = f"{len(left):,} items, and {len(removed):,} removed"
        yield Problem(str(table), found, f"{manifest['n_items']:,} together", _BUILD_AGAIN)


def faults_of_sketch(store: Store, sketch: str, packs: Sequence[Pack]) -> Iterator[Problem]:
    """Open all sketches of packs: each must cover its shards."""
    for pack in packs:
        if has_pack_sketch(store, sketch, pack):
            try:
                open_pack_sketch(store, sketch, pack)
            except DamagedError as error:
                yield from error.problems
