"""Which cells were scanned: present tiles say so, absent ones say nothing.

A tile holds the matches of one shard with one benchmark version under one scan fingerprint; a
ledger holds what was read of the shard. Both are written by `scan.py`, and only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from decon_core.corpus import Pack, Shard
from decon_core.idf import current_snapshot_fingerprint
from decon_core.policy import Policy
from decon_core.records import Version
from decon_core.store import Store, read_json
from decon_core.tokens import load_tokenizer


def scan_fingerprint(store: Store, policy: Policy) -> str:
    """What today's tiles are named by."""
    return policy.scan_fingerprint(
        tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint,
        snapshot=current_snapshot_fingerprint(store),
    )


def missing_tiles(
    store: Store, packs: Iterable[Pack], versions: Sequence[Version], scan: str
) -> list[tuple[Pack, Shard, list[Version]]]:
    """Each shard that was not scanned against every version yet, with those that it misses."""
    missing = []
    for pack in packs:
        for shard in pack.shards:
            lacking = lacking_tiles(store, shard, versions, scan)
            if lacking:
                missing.append((pack, shard, lacking))
    return missing


def lacking_tiles(
    store: Store, shard: Shard, versions: Sequence[Version], scan: str
) -> list[Version]:
    """The versions that a shard was not scanned against yet.

    One look into its folder, however many versions there are: a grid has a million tiles.
    """
    present = store.tiles_there(scan, shard.fingerprint)
    if store.ledger(scan, shard.fingerprint).name not in present:
        return list(versions)  # cut off before it was all written
    return [
        version
        for version in versions
        if store.tile(scan, shard.fingerprint, version.fingerprint).name not in present
    ]


@dataclass(frozen=True)
class CellCounts:
    """What one pack and one benchmark version came to, whichever run scanned them."""

    n_documents: int
    n_unreadable: int
    n_matches: int


def count_cell(store: Store, pack: Pack, version: Version, policy: Policy) -> CellCounts:
    """Read off the ledgers and tiles of a scanned cell."""
    scan = scan_fingerprint(store, policy)
    ledgers = [read_json(store.ledger(scan, shard.fingerprint)) for shard in pack.shards]
    tiles = [store.tile(scan, shard.fingerprint, version.fingerprint) for shard in pack.shards]
    return CellCounts(
        sum(ledger["n_documents"] for ledger in ledgers),
        sum(len(ledger["unreadable"]) for ledger in ledgers),
        sum(pq.read_metadata(tile).num_rows for tile in tiles),
    )
