"""`decon-assets why`, as typed: what became of a document, and in which runs."""

import gzip
import json
import os
import shutil

import pytest
from dagster import AssetKey, DagsterInstance

from decon_assets.cli import main
from decon_core.records import current_version
from decon_core.registry import list_packs
from decon_core.store import remove
from tests.conftest import World

MIXTURES = """
[[mixture]]
name = "clean"
[[mixture]]
name = "original"
take = "everything"
[[mixture]]
name = "open"
[mixture.licenses]
field = "license"
allow = ["CC0-*"]
[[mixture]]
name = "masked"
cut = "spans"
[[mixture]]
name = "control"
take = "control"
control_of = "clean"
[[blend]]
name = "stream"
of = "clean"
"""


def several_mixtures(world):
    """A run of them; of a fourth shard one document is near an item, one under another license."""
    world.mixtures = MIXTURES
    item = world.benchmarks["harbor"][4]
    some = " ".join(item["question"].split()[:36])
    path = world.add_shard("s3", leaks=[{"question": some, "answer": item["answer"]}])
    lines = gzip.decompress(path.read_bytes()).splitlines()
    lines[2] = lines[2].replace(b"CC0-1.0", b"none of yours")
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    world.write_config()
    assert main(["run", "--config", str(world.config_path)]) == 0
    return world


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A world that tests only look at."""
    world = World(tmp_path_factory.mktemp("world"), instance=None)
    harbor, ledger = world.add_benchmark("harbor"), world.add_benchmark("ledger")
    for number in range(3):
        world.add_shard(f"s{number}", leaks=[harbor[number], ledger[number]])
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        several_mixtures(world)
    return world


@pytest.fixture
def ask(looked_at, capsys, monkeypatch):
    """What `why` says of a document there, as JSON."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(looked_at.folder)
    return asking(capsys)


@pytest.fixture
def told(at_home, capsys):
    """The same of a world that a test changes."""
    several_mixtures(at_home)
    return asking(capsys)


def asking(capsys):
    def ask(*arguments):
        capsys.readouterr()
        assert main(["why", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def states(one):
    return {mixture["mixture"]: mixture["state"] for mixture in one["mixtures"]}


def test_a_removed_document_is_told_with_rule_item_places_and_inputs(ask, looked_at):
    (one,) = ask("s1-1")
    assert states(one) == {
        "clean": "removed",
        "original": "kept",
        "open": "removed",
        "masked": "cut",
        "control": states(one)["control"],
    }
    (entry,) = one["found"]
    item = (entry["benchmark"], entry["split"], entry["instance_index"], entry["detector"])
    assert item == ("harbor", "test", 1, "decon")
    assert (entry["is_contaminated"], entry["score"], entry["threshold"]) == (True, 1.0, 0.8)
    assert entry["benchmark_version"] == current_version(looked_at.store, "harbor").fingerprint
    text = json.loads(
        gzip.decompress((looked_at.folder / "corpus" / "s1.jsonl.gz").read_bytes()).splitlines()[1]
    )["text"]
    start, stop = entry["characters"]["question"]
    assert text[start:stop] == looked_at.benchmarks["harbor"][1]["question"]
    assert entry["texts"]["item"]["question"] == text[start:stop]
    assert text[start:stop] in entry["texts"]["document"]
    pack = list_packs(looked_at.store)[1]
    place = {name: one["document"][name] for name in ("pack", "shard_fingerprint", "row")}
    assert place == {
        "pack": pack.name,
        "shard_fingerprint": pack.shards[0].fingerprint,
        "row": 1,
    }
    (reason,) = one["mixtures"][0]["reasons"]
    assert (reason["why"], reason["benchmark"], reason["score"]) == ("leak", "harbor", 1.0)
    assert one["mixtures"][0]["is_todays"] is True
    assert one["blends"][0]["n_texts"] == 0


def test_the_runs_are_those_that_made_the_tile_and_the_mixture_not_later_ones(told, at_home):
    (before,) = told("s1-1")
    at_home.add_shard("s8", leaks=[at_home.benchmarks["harbor"][0]])
    assert main(["run"]) == 0
    (after,) = told("s1-1")
    (other,) = told("s8-1")
    runs = [one["found"][0]["run"] for one in (before, after, other)]
    assert runs[0] == runs[1]
    assert runs[1]["id"] != runs[2]["id"]
    mixed = [one["mixtures"][0]["run"]["id"] for one in (before, after, other)]
    assert mixed[0] == mixed[1] != mixed[2]
    with DagsterInstance.get() as instance:
        run = instance.get_run_by_id(runs[0]["id"])
        assert run.asset_selection == {AssetKey("scan")}


def test_a_tile_that_was_written_by_no_run_of_this_instance_has_none(told, at_home):
    for path in at_home.store.root.rglob("tiles/*/*/*.parquet"):
        os.utime(path, (0, 0))
    (one,) = told("s1-1")
    assert one["found"][0]["run"] == {
        "id": None,
        "at": "1970-01-01T00:00:00+00:00",
        "partition": "harbor|web-0001",
    }


def test_without_a_history_the_runs_are_not_known(ask, looked_at, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "elsewhere"))
    (one,) = ask("s1-1")
    assert one["found"][0]["run"]["id"] is None
    assert main(["why", "s1-1"]) == 0
    assert "not known to this instance" in capsys.readouterr().out


def test_a_document_that_was_never_removed_says_so_and_what_came_closest(ask, looked_at, capsys):
    (near,) = ask("s3-1")
    assert states(near)["clean"] == states(near)["open"] == "kept"
    assert [entry["is_contaminated"] for entry in near["found"]] == [False]
    assert 0.6 <= near["found"][0]["score"] < 0.8
    assert near["blends"][0]["n_texts"] == 1
    (far,) = ask("s3-5")
    assert far["found"] == []
    assert states(far)["clean"] == "kept"
    capsys.readouterr()
    assert main(["why", "s3-1"]) == 0
    assert "no leak; what came closest:" in capsys.readouterr().out
    assert main(["why", "s3-5"]) == 0
    assert "nothing was found of any item" in capsys.readouterr().out


def test_a_license_that_is_not_taken_is_the_reason(ask):
    (one,) = ask("s3-2")
    assert (states(one)["clean"], states(one)["open"]) == ("kept", "removed")
    (reason,) = next(m["reasons"] for m in one["mixtures"] if m["mixture"] == "open")
    assert (reason["why"], reason["detail"]) == ("license", "none of yours")


def test_a_row_can_be_named_by_its_shard(ask):
    (one,) = ask("s1.jsonl.gz:1")
    assert one["document"]["id"] == "s1-1"
    assert [entry["benchmark"] for entry in one["found"]] == ["harbor"]


def test_what_a_person_said_is_told(told, at_home):
    (before,) = told("s1-1")
    pair = before["found"][0]["pair"]
    (at_home.folder / "verdicts.jsonl").write_text(
        json.dumps(
            {"pair": pair, "fingerprint": "0" * 16, "verdict": "template", "note": "a form letter"}
        )
        + "\n"
    )
    (one,) = told("s1-1")
    assert one["found"][0]["is_contaminated"] is False
    assert one["found"][0]["said"]["note"] == "a form letter"
    clean = one["mixtures"][0]
    assert (clean["state"], clean["is_todays"]) == ("removed", False)
    assert main(["run"]) == 0
    (one,) = told("s1-1")
    assert (one["mixtures"][0]["state"], one["mixtures"][0]["is_todays"]) == ("kept", True)


def test_an_id_that_two_documents_have_is_told_of_both(told, at_home):
    folder = at_home.folder / "corpus"
    shutil.copyfile(folder / "s1.jsonl.gz", folder / "s9.jsonl.gz")
    assert main(["run"]) == 0
    shards = [one["document"]["shard"] for one in told("s1-1")]
    assert shards == ["s1.jsonl.gz", "s9.jsonl.gz"]
    (one,) = told("s1-1", "--shard", "s9.jsonl.gz")
    assert one["document"]["shard"] == "s9.jsonl.gz"
    assert len(told("s1-5", "--everywhere")) == 2


def test_no_text_is_shown_where_snippets_are_off(ask, looked_at, capsys):
    question = looked_at.benchmarks["harbor"][1]["question"]
    silent = looked_at.folder / "silent.toml"
    silent.write_text(looked_at.config_path.read_text() + '\n[report]\nsnippets = "off"\n')
    (one,) = ask("s1-1", "--config", str(silent))
    assert one["found"][0]["texts"] is None
    assert question not in json.dumps(one)
    assert main(["why", "s1-1", "--config", str(silent)]) == 0
    assert question[:40] not in capsys.readouterr().out


def test_what_is_not_scanned_or_not_built_is_said(told, at_home):
    tile = next(at_home.store.root.glob("tiles/*/*/ledger.json")).parent
    remove(tile)
    shard = next(
        shard.name
        for pack in list_packs(at_home.store)
        for shard in pack.shards
        if shard.fingerprint == tile.name
    )
    for folder in at_home.store.mixtures("open").iterdir():
        remove(folder)
    (one,) = told(f"{shard}:1", "--mixture", "open")
    assert one["not_scanned_against"] == ["harbor", "ledger"]
    assert states(one) == {"open": "not built"}


def test_a_shard_that_is_gone_leaves_what_is_known_of_its_documents(told, at_home, capsys):
    (at_home.folder / "corpus" / "s1.jsonl.gz").unlink()
    (one,) = told("s1-1")
    assert "no such file" in one["document"]["why_unreadable"]
    assert states(one)["clean"] == "removed"


def test_a_document_that_is_not_there_ends_with_1_and_a_wrong_name_with_2(ask, looked_at, capsys):
    for arguments, code, said in (
        (["nobody"], 1, "none of that id in 4 registered shards"),
        (["nobody", "--shard", "s1.jsonl.gz"], 1, "none of that id in shard 's1.jsonl.gz'"),
        (["s1.jsonl.gz:99"], 1, "ids are those of the field"),
        (["old.jsonl.gz:9"], 1, "no shard is registered as 'old.jsonl.gz'; one that was renamed"),
        (["s1-1", "--shard", "what"], 2, "the name of a registered shard"),
        (["s1-1", "--mixture", "what"], 2, "what"),
    ):
        capsys.readouterr()
        assert main(["why", *arguments]) == code
        assert said in capsys.readouterr().err
