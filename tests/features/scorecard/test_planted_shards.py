"""What the truth says stands there, and everything is there whole or not at all."""

import json

import pytest

from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_shard
from decon_core.features.scorecard.plan import plan
from decon_core.features.scorecard.planted_shards import (
    TRUTH,
    read_truth,
    sources,
    write_planted_corpus,
)

HOSTS = [
    *(f"Once upon a time, {n} mice.\n\nThey had {n} hats.\n\nThat was all." for n in range(200)),
    *(f"line {n}\nand another one\nand the last" for n in range(200)),
    *(f"{n} words in one piece" for n in range(100)),
]


@pytest.fixture(scope="module")
def planned(records):
    return plan(records, per_transformation=4, seed=7)


@pytest.fixture(scope="module")
def world(planned, tmp_path_factory):
    out = tmp_path_factory.mktemp("world") / "planted"
    written = write_planted_corpus(planned, HOSTS, out, n_background=30, documents_per_shard=50)
    return out, written


def documents_in(out):
    """By shard and row, as a scan reads them."""
    found = {}
    for source in sources(out):
        for shard in find_shards(source, folder=out, known={}):
            for document in read_shard(shard, source):
                found[shard.name, document.row] = document
    return found


def as_read(written):
    if isinstance(written, str):
        return written
    return "\n\n".join(turn.content for turn in written)


def test_spans_cut_out_exactly_what_was_planted(planned, world):
    out, _ = world
    documents = documents_in(out)
    planted = {planting.id: planting for planting in planned.plantings}
    truth = read_truth(out)
    assert truth.schema == TRUTH
    for row in truth.iter_rows(named=True):
        text = documents[row["shard"], row["row"]].text
        assert text[row["start"] : row["stop"]] == as_read(planted[row["planting"]].written)


def test_every_planted_item_has_its_line(planned, world):
    rows = read_truth(world[0]).select("planting", "benchmark", "split", "instance_index").rows()
    expected = {(p.id, *key) for p in planned.plantings for key in p.items}
    assert set(rows) == expected
    assert len(rows) == len(expected)


def test_plantings_stand_in_all_places(world):
    assert set(read_truth(world[0])["place"]) == {"alone", "start", "middle", "end"}


def test_the_other_documents_are_hosts_as_they_were(planned, world):
    out, written = world
    documents = documents_in(out)
    planted = set(read_truth(out).select("shard", "row").rows())
    background = [document.text for place, document in documents.items() if place not in planted]
    assert len(documents) == written.n_documents == len(planned.plantings) + 30
    assert len(background) == written.n_background == 30
    assert set(background) <= set(HOSTS)


def test_what_is_around_a_planting_is_its_host(world):
    out, _ = world
    documents = documents_in(out)
    for row in read_truth(out).iter_rows(named=True):
        document = documents[row["shard"], row["row"]]
        before, after = document.text[: row["start"]], document.text[row["stop"] :]
        if row["place"] == "alone":
            assert before + after == ""
        elif row["shard"].startswith("planted-text"):
            between = "\n\n" if before.endswith("\n\n") else "\n"
            if row["place"] == "middle":
                assert before.endswith(between)
                assert after.startswith(between)
                host = before + after.removeprefix(between)
                assert host in HOSTS
                assert ("\n\n" in host) == (between == "\n\n")


def test_the_same_seed_gives_the_same_bytes(planned, world, tmp_path):
    out, _ = world
    write_planted_corpus(
        planned, iter(HOSTS), tmp_path / "b", n_background=30, documents_per_shard=50
    )
    names = sorted(path.name for path in out.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "b").iterdir())
    assert len(names) > 4
    assert all((out / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_a_small_corpus_is_used_again(planned, tmp_path):
    written = write_planted_corpus(planned, HOSTS[:3], tmp_path / "a", n_background=50)
    assert written.n_hosts == 3
    assert read_truth(tmp_path / "a").filter(place="middle").height > 3


def test_without_a_corpus_everything_stands_alone(planned, tmp_path):
    written = write_planted_corpus(planned, [" "], tmp_path / "a")
    assert written.n_background == 0
    assert set(read_truth(tmp_path / "a")["place"]) == {"alone"}


def test_a_long_host_is_cut_at_a_line(planned, tmp_path):
    text = "\n".join(["some words"] * 500)
    write_planted_corpus(
        planned, [text] * 500, tmp_path / "a", n_background=5, most_host_characters=1000
    )
    planted = set(read_truth(tmp_path / "a").select("shard", "row").rows())
    for place, document in documents_in(tmp_path / "a").items():
        if place not in planted:
            assert document.text == "\n".join(["some words"] * 90)


def test_a_corpus_that_breaks_off_leaves_nothing_behind(planned, tmp_path):
    def broken():
        yield "one text"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        write_planted_corpus(planned, broken(), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_truth_is_one_object_a_line(world):
    lines = (world[0] / "truth.jsonl").read_text().splitlines()
    assert list(json.loads(lines[0])) == list(TRUTH)
