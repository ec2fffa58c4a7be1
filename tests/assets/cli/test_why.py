"""`decon-assets why`, as typed: what became of a document, and in which runs."""

import gzip
import json
import os
import re
import shutil

import pytest
from dagster import AssetKey, DagsterInstance

from decon_assets.cli.main import main
from decon_assets.instance.home import home_for, open_instance
from decon_core.benchmarks.records import current_version
from decon_core.config.policy import Policy
from decon_core.corpus.registration import list_packs
from decon_core.decisions.judging import missing
from decon_core.report.why import as_text
from decon_core.storage.drafts import remove
from decon_core.storage.files import read_json, update_json
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
    """Declare them; of a fourth shard one document is near an item, one under another license."""
    world.mixtures, world.policy = MIXTURES, {"aligned_threshold": 0.8}
    item = world.benchmarks["harbor"][4]
    words = item["question"].split()
    some = " ".join(words[: 3 * len(words) // 4])
    path = world.add_shard("s3", leaks=[{"question": some, "answer": item["answer"]}])
    lines = gzip.decompress(path.read_bytes()).splitlines()
    lines[2] = lines[2].replace(b"CC0-1.0", b"none of yours")
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", mtime=0))
    world.write_config()


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A world that tests only look at."""
    world = World(tmp_path_factory.mktemp("world"), instance=None)
    harbor, ledger = world.add_benchmark("harbor"), world.add_benchmark("ledger")
    for number in range(3):
        world.add_shard(f"s{number}", leaks=[harbor[number], ledger[number]])
    several_mixtures(world)
    run_until_the_report(world)
    return world


def run_until_the_report(world):
    """With a history beside its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        with open_instance(home_for(world.config_path)) as world.instance:
            world.run(until="report")


@pytest.fixture
def ask(looked_at, capsys, monkeypatch):
    """What `why` says of a document there, as JSON."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(looked_at.folder)
    return asking(capsys)


@pytest.fixture(scope="module")
def grown(looked_at, tmp_path_factory):
    """A copy of that world, with its history, after a second run: more shards have joined."""
    folder = tmp_path_factory.mktemp("grown") / "world"
    shutil.copytree(looked_at.folder, folder)
    harbor = looked_at.benchmarks["harbor"]
    world = World(folder, instance=None, benchmarks=looked_at.benchmarks, mixtures=MIXTURES)
    world.policy = looked_at.policy
    world.add_shard("s8", leaks=[harbor[0]])
    for number in range(3):
        world.add_shard(f"more-{number}", leaks=[harbor[1]])
    world.add_shard("prompts", leaks=[{"question": harbor[4]["question"], "answer": ""}])
    shutil.copyfile(folder / "corpus" / "s2.jsonl.gz", folder / "corpus" / "s9.jsonl.gz")
    run_until_the_report(world)
    return world


@pytest.fixture
def ask_grown(grown, capsys, monkeypatch):
    """What `why` says of a document there."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(grown.folder)
    return asking(capsys)


@pytest.fixture
def told(at_home, capsys):
    """The same of a world that a test changes."""
    several_mixtures(at_home)
    at_home.start(until="blend")
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
    assert item == ("harbor", "test", 1, "aligned")
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


@pytest.mark.usefixtures("ask")
def test_a_match_is_told_with_the_share_of_copies_among_planted_places(capsys):
    assert main(["why", "s1-1"]) == 0
    told = capsys.readouterr().out
    assert re.search(r" %\) of [\d,]+ places with such a score were copies", told)


def test_the_runs_are_those_that_made_the_scan_result_and_the_mixture_not_later_ones(
    looked_at, ask_grown, grown
):
    (before,) = ask_grown("s1-1", "--config", str(looked_at.config_path))
    (after,) = ask_grown("s1-1")
    (other,) = ask_grown("s8-1")
    runs = [one["found"][0]["run"] for one in (before, after, other)]
    assert runs[0] == runs[1]
    assert runs[1]["id"] != runs[2]["id"]
    mixed = [one["mixtures"][0]["run"]["id"] for one in (before, after, other)]
    assert mixed[0] == mixed[1] != mixed[2]
    with DagsterInstance.from_config(str(home_for(grown.config_path))) as instance:
        run = instance.get_run_by_id(runs[0]["id"])
    assert run.asset_selection == {AssetKey("scan")}


def test_a_scan_result_that_was_written_by_no_run_of_this_instance_has_none(told, at_home):
    for path in at_home.store.root.rglob("scan_results/*/*/*.parquet"):
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
    assert main(["why", "s1-1", "--verbose"]) == 0
    assert "(the date of the file; Dagster's history has no such run)" in capsys.readouterr().out


def test_of_a_copied_store_all_is_told_but_the_runs(told, at_home, monkeypatch, tmp_path, capsys):
    (here,) = told("s1-1")
    copy = tmp_path / "copy"
    shutil.copytree(at_home.folder, copy)  # with the dates of files, and without the history
    monkeypatch.delenv("DAGSTER_HOME")
    config = ["--config", str(copy / "decon.toml")]
    (there,) = told("s1-1", *config)
    assert there["found"][0]["run"] == here["found"][0]["run"] | {"id": None}
    assert [one["state"] for one in there["mixtures"]] == [one["state"] for one in here["mixtures"]]
    assert main(["why", "s1-1", "--verbose", *config]) == 0
    said = capsys.readouterr().out
    assert "(the date of the file; Dagster's history has no such run)" in said
    assert "Dagster instance" not in said


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
    assert "no leak; closest matches:" in capsys.readouterr().out
    assert main(["why", "s3-5"]) == 0
    nothing = "no match at or above the lowest recorded score"
    assert f"{nothing} (0.6, also for the question alone)" in capsys.readouterr().out


def test_every_finding_has_the_name_of_its_text_and_the_command_for_who_disagrees(
    ask, looked_at, capsys
):
    for asked, verdict in (("s1-1", "template"), ("s3-1", "leak")):
        (one,) = ask(asked)
        text_id = one["found"][0]["text_id"]
        assert main(["why", asked]) == 0
        command = f"decon-assets review set {text_id} {verdict}"
        assert f"to overrule: {command}" in capsys.readouterr().out
        # The command is one that works as it is printed.
        said = looked_at.folder / "said.jsonl"
        assert main([*command.split()[1:], "--by", "me", "--verdicts", str(said)]) == 0
        assert json.loads(said.read_text())["verdict"] == verdict
        said.unlink()


def test_a_leak_of_an_item_that_has_no_answer_says_that_none_was_looked_for(ask):
    (one,) = ask("s1-1")
    entry = one["found"][0]
    assert entry["has_answer"]
    said = "no answer was searched for, because the benchmark gives none for this question"
    assert said not in as_text(one)
    assert said in as_text({**one, "found": [{**entry, "has_answer": False}]})


def test_all_leaks_are_listed_before_and_beyond_the_most_shown_matches(ask):
    (one,) = ask("s1-1")
    leak = {**one["found"][0], "is_contaminated": True}
    leaks = [{**leak, "instance_index": 100 + number} for number in range(7)]
    near = {**leak, "is_contaminated": False, "needs_review": True, "instance_index": 999}
    text = as_text({**one, "found": leaks})
    assert all(f" {entry['instance_index']}, by" in text for entry in leaks)
    assert "--json has the texts of all matches" in text
    text = as_text({**one, "found": [*leaks, near]})
    assert all(f" {entry['instance_index']}, by" in text for entry in leaks)
    assert " 999, by" not in text
    assert "… and 1 more that is not a leak (--json has all)" in text
    text = as_text({**one, "found": [leak, *[near] * 6]})
    assert "… and 2 more that are not leaks (--json has all)" in text


def test_what_planted_items_say_of_a_score_is_a_sentence(ask):
    (one,) = ask("s1-1")
    planted = {"n_copies": 9, "n_places": 10, "low": 0.6, "high": 1}
    text = as_text({**one, "found": [{**one["found"][0], "planted": planted}]})
    assert "90 % (60 to 100 %) of 10 places with such a score were copies" in text


def test_a_text_that_stands_in_several_documents_names_all_of_them(ask_grown, capsys):
    (one,) = ask_grown("s1-1")
    documents = one["found"][0]["documents"]
    assert [place["id"] for place in documents] == ["more-0-1", "more-1-1", "more-2-1", "s1-1"]
    assert {place["row"] for place in documents} == {1}
    assert main(["why", "s1-1"]) == 0
    line = "the same text is in 4 documents: more-0-1 (more-0.jsonl.gz:1), more-1-1 "
    assert line in capsys.readouterr().out
    # From the id of any of them to all.
    assert [place["id"] for place in ask_grown("more-2-1")[0]["found"][0]["documents"]] == [
        place["id"] for place in documents
    ]


def test_a_question_without_its_answer_is_told_as_no_answer_and_not_as_clean(ask_grown, capsys):
    (one,) = ask_grown("prompts-1")
    entry = one["found"][0]
    assert (entry["is_contaminated"], entry["is_no_answer"]) == (False, True)
    assert "answer not found" in entry["missing"]
    assert main(["why", "prompts-1"]) == 0
    told_of_it = capsys.readouterr().out
    assert "neither a leak nor clean; it contains a question without its answer" in told_of_it
    assert "no answer (verbatim): harbor test 4, by aligned" in told_of_it
    assert f"decon-assets review set {entry['text_id']} leak" in told_of_it
    assert main(["report"]) == 0
    assert "1 more contains a question without its answer" in capsys.readouterr().out


def test_a_near_miss_tells_what_it_lacks_to_be_a_leak(ask, capsys):
    (near,) = ask("s3-1")
    (entry,) = near["found"]
    assert entry["missing"], entry
    assert any("needed" in one for one in entry["missing"])
    assert main(["why", "s3-1"]) == 0
    told = f"not a leak by score: {'; '.join(entry['missing'])}"
    assert told in capsys.readouterr().out
    (leak,) = ask("s1-1")
    assert leak["found"][0]["missing"] == []


NEAR_MISS = {
    "detector": "decon",
    "is_by_score": False,
    "kind": None,
    "question_overlap": 1.0,
    "answer_overlap": None,
    "passage_overlap": None,
    "base_score": 0.7,
    "score": 0.7,
    "question_tokens": 60,
    "total_tokens": 70,
}
RECORD = {"question": "what?", "answer": "that", "passage": None}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, ["answer not found", "score 0.70 (needed: 0.80)"]),
        (
            {"answer_overlap": 0.25, "base_score": 0.75, "score": 0.75},
            ["only 0.25 of the answer found", "score 0.75 (needed: 0.80)"],
        ),
        (
            {"question_overlap": 0.69, "answer_overlap": 1.0, "base_score": 0.9, "score": 0.9},
            ["question overlap 0.69 (needed: 0.71)"],
        ),
        (
            {"answer_overlap": 1.0, "score": 0.7996, "base_score": 0.9, "total_tokens": 30},
            [
                "score 0.7996 (needed: 0.8000)",
                "score lowered from 0.900 because the matched texts are short (30 tokens)",
            ],
        ),
        (
            {"detector": "ratcliff", "score": 0.41, "base_score": 0.41},
            ["score 0.41 (needed: 0.50)"],
        ),
        (
            {"detector": "longest_match", "score": 0.7, "base_score": 0.7},
            ["score 0.700000 (needed: more than 0.700000)"],
        ),
        ({"is_by_score": True, "score": 0.9}, []),
    ],
    ids=["no answer", "part", "question", "short", "another detector", "not passed", "leak"],
)
def test_what_is_missing_is_said_for_every_condition_that_fails(found, expected):
    assert [*missing(NEAR_MISS | found, Policy(), RECORD)] == expected


def test_what_was_never_looked_for_is_not_said_to_be_missing():
    told, _ = missing(NEAR_MISS, Policy(index_answers=False), RECORD)
    assert told == "answer not searched for (index_answers is off)"


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
    text_id = before["found"][0]["text_id"]
    (at_home.folder / "verdicts.jsonl").write_text(
        json.dumps(
            {
                "pair": text_id,
                "fingerprint": "0" * 16,
                "verdict": "template",
                "note": "a form letter",
            }
        )
        + "\n"
    )
    (one,) = told("s1-1")
    assert one["found"][0]["is_contaminated"] is False
    assert one["found"][0]["said"]["note"] == "a form letter"
    clean = one["mixtures"][0]
    assert (clean["state"], clean["is_todays"]) == ("removed", False)
    at_home.run(until="mixture")
    (one,) = told("s1-1")
    assert (one["mixtures"][0]["state"], one["mixtures"][0]["is_todays"]) == ("kept", True)


def test_an_id_that_two_documents_have_is_told_of_both(ask_grown):
    shards = [one["document"]["shard"] for one in ask_grown("s2-1")]
    assert shards == ["s2.jsonl.gz", "s9.jsonl.gz"]
    (one,) = ask_grown("s2-1", "--shard", "s9.jsonl.gz")
    assert one["document"]["shard"] == "s9.jsonl.gz"
    assert len(ask_grown("s2-5", "--everywhere")) == 2


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
    ledgers = next(at_home.store.root.glob("scan_results/*/*/ledgers.json"))
    fingerprints = read_json(ledgers).keys()
    remove(ledgers.parent)
    shard = next(
        shard.name
        for pack in list_packs(at_home.store)
        for shard in pack.shards
        if shard.fingerprint in fingerprints
    )
    remove(at_home.store.mixture_manifests("open"))
    (one,) = told(f"{shard}:1", "--mixture", "open")
    assert one["not_scanned_against"] == ["harbor", "ledger"]
    assert one["scanned_against"] == []
    assert states(one) == {"open": "not built"}


def test_a_shard_that_is_gone_leaves_what_is_known_of_its_documents(told, at_home, capsys):
    (at_home.folder / "corpus" / "s1.jsonl.gz").unlink()
    (one,) = told("s1-1")
    assert "the registered file is gone" in one["document"]["why_unreadable"]
    assert states(one)["clean"] == "removed"
    capsys.readouterr()
    assert main(["why", "s1.jsonl.gz:9"]) == 0  # without matches
    said = capsys.readouterr().out
    assert "unknown whether it contains an item: the row could not be read" in said
    assert "no match" not in said


def test_of_a_skipped_file_it_is_said_that_it_was_skipped_and_why(ask, looked_at, capsys):
    path, before = looked_at.folder / "corpus/notes.txt", looked_at.store.skipped.read_bytes()
    skipped = {"path": str(path), "why": "no format of shards", "is_on_purpose": False}
    update_json(looked_at.store.skipped, {"skipped": [skipped]})
    for name in ("notes.txt", "corpus/notes.txt", path):
        assert main(["why", f"{name}:0"]) == 1
        assert f"The file '{name}' was skipped: no format of shards" in capsys.readouterr().err
    assert main(["why", "es.txt:0"]) == 1
    assert "No shard is registered as 'es.txt'" in capsys.readouterr().err
    looked_at.store.skipped.write_bytes(before)


def test_a_document_that_is_not_there_ends_with_1_and_a_wrong_name_with_2(ask, looked_at, capsys):
    for arguments, code, said in (
        (["nobody"], 1, "no document with this id in 4 registered shards"),
        (
            ["nobody", "--shard", "s1.jsonl.gz"],
            1,
            "no document with this id in shard 's1.jsonl.gz'",
        ),
        (["s1.jsonl.gz:99"], 1, "the field that `id` names in [[corpus.source]]"),
        (["old.jsonl.gz:9"], 1, "No shard is registered as 'old.jsonl.gz'; if it was renamed"),
        (["s1-1", "--shard", "what"], 2, "the name of a registered shard"),
        (["s1-1", "--mixture", "what"], 2, "what"),
    ):
        capsys.readouterr()
        assert main(["why", *arguments]) == code
        assert said in capsys.readouterr().err
