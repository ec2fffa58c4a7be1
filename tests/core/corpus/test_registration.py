"""Packs as they are registered: how large the grid may be."""

import pytest

from decon_core.config.load import load_config
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.registration import changes_of_packs, grid_warning, register_packs
from decon_core.errors import CorpusError
from decon_core.storage.store import Store


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


def test_it_is_told_why_a_pack_is_removed(tmp_path):
    (tmp_path / "evals.yaml").write_text("evals: {}")
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"text": "x"}')
    source = '[[corpus.source]]\nname = "{0}"\npath = "{0}*.jsonl"\n'
    store, path = Store(tmp_path / "store"), tmp_path / "decon.toml"

    def reasons(settings):
        path.write_text(f'[evals]\nrecipes = ["evals.yaml"]\n{settings}')
        changes = changes_of_packs(load_config(path), store, ())
        register_packs(changes, store)
        return [changes.why_retired(pack) for pack in changes.retired]

    assert reasons(source.format("a") + source.format("b")) == []
    settings = source.format("a") + 'text = "text"\n'
    assert reasons(settings + source.format("b")) == ["settings of source 'a' changed"]
    assert reasons(settings) == ["source 'b' is no longer configured"]
    (tmp_path / "a.jsonl").write_text('{"text": "y"}')
    assert reasons(settings) == ["shards are gone or changed"]


def test_a_file_of_two_sources_is_refused(tmp_path):
    (tmp_path / "evals.yaml").write_text("evals: {}")
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "x"}')
    path = tmp_path / "decon.toml"
    source = '[[corpus.source]]\nname = "{0}"\npath = "{1}"\n'
    path.write_text(
        '[evals]\nrecipes = ["evals.yaml"]\n'
        + source.format("all", "*.jsonl")
        + source.format("two", "[ab].jsonl")
    )
    with pytest.raises(CorpusError) as error:
        changes_of_packs(load_config(path), Store(tmp_path / "store"), ())
    (problem,) = error.value.problems
    assert problem.where == "sources 'all' and 'two'"
    assert problem.found == f"both match {tmp_path / 'a.jsonl'} and 1 other file"
    assert "[[corpus.source]]" in problem.remedy
