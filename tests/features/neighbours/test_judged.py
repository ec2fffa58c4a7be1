"""A neighbour that somebody judged: its item, `why`, `review` and mixtures."""

import duckdb
import pytest

from decon_assets.cli.main import main
from decon_core.decisions.annotations import Annotation, append_annotations
from decon_core.decisions.candidates import key_of_texts
from decon_core.report.open import rows_of
from tests.assets.test_chain import shards_read

TABLE = "[neighbours]\nsize = 40\nmin_tokens = 10\nmax_tokens = 300\ntop = 3\n"
MIXTURES = """
[[mixture]]
name = "clean"

[[mixture]]
name = "near"
[mixture.leaks]
detectors = ["neighbours"]
"""
REVIEWED = '[review]\njudged = "review"\n'


def asked(world, query):
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        return rows_of(connection, query)


@pytest.fixture
def near(world):
    """A world with neighbours, and those of an item that no detector found."""
    world.mixtures = TABLE + MIXTURES
    world.start(until="report")
    return world


def unfound(world):
    """The nearest neighbours of an item that is clean, with its status."""
    return asked(
        world,
        "SELECT n.*, i.question, s.status FROM neighbours n "
        "JOIN items i USING (benchmark, split, instance_index) "
        "JOIN item_status s USING (benchmark, split, instance_index) "
        "WHERE s.benchmark = 'harbor' AND s.instance_index = 4 ORDER BY rank",
    )


def judged(world, one, *, is_sd=True):
    said = {"is_sd": is_sd, "match_type": "equivalent" if is_sd else "related"}
    line = Annotation(pair=one["pair"], fingerprint="0" * 16, kind="model", by="m", **said)
    append_annotations(world.folder / "annotations.jsonl", [line])


def removed(world):
    return {
        (row["mixture"], row["shard_name"], row["row"]): row
        for row in asked(world, "FROM removed WHERE detector = 'neighbours'")
    }


def place(one):
    return one["shard_name"], one["row"]


def test_before_anybody_judged_it_a_neighbour_is_a_near_miss_of_a_clean_item(near):
    rows = unfound(near)
    assert {one["status"] for one in rows} == {"clean"}
    texts = asked(near, "FROM matched_texts WHERE detectors = 'neighbours'")
    found = {one["text_id"]: one for one in texts}
    for one in rows:
        assert one["pair"] == key_of_texts("harbor", one["question"], one["text"])
        matched = found[one["pair"]]
        assert (matched["text"], matched["text_start"]) == (one["text"], one["start"])
        assert not matched["is_contaminated"]
        assert not matched["needs_review"]
    assert not removed(near)


def test_a_judged_duplicate_is_a_leak_everywhere_and_no_shard_is_read(near, capsys):
    first, second, _ = unfound(near)
    judged(near, first)
    judged(near, second, is_sd=False)
    near.run(until="report")
    assert shards_read(near) == 0
    assert {one["status"] for one in unfound(near)} == {"leaked"}
    (match,) = asked(near, f"FROM matches WHERE text_id = '{first['pair']}'")
    assert (match["is_contaminated"], match["is_judged_duplicate"]) == (True, True)
    gone = removed(near)
    assert gone.keys() == {(name, *place(first)) for name in ("clean", "near")}
    assert {one["detail"] for one in gone.values()} == {"a judge called it a duplicate"}
    document = f"{first['shard_name']}:{first['row']}"
    assert main(["why", document, "--config", str(near.config_path)]) == 0
    said = capsys.readouterr().out
    assert "leak: harbor test 4, by neighbours" in said
    assert "judged by m: a duplicate (equivalent)" in said
    assert "near: removed" in said


def test_a_judged_duplicate_may_wait_for_a_person_and_be_left_out_meanwhile(near):
    first, *_ = unfound(near)
    judged(near, first)
    near.mixtures = f'{TABLE}{REVIEWED}{MIXTURES}review = "remove"\n'
    near.run(until="report")
    assert {one["status"] for one in unfound(near)} == {"review"}
    assert {key[0] for key in removed(near)} == {"near"}


def test_a_person_may_call_a_neighbour_a_leak_and_take_it_back(near, capsys):
    first, *_ = unfound(near)
    options = ["--config", str(near.config_path)]
    assert main(["review", "set", first["pair"], "leak", *options]) == 0
    near.run(until="report")
    assert shards_read(near) == 0
    assert {one["status"] for one in unfound(near)} == {"leaked"}
    assert {key[0] for key in removed(near)} == {"clean", "near"}
    assert main(["review", "set", first["pair"], "none", *options]) == 0
    near.run(until="report")
    assert {one["status"] for one in unfound(near)} == {"clean"}
    assert not removed(near)


def test_near_ones_may_wait_for_review_without_a_judgement(near):
    first, second, _ = unfound(near)
    near.mixtures = TABLE + f"review_from = {first['similarity']}\n" + MIXTURES
    near.run(until="report")
    assert shards_read(near) == 0
    assert {one["status"] for one in unfound(near)} == {"review"}
    rows = asked(near, "SELECT text_id FROM matches WHERE detector = 'neighbours' AND needs_review")
    text_ids = {one["text_id"] for one in rows}
    assert first["pair"] in text_ids
    assert (second["pair"] in text_ids) == (second["similarity"] >= first["similarity"])
    judged(near, first, is_sd=False)
    near.run(until="report")
    rows = asked(near, "SELECT text_id FROM matches WHERE detector = 'neighbours' AND needs_review")
    assert first["pair"] not in {one["text_id"] for one in rows}
