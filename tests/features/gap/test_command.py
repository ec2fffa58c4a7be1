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
        *("averages.csv", "gap.csv", "gap.json", "gap.md", "gap.svg", "rates.csv"),
    ]


def test_gap_ends_with_1_when_nothing_is_joined_and_2_when_an_input_is_wrong(reported, capsys):
    path = reported.folder / "scores.csv"
    path.write_text("benchmark,question,score\nharbor,nobody asked this,1\n")
    assert main(["gap", "--results", str(path)]) == 1
    assert "row 1: no item with this text" in capsys.readouterr().err
    path.write_text("benchmark,question,score\nelsewhere,nobody asked this,1\n")
    assert main(["gap", "--results", str(path)]) == 1
    assert "(nothing)" not in capsys.readouterr().out
    assert main(["gap", "--results", "nowhere"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["gap", "--results", str(path), "--report", "nowhere.duckdb"]) == 2
    assert main(["gap", "--results", str(path), "--task", "x=nowhere"]) == 2


def test_gaps_and_leak_rates_by_categories_of_a_file(reported, capsys):
    path = write_scores(reported, "harbor")
    (reported.folder / "kinds.yaml").write_text("{new: [test], old: [train]}")
    grouped = ["--by", "split", "--categories", "kinds.yaml"]
    capsys.readouterr()
    command = ["gap", "--results", str(path), *grouped, "--detector", "aligned", "--out", "gap"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "averages over categories:" in said.out
    assert "clean means that an item could be found and was not" in said.out
    found = json.loads((reported.folder / "gap" / "gap.json").read_text())
    assert [one["subset"] for one in found["gaps"]] == [None, "new"]
    assert {one["by"] for one in found["averages"]} == {"kinds"}
    rates = {one["kind"]: one["leak_rate"] for one in found["rates"]}
    assert rates == {"category": 0.6, "micro average": 0.6, "macro average": 0.6}
    assert main(["report", *grouped, "--rates", "rates.csv"]) == 0
    assert "macro average of 1" in capsys.readouterr().out
    rows = (reported.folder / "rates.csv").read_text().splitlines()
    of_harbor = [row for row in rows if row.startswith("harbor,")]
    assert of_harbor == (reported.folder / "gap" / "rates.csv").read_text().splitlines()[1:]


def test_wrong_columns_categories_and_detectors_end_with_2(reported, capsys):
    path = write_scores(reported, "harbor")
    for wrong in (["--by", "x"], ["--categories", "mmul"], ["--detector", "exakt"]):
        assert main(["gap", "--results", str(path), *wrong]) == 2
    assert "Did you mean 'mmlu'?" in capsys.readouterr().err
    assert main(["report", "--by", "x"]) == 2
    assert main(["report", "--rates", "rates.csv"]) == 2
    assert "require --by or --categories" in capsys.readouterr().err


def test_help_names_the_columns_of_a_table(capsys):
    assert main(["gap", "--help"]) == 0
    out = capsys.readouterr().out
    for word in ("benchmark", "task", "index", "id", "question", "score"):
        assert f"`{word}`" in out
    assert "model, filter, metric" in " ".join(out.split())
    assert "exit codes" in out.lower()
