"""What is left to do: of every asset the partitions that it lacks today, as runs to ask for.

The command line executes these runs itself, the sensor hands them to Dagster's queue. Both only say
what is missing: what is there is looked up in the store, so a run that was killed costs nothing
twice.
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
    neighbours,
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

# Of what waits in the queue: what others wait for, and what is soon done, first.
_PRIORITIES = {"records": 5, "idf_snapshot": 5, "index": 5, "report": 1, "report_page": 1}


@dataclass(frozen=True)
class Request:
    """A run to ask for: of an asset everything, or its partitions from one corner to another."""

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
    """What Dagster knows: the keys of each dimension in their order, and what was materialized."""

    instance: DagsterInstance

    def order(self, dimension: str) -> Sequence[str]:
        return self.instance.get_dynamic_partitions(dimension)

    def materialized(self, asset: str) -> Collection[str]:
        return self.instance.get_materialized_partitions(AssetKey(asset))

    def failed(self, asset: str) -> list[str]:
        """Checks that hold back what comes after it."""
        return [check.name for check in failed_checks(self.instance, [asset])]


@dataclass(frozen=True)
class State:
    """A configuration, what it names today, and what the store and Dagster have of it."""

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
        """Of every pack the benchmarks that any of its shards lacks a tile for."""
        lacking: dict[str, set[str]] = {}
        for pack, _, absent in missing_tiles(self.store, self.packs, self.versions, self.scan):
            lacking.setdefault(pack.name, set()).update(one.benchmark for one in absent)
        return {pack: frozenset(names) for pack, names in lacking.items()}


def requests(today: State, asset: str, *, most_cells: int = MOST_CELLS) -> list[Request]:
    """The runs that would bring an asset up to date, with all that is before it as it is.

    Whatever lies in the store but is not known to Dagster is asked for, too: that costs next to
    nothing, and then the UI shows what is there.
    """
    if asset in _WHOLES:
        return [Request(asset)] if _WHOLES[asset](today) else []
    if asset in _LINES:
        dimension, lacking_of = _LINES[asset]
        order = today.known.order(dimension)
        lacking = {*lacking_of(today), *(set(order) - set(today.known.materialized(asset)))}
        runs = neighbours(tuple(lacking), order)
        return [Request(asset, (run[0], run[-1]), len(run)) for run in runs]
    cells = _with_unknown(today, asset, _GRIDS[asset][1](today))
    return grid_requests(today, asset, cells, most_cells=most_cells)


_FIRST = STAGES[:3]  # nothing goes on without all of these


def next_requests(today: State, asked: Mapping[str, str]) -> tuple[list[Request], dict[str, str]]:
    """The runs of the first stage that lacks anything that was not asked for as things are.

    With them, for the next time: of each run that was asked for and is still to be made, what
    stages before it lacked then, and which checks had failed. When that is another, by whomever,
    the run is asked for again.
    """
    lacking = sha256()
    still: dict[str, str] = {}
    for asset in STAGES:
        state = lacking.hexdigest()[:16]
        todo = requests(today, asset)
        fresh = [request for request in todo if asked.get(request.name) != state]
        still |= {request.name: state for request in todo}
        if fresh or (todo and asset in _FIRST):
            return fresh, still
        names = [request.name for request in todo]
        lacking.update(repr((names, today.known.failed(asset))).encode())
    return [], still


def unscanned_or_unknown(today: State) -> dict[str, set[str]]:
    """Of every pack the benchmarks to ask for: not scanned, or not known to Dagster as scanned."""
    return _with_unknown(today, "scan", today.unscanned)


def grid_requests(
    today: State, asset: str, lacking: Mapping[str, Collection[str]], *, most_cells: int
) -> list[Request]:
    """The runs for these cells of an asset by packs and something else: few, and none too large."""
    other = _GRIDS[asset][0]
    areas = rectangles(
        {pack: frozenset(names) for pack, names in lacking.items()},
        pack_order=today.known.order(PACK),
        other_order=today.known.order(other),
    )
    return [
        Request(asset, piece.corners(other), piece.n_cells)
        for area in areas
        for piece in area.pieces(most_cells)
    ]


def _with_unknown(
    today: State, asset: str, lacking: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """Cells that lack something, and those that were never materialized on this instance."""
    known = set(today.known.materialized(asset))
    other = _GRIDS[asset][0]
    return {
        pack: {
            name
            for name in today.known.order(other)
            if name in lacking.get(pack, ())
            or MultiPartitionKey({PACK: pack, other: name}) not in known
        }
        for pack in today.known.order(PACK)
    }


def _unmixed(today: State) -> dict[str, set[str]]:
    builder = today.builder
    return {
        pack.name: {
            mixture.name for mixture in builder.mixtures if not builder.is_current(mixture, pack)
        }
        for pack in today.packs
    }


def _unindexed(today: State) -> list[str]:
    index = index_fingerprint(today.store, today.config.policy)
    return [
        version.benchmark
        for version in current_versions(today.config, today.store)
        if not has_part(today.store, version, index)
    ]


def _unblended(today: State) -> list[str]:
    return [one.name for one in today.blender.blends if not today.blender.is_current(one)]


def _uncleaned(today: State) -> list[str]:
    return [
        version.benchmark
        for version in today.builder.versions
        if not has_clean_benchmark(today.builder, version)
    ]


def _is_uncounted(today: State) -> bool:
    """Whether common n-grams have to be frozen, and can be."""
    gaps = gaps_of(today.store, today.packs, today.versions, today.scan)
    if not all(gap.is_refused for gap in gaps):
        return False
    return not has_common(
        *(today.store, today.packs, today.versions, today.config.policy, today.scan),
        missing_by_shard(gaps),
    )


def _is_unreported(today: State) -> bool:
    return not is_current(today.blender, today.config.showing)


def _is_unpaged(store: Store) -> bool:
    """Whether there is a report that has no page, or not all that is made of it."""
    return store.report.is_file() and not all(path.is_file() for path in store.report_files)


_WHOLES: Mapping[str, Callable[[State], bool]] = {
    "idf_snapshot": lambda today: not today.store.current_snapshot.is_file(),
    "common_ngrams": _is_uncounted,
    "report": _is_unreported,
    "report_page": lambda today: _is_unpaged(today.store),
}
_LINES: Mapping[str, tuple[str, Callable[[State], Collection[str]]]] = {
    "records": (BENCHMARK, lambda today: stale_benchmarks(today.config, today.store)),
    "index": (BENCHMARK, _unindexed),
    "blend": (BLEND, _unblended),
    "clean_benchmark": (BENCHMARK, _uncleaned),
}
_GRIDS: Mapping[str, tuple[str, Callable[[State], Mapping[str, Collection[str]]]]] = {
    "scan": (BENCHMARK, lambda today: today.unscanned),
    "mixture": (MIXTURE, _unmixed),
}
