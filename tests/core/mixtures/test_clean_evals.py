"""Benchmarks without what leaked: all other items, and a manifest that accounts for the rest."""

import json

import pytest

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.errors import IncompleteError
from decon_core.library.scan import Request, scan_folder
from decon_core.mixtures.preconditions import require_searched

WORDS = "amber heron left the quiet harbour before dawn and {} sailed past every lighthouse {}"


def item(number: int) -> dict:
    question = " ".join(WORDS.format(f"x{number}y{at}", f"z{number}w{at}") for at in range(3))
    answer = " ".join(f"because{number}v{at}" for at in range(12))
    return {
        "eval_key": "quiz",
        "split": "test",
        "eval_instance_index": number,
        "question": question,
        "answer": answer,
    }


ITEMS = [item(number) for number in range(6)]
FILLER = " ".join(f"filler{at}" for at in range(40))


@pytest.fixture(scope="module")
def scanned(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("scanned")
    evals, corpus = tmp_path / "evals", tmp_path / "corpus"
    evals.mkdir()
    corpus.mkdir()
    (evals / "quiz.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ITEMS))
    documents = [
        f"{FILLER} {ITEMS[1]['question']} {FILLER}",  # source only
        f"{FILLER} {ITEMS[2]['answer']} {FILLER}",  # target only
        f"{ITEMS[3]['question']} {FILLER}",  # both, in two documents
        f"{FILLER} {ITEMS[3]['answer']}",
        FILLER,
    ]
    text = "".join(json.dumps({"text": document}) + "\n" for document in documents)
    (corpus / "one.jsonl").write_text(text)

    def scan(out, **options):
        request = Request(
            evals=options.pop("evals", evals),
            source=Source(name="corpus", path=str(corpus), id="id"),
            out=tmp_path / out,
            policy=Policy(detectors=("longest_match", "exact")),
            has_clean_evals=True,
        )
        return scan_folder(request)

    scan("out")
    return tmp_path, scan


def rows(folder) -> list[int]:
    lines = (folder / "clean" / "evals" / "quiz.jsonl").read_text().splitlines()
    return [json.loads(line)["instance_index"] for line in lines]


def test_what_leaked_is_gone_and_all_else_is_there_under_its_own_number(scanned):
    folder, _ = scanned
    assert rows(folder / "out") == [0, 4, 5]


def test_the_manifest_says_which_field_leaked_and_where(scanned):
    folder, _ = scanned
    manifest = json.loads((folder / "out" / "clean" / "manifest.json").read_text())
    quiz = manifest["benchmarks"]["quiz"]
    assert (quiz["n_items"], quiz["n_items_left"]) == (6, 3)
    because = {gone["instance_index"]: gone["because"] for gone in quiz["removed"]}
    assert {
        number: detectors["longest_match"]["which"] for number, detectors in because.items()
    } == {
        1: "source only",
        2: "target only",
        3: "both",
    }
    assert because[3]["longest_match"]["n_documents"] == 2
    assert because[1]["longest_match"]["file"] == "one.jsonl"
    assert because[1]["longest_match"]["row"] == 0
    assert because[1]["exact"]["score"] >= 0.5
    assert "exact" not in because[2]  # an answer alone is not looked for


def test_nothing_is_found_of_the_clean_benchmark(scanned):
    folder, scan = scanned
    outcome = scan("again", evals=folder / "out" / "clean" / "evals")
    assert outcome.n_leaks == 0
    assert outcome.benchmarks[0].n_items == 3


def test_without_a_document_nothing_is_clean():
    require_searched([{"n_documents": 0}, {"n_documents": 1}])
    with pytest.raises(IncompleteError, match="no document was searched"):
        require_searched([{"n_documents": 0}])
