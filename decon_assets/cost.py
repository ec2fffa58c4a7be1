"""What a backfill would take, before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dagster import AssetKey, DagsterInstance

from decon_assets.partitions import MOST_CELLS
from decon_assets.provenance import RATE
from decon_core.config import Config
from decon_core.corpus import Pack, Shard
from decon_core.index import has_part, index_fingerprint
from decon_core.mirror import at_hand
from decon_core.records import Version, current_version
from decon_core.registry import benchmarks_of, plan, stale_benchmarks
from decon_core.store import Store
from decon_core.tiles import missing_tiles, scan_fingerprint

Choose = Callable[[str, Collection[str]], set[str]]


@dataclass
class Cost:
    """What there is to read, and to tell Dagster."""

    n_cells: int = 0
    n_packs: int = 0
    n_shards: int = 0
    n_bytes: int = 0
    by_benchmark: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    mb_per_second: float | None = None  # of the last scan that read anything
    notes: list[str] = field(default_factory=list)


def cost_of(config: Config, *, home: Path, chosen: Choose) -> Cost:
    """Of the cells that lack a tile among those that are chosen. Changes nothing."""
    store = at_hand(config)
    today = plan(config, store)
    names = chosen("benchmark", list(benchmarks_of(config)))
    packs = chosen("pack", [pack.name for pack in today.current])
    lacking = _lacking(config, store, [one for one in today.current if one.name in packs], names)
    cost = Cost(mb_per_second=_last_rate(home))
    cost.n_packs = len({pack for shards in lacking.values() for pack, _ in shards})
    shards = {shard.path: shard for found in lacking.values() for _, shard in found}
    cost.n_shards, cost.n_bytes = len(shards), sum(one.n_bytes for one in shards.values())
    for name, found in lacking.items():
        n_packs = len({pack for pack, _ in found})
        cost.n_cells += n_packs
        n_bytes = sum(shard.n_bytes for _, shard in found)
        cost.by_benchmark[name] = (n_packs, len(found), round(n_bytes / 1e6, 1))
    if today.new:
        cost.notes.append(f"{len(today.new)} shards are new, and not registered yet")
    return cost


def _lacking(
    config: Config, store: Store, packs: list[Pack], names: Collection[str]
) -> Mapping[str, list[tuple[str, Shard]]]:
    """Of each benchmark the shards to read. One that is new or changed needs all of them."""
    known = _scannable(config, store, names)
    everything = [(pack.name, shard) for pack in packs for shard in pack.shards]
    lacking = dict.fromkeys(sorted(set(names) - {v.benchmark for v in known}), everything)
    if known:
        scan = scan_fingerprint(store, config.policy)
        for pack, shard, versions in missing_tiles(store, packs, known, scan):
            for version in versions:
                lacking.setdefault(version.benchmark, []).append((pack.name, shard))
    return lacking


def _scannable(config: Config, store: Store, names: Collection[str]) -> list[Version]:
    """Benchmarks whose tiles, as far as there are any, are today's."""
    if not store.current_snapshot.is_file():
        return []
    stale = set(stale_benchmarks(config, store))
    versions = [current_version(store, name) for name in names if name not in stale]
    index = index_fingerprint(store, config.policy)
    return [version for version in versions if has_part(store, version, index)]


def _last_rate(home: Path) -> float | None:
    if not (home / "dagster.yaml").is_file():
        return None
    with DagsterInstance.from_config(str(home)) as instance:
        found = instance.fetch_materializations(AssetKey("scan"), limit=MOST_CELLS)
    for record in found.records:
        event = record.asset_materialization
        value = event.metadata[RATE].value if event and RATE in event.metadata else None
        if isinstance(value, int | float) and value > 0:
            return float(value)
    return None
