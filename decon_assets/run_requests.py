"""Decides which runs bring the assets of a graph up to date.

The command line executes these runs itself; the sensor puts them into Dagster's queue. What exists
is looked up in the store on every call, so after a killed run only the rest is done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from dagster import DagsterInstance, MultiPartitionKey

from decon_assets.assets.gates import failed_checks
from decon_assets.assets.stage import STAGES, Stage
from decon_assets.graph import GRAPH, Graph
from decon_assets.partitions import (
    MOST_PARTITIONS,
    PACK,
    Rectangle,
    contiguous_runs,
    rectangles,
    registered_as,
)

if TYPE_CHECKING:
    from decon_core.planner import Plan

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PRIORITY = "dagster/priority"


@dataclass(frozen=True)
class Request:
    """A run to request: a whole asset, or the range of partitions between two corners."""

    asset: str
    corners: tuple[str, str] | None = None
    n_partitions: int = 1

    @property
    def name(self) -> str:
        return " ".join([self.asset, *map(str, self.corners or ())])

    @property
    def tags(self) -> dict[str, str]:
        priority = STAGES[self.asset].priority if self.asset in STAGES else 0
        tags = {PRIORITY: str(priority)}
        if self.corners:
            tags |= {RANGE_START: str(self.corners[0]), RANGE_END: str(self.corners[1])}
        return tags


@dataclass(frozen=True)
class Materialized:
    """What a Dagster instance has recorded of a graph: partition keys, materializations, checks."""

    instance: DagsterInstance
    graph: Graph = GRAPH

    def order(self, dimension: str) -> Sequence[str]:
        """Return the keys of a dimension in the order of their registration."""
        name = registered_as(self.graph.key_prefix, dimension)
        return self.instance.get_dynamic_partitions(name)

    def materialized(self, asset: str) -> Collection[str]:
        return self.instance.get_materialized_partitions(self.graph.key(asset))

    def failed(self, asset: str) -> list[str]:
        """Return the failed checks of an asset that block downstream assets."""
        return [check.name for check in failed_checks(self.instance, self.graph.blocking[asset])]


def requests(plan: Plan, known: Materialized, asset: str) -> list[Request]:
    """Return the runs that bring an asset up to date with its current upstream assets.

    Partitions that exist in the store but were never materialized on this instance are included:
    such a run keeps what exists, so it costs almost nothing, and the UI then shows them.
    """
    stage = STAGES[asset]
    if stage.not_configured(plan.config):
        return []
    missing = stage.missing(plan)
    if isinstance(missing, bool):
        return [Request(asset)] if missing else []
    if isinstance(missing, Mapping):
        partitions = _with_unknown(known, stage, missing)
        return grid_requests(known, asset, partitions, most_partitions=MOST_PARTITIONS)
    order = known.order(stage.dimensions[0])
    unknown = {*order} - {*known.materialized(asset)}
    runs = contiguous_runs((*missing, *unknown), order)
    return [Request(asset, (run[0], run[-1]), len(run)) for run in runs]


def missing_stages(plan: Plan, graph: Graph) -> list[str]:
    """Return the assets of which anything is missing or outdated in the store, upstream first."""
    missing = {stage.name: stage.missing(plan) for stage in graph.stages}
    return [
        name
        for name, value in missing.items()
        if (any(value.values()) if isinstance(value, Mapping) else value)
    ]


def next_requests(
    plan: Plan, known: Materialized, asked: Mapping[str, str]
) -> tuple[list[Request], dict[str, str]]:
    """Return the next runs to request, and the new value of `asked`.

    The runs are those of the first stage with any run that was not requested in the present
    situation. `asked` maps each run that was requested and is still needed to a digest of the
    situation at that time: what earlier stages were missing and which of their checks had failed.
    When that digest changes, for whatever reason, the run is requested again.
    """
    situation = sha256()
    still_needed: dict[str, str] = {}
    for stage in known.graph.stages:
        digest = situation.hexdigest()[:16]
        needed = requests(plan, known, stage.name)
        fresh = [request for request in needed if asked.get(request.name) != digest]
        still_needed |= {request.name: digest for request in needed}
        if fresh or (needed and stage.is_required):
            return fresh, still_needed
        names = [request.name for request in needed]
        situation.update(repr((names, known.failed(stage.name))).encode())
    return [], still_needed


def unscanned_or_unknown(plan: Plan, known: Materialized) -> dict[str, set[str]]:
    """Return, for each pack, the benchmarks not scanned or not recorded as scanned by Dagster."""
    from decon_core.planner import unscanned_benchmarks

    return _with_unknown(known, STAGES["scan"], unscanned_benchmarks(plan))


def grid_requests(
    known: Materialized, asset: str, missing: Mapping[str, Collection[str]], *, most_partitions: int
) -> list[Request]:
    """Return few runs of at most `most_partitions` that cover the missing ones of a grid."""
    _, other = STAGES[asset].dimensions
    areas = rectangles(
        {pack: frozenset(names) for pack, names in missing.items()},
        pack_order=known.order(PACK),
        other_order=known.order(other),
    )
    return [
        Request(asset, (_key(piece, 0, other), _key(piece, -1, other)), piece.n_partitions)
        for area in areas
        for piece in area.pieces(most_partitions)
    ]


def _key(area: Rectangle, at: int, other: str) -> MultiPartitionKey:
    return MultiPartitionKey({PACK: area.packs[at], other: area.others[at]})


def _with_unknown(
    known: Materialized, stage: Stage, missing: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """Add to the missing partitions those that were never materialized on this instance."""
    materialized = set(known.materialized(stage.name))
    _, other = stage.dimensions
    names = known.order(other)
    return {
        pack: {
            name
            for name in names
            if name in missing.get(pack, ())
            or MultiPartitionKey({PACK: pack, other: name}) not in materialized
        }
        for pack in known.order(PACK)
    }
