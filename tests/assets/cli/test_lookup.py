"""`decon-assets lookup`: new texts and items, found by the sketch."""

import json
from pathlib import Path

import pytest

from decon_assets.cli.main import main
from decon_core.config.load import load_config
from decon_core.corpus.registration import list_packs
from decon_core.corpus.sketch.pack_sketch import pack_key
from decon_core.planner import Plan

TABLE = "[sketch]\n"


@pytest.fixture
def sketched(at_home):
    """A world with [sketch] and with documents that contain items of no configured benchmark."""
    at_home.mixtures = TABLE
    items = at_home.add_benchmark("orchard")
    del at_home.benchmarks["orchard"]
    at_home.write_benchmarks()
    at_home.add_shard("s9", leaks=items[1:3])
    at_home.start(until="scan")
    return at_home, items


@pytest.fixture
def items_file(sketched, tmp_path):
    _, items = sketched
    rows = [
        {"eval_key": "orchard", "split": "test", "instance_index": number, **texts(item)}
        for number, item in enumerate(items)
    ]
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts(item):
    return {"question": item["question"], "answer": item["answer"]}


def found_in(capsys):
    return json.loads(capsys.readouterr().out)


def test_items_are_found_where_they_are_and_only_possible_blocks_are_read(
    sketched, items_file, capsys
):
    world, _ = sketched
    before = world.scan_results()
    capsys.readouterr()
    assert main(["lookup", "--items", str(items_file), "--json"]) == 0
    found = found_in(capsys)
    matches = [(one["shard"], one["instance_index"], one["kind"]) for one in found["matches"]]
    assert sorted(matches) == [("s9.jsonl.gz", 1, "leak"), ("s9.jsonl.gz", 2, "leak")]
    # Some n-grams of the items stand in the first, too few to nominate any of them.
    assert [one["shard"] for one in found["blocks"]] == ["s1.jsonl.gz", "s9.jsonl.gz"]
    assert (found["n_blocks"], found["n_items"], found["not_searched"]) == (4, 5, [])
    assert world.scan_results() == before
    assert not [*world.store.drafts.glob("*lookup*")]


def test_a_text_is_found(sketched, capsys):
    _, items = sketched
    capsys.readouterr()
    assert main(["lookup", items[1]["question"]]) == 0
    said = capsys.readouterr().out
    assert "1 of 4 blocks may contain a match" in said
    assert "the text" in said
    assert "s9.jsonl.gz:" in said


def test_a_text_that_is_nowhere_is_not_found_without_reading_a_shard(sketched, capsys):
    world, items = sketched
    for pack in list_packs(world.store):
        for shard in pack.shards:
            Path(shard.path).unlink()
    capsys.readouterr()
    assert main(["lookup", items[0]["question"]]) == 0
    said = capsys.readouterr().out
    assert "0 of 4 blocks may contain a match" in said
    assert "no match" in said


def test_packs_without_a_sketch_are_named_and_not_taken_for_clean(sketched, capsys):
    world, items = sketched
    pack = list_packs(world.store)[0]
    name = Plan(load_config(world.config_path), world.store).sketch
    world.store.pack_sketch(name, pack_key(pack)).unlink()
    capsys.readouterr()
    assert main(["lookup", items[0]["question"]]) == 1
    assert f"not searched: {pack.name} has no sketch" in capsys.readouterr().err


def test_detectors_that_are_not_used_are_named(sketched, capsys):
    world, items = sketched
    world.policy = {"detectors": ["decon", "ratcliff", "exact"]}
    world.write_config()
    capsys.readouterr()
    assert main(["lookup", items[1]["question"]]) == 0
    expected = "searched with decon only: a sketch cannot rule out matches of ratcliff, exact"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to look for"),
        (["a text", "--items", "new.jsonl"], "TEXT and --items"),
        (["too short"], "no text can be searched for: 1 with too few tokens"),
        (["--items", "nowhere.jsonl"], "no such file"),
        (
            ["--items", "raw.jsonl"],
            "no 'eval_key'; expected a record with eval_key, split, question, and",
        ),
    ],
)
def test_wrong_input_is_refused_with_what_was_expected_before_anything_is_scanned(
    sketched, capsys, monkeypatch, arguments, message
):
    monkeypatch.setattr("decon_core.decisions.lookup.scan_packs", None)
    Path("raw.jsonl").write_text(json.dumps({"question": "a text", "answer": "1"}) + "\n")
    assert main(["lookup", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_a_sketch_all_shards_are_scanned(at_home, capsys):
    items = at_home.add_benchmark("orchard")
    del at_home.benchmarks["orchard"]
    at_home.write_benchmarks()
    at_home.add_shard("s9", leaks=items[1:3])
    at_home.start(until="scan")
    results = at_home.scan_results()
    capsys.readouterr()
    assert main(["lookup", items[1]["question"], "--json"]) == 0
    found = found_in(capsys)
    assert [one["shard"] for one in found["matches"]] == ["s9.jsonl.gz"]
    assert (found["blocks"], found["n_blocks"], found["not_searched"]) == ([], 0, [])
    assert at_home.scan_results() == results


def test_without_a_registered_pack_there_is_nothing_to_look_up_in(at_home, capsys):
    assert main(["lookup", "word " * 40]) == 2
    assert "no pack is registered" in capsys.readouterr().err
