"""Planning: which partitions each asset is missing, as runs to request.

The command line executes these runs itself; the sensor puts them into Dagster's queue. What exists
is looked up in the store on every call, so after a killed run only the rest is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from dagster import AssetKey, DagsterInstance, MultiPartitionKey

from decon_assets.assets.gates import failed_checks
from decon_assets.partitions import (
    BENCHMARK,
    BLEND,
    MIXTURE,
    MOST_CELLS,
    PACK,
    STAGES,
    contiguous_runs,
    rectangles,
)
from decon_core.benchmarks.records import Version, current_version
from decon_core.blends.build import Blender
from decon_core.config.load import Config
from decon_core.corpus.packs import Pack
from decon_core.decisions.common_ngrams import has_common
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.inventory import benchmarks_of, blender_of, current_versions, stale_benchmarks
from decon_core.mixtures.build import Builder
from decon_core.mixtures.clean_evals import has_clean_benchmark
from decon_core.report.build import is_current
from decon_core.scan.tiles import gaps_of, missing_by_shard, missing_tiles, scan_fingerprint
from decon_core.storage.store import Store

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PRIORITY = "dagster/priority"

# Priority in the queue: assets that others depend on, and quick ones, first.
_PRIORITIES = {"records": 5, "idf_snapshot": 5, "index": 5, "report": 1, "report_page": 1}


@dataclass(frozen=True)
class Request:
    """A run to request: a whole asset, or the range of partitions between two corners."""

    asset: str
    corners: tuple[str, str] | None = None
    n_cells: int = 1

    @property
    def name(self) -> str:
        return " ".join([self.asset, *map(str, self.corners or ())])

    @property
    def tags(self) -> dict[str, str]:
        tags = {PRIORITY: str(_PRIORITIES.get(self.asset, 0))}
        if self.corners:
            tags |= {RANGE_START: str(self.corners[0]), RANGE_END: str(self.corners[1])}
        return tags


@dataclass(frozen=True)
class Materialized:
    """What a Dagster instance has recorded: partition keys, materializations, failed checks."""

    instance: DagsterInstance

    def order(self, dimension: str) -> Sequence[str]:
        """Return the keys of a dimension in the order of their registration."""
        return self.instance.get_dynamic_partitions(dimension)

    def materialized(self, asset: str) -> Collection[str]:
        return self.instance.get_materialized_partitions(AssetKey(asset))

    def failed(self, asset: str) -> list[str]:
        """Return the failed checks of an asset that block downstream assets."""
        return [check.name for check in failed_checks(self.instance, [asset])]


@dataclass(frozen=True)
class State:
    """A configuration with its current packs and benchmarks, its store and Dagster's records."""

    config: Config
    store: Store
    packs: tuple[Pack, ...]
    known: Materialized

    @cached_property
    def benchmarks(self) -> tuple[str, ...]:
        return tuple(benchmarks_of(self.config))

    @cached_property
    def versions(self) -> list[Version]:
        return [current_version(self.store, name) for name in self.benchmarks]

    @cached_property
    def scan(self) -> str:
        return scan_fingerprint(self.store, self.config.policy)

    @cached_property
    def blender(self) -> Blender:
        return blender_of(self.config, self.store)

    @property
    def builder(self) -> Builder:
        return self.blender.builder

    @cached_property
    def unscanned(self) -> dict[str, frozenset[str]]:
        """For each pack, the benchmarks for which any of its shards has no tile."""
        missing: dict[str, set[str]] = {}
        for pack, _, absent in missing_tiles(self.store, self.packs, self.versions, self.scan):
            missing.setdefault(pack.name, set()).update(one.benchmark for one in absent)
        return {pack: frozenset(names) for pack, names in missing.items()}


def requests(state: State, asset: str, *, most_cells: int = MOST_CELLS) -> list[Request]:
    """Return the runs that bring an asset up to date with its current upstream assets.

    Partitions that exist in the store but were never materialized on this instance are included:
    such a run keeps what exists, so it costs almost nothing, and the UI then shows them.
    """
    if asset in _UNPARTITIONED:
        return [Request(asset)] if _UNPARTITIONED[asset](state) else []
    if asset in _ONE_DIMENSION:
        dimension, missing_of = _ONE_DIMENSION[asset]
        order = state.known.order(dimension)
        missing = {*missing_of(state), *(set(order) - set(state.known.materialized(asset)))}
        runs = contiguous_runs(tuple(missing), order)
        return [Request(asset, (run[0], run[-1]), len(run)) for run in runs]
    cells = _with_unknown(state, asset, _TWO_DIMENSIONS[asset][1](state))
    return grid_requests(state, asset, cells, most_cells=most_cells)


_FOUNDATION = STAGES[:3]  # later stages wait until these are complete


def next_requests(state: State, asked: Mapping[str, str]) -> tuple[list[Request], dict[str, str]]:
    """Return the next runs to request, and the new value of `asked`.

    The runs are those of the first stage with any run that was not requested in the present
    situation. `asked` maps each run that was requested and is still needed to a digest of the
    situation at that time: what earlier stages were missing and which of their checks had failed.
    When that digest changes, for whatever reason, the run is requested again.
    """
    situation = sha256()
    still_needed: dict[str, str] = {}
    for asset in STAGES:
        digest = situation.hexdigest()[:16]
        needed = requests(state, asset)
        fresh = [request for request in needed if asked.get(request.name) != digest]
        still_needed |= {request.name: digest for request in needed}
        if fresh or (needed and asset in _FOUNDATION):
            return fresh, still_needed
        names = [request.name for request in needed]
        situation.update(repr((names, state.known.failed(asset))).encode())
    return [], still_needed


def unscanned_or_unknown(state: State) -> dict[str, set[str]]:
    """Return, for each pack, the benchmarks not scanned or not recorded as scanned by Dagster."""
    return _with_unknown(state, "scan", state.unscanned)


def grid_requests(
    state: State, asset: str, missing: Mapping[str, Collection[str]], *, most_cells: int
) -> list[Request]:
    """Return few runs that cover the missing cells of a grid, each of at most `most_cells`."""
    other = _TWO_DIMENSIONS[asset][0]
    areas = rectangles(
        {pack: frozenset(names) for pack, names in missing.items()},
        pack_order=state.known.order(PACK),
        other_order=state.known.order(other),
    )
    return [
        Request(asset, piece.corners(other), piece.n_cells)
        for area in areas
        for piece in area.pieces(most_cells)
    ]


def _with_unknown(
    state: State, asset: str, missing: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """Add to the missing cells those that were never materialized on this instance."""
    known = set(state.known.materialized(asset))
    other = _TWO_DIMENSIONS[asset][0]
    return {
        pack: {
            name
            for name in state.known.order(other)
            if name in missing.get(pack, ())
            or MultiPartitionKey({PACK: pack, other: name}) not in known
        }
        for pack in state.known.order(PACK)
    }


def _missing_shares(state: State) -> dict[str, set[str]]:
    builder = state.builder
    return {
        pack.name: {
            mixture.name for mixture in builder.mixtures if not builder.is_current(mixture, pack)
        }
        for pack in state.packs
    }


def _missing_index_parts(state: State) -> list[str]:
    index = index_fingerprint(state.store, state.config.policy)
    return [
        version.benchmark
        for version in current_versions(state.config, state.store)
        if not has_part(state.store, version, index)
    ]


def _missing_blends(state: State) -> list[str]:
    return [one.name for one in state.blender.blends if not state.blender.is_current(one)]


def _missing_clean_benchmarks(state: State) -> list[str]:
    return [
        version.benchmark
        for version in state.builder.versions
        if not has_clean_benchmark(state.builder, version)
    ]


def _needs_common_ngrams(state: State) -> bool:
    """Whether the list of common n-grams is missing and can be made.

    It cannot be made while a shard waits for its scan; shards whose scan failed are left out.
    """
    gaps = gaps_of(state.store, state.packs, state.versions, state.scan)
    if not all(gap.is_refused for gap in gaps):
        return False
    return not has_common(
        *(state.store, state.packs, state.versions, state.config.policy, state.scan),
        missing_by_shard(gaps),
    )


def _needs_report(state: State) -> bool:
    return not is_current(state.blender, state.config.showing)


def _needs_page(store: Store) -> bool:
    """Whether there is a report without its page or its other derived files."""
    return store.report.is_file() and not all(path.is_file() for path in store.report_files)


_UNPARTITIONED: Mapping[str, Callable[[State], bool]] = {
    "idf_snapshot": lambda state: not state.store.current_snapshot.is_file(),
    "common_ngrams": _needs_common_ngrams,
    "report": _needs_report,
    "report_page": lambda state: _needs_page(state.store),
}
_ONE_DIMENSION: Mapping[str, tuple[str, Callable[[State], Collection[str]]]] = {
    "records": (BENCHMARK, lambda state: stale_benchmarks(state.config, state.store)),
    "index": (BENCHMARK, _missing_index_parts),
    "blend": (BLEND, _missing_blends),
    "clean_benchmark": (BENCHMARK, _missing_clean_benchmarks),
}
_TWO_DIMENSIONS: Mapping[str, tuple[str, Callable[[State], Mapping[str, Collection[str]]]]] = {
    "scan": (BENCHMARK, lambda state: state.unscanned),
    "mixture": (MIXTURE, _missing_shares),
}
