"""Which cells were scanned: present tiles say so, absent ones say nothing.

A tile holds the matches of one shard with one benchmark version under one scan fingerprint; a
ledger holds what was read of the shard. Both are written by `scan.py`, and only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.errors import DeconError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.schemas import MATCHES
from decon_core.storage.store import Store, count_rows, read_json, write_json
from decon_core.text.tokenizers import load_tokenizer


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
            lacking = missing_of_shard(store, shard, versions, scan)
            if lacking:
                missing.append((pack, shard, lacking))
    return missing


def missing_of_shard(
    store: Store, shard: Shard, versions: Sequence[Version], scan: str
) -> list[Version]:
    """The versions that a shard was not scanned against yet.

    One look into its folder, however many versions there are: a grid has a million tiles.
    """
    present = store.tile_names(scan, shard.fingerprint)
    if store.ledger(scan, shard.fingerprint).name not in present:
        return list(versions)  # cut off before it was all written
    if store.documents(scan, shard.fingerprint).name not in present:
        return list(versions)  # removed since, as files are that are damaged
    return [
        version
        for version in versions
        if not {
            store.tile(scan, shard.fingerprint, version.fingerprint).name,
            store.gram_counts(scan, shard.fingerprint, version.fingerprint).name,
        }.issubset(present)
    ]


# Shards without tiles -----------------------------------------------------------------------------

_NOT_TRIED = Problem("", "not scanned yet", "a tile for every benchmark", "`decon-assets run`")


@dataclass(frozen=True)
class Gap:
    """A shard that was not scanned against some benchmark versions, and the cause."""

    pack: Pack
    shard: Shard
    lacking: tuple[str, ...]  # names of benchmarks
    is_read: bool  # it was scanned against other benchmarks
    cause: Problem

    @property
    def is_refused(self) -> bool:
        """Whether a scan of the shard failed; else none was tried."""
        return self.cause != _NOT_TRIED

    @property
    def reason(self) -> str:
        """What the reader found, without the path of the shard."""
        place = self.cause.where.removeprefix(self.shard.path).lstrip(": ")
        return f"{place}: {self.cause.found}" if place else self.cause.found


def gaps_of(
    store: Store, packs: Iterable[Pack], versions: Sequence[Version], scan: str
) -> list[Gap]:
    """Each shard that was not scanned against every version, with the reason where it is known."""
    found = []
    for pack in packs:
        for shard in pack.shards:
            lacking = missing_of_shard(store, shard, versions, scan)
            has_ledger = bool(versions) or store.ledger(scan, shard.fingerprint).is_file()
            if lacking or not has_ledger:
                names = tuple(version.benchmark for version in lacking)
                is_read = len(lacking) < len(versions)
                found.append(Gap(pack, shard, names, is_read, read_refusal(store, shard)))
    return found


def missing_by_shard(gaps: Iterable[Gap]) -> dict[str, frozenset[str]]:
    """The benchmarks that shards lack, by the fingerprint of the shard."""
    return {gap.shard.fingerprint: frozenset(gap.lacking) for gap in gaps}


def write_refusal(store: Store, shard: Shard, error: DeconError) -> None:
    """Record why a shard could not be scanned. A later scan that succeeds removes the record."""
    first = error.problems[0]
    told = {"where": first.where, "found": first.found, "expected": first.expected}
    write_json(store.refusal(shard.fingerprint), {**told, "remedy": first.remedy})


def read_refusal(store: Store, shard: Shard) -> Problem:
    """Why a shard has no tiles: what the last scan of it reported, or that none was tried."""
    path = store.refusal(shard.fingerprint)
    return Problem(**read_json(path)) if path.is_file() else _NOT_TRIED


def refused(store: Store, packs: Iterable[Pack]) -> Iterator[tuple[Shard, Problem]]:
    """The shards whose last scan failed."""
    for pack in packs:
        for shard in pack.shards:
            if store.refusal(shard.fingerprint).is_file():
                yield shard, read_refusal(store, shard)


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
        sum(count_rows(tile, MATCHES) for tile in tiles),
    )
