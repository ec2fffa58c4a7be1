"""Partitions: benchmarks, packs and mixtures, and two grids that combine them.

The scan is a grid of packs by benchmarks, `mixture` one of packs by mixtures. In the UI a new
benchmark is a missing column of the grid, and new shards are a missing row. Names are validated by
`decon_core.config`: Dagster accepts a name that contains "|" and silently loses the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dagster as dg

# Per run. A run that dies starts again at its first partition and writes its events once more. It
# keeps existing scan results, which takes seconds, and existing mixtures after hashing their bytes.
MOST_PARTITIONS = 2_000

BENCHMARK = "benchmark"
PACK = "pack"
MIXTURE = "mixture"

benchmarks = dg.DynamicPartitionsDefinition(name=BENCHMARK)
packs = dg.DynamicPartitionsDefinition(name=PACK)
mixtures = dg.DynamicPartitionsDefinition(name=MIXTURE)

# The keys between a first and a last key.
Ranges = dict[tuple[str, str], Sequence[str]]
_resolved: ContextVar[Ranges | None] = ContextVar("_resolved", default=None)


class Grid(dg.MultiPartitionsDefinition):
    """Partitions of two dimensions, whose ranges can be resolved once for many calls.

    Dagster resolves the range of a run for the metadata of each of its partitions, with a dozen
    queries of its history.
    """

    def get_partition_keys_in_range(  # type: ignore[override] # Dagster's own one differs as well
        self, partition_key_range: dg.PartitionKeyRange, dynamic_partitions_store: Any = None
    ) -> Sequence[str]:
        resolved = _resolved.get()
        if resolved is None:
            resolved = {}
        ends = partition_key_range.start, partition_key_range.end
        if ends not in resolved:
            resolved[ends] = super().get_partition_keys_in_range(
                partition_key_range, dynamic_partitions_store
            )
        return resolved[ends]


@contextmanager
def resolved_once(ranges: Ranges) -> Iterator[None]:
    """Resolve each range of a grid only once in the block, and store the results in `ranges`."""
    token = _resolved.set(ranges)
    try:
        yield
    finally:
        _resolved.reset(token)


scan_grid = Grid({PACK: packs, BENCHMARK: benchmarks})
shares = Grid({PACK: packs, MIXTURE: mixtures})


def all_of(asset: dg.AssetsDefinition | dg.AssetSpec) -> dg.AssetDep:
    """Depend on all partitions of an asset."""
    return dg.AssetDep(asset, partition_mapping=dg.AllPartitionMapping())


def by_dimension(asset: dg.AssetsDefinition | dg.AssetSpec, name: str) -> dg.AssetDep:
    """Depend on the partitions of an asset in one dimension, such as the packs of a grid."""
    return dg.AssetDep(asset, partition_mapping=dg.MultiToSingleDimensionPartitionMapping(name))


def sorted_keys(context: dg.AssetExecutionContext) -> list[str]:
    """Return the partition keys of a run, sorted: Dagster's set has no stable order."""
    return sorted(context.partition_keys)


def scan_key(*, pack: str, benchmark: str) -> dg.MultiPartitionKey:
    """Return the key of one partition of the scan's grid."""
    return dg.MultiPartitionKey({PACK: pack, BENCHMARK: benchmark})


def share(*, pack: str, mixture: str) -> dg.MultiPartitionKey:
    """Return the partition key of a mixture and one of its packs."""
    return dg.MultiPartitionKey({PACK: pack, MIXTURE: mixture})


def pack_and_other(grid: dg.MultiPartitionsDefinition, key: str) -> tuple[str, str]:
    """Split the key of a partition or share: the pack, and the benchmark or mixture.

    As text it is `benchmark|pack` or `mixture|pack`, sorted by dimension name.
    """
    names = {**grid.get_partition_key_from_str(str(key)).keys_by_dimension}
    pack = names.pop(PACK)
    (other,) = names.values()
    return pack, other


def under(
    key_prefix: Sequence[str], definition: dg.PartitionsDefinition[Any]
) -> dg.PartitionsDefinition[Any]:
    """Return the partitions of assets with a key prefix.

    Keys of dynamic partitions belong to a name in the whole Dagster instance, so the name has the
    prefix as well.
    """
    if isinstance(definition, dg.MultiPartitionsDefinition):
        dimensions = {of.name: of.partitions_def for of in definition.partitions_defs}
        return Grid({name: under(key_prefix, keys) for name, keys in dimensions.items()})
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        name = registered_as(key_prefix, definition.name or "")
        return dg.DynamicPartitionsDefinition(name=name)
    return definition


def registered_as(key_prefix: Sequence[str], dimension: str) -> str:
    """Return the name under which the keys of a dimension are registered."""
    return "/".join([*key_prefix, dimension])


def align(
    instance: dg.DagsterInstance, definition: dg.DynamicPartitionsDefinition, keys: Sequence[str]
) -> None:
    """Register exactly these keys: append new ones in order, delete the others."""
    name = definition.name or ""
    before = dict.fromkeys(instance.get_dynamic_partitions(name))
    after = dict.fromkeys(keys)
    instance.add_dynamic_partitions(name, [key for key in after if key not in before])
    for key in (key for key in before if key not in after):
        instance.delete_dynamic_partition(name, key)


@dataclass(frozen=True)
class Rectangle:
    """Contiguous packs by contiguous benchmarks or mixtures: the range of one run."""

    packs: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def n_partitions(self) -> int:
        return len(self.packs) * len(self.others)

    def pieces(self, most_partitions: int) -> Iterator[Rectangle]:
        """Split between packs into pieces of `most_partitions` at most; no pack is split."""
        step = max(1, most_partitions // len(self.others))
        for at in range(0, len(self.packs), step):
            yield Rectangle(self.packs[at : at + step], self.others)


def rectangles(
    missing: Mapping[str, frozenset[str]], *, pack_order: Sequence[str], other_order: Sequence[str]
) -> list[Rectangle]:
    """Cover exactly the missing benchmarks, or mixtures, of each pack with few rectangles.

    A pack is in several rectangles only where its missing keys are not contiguous.
    """
    areas: list[Rectangle] = []
    for packs_run in _runs([pack for pack in pack_order if missing.get(pack)], pack_order, missing):
        runs = contiguous_runs(tuple(missing[packs_run[0]]), other_order)
        areas += [Rectangle(packs_run, run) for run in runs]
    return areas


def contiguous_runs(keys: Sequence[str], order: Sequence[str]) -> list[tuple[str, ...]]:
    """Group keys into runs without gaps in `order`."""
    wanted = [key for key in order if key in set(keys)]
    return _runs(wanted, order, dict.fromkeys(order, True))


def _runs(
    keys: Sequence[str], order: Sequence[str], value: Mapping[str, object]
) -> list[tuple[str, ...]]:
    """Group keys that are adjacent in `order` and have equal values."""
    at = {key: number for number, key in enumerate(order)}
    runs: list[list[str]] = []
    for key in keys:
        last = runs[-1][-1] if runs else None
        if last is not None and at[key] == at[last] + 1 and value[key] == value[last]:
            runs[-1].append(key)
        else:
            runs.append([key])
    return [tuple(run) for run in runs]
