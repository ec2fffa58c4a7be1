"""Training runs of a study: the tables of Apertus, known effects, and what cannot be compared."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.decisions import statistics
from decon_core.decisions.statistics import interval_of_few, paired_interval, paired_p_value
from decon_core.errors import InputError
from decon_core.features.study.differences import AVERAGE, compare_training_runs, left_out
from decon_core.features.study.page import table, wide
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun
from tests.features.study.in_memory import training_run_of

# Apertus, tables 10 and 11: scores by configuration, in the order of the columns.
TABLE_10 = {
    "original": "542 513 489 482 483 560 252 482 365 324 536 665 442",
    "decontaminated": "558 515 486 470 461 563 247 479 353 318 547 642 443",
    "decontaminated, licensed": "391 253 518 490 430 551 260 501 384 312 542 598 417",
    "OLMo2, decontaminated, licensed": "407 325 520 467 440 543 259 498 326 328 547 577 421",
}
COLUMNS_10 = (
    "mmlu_cot mmlu_cot_strict truthfulqa_mc2 bbh drop acp_roe acp_mcq gsm8k humaneval mbpp ifeval "
    "toxigen bbq"
)
TABLE_11 = {
    "original": "528 187 332 509 709 592",
    "decontaminated": "529 176 320 510 717 590",
    "decontaminated, licensed": "500 212 273 493 678 579",
    "OLMo2, decontaminated, licensed": "491 220 270 493 680 571",
}
COLUMNS_11 = "global_mmlu mgsm_direct mgsm_native_cot include culturalbench switzerland_qa"


def write_table(folder: Path, table, columns):
    """Write a training run's scores as a table that anybody can write; return the study."""
    training_runs = []
    for number, (name, scores) in enumerate(table.items()):
        lines = [
            f"{column},0.{score}"
            for column, score in zip(columns.split(), scores.split(), strict=True)
        ]
        (folder / f"{number}.csv").write_text("\n".join(["benchmark,score", *lines]) + "\n")
        training_runs.append(TrainingRun(name=name, results=(f"{number}.csv",)))
    return training_runs


def compared(study, folder):
    found = compare_training_runs(read_training_runs(study, folder), study)
    by_name = {
        (one.training_run, one.benchmark): one for one in (*found.benchmarks, *found.averages)
    }
    return found, by_name


def test_the_tables_of_apertus(tmp_path):
    training_runs = write_table(tmp_path, TABLE_10, COLUMNS_10)
    study = Study(baseline="decontaminated", training_run=tuple(training_runs))
    found, by_name = compared(study, tmp_path)
    heads, rows = wide([vars(row) for row in found.all])
    assert heads == ["training run", *sorted(COLUMNS_10.split()), "average"]
    assert [row[0] for row in rows] == [*TABLE_10]
    licensed = "decontaminated, licensed"
    # As the text says: a drop by 51 %, and a gain of 6.6 %.
    assert by_name[licensed, "mmlu_cot_strict"].relative == pytest.approx(-0.51, abs=0.005)
    assert by_name[licensed, "truthfulqa_mc2"].relative == pytest.approx(0.066, abs=0.0005)
    # The averages that the text gives (0.442, 0.443, 0.417, 0.421) are the column of BBQ; those of
    # the thirteen columns are others.
    averages = {name: by_name[name, AVERAGE].score for name in TABLE_10}
    printed = {name: int(scores.split()[-1]) / 1000 for name, scores in TABLE_10.items()}
    assert [*printed.values()] == [0.442, 0.443, 0.417, 0.421]
    assert {name: round(one, 3) for name, one in averages.items()} == {
        "original": 0.472,
        "decontaminated": 0.468,
        licensed: 0.434,
        "OLMo2, decontaminated, licensed": 0.435,
    }
    # Decontamination alone has a negligible effect, and filtering by license one of -7 %, -6 %
    # in the text. Without scores by item, the interval rests on the benchmarks.
    alone = by_name["original", AVERAGE]
    assert alone.low < 0 < alone.high
    assert alone.p > 0.1
    filtered = by_name[licensed, AVERAGE]
    assert filtered.basis == "benchmarks"
    assert filtered.relative == pytest.approx(-0.072, abs=0.001)


def test_the_multilingual_table_of_apertus(tmp_path):
    training_runs = write_table(tmp_path, TABLE_11, COLUMNS_11)
    groups = {"knowledge": ("global_mmlu", "include*"), "math": ("mgsm_*",)}
    study = Study(baseline="decontaminated", training_run=tuple(training_runs), groups=groups)
    _, by_name = compared(study, tmp_path)
    licensed = "decontaminated, licensed"
    relative = {name: by_name[licensed, name].relative for name in COLUMNS_11.split()}
    assert relative["mgsm_native_cot"] == pytest.approx(-0.147, abs=0.0005)
    assert relative["culturalbench"] == pytest.approx(-0.054, abs=0.0005)
    assert relative["switzerland_qa"] == pytest.approx(-0.019, abs=0.0005)
    # The text's averages (0.510, 0.511, 0.489, 0.487) are 0.033 to 0.037 above those of the six
    # columns, so they hold more than these; the relative drop of 4.3 % is 3.8 % here.
    averages = [by_name[name, AVERAGE].score for name in TABLE_11]
    assert [round(one, 3) for one in averages] == [0.476, 0.474, 0.456, 0.454]
    assert by_name[licensed, AVERAGE].relative == pytest.approx(-0.038, abs=0.0005)
    assert by_name["original", "math"].score == pytest.approx((0.187 + 0.332) / 2)
    assert by_name["original", "math"].remark.startswith("no interval")  # two benchmarks
    assert by_name["original", "knowledge"].n_benchmarks == 2


def rows_of(benchmark, scores):
    return [
        {"benchmark": benchmark, "index": index, "score": score}
        for index, score in enumerate(scores)
    ]


def write_items(folder, name, scores_of):
    rows = [
        {**row, "model": name}
        for benchmark, scores in scores_of.items()
        for row in rows_of(benchmark, scores)
    ]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TrainingRun(name=name, results=(path.name,))


def test_a_known_effect_is_in_its_interval_in_95_of_100_studies(monkeypatch):
    monkeypatch.setattr(statistics, "N_DRAWS", 1_000)  # the suite is long enough
    effect = 0.05
    n_hits = n_hits_of_average = 0
    n_items, n_studies = 200, 100
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        rows = {"clean": [], "leaked": []}
        for benchmark in ("a", "b", "c"):
            difficulty = rng.beta(2, 2, n_items) * 0.9
            for name, chance in (("clean", difficulty), ("leaked", difficulty + effect)):
                rows[name] += rows_of(benchmark, (rng.random(n_items) < chance).tolist())
        runs = [
            training_run_of(TrainingRun(name=name, results=("x",)), of_run)
            for name, of_run in rows.items()
        ]
        found = compare_training_runs(runs, Study(baseline="clean"))
        by_name = {(row.training_run, row.benchmark): row for row in found.all}
        one, average = by_name["leaked", "a"], by_name["leaked", AVERAGE]
        assert one.basis == average.basis == "same items"
        n_hits += one.low <= effect <= one.high
        n_hits_of_average += average.low <= effect <= average.high
    assert n_hits >= 90
    assert n_hits_of_average >= 90
    assert n_hits + n_hits_of_average >= 188


def test_items_that_are_not_the_same_are_compared_as_two_groups(tmp_path):
    rng = random.Random(1)
    scores = [rng.random() < 0.5 for _ in range(60)]
    training_runs = (
        write_items(tmp_path, "one", {"quiz": scores}),
        write_items(tmp_path, "other", {"quiz": scores[:20]}),
    )
    _, by_name = compared(Study(baseline="one", training_run=training_runs), tmp_path)
    found = by_name["other", "quiz"]
    assert found.basis == "items"
    assert found.remark == "only 20 items are in the results of both training runs"
    assert found.low < found.difference < found.high
    assert found.difference == pytest.approx(sum(scores[:20]) / 20 - sum(scores) / 60)


def test_a_few_missing_items_do_not_change_what_is_compared(tmp_path):
    scores = [number % 2 for number in range(60)]
    better = [1] * 10 + scores[10:59]  # without the last item, which the baseline has right
    training_runs = (
        write_items(tmp_path, "one", {"quiz": scores, "few": [0] * 6}),
        write_items(tmp_path, "other", {"quiz": better, "few": [1] * 6}),
    )
    found, by_name = compared(Study(baseline="one", training_run=training_runs), tmp_path)
    quiz = by_name["other", "quiz"]
    assert (quiz.basis, quiz.n) == ("same items", 59)
    assert quiz.baseline == pytest.approx(29 / 59)
    assert quiz.difference == pytest.approx(5 / 59)
    assert quiz.low >= 0
    rows = [vars(one) for one in found.benchmarks if one.training_run == "other"]
    shown = dict(table(("benchmark", "compared on"), rows)[1])
    assert shown["quiz"] == "same items; based only on the 59 items that both training runs have"
    assert shown["few"] == "same items; too few items: 6"


def test_one_item_in_one_training_run_has_no_standard_error(tmp_path):
    training_runs = (
        write_items(tmp_path, "one", {name: [0, 1] * 30 for name in "abc"}),
        write_items(tmp_path, "other", {name: [1] for name in "abc"}),
    )
    _, by_name = compared(Study(baseline="one", training_run=training_runs), tmp_path)
    assert by_name["other", "a"].stderr is None
    assert by_name["other", AVERAGE].basis == "benchmarks"


def test_results_of_harnesses_for_whole_benchmarks(tmp_path):
    def harness(name, score, n):
        content = {
            "results": {
                "quiz": {
                    "alias": "quiz",
                    "acc,none": score,
                    "acc_stderr,none": 0.02,
                    "exact_match,strict": score / 2,
                    "exact_match_stderr,strict": "N/A",
                }
            },
            "n-samples": {"quiz": {"original": n, "effective": n}},
        }
        (tmp_path / name).mkdir()
        (tmp_path / name / "results_2026-01-01.json").write_text(json.dumps(content))
        return TrainingRun(name=name, results=(name,))

    olmes = {"task_name": "puzzle", "metrics": {"primary_score": 0.25}, "num_instances": 100}
    training_runs = harness("one", 0.5, 400), harness("two", 0.6, 400)
    for name in ("one", "two"):
        (tmp_path / name / "task-000-puzzle-metrics.json").write_text(json.dumps(olmes))
    read = read_training_runs(Study(baseline="one", training_run=training_runs), tmp_path)
    assert not any(training_run.problems for training_run in read)
    found = compare_training_runs(read, Study(baseline="one"))
    by_name = {(one.training_run, one.benchmark, one.metric): one for one in found.benchmarks}
    acc = by_name["two", "quiz", "acc"]
    assert (acc.basis, acc.n) == ("standard errors", 400)
    assert acc.stderr == pytest.approx(0.02 * 2**0.5)
    assert acc.low == pytest.approx(0.1 - 1.96 * acc.stderr, abs=1e-4)
    assert acc.p == pytest.approx(0.0004, abs=1e-4)
    # A share of n items has a standard error of its own.
    strict = by_name["two", "quiz", "exact_match"]
    assert (strict.filter, strict.basis) == ("strict", "standard errors")
    assert strict.stderr == pytest.approx((0.25 * 0.75 / 400 + 0.3 * 0.7 / 400) ** 0.5)
    assert by_name["two", "puzzle", "primary_score"].difference == 0


def test_averages_count_no_item_twice_and_leave_out_perplexities(tmp_path):
    def harness(name, more):
        tasks = ["mmlu", "mmlu_stem", "mmlu_anatomy", "mmlu_physics", "arc_easy"]
        scores = {task: {"acc,none": 0.5, "acc_stderr,none": 0.02} for task in tasks}
        scores["mmlu"]["acc,none"] += more
        texts = {"bits_per_byte,none": 0.7, "word_perplexity,none": 12.0}
        content = {
            "results": {**scores, "wikitext": texts, "c4": texts},
            "group_subtasks": {
                "mmlu": ["mmlu_stem"],
                "mmlu_stem": ["mmlu_anatomy", "mmlu_physics"],
                "arc_easy": [],
            },
        }
        (tmp_path / name).mkdir()
        (tmp_path / name / "results_2026-01-01.json").write_text(json.dumps(content))
        return TrainingRun(name=name, results=(name,))

    training_runs = harness("one", 0.0), harness("two", 0.1)
    groups = {"all of mmlu": ("mmlu*",), "subjects": ("mmlu_[ap]*",)}
    found, by_name = compared(
        Study(baseline="one", training_run=training_runs, groups=groups), tmp_path
    )
    assert by_name["two", "all of mmlu"].n_benchmarks == 1
    assert by_name["two", "subjects"].n_benchmarks == 2
    averages = {one.metric: one for one in found.averages if one.training_run == "two"}
    assert averages[""].n_benchmarks == 2
    assert averages[""].difference == pytest.approx(0.05)
    assert averages["bits_per_byte"].n_benchmarks == 2


def test_the_averages_of_lighteval_are_no_tasks_beside_their_subjects(tmp_path):
    for name, score in (("one", 0.5), ("two", 0.6)):
        tasks = ["all", "mmlu:_average|5", "mmlu:anatomy|5", "mmlu:physics|5", "arc|25"]
        content = {"results": {task: {"acc": score, "acc_stderr": 0.02} for task in tasks}}
        (tmp_path / f"results_{name}.json").write_text(json.dumps(content))
    training_runs = tuple(
        TrainingRun(name=name, results=(f"results_{name}.json",)) for name in ("one", "two")
    )
    _, by_name = compared(Study(baseline="one", training_run=training_runs), tmp_path)
    assert ("two", "all") not in by_name
    assert by_name["two", AVERAGE].n_benchmarks == 2


def test_standard_errors_of_0_are_no_certainty(tmp_path):
    for name, score in (("one", 0), ("two", 1)):
        (tmp_path / f"{name}.csv").write_text(f"benchmark,score,n\nquiz,{score},3\n")
    training_runs = tuple(
        TrainingRun(name=name, results=(f"{name}.csv",)) for name in ("one", "two")
    )
    _, by_name = compared(Study(baseline="one", training_run=training_runs), tmp_path)
    assert by_name["two", "quiz"].p is None
    assert by_name["two", "quiz"].remark == "no interval: the standard errors are 0"


def test_what_cannot_be_compared_says_why(tmp_path):
    (tmp_path / "one.csv").write_text("benchmark,score\nquiz,0.5\nonly_here,0.1\n")
    (tmp_path / "two.csv").write_text("benchmark,score\nquiz,0.625\nquiz,much\n,0.5\nquiz,0.7\n")
    training_runs = (
        TrainingRun(name="one", results=("one.csv",)),
        TrainingRun(name="two", results=("t*.csv",)),
    )
    read = read_training_runs(Study(baseline="two", training_run=training_runs), tmp_path)
    said = "\n".join(map(str, read[1].problems))
    assert "the score 'much'" in said
    assert "no benchmark" in said
    assert "a second score for quiz (score): 0.7" in said
    found = compare_training_runs(read, Study(baseline="two"))
    by_name = {(one.training_run, one.benchmark): one for one in found.benchmarks}
    assert by_name["one", "only_here"].remark == "the baseline has no such score"
    assert by_name["one", "quiz"].difference == -0.125
    assert by_name["one", "quiz"].remark.startswith("no interval")
    assert not found.averages  # the training runs have one benchmark in common


def test_missing_results_of_all_training_runs_are_named_at_once(tmp_path):
    training_runs = (
        TrainingRun(name="one", results=("none",)),
        TrainingRun(name="two", results=("no*.json",)),
    )
    with pytest.raises(InputError, match=r"(?s)training_run 'one'.*training_run 'two'"):
        read_training_runs(Study(baseline="one", training_run=training_runs), tmp_path)


def test_the_interval_of_a_few_benchmarks_holds_their_mean():
    values = np.array([1.0, 2.0, 6.0])  # a t of 4.3027 with two degrees of freedom
    low, high = interval_of_few(values)
    assert (high - low) / 2 == pytest.approx(4.302653 * values.std(ddof=1) / 3**0.5, rel=1e-6)
    for n in (3, 13):
        drawn = np.random.default_rng(n).normal(0, 1, (400, n))
        n_hits = sum(low <= 0 <= high for low, high in map(interval_of_few, drawn))
        assert 368 <= n_hits <= 392


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=9))
def test_prop_the_paired_p_value_is_that_of_all_signs(values):
    differences = np.array(values)
    observed = abs(differences.sum())
    signs = itertools.product((-1, 1), repeat=len(values))
    expected = np.mean([abs(np.dot(one, differences)) >= observed - 1e-12 for one in signs])
    assert paired_p_value(differences, "x") == pytest.approx(expected)


def test_the_drawn_p_value_is_near_the_exact_one():
    rng = np.random.default_rng(0)
    differences = rng.normal(0.3, 1.0, 40)
    drawn = paired_p_value(differences, "x")
    exact_of_signs = paired_p_value(np.sign(differences), "x")
    assert 0 < drawn < 0.3
    assert exact_of_signs == pytest.approx(
        min(1, 2 * sum(_binomial(40, k) for k in range(int((differences < 0).sum()) + 1))), rel=1e-6
    )
    low, high = paired_interval(differences, "x")
    assert low < differences.mean() < high


def _binomial(n, k):
    from math import comb

    return comb(n, k) / 2**n


def test_items_with_the_same_difference_give_no_interval_and_averages_name_what_they_lack():
    runs = [TrainingRun(name=name, results=("x",)) for name in ("base", "same", "lacks")]
    study = Study(baseline="base", training_run=tuple(runs), contrasts={"a": "b"})
    scores = [1, 0] * 9
    tables = [rows_of(name, scores) for name in "abc"]
    read = [
        training_run_of(
            run, [row for rows in (tables[:2] if run.name == "lacks" else tables) for row in rows]
        )
        for run in runs
    ]
    rows = {
        (row.training_run, row.benchmark): row for row in compare_training_runs(read, study).all
    }
    for benchmark in ("a", AVERAGE, "a - b"):
        row = rows["same", benchmark]
        assert (row.difference, row.low, row.high) == (0, None, None)
        assert row.remark.startswith("no interval")
    assert (rows["base", "a - b"].score, rows["base", "a - b"].difference) == (0, None)
    assert [*left_out(read)] == ["In no average, because there is no score of lacks: c (score)."]
