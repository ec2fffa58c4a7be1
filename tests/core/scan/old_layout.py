"""A store as earlier versions left it: with files of its own for each shard and benchmark."""

from collections.abc import Sequence

import polars as pl

from decon_core.corpus.packs import Pack
from decon_core.scan.tiles import Tiles
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store
from decon_core.storage.tables import write_tile


def as_before(store: Store, scan: str, packs: Sequence[Pack], versions) -> None:
    """Write the tiles of all packs as earlier versions did, instead of the joined ones."""
    tiles = Tiles(store, scan)
    for shard in (shard.fingerprint for pack in packs for shard in pack.shards):
        for version in (version.fingerprint for version in versions):
            folder = store.tiles(scan) / shard
            write_tile(folder / f"{version}.parquet", tiles.matches([shard], version))
            counts = pl.DataFrame(tiles.gram_counts([shard], version)).cast(pl.UInt32)
            write_tile(folder / f"{version}.grams.parquet", counts.to_arrow())
    remove(store.joined(scan))
