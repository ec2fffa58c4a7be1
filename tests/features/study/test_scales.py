"""Scores of 0 to 1 and of 0 to 100 in one study, from the sample results."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from decon_core.config.load import load_config
from decon_core.errors import InputError
from decon_core.features.study.differences import AVERAGE, compare_training_runs
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun, Translation

DATA = Path(__file__).parents[3] / "data"
RUNS = ("clean", "original", "swapped")


def sample(folder, scale=lambda _run, _benchmark: 1, **settings):
    """Copy the sample results, with each score times `scale`; return their study."""
    (folder / "study").mkdir(exist_ok=True)
    for run in RUNS:
        with (DATA / f"study/{run}.csv").open(newline="", encoding="utf-8") as file:
            rows = [*csv.DictReader(file)]
        for row in rows:
            row["score"] = float(row["score"]) * scale(run, row["benchmark"])
        with (folder / f"study/{run}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    declared = load_config(DATA / "decon.toml").table(Study)
    return replace(declared, **{"translation": None, **settings})


def tables(folder, **scores):
    """Write a table for each training run; return the runs."""
    for name, lines in scores.items():
        (folder / f"{name}.csv").write_text("\n".join(["benchmark,metric,score", *lines]) + "\n")
    return tuple(TrainingRun(name=name, results=(f"{name}.csv",)) for name in scores)


def compared(study, folder):
    read = read_training_runs(study, folder)
    found = compare_training_runs(read, study)
    every = (*found.benchmarks, *found.averages)
    return {(one.training_run, one.benchmark, one.metric): one for one in every}


def refusal(study, folder):
    with pytest.raises(InputError) as raised:
        compared(study, folder)
    return raised.value.problems


def test_a_benchmark_of_0_to_100_is_not_averaged_with_others(tmp_path):
    study = sample(tmp_path, lambda _, benchmark: 100 if benchmark == "ledger_math" else 1)
    (problem,) = refusal(study, tmp_path)  # the group without it is no problem
    assert problem.where == "study, average"
    beyond, _, others = problem.found.partition(" and scores of 1 or less ")
    for run in RUNS:
        assert f"score of ledger_math, up to 100, in {tmp_path / 'study' / run}.csv" in beyond
        assert f"score of almanac_rc, up to 1, in {tmp_path / 'study' / run}.csv" in others
    assert "ledger_math" not in others
    assert "and 5 more" in others
    assert "Divide scores from 0 to 100 by 100" in problem.remedy
    assert "`metrics`" in problem.remedy
    assert "`beyond_one`" in problem.remedy


def test_a_group_alone_is_named(tmp_path):
    # Only the baseline has `c` and `d`, so that nothing averages them.
    def lines(factor, *, has_all):
        low = [f"a,acc,{0.5 * factor}", "b,acc,0.6"]
        return [*low, "c,acc,70", "d,acc,0.2"] if has_all else low

    runs = tables(tmp_path, one=lines(100, has_all=True), two=lines(100, has_all=False))
    groups = {"both": ("a", "b"), "other": ("c",)}
    problems = refusal(Study(baseline="one", training_run=runs, groups=groups), tmp_path)
    assert [problem.where for problem in problems] == ["study, both"]


def test_a_training_run_on_another_scale_is_not_compared(tmp_path):
    study = sample(tmp_path, lambda run, _: 100 if run == "swapped" else 1)
    (problem,) = refusal(study, tmp_path)
    beyond, _, others = problem.found.partition(" and scores of 1 or less ")
    assert "swapped.csv" in beyond
    assert "swapped.csv" not in others
    # One benchmark, which no average has, is named itself.
    runs = tables(tmp_path, one=["quiz,acc,0.5"], two=["quiz,acc,62.5"])
    (problem,) = refusal(Study(baseline="one", training_run=runs), tmp_path)
    assert problem.where == "study, acc of quiz"
    assert f"{tmp_path / 'two.csv'} row 1" in problem.found


def test_a_metric_that_no_average_has_is_not_compared_on_two_scales(tmp_path):
    names = ("a", "b")
    runs = tables(
        tmp_path,
        one=[f"{name},{line}" for name in names for line in ("acc,0.5", "f1,0.4")],
        two=[f"{name},{line}" for name in names for line in ("acc,0.6", "f1,41.0")],
    )
    study = Study(baseline="one", training_run=runs)
    problems = refusal(study, tmp_path)
    assert [problem.where for problem in problems] == ["study, f1 of a", "study, f1 of b"]
    found = compared(replace(study, metrics=("acc",)), tmp_path)  # a remedy that works
    assert found["two", AVERAGE, ""].difference == pytest.approx(0.1)


def test_a_benchmark_in_two_files_on_two_scales_is_no_mean(tmp_path):
    sample(tmp_path)
    rows = (tmp_path / "study/clean.csv").read_text().splitlines()
    head, items = rows[0], [row for row in rows if ",harbor_mc," in row]
    (tmp_path / "first.csv").write_text("\n".join([head, *items[:30]]))
    rescaled = [row.replace(",1.0,", ",100,") for row in items[30:]]
    (tmp_path / "second.csv").write_text("\n".join([head, *rescaled]))
    runs = (
        TrainingRun(name="one", results=("first.csv",)),
        TrainingRun(name="two", results=("first.csv", "second.csv")),
    )
    (problem,) = refusal(Study(baseline="one", training_run=runs), tmp_path)
    assert problem.where == "study, score of harbor_mc"
    assert "up to 100, in " + str(tmp_path / "second.csv") in problem.found


def test_on_one_scale_nothing_is_refused_and_all_differences_are_the_same(tmp_path):
    as_they_are = compared(sample(tmp_path), tmp_path)
    of_100 = compared(sample(tmp_path, lambda *_: 100), tmp_path)
    assert as_they_are.keys() == of_100.keys()
    for key, one in as_they_are.items():
        assert of_100[key].score == pytest.approx(one.score * 100)
        assert of_100[key].difference == (one.difference and pytest.approx(one.difference * 100))
        assert of_100[key].p == (one.p and pytest.approx(one.p))


def test_bleu_of_0_to_100_beside_scores_of_0_to_1_stays_apart(tmp_path):
    found = compared(sample(tmp_path, translation=Translation(benchmarks=("strait_mt",))), tmp_path)
    assert found["original", "strait_mt", "bleu"].score > 1 > found["original", AVERAGE, ""].score


def test_low_scores_of_0_to_100_are_averaged_once_they_are_declared(tmp_path):
    # Of table 4 of the study of contamination with WMT: languages without training data.
    runs = tables(
        tmp_path,
        none=["ace-en,bleu,0.095", "yo-en,bleu,1.445", "wo-en,bleu,1.521"],
        planted=["ace-en,bleu,0.722", "yo-en,bleu,1.345", "wo-en,bleu,1.776"],
    )
    study = Study(baseline="none", training_run=runs)
    (problem,) = refusal(study, tmp_path)
    assert "bleu of ace-en, up to 0.095" in problem.found.partition("of 1 or less")[2]
    found = compared(replace(study, beyond_one=("ace-*",)), tmp_path)
    assert found["planted", AVERAGE, ""].difference == pytest.approx((0.627 - 0.1 + 0.255) / 3)


def test_errors_may_be_above_and_below_1(tmp_path):
    runs = tables(
        tmp_path,
        one=["c4,bits_per_byte,0.9", "wikitext,bits_per_byte,1.1"],
        two=["c4,bits_per_byte,1.2", "wikitext,bits_per_byte,0.8"],
    )
    found = compared(Study(baseline="one", training_run=runs), tmp_path)
    assert found["two", AVERAGE, "bits_per_byte"].difference == pytest.approx(0)
