"""The documents of a mixture, by source, from which a blend draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.errors import MissingError, Problem
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.choice import Sizes
from decon_core.schemas import REMOVED
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Material:
    """The documents of one source, shard after shard. Arrays have one element per document."""

    source: Source
    shards: tuple[Shard, ...]  # shards of the mixture
    names: tuple[str, ...]  # their names in the corpus
    shard: Small  # number of the shard
    row: Integers  # row in the shard of the mixture
    corpus_row: Integers  # row in the shard of the corpus
    n_tokens: Integers

    def __len__(self) -> int:
        return self.row.size

    @property
    def all_tokens(self) -> int:
        return int(self.n_tokens.sum())


def material_of(builder: Builder, mixture: Mixture) -> tuple[Material, ...]:
    """Return the documents of a mixture by source, in the order of the sources' names.

    Raises `MissingError` unless the mixture of every pack exists and is current.
    """
    packs = [pack for pack in builder.packs if mixture.has_source(pack.source.name)]
    current = builder.current_packs(mixture)
    problems = [
        Problem(
            f"mixture {mixture.name!r} of pack {pack.name!r}",
            "not built, or of other shards, benchmarks or settings",
            "one made from the current inputs",
            "materialize `mixture` for it first, or use `decon-assets run`",
        )
        for pack in packs
        if pack.name not in current
    ]
    if problems:
        raise MissingError(problems)
    names = sorted({pack.source.name for pack in packs})
    return tuple(
        _of_source(builder, mixture, [pack for pack in packs if pack.source.name == name])
        for name in names
    )


def _of_source(builder: Builder, mixture: Mixture, packs: Sequence[Pack]) -> Material:
    shards: list[Shard] = []
    names: list[str] = []
    columns: list[tuple[Small, Integers, Integers, Integers]] = []
    for pack in packs:
        folder = builder.store.mixture(mixture.name, pack.name)
        list_of_removed = builder.store.removed(mixture.name, pack.name)
        removed = _by_shard(read_parquet(list_of_removed, schema=REMOVED))
        manifest = read_json(builder.store.mixture_manifest(mixture.name, pack.name))
        for shard, account in zip(pack.shards, manifest["shards"], strict=True):
            columns.append(_of_shard(builder, shard, len(shards), removed.get(shard.name)))
            path = folder / account["file"]
            written = Shard(
                source=pack.source.name,
                name="",
                path=str(path),
                n_bytes=account["n_bytes"],
                modified_ns=path.stat().st_mtime_ns,
                content=account["output"],  # verified when it is read
                fingerprint="",
            )
            shards.append(shard_at(pack.source, path, folder, written))
            names.append(shard.name)
    joined = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Material(packs[0].source, tuple(shards), tuple(names), *joined)


def _by_shard(removed: pa.Table) -> dict[str, pa.Table]:
    """Split a pack's list of removals by shard; its rows are grouped by shard."""
    names = removed["shard"].combine_chunks().dictionary_encode()
    starts = np.flatnonzero(np.diff(names.indices.to_numpy(), prepend=-1))
    edges = [*starts.tolist(), removed.num_rows]
    return {
        removed["shard"][start].as_py(): removed.slice(start, stop - start)
        for start, stop in pairwise(edges)
    }


def _of_shard(
    builder: Builder, shard: Shard, number: int, removed: pa.Table | None
) -> tuple[Small, Integers, Integers, Integers]:
    """Return shard number, row, corpus row and tokens of the remaining documents of a shard."""
    sizes = Sizes.of(builder.store, shard, builder.reader.scan)
    if removed is None:
        numbers = np.full(sizes.rows.size, number, np.int32)
        return numbers, sizes.rows, sizes.rows, sizes.n_tokens
    is_whole = pc.equal(removed["what"], "document")
    gone = np.unique(removed.filter(is_whole)["row"].to_numpy())
    n_tokens = sizes.n_tokens.copy()
    cut = removed.filter(pc.invert(is_whole))
    rows, first = np.unique(cut["row"].to_numpy(), return_index=True)  # one row per reason
    at = np.searchsorted(sizes.rows, rows)
    n_tokens[at] -= cut["n_tokens"].to_numpy()[first]
    is_left = ~np.isin(sizes.rows, gone)
    rows = sizes.rows[is_left]
    numbers = np.full(rows.size, number, np.int32)
    return numbers, rows - np.searchsorted(gone, rows), rows, n_tokens[is_left]
