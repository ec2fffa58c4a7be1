"""Estimate the cost of a backfill without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dagster import AssetKey, DagsterInstance

from decon_assets.assets.metadata import RATE
from decon_assets.partitions import BENCHMARK, MOST_CELLS, PACK, aligned, cell, rectangles
from decon_core.benchmarks.records import Version, current_version
from decon_core.config.load import Config
from decon_core.config.open_store import open_store
from decon_core.corpus.packs import Pack, Shard
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.inventory import (
    benchmarks_of,
    plan_registration,
    require_most_there,
    stale_benchmarks,
)
from decon_core.scan.tiles import missing_tiles, scan_fingerprint
from decon_core.storage.store import Store
from decon_core.wording import counted

Choose = Callable[[str, Collection[str]], set[str]]
_Missing = Mapping[str, Sequence[tuple[str, Shard]]]  # by benchmark: packs, and shards to read
_Cells = Mapping[str, frozenset[str]]  # by pack: benchmarks

_SCAN = AssetKey("scan")


@dataclass
class Cost:
    """The cells, runs, shards and bytes of a backfill."""

    n_cells: int = 0
    n_packs: int = 0
    n_runs: int = 0
    n_shards: int = 0
    n_bytes: int = 0
    by_benchmark: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    mb_per_second: float | None = None  # of the last scan that read a shard
    notes: list[str] = field(default_factory=list)


def cost_of(
    config: Config, *, home: Path, chosen: Choose, most_cells: int, may_retire: bool = False
) -> Cost:
    """Return the cost of a backfill of the chosen cells, without changing anything.

    It includes cells without a tile and cells that Dagster does not know (docs/decisions, 0012).
    Raises the errors that the backfill would raise.
    """
    store = open_store(config)
    plan = plan_registration(config, store)
    if not may_retire:
        require_most_there(plan, store)
    history = _history(home)
    benchmarks = aligned(history.benchmarks, list(benchmarks_of(config)))
    order = aligned(history.packs, [pack.name for pack in plan.current])
    names, wanted = chosen("benchmark", benchmarks), chosen("pack", order)
    packs = [pack for pack in plan.current if pack.name in wanted]
    missing = _missing(config, store, packs, names)
    cells = _cells(packs, names, missing, history)
    cost = Cost(mb_per_second=history.mb_per_second)
    cost.n_cells = sum(map(len, cells.values()))
    cost.n_packs = sum(map(bool, cells.values()))
    areas = rectangles(cells, pack_order=order, other_order=benchmarks)
    cost.n_runs = sum(1 for area in areas for _ in area.pieces(most_cells))
    cost.n_shards, cost.n_bytes = _to_read(shard for of in missing.values() for _, shard in of)
    cost.by_benchmark = _by_benchmark(cells, missing)
    if plan.new:
        cost.notes.append(f"not registered yet: {counted(len(plan.new), 'new shard')}")
    return cost


def _cells(
    packs: Iterable[Pack], names: Collection[str], missing: _Missing, history: _History
) -> _Cells:
    unscanned = {(pack, name) for name, found in missing.items() for pack, _ in found}
    return {
        pack.name: frozenset(
            name
            for name in names
            if (pack.name, name) in unscanned
            or cell(pack=pack.name, benchmark=name) not in history.scanned
        )
        for pack in packs
    }


def _to_read(shards: Iterable[Shard]) -> tuple[int, int]:
    """Return the number of shards and their bytes, counting identical shards once."""
    sizes = {shard.fingerprint: shard.n_bytes for shard in shards}
    return len(sizes), sum(sizes.values())


def _by_benchmark(cells: _Cells, missing: _Missing) -> dict[str, tuple[int, int, float]]:
    counts = {}
    for name in sorted({name for names in cells.values() for name in names}):
        n_shards, n_bytes = _to_read(shard for _, shard in missing.get(name, ()))
        n_packs = sum(name in names for names in cells.values())
        counts[name] = (n_packs, n_shards, round(n_bytes / 1e6, 1))
    return counts


def _missing(config: Config, store: Store, packs: list[Pack], names: Collection[str]) -> _Missing:
    """Return the shards to read by benchmark: all of them if it is new or changed."""
    known = _scannable(config, store, names)
    everything = [(pack.name, shard) for pack in packs for shard in pack.shards]
    missing = dict.fromkeys(sorted(set(names) - {v.benchmark for v in known}), everything)
    if known:
        scan = scan_fingerprint(store, config.policy)
        for pack, shard, versions in missing_tiles(store, packs, known, scan):
            for version in versions:
                missing.setdefault(version.benchmark, []).append((pack.name, shard))
    return missing


def _scannable(config: Config, store: Store, names: Collection[str]) -> list[Version]:
    """Return the benchmarks whose index is current, so that existing tiles count."""
    if not store.current_snapshot.is_file():
        return []
    stale = set(stale_benchmarks(config, store))
    versions = [current_version(store, name) for name in names if name not in stale]
    index = index_fingerprint(store, config.policy)
    return [version for version in versions if has_part(store, version, index)]


@dataclass(frozen=True)
class _History:
    """Partitions and scanned cells in Dagster's history; empty if there is no history yet."""

    packs: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    scanned: frozenset[str] = frozenset()
    mb_per_second: float | None = None


def _history(home: Path) -> _History:
    if not (home / "dagster.yaml").is_file():
        return _History()
    with DagsterInstance.from_config(str(home)) as instance:
        return _History(
            instance.get_dynamic_partitions(PACK),
            instance.get_dynamic_partitions(BENCHMARK),
            frozenset(instance.get_materialized_partitions(_SCAN)),
            _last_rate(instance),
        )


def _last_rate(instance: DagsterInstance) -> float | None:
    found = instance.fetch_materializations(_SCAN, limit=MOST_CELLS)
    for record in found.records:
        event = record.asset_materialization
        value = event.metadata[RATE].value if event and RATE in event.metadata else None
        if isinstance(value, int | float) and value > 0:
            return float(value)
    return None
