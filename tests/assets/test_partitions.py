"""Covering what is missing with few rectangles."""

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_assets.partitions import (
    BENCHMARK,
    PACK,
    align,
    benchmarks,
    packs,
    rectangles,
    resolved_once,
    scan_grid,
    scan_key,
)

PACKS = ["p0", "p1", "p2", "p3"]
BENCHMARKS = ["a", "b", "c"]


def cover(missing):
    found = rectangles(
        {pack: frozenset(names) for pack, names in missing.items()},
        pack_order=PACKS,
        other_order=BENCHMARKS,
    )
    return [(area.packs, area.others) for area in found]


def test_a_new_benchmark_is_one_column():
    assert cover({pack: {"c"} for pack in PACKS}) == [(("p0", "p1", "p2", "p3"), ("c",))]


def test_a_new_pack_is_one_row():
    assert cover({"p3": {"a", "b", "c"}}) == [(("p3",), ("a", "b", "c"))]


def test_a_new_pack_and_a_new_benchmark_are_two_areas_that_share_no_pack():
    missing = {"p0": {"c"}, "p1": {"c"}, "p2": {"c"}, "p3": {"a", "b", "c"}}
    assert cover(missing) == [(("p0", "p1", "p2"), ("c",)), (("p3",), ("a", "b", "c"))]


def test_nothing_missing_is_nothing_to_do():
    assert cover({}) == []


@given(st.dictionaries(st.sampled_from(PACKS), st.sets(st.sampled_from(BENCHMARKS), min_size=1)))
def test_prop_exactly_the_missing_partitions_are_covered_each_once(missing):
    covered = [
        (pack, benchmark)
        for packs, names in cover(missing)
        for pack in packs
        for benchmark in names
    ]
    assert sorted(covered) == sorted((p, b) for p, names in missing.items() for b in names)
    for some, names in cover(missing):
        assert is_a_stretch_of(PACKS, some)
        assert is_a_stretch_of(BENCHMARKS, names)


def is_a_stretch_of(order, keys):
    first = order.index(keys[0])
    return tuple(order[first : first + len(keys)]) == keys


def test_new_keys_go_to_the_end_and_absent_ones_go(instance):
    align(instance, benchmarks, ["b", "a"])
    align(instance, benchmarks, ["c", "a"])
    assert list(instance.get_dynamic_partitions("benchmark")) == ["a", "c"]


def test_a_range_is_resolved_once_within_a_block_and_anew_after_it():
    with dg.DagsterInstance.ephemeral() as instance:
        align(instance, packs, PACKS)
        align(instance, benchmarks, BENCHMARKS)
        ends = dg.PartitionKeyRange(
            scan_key(pack="p0", benchmark="a"), scan_key(pack="p1", benchmark="b")
        )
        plain = dg.MultiPartitionsDefinition({PACK: packs, BENCHMARK: benchmarks})

        def resolve(grid):
            return grid.get_partition_keys_in_range(ends, dynamic_partitions_store=instance)

        expected = resolve(plain)
        assert len(expected) == 4
        with resolved_once({}):
            assert resolve(scan_grid) == expected
            instance.delete_dynamic_partition(BENCHMARK, "a")
            assert resolve(scan_grid) == expected
        with pytest.raises(dg.DagsterInvalidInvocationError):
            resolve(scan_grid)
