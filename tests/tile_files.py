"""The files of tiles, and their rows: those of a shard are joined with those of other shards."""

from pathlib import Path
from typing import Any

from decon_core.scan.tiles import Tiles
from decon_core.storage.store import Store


def tile_path(store: Store, scan: str, shard: str, version: str) -> Path:
    """The file that has the matches of a shard with a benchmark version."""
    return Tiles(store, scan).folder(shard, version).tile(version)


def counts_path(store: Store, scan: str, shard: str, version: str) -> Path:
    """The file that has its counts of n-grams, or an answer of the sketch."""
    return Tiles(store, scan).folder(shard, version).counts(version)


def tile_rows(store: Store, scan: str, shard: str, version: str) -> list[dict[str, Any]]:
    """The matches of a shard with a benchmark version, in the order of the tile."""
    rows: list[dict[str, Any]] = Tiles(store, scan).matches([shard], version).to_pylist()
    return rows
