"""How the work is cut: by benchmark, pack, mixture, blend; scan and mixtures by two of them.

A new benchmark shows in the grid as a missing column, new shards as a missing row. Names are
checked in `decon_core.config.names` before they come here; Dagster itself would take a name with
"|" in it and lose the cell without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetExecutionContext,
    DagsterInstance,
    DynamicPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
)

# The assets that a run brings up to date, in the order of the data.
STAGES = (
    "records",
    "idf_snapshot",
    "index",
    "scan",
    "common_ngrams",
    "mixture",
    "blend",
    "clean_benchmark",
    "report",
    "report_page",
)

# Of one run. One that dies is begun again from its first cell: tiles that are there are kept, which
# takes seconds, and mixtures, whose bytes are hashed; the events are written once more.
MOST_CELLS = 1_000

BENCHMARK = "benchmark"
PACK = "pack"
MIXTURE = "mixture"
BLEND = "blend"

benchmarks = DynamicPartitionsDefinition(name=BENCHMARK)
packs = DynamicPartitionsDefinition(name=PACK)
mixtures = DynamicPartitionsDefinition(name=MIXTURE)
blends = DynamicPartitionsDefinition(name=BLEND)
cells = MultiPartitionsDefinition({PACK: packs, BENCHMARK: benchmarks})
shares = MultiPartitionsDefinition({PACK: packs, MIXTURE: mixtures})


def in_order(context: AssetExecutionContext) -> list[str]:
    """The partitions of a run. Dagster keeps them in a set, in another order in each process."""
    return sorted(context.partition_keys)


def cell(*, pack: str, benchmark: str) -> MultiPartitionKey:
    """The key of one cell of the grid."""
    return MultiPartitionKey({PACK: pack, BENCHMARK: benchmark})


def halves(key: str) -> tuple[str, str]:
    """Pack and benchmark of a cell's key; written out it is `benchmark|pack`, by dimension name."""
    dimensions = cells.get_partition_key_from_str(str(key)).keys_by_dimension
    return dimensions[PACK], dimensions[BENCHMARK]


def share(*, pack: str, mixture: str) -> MultiPartitionKey:
    """The key of what a mixture has of a pack."""
    return MultiPartitionKey({PACK: pack, MIXTURE: mixture})


def halves_of_share(key: str) -> tuple[str, str]:
    """Pack and mixture of a share's key."""
    dimensions = shares.get_partition_key_from_str(str(key)).keys_by_dimension
    return dimensions[PACK], dimensions[MIXTURE]


def align(
    instance: DagsterInstance, definition: DynamicPartitionsDefinition, keys: Sequence[str]
) -> None:
    """Make these the registered keys: new ones at the end, in order; others go."""
    name = definition.name or ""
    registered = instance.get_dynamic_partitions(name)
    added = [key for key in keys if key not in set(registered)]
    gone = [key for key in registered if key not in set(keys)]
    instance.add_dynamic_partitions(name, added)
    for key in gone:
        instance.delete_dynamic_partition(name, key)


def aligned(registered: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The order that keys have once they are registered."""
    kept, before = set(keys), set(registered)
    return [
        *(key for key in registered if key in kept),
        *(key for key in keys if key not in before),
    ]


@dataclass(frozen=True)
class Rectangle:
    """Neighbouring packs by neighbouring benchmarks, or mixtures: what one run can be asked for."""

    packs: tuple[str, ...]
    others: tuple[str, ...]

    def corners(self, other: str) -> tuple[MultiPartitionKey, MultiPartitionKey]:
        """The keys of its first cell and of its last; `other` says what packs are crossed with."""
        first, last = (
            MultiPartitionKey({PACK: self.packs[at], other: self.others[at]}) for at in (0, -1)
        )
        return first, last

    @property
    def n_cells(self) -> int:
        return len(self.packs) * len(self.others)

    def pieces(self, most_cells: int) -> Iterator[Rectangle]:
        """This, cut between packs so that no piece has more cells; a pack is never cut."""
        step = max(1, most_cells // len(self.others))
        for at in range(0, len(self.packs), step):
            yield Rectangle(self.packs[at : at + step], self.others)


def rectangles(
    missing: Mapping[str, frozenset[str]],
    *,
    pack_order: Sequence[str],
    other_order: Sequence[str],
) -> list[Rectangle]:
    """Cover the missing benchmarks, or mixtures, of each pack exactly, with few rectangles.

    No pack is cut across rectangles unless those that it lacks are no neighbours.
    """
    found: list[Rectangle] = []
    for packs_run in _runs([pack for pack in pack_order if missing.get(pack)], pack_order, missing):
        lacking = missing[packs_run[0]]
        runs = neighbours(tuple(lacking), other_order)
        found += [Rectangle(packs_run, run) for run in runs]
    return found


def neighbours(keys: Sequence[str], order: Sequence[str]) -> list[tuple[str, ...]]:
    """These keys in order, cut wherever one between them is left out."""
    wanted = [key for key in order if key in set(keys)]
    return _runs(wanted, order, dict.fromkeys(order, True))


def _runs(
    keys: Sequence[str], order: Sequence[str], value: Mapping[str, object]
) -> list[tuple[str, ...]]:
    """Neighbours in `order` with equal values, together."""
    at = {key: number for number, key in enumerate(order)}
    runs: list[list[str]] = []
    for key in keys:
        last = runs[-1][-1] if runs else None
        if last is not None and at[key] == at[last] + 1 and value[key] == value[last]:
            runs[-1].append(key)
        else:
            runs.append([key])
    return [tuple(run) for run in runs]
