"""What is compared: folders that were scanned, and one scan under two policies."""

import json
from dataclasses import replace

import duckdb
import pytest

from decon_core.compare.differences import compare
from decon_core.compare.sides import database_of, policy_in
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.errors import ConfigError, InputError, MissingError
from decon_core.library.scan import Request, scan_folder
from decon_core.report.open import coverage_of


@pytest.fixture
def scanned(tmp_path, make_words):
    """Scans a corpus of two shards for a quiz; a leak stands in either, and a row is no JSON."""
    questions = [make_words(("q", n), 30) for n in range(4)]
    evals = tmp_path / "evals"
    evals.mkdir()
    rows = [
        {"eval_key": "quiz", "split": "test", "question": question, "answer": f"w{n}"}
        for n, question in enumerate(questions)
    ]
    (evals / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for n, name in enumerate(("a.jsonl", "b.jsonl")):
        text = f"{make_words(('x', n), 20)} {questions[n]} w{n} {make_words(('y', n), 20)}"
        lines = [json.dumps({"text": make_words(("z", n), 50)}), json.dumps({"text": text})]
        (corpus / name).write_text("\n".join([*lines, *(["{no"] if n else [])]) + "\n")

    def scan(out, *, names="*.jsonl*", policy=None, has_page=True):
        request = Request(
            evals=evals,
            source=Source(name="corpus", path=str(corpus / names), id="id"),
            out=tmp_path / out,
            policy=policy or Policy(tokenizer_str="words"),
            has_page=has_page,
        )
        scan_folder(request)
        return request.out

    return scan


def test_an_inserted_item_does_not_move_the_others_in_scans_of_a_folder(scanned, tmp_path):
    first = database_of(scanned("first"))
    evals = tmp_path / "evals" / "quiz.jsonl"
    row = {"eval_key": "quiz", "split": "test", "question": "Who moved all of them?", "answer": "I"}
    evals.write_text(json.dumps(row) + "\n" + evals.read_text())
    found = compare(first, database_of(scanned("second")), most=9)
    assert sum(found["n_findings"].values()) == 2
    assert found["n_findings"].keys() <= {"same", "changed"}


def test_a_scanned_folder_is_a_report(scanned):
    database = database_of(scanned("found"))
    with duckdb.connect(str(database), read_only=True) as connection:

        def ask(query):
            return connection.execute(query).fetchall()

        assert ask("SELECT benchmark, n_items, n_leaked FROM by_benchmark") == [("quiz", 4, 2)]
        assert ask("SELECT shard_name, n_contaminated_documents, n_unreadable FROM by_shard") == [
            ("a.jsonl", 1, 0),
            ("b.jsonl", 1, 1),
        ]
        assert ask("SELECT shard_name, row FROM unreadable") == [("b.jsonl", 2)]
        ((policy,),) = ask("SELECT policy FROM runs")
        assert Policy.from_mapping(json.loads(policy)).tokenizer_str == "words"


def test_two_folders_are_compared_where_both_looked(scanned):
    sides = [scanned("all"), scanned("some", names="a.jsonl")]
    found = compare(*map(database_of, sides), most=5)
    assert found["n_findings"] == {"not comparable": 1, "same": 1}
    assert found["n_shards"] == {"in both": 1, "only in first": 1}


def test_a_shard_that_could_not_be_read_was_not_scanned_and_is_told(scanned, tmp_path):
    (tmp_path / "corpus" / "c.jsonl.gz").write_bytes(b"not gzip")
    database = database_of(scanned("found"))
    with duckdb.connect(str(database), read_only=True) as connection:
        shards = connection.execute("SELECT shard_name FROM shards ORDER BY ALL").fetchall()
        query = "SELECT place, n FROM not_read WHERE what = 'shard'"
        lost = connection.execute(query).fetchall()
        statuses = connection.execute("SELECT DISTINCT status FROM item_status").fetchall()
    assert (shards, lost) == ([("a.jsonl",), ("b.jsonl",)], [("c.jsonl.gz", 0)])
    assert sorted(statuses) == [("leaked",), ("not fully scanned",)]
    coverage = coverage_of(database)
    assert [row["shard"] for row in coverage.not_scanned] == ["c.jsonl.gz"]
    assert coverage.notice.startswith("Incomplete: 1 of 3 shards was not scanned")


def test_a_folder_of_anything_else_or_of_half_a_scan_is_refused(scanned, tmp_path):
    with pytest.raises(InputError, match="no scan in this folder"):
        database_of(tmp_path)
    folder = scanned("found")
    (folder / "summary.json").unlink()  # written last
    with pytest.raises(MissingError, match=r"summary\.json is missing"):
        database_of(folder)


def test_a_scan_without_a_page_is_no_report_nor_is_that_of_an_earlier_scan(scanned):
    scanned("found")
    with pytest.raises(MissingError, match="without --no-page"):
        database_of(scanned("found", has_page=False))


def test_a_policy_is_read_from_a_file_of_its_own_or_from_a_configuration(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("contamination_score_threshold = 0.9\n")
    assert policy_in(path, like=Policy()).contamination_score_threshold == 0.9
    path.write_text(
        '[evals]\nrecipes = ["e.yaml"]\n[[corpus.source]]\nname = "web"\npath = "*"\n'
        'text = "text"\n[policy]\ncontamination_score_threshold = 0.7\n'
    )
    assert policy_in(path, like=Policy()).contamination_score_threshold == 0.7
    for wrong in ("not TOML", "nothing_known = 1\n"):
        path.write_text(wrong)
        with pytest.raises(ConfigError):
            policy_in(path, like=Policy())
    with pytest.raises(ConfigError, match="no such file"):
        policy_in(tmp_path / "nowhere.toml", like=Policy())


def test_a_file_of_settings_leaves_the_others_as_they_are(tmp_path):
    path = tmp_path / "stricter.toml"
    path.write_text("longest_match_threshold = 0.95\n")
    like = Policy(detectors=("decon", "longest_match"), unreadable="drop")
    assert policy_in(path, like=like) == replace(like, longest_match_threshold=0.95)
