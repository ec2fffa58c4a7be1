"""Converts tiles of earlier versions, which had files of their own for each shard.

    tiles/<scan>/<shard>/<version>.parquet, <version>.grams.parquet or <version>.sketch.json

The next scan of a shard takes them over, instead of reading the shard again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from decon_core.errors import DamagedError
from decon_core.scan.join import Tile, write_unjoined
from decon_core.schemas import MATCHES
from decon_core.storage.files import names_in, read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet

_TILE = re.compile(r"([0-9a-f]{16})\.parquet")
_FILES = ("parquet", "grams.parquet", "sketch.json")
_COUNTS = pa.schema([("place", pa.uint32()), ("n_documents", pa.uint32())])


def has_old_tiles(store: Store, scan: str, shards: Iterable[str]) -> bool:
    """Return whether any of these shards has tiles that the next scan will convert."""
    return any(_old_versions(store.tiles(scan) / shard) for shard in shards)


def convert_old_tiles(store: Store, scan: str, shards: Iterable[str]) -> int:
    """Convert the old tiles of shards, and return their number. They are joined by the scan."""
    n = 0
    for shard in dict.fromkeys(shards):
        folder = store.tiles(scan) / shard
        if not (versions := _old_versions(folder)):
            continue
        with store.locked_shard(scan, shard):
            counted: dict[str, Tile] = {}
            for version, tile, answer in _old_tiles(folder, versions):
                if answer is None:
                    counted[version] = tile
                else:
                    write_unjoined(store, scan, shard, {version: tile}, answer=answer)
            write_unjoined(store, scan, shard, counted)
            n += len(versions)
            for version in versions:
                for ending in _FILES:
                    (folder / f"{version}.{ending}").unlink(missing_ok=True)
    return n


def _old_versions(folder: Path) -> list[str]:
    return sorted(found[1] for name in names_in(folder) if (found := _TILE.fullmatch(name)))


def _old_tiles(
    folder: Path, versions: Iterable[str]
) -> Iterator[tuple[str, Tile, dict[str, object] | None]]:
    """Yield versions with their tiles and answers of the sketch; not those that are damaged."""
    for version in versions:
        tile, grams, sketch = (folder / f"{version}.{ending}" for ending in _FILES)
        try:
            matches = read_parquet(tile, schema=MATCHES)
            if grams.is_file():
                yield version, (matches, read_parquet(grams, schema=_COUNTS)), None
            elif sketch.is_file():
                yield version, (matches, None), read_json(sketch)
        except (DamagedError, FileNotFoundError):
            continue  # scanned again
