"""What is wrong with clean benchmarks, sketches and neighbours, as they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from decon_core.benchmarks.records import Version, load_records
from decon_core.corpus.packs import FILES, Pack, changed_files
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, open_pack_sketch
from decon_core.errors import DamagedError, Problem
from decon_core.mixtures.clean_evals import MANIFEST, TABLES_FOLDER
from decon_core.similarity.neighbours.build import neighbour_tables
from decon_core.storage.files import read_json
from decon_core.storage.store import Store

_ITEM = ("split", "instance_index")
_BUILD_AGAIN = "delete the folder and call `decon-assets run`"
_ROUNDING = 1e-6


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
    removed = {tuple(one[name] for name in _ITEM) for one in manifest["removed"]}
    if both := left & removed:
        found = f"{len(both):,} items that leaked, the first {min(both)}"
        yield Problem(str(table), found, "none of them", _BUILD_AGAIN)
    unknown = {tuple(one[name] for name in _ITEM) for one in manifest["not_findable"]}
    if not unknown <= left or len(unknown) != manifest["n_items_not_findable"]:
        found = f"{len(unknown & left):,} of the items that cannot be found"
        expected = f"{manifest['n_items_not_findable']:,}"
        yield Problem(str(table), found, expected, _BUILD_AGAIN)
    if len(left) + len(removed) != manifest["n_items"] or len(left) != manifest["n_items_left"]:
        found = f"{len(left):,} items, and {len(removed):,} removed"
        yield Problem(str(table), found, f"{manifest['n_items']:,} together", _BUILD_AGAIN)


def faults_of_sketch(store: Store, sketch: str, packs: Sequence[Pack]) -> Iterator[Problem]:
    """Open the sketches of all packs that have one: each must cover its shards."""
    for pack in packs:
        if has_pack_sketch(store, sketch, pack):
            try:
                open_pack_sketch(store, sketch, pack)
            except DamagedError as error:
                yield from error.problems


def faults_of_neighbours(
    store: Store, key: str, versions: Sequence[Version], top: int
) -> Iterator[Problem]:
    """Check that neighbours are of items of the benchmarks, and at most `top` of each."""
    rows = neighbour_tables(store, key)["neighbours"]
    names = ("benchmark", *_ITEM)
    n_of = Counter(zip(*(rows[name].to_pylist() for name in names), strict=True))
    known = {
        (version.benchmark, *item) for version in versions for item in _items_of(store, version)
    }
    where = str(store.neighbours / key)
    for item, n in sorted(n_of.items()):
        if item not in known:
            yield Problem(where, f"neighbours of {item}", "items of the benchmarks", _BUILD_AGAIN)
        elif n > top:
            yield Problem(where, f"{n} neighbours of {item}", f"at most {top}", _BUILD_AGAIN)
    similarity = rows["similarity"].to_pylist()
    if wrong := sum(not abs(value) <= 1 + _ROUNDING for value in similarity):
        yield Problem(where, f"{wrong:,} cosines beyond 1", "from -1 to 1", _BUILD_AGAIN)


def _items_of(store: Store, version: Version) -> set[tuple[str, int]]:
    records = load_records(store, version, columns=[*_ITEM])
    return {*zip(*(records[name].to_pylist() for name in _ITEM), strict=True)}
