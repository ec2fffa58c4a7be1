"""Packs as they are registered: how large the grid may be."""

import pytest

from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.registration import grid_warning


def pack_of(source, number, n_shards):
    shards = [
        Shard(
            source=source,
            name=f"{number}-{at}",
            path="/nowhere",
            n_bytes=1,
            modified_ns=0,
            content="",
            fingerprint="",
        )
        for at in range(n_shards)
    ]
    named = Source(name=source, path="*", text="text")
    return Pack(name=f"{source}-{number:04}", source=named, shards=tuple(shards))


@pytest.mark.parametrize(
    ("n_packs", "n_shards", "per_pack"), [(100, 1, None), (101, 1, 2), (150, 7, 11)]
)
def test_a_grid_that_is_too_large_is_told_with_the_pack_size_that_makes_it_small(
    n_packs, n_shards, per_pack
):
    packs = [pack_of("web", number, n_shards) for number in range(n_packs)]
    said = grid_warning(packs, 100)
    if per_pack is None:
        assert said is None
        return
    assert f"{n_packs} packs × 100 benchmarks = {n_packs * 100:,} partitions" in said
    assert f"Set corpus.pack_shards = {per_pack} for 10,000 partitions or fewer;" in said
    assert -(-n_packs * n_shards // per_pack) * 100 <= 10_000
    assert -(-n_packs * n_shards // (per_pack - 1)) * 100 > 10_000


def test_of_more_sources_than_packs_can_be_no_pack_size_is_proposed():
    said = grid_warning([pack_of(name, 0, 1) for name in ("a", "b", "c")], 5_000)
    assert "Fewer sources give fewer packs" in said
