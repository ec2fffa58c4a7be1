"""`decon-assets gap`, as typed, after a run of the whole chain."""

import json

from decon_assets.cli.main import main


def write_scores(world, benchmark):
    rows = [
        f'{{"benchmark": "{benchmark}", "model": "gull", "question": {json.dumps(item["question"])}'
        f', "score": {number % 2}}}'
        for number, item in enumerate(world.benchmarks[benchmark])
    ]
    path = world.folder / "scores.jsonl"
    path.write_text("\n".join([*rows, '{"benchmark": "x", "question": "what?", "score": 1}']))
    return path


def test_gap_says_what_a_model_scores_without_the_leaks(reported, capsys):
    path = write_scores(reported, "harbor")
    capsys.readouterr()
    assert main(["gap", "--results", str(path), "--out", "gap"]) == 0
    said = capsys.readouterr()
    assert "too few items: " in said.out
    assert "not in the report" in said.out
    assert "A gap is a correlation" in said.out
    (gap,) = json.loads((reported.folder / "gap" / "gap.json").read_text())["gaps"]
    counts = {name: gap[f"n_{name}"] for name in ("all", "leaked", "clean", "not_joined")}
    assert counts == {"all": 5, "leaked": 3, "clean": 2, "not_joined": 0}
    assert (gap["score_leaked"], gap["score_clean"]) == (0.333333, 0.5)  # 0 1 0 and 1 0
    assert sorted(file.name for file in (reported.folder / "gap").iterdir()) == [
        *("gap.csv", "gap.json", "gap.md"),
    ]


def test_gap_ends_with_1_when_nothing_is_joined_and_2_when_an_input_is_wrong(reported, capsys):
    path = reported.folder / "scores.csv"
    path.write_text("benchmark,question,score\nharbor,nobody asked this,1\n")
    assert main(["gap", "--results", str(path)]) == 1
    assert "row 1: found no item with this text" in capsys.readouterr().err
    assert main(["gap", "--results", "nowhere"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["gap", "--results", str(path), "--report", "nowhere.duckdb"]) == 2
    assert main(["gap", "--results", str(path), "--task", "x=nowhere"]) == 2


def test_help_names_the_columns_of_a_table(capsys):
    assert main(["gap", "--help"]) == 0
    out = capsys.readouterr().out
    for word in ("benchmark", "task", "index", "id", "question", "score"):
        assert f"`{word}`" in out
    assert "model, filter, metric" in out
    assert "exit codes" in out.lower()
