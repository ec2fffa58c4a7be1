"""The documents of a mixture, by source, from which a blend draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.errors import MissingError, Problem
from decon_core.kernels.arrays import distinct
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.choice import Sizes
from decon_core.schemas import REMOVED
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_OF_REMOVED = ("shard", "row", "n_tokens", "what")


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
            "none, or one built from other shards, benchmarks or settings",
            "a mixture built from the current inputs",
            "materialize `mixture` for this pack first, or use `decon-assets run`",
        )
        for pack in packs
        if pack.name not in current
    ]
    MissingError.raise_for(problems)
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
        removed = pl.DataFrame(read_parquet(list_of_removed, schema=REMOVED, columns=_OF_REMOVED))
        by_shard = removed.partition_by("shard", as_dict=True)
        manifest = read_json(builder.store.mixture_manifest(mixture.name, pack.name))
        for shard, account in zip(pack.shards, manifest["shards"], strict=True):
            of_shard = by_shard.get((shard.name,), removed.clear())
            columns.append(_of_shard(builder, shard, len(shards), of_shard))
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


def _of_shard(
    builder: Builder, shard: Shard, number: int, removed: pl.DataFrame
) -> tuple[Small, Integers, Integers, Integers]:
    """Return shard number, row, corpus row and tokens of the remaining documents of a shard."""
    sizes = Sizes.of(builder.reader.documents(shard))
    is_whole = pl.col("what") == "document"
    gone = distinct(removed.filter(is_whole)["row"].to_numpy())
    n_tokens = sizes.n_tokens.copy()
    cut = removed.filter(~is_whole).unique("row", keep="first")  # there is one row per reason
    n_tokens[np.searchsorted(sizes.rows, cut["row"].to_numpy())] -= cut["n_tokens"].to_numpy()
    is_left = ~np.isin(sizes.rows, gone)
    rows = sizes.rows[is_left]
    numbers = np.full(rows.size, number, np.int32)
    return numbers, rows - np.searchsorted(gone, rows), rows, n_tokens[is_left]
