"""`decon-assets scorecard --pairs`: the command line around metrics of labelled pairs."""

import json

import pytest

from decon_assets.cli.main import main
from decon_core.features.similarity import embedders

PAIRS = [
    {"original": "Ann has three hens.", "other": "Ann owns 3 hens.", "label": True, "kind": "same"},
    {"original": "Bo buys two eggs.", "other": "Bo gets 2 eggs.", "label": True, "kind": "same"},
    {"original": "Ann has three hens.", "other": "Cy has 5 cocks.", "label": False, "kind": "near"},
    {"original": "Bo buys two eggs.", "other": "Dee rows a boat.", "label": False, "kind": "far"},
]


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)  # no embedder is installed
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in PAIRS))
    return path


def test_the_tables_are_printed_and_written(pairs, tmp_path, capsys):
    assert main(["scorecard", "--pairs", str(pairs), "--out", str(tmp_path / "card")]) == 0
    out = capsys.readouterr().out
    assert "2 duplicates and 2 other pairs, from 2 originals" in out
    assert "numbers" in out
    assert "near" in out
    assert {path.name for path in (tmp_path / "card").iterdir()} == {
        *("pairs.md", "pairs.json", "pairs.csv", "pairs.svg"),
    }


def test_without_an_embedder_there_is_no_cosine_and_it_is_said_why(pairs, capsys):
    assert main(["scorecard", "--pairs", str(pairs)]) == 0
    captured = capsys.readouterr()
    assert "cosine" not in captured.out
    assert "no column `cosine wordllama`: run `pip install" in captured.err


def test_an_embedder_that_was_asked_for_must_be_there(pairs, capsys):
    assert main(["scorecard", "--pairs", str(pairs), "--embedder", "minilm"]) == 2
    assert "--embedder 'minilm': the package" in capsys.readouterr().err


def test_rows_that_hold_no_pair_are_listed_and_change_the_exit_code(pairs, capsys):
    with pairs.open("a") as file:
        file.write('{"original": "only one"}\n{\n')
    assert main(["scorecard", "--pairs", str(pairs)]) == 4
    error = capsys.readouterr().err
    assert "2 rows left out" in error
    assert "row 5: found `other`" in error
    assert "line 6" in error


def test_a_missing_file_is_wrong_input(tmp_path, capsys):
    assert main(["scorecard", "--pairs", str(tmp_path / "absent.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_planted_leaks_still_need_a_folder(capsys):
    assert main(["scorecard"]) == 2
    assert "--out is required" in capsys.readouterr().err
