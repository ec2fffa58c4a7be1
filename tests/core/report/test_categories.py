"""Categories of items: files of them, averages over them, and leak rates, by hand.

The quiz has items 0 to 7 of four subjects. Item n has the score of SCORES[n]; 0, 2 and 4 leaked.
"""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from decon_core.decisions.calibration import wilson
from decon_core.decisions.statistics import (
    interval,
    mean_gap_interval,
    mean_interval,
    mean_share_interval,
)
from decon_core.errors import InputError
from decon_core.features.gap.account import score_gap
from decon_core.features.gap.page import as_markdown, write
from decon_core.report.categories.groupings import load_categories, parse_groupings
from decon_core.report.categories.rates import leak_rates, require_groupings
from decon_core.report.items import about_detectors, load_report_items
from tests.core.report.reports import write_report

SUBJECTS = ["algebra", "algebra", "algebra", "physics", "history", "history", "law", "dance"]
SCORES = [1, 0, 1, 0, 1, 0, 1, 0]
LEAKED = (0, 2, 4)
GROUPS = {"science": ["algebra", "physics"], "humanities": ["history", "law"]}


def write_quiz(path, *, extras=True, **more):
    """The quiz, whose leaks the detector exact found, and ratcliff one of them and another one."""
    place = {"benchmark": "quiz", "split": "test"}
    items = [
        {
            **place,
            "instance_index": n,
            "question": f"question number {n}",
            "fingerprints": [f"f{n}"],
            "is_indexed": True,
            "extras": json.dumps({"subject": subject}) if extras else None,
        }
        for n, subject in enumerate(SUBJECTS)
    ]
    found = [("exact", n) for n in LEAKED] + [("ratcliff", 0), ("ratcliff", 7)]
    matches = [
        {**place, "instance_index": n, "row": n, "detector": name, "score": 1.0}
        | {"is_contaminated": (name, n) != ("ratcliff", 7), "is_no_answer": n == 7}
        for name, n in found
    ]
    seen = [
        {**place, "instance_index": n, "detector": name, "is_visible": (name, n) != ("exact", 6)}
        for n in range(8)
        for name in ("exact", "ratcliff")
    ]
    tables = {"runs": [{"policy": "{}"}], "benchmarks": [{"benchmark": "quiz", "n_items": 8}]}
    tables |= {"items": items, "matches": matches, "visibility": seen}
    return write_report(path, **tables | more)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_quiz(tmp_path_factory.mktemp("quiz") / "report.duckdb")


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.json"
    path.write_text(json.dumps({"column": "subject", "categories": GROUPS}))
    return str(path)


def write_scores(path, columns=()):
    heads = ["model", "benchmark", "id", "score", *dict.fromkeys(name for name, _ in columns)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        for n, score in enumerate(SCORES):
            writer.writerow(["gull", "quiz", f"f{n}", score, *(values[n] for _, values in columns)])
    return path


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "benchmarks: [quiz]\ncolumn: subject\ncategories:\n  x: [a, b]\n  y: ['1']\n"),
        ("b.yml", "benchmarks: [quiz]\ncolumn: subject\ncategories: {a: x, b: x, '1': y}\n"),
        (
            "c.json",
            '{"benchmarks":"quiz","column":"subject","categories":{"x":["a","b"],"y":[1]}}',
        ),
    ],
)
def test_every_form_of_file_says_the_same(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    found = load_categories(str(path))
    assert (found.name, found.column, found.names) == (path.stem, "subject", ["x", "y"])
    values = ("a", "b", "1", "c")
    assert [found.category_of(value) for value in values] == ["x", "x", "y", None]
    assert (found.covers("quiz"), found.covers("other")) == (True, False)


def test_a_value_precedes_a_pattern(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("'web*': pages\nwebcam: pictures\n'*': other\n")
    found = load_categories(str(path))
    values = ("website", "webcam", "book")
    assert [*map(found.category_of, values)] == ["pages", "pictures", "other"]
    assert found.column is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yaml", "x: [a]\ny: [a]\n", "'a' in the categories 'x' and 'y'"),
        ("a.yaml", "categories: {x: [a]}\ncolum: b\n", "unknown key 'colum'"),
        ("a.yaml", "x: [a]\nx: [b]\n", "a repeated key"),
        ("a.yaml", "x: {a: b}\n", "an object with 'a'"),
        ("a.yaml", "[1]", "a list of 1"),
        ("a.json", "{", "text that is not YAML"),
        ("a.json", "{}", "no values"),
        ("a.txt", "a", "another kind of file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=expected):
        load_categories(str(path))


def test_built_in_categories_are_found_by_name():
    mmlu = load_categories("mmlu")
    assert Counter(mmlu.by_value.values()) == {  # 57 subjects
        "STEM": 18,
        "humanities": 13,
        "social sciences": 12,
        "other": 14,
    }
    assert (mmlu.covers("global_mmlu_fr"), mmlu.category_of("anatomy")) == (True, "other")
    assert load_categories("hellaswag").category_of("wikihow~1") == "WikiHow"
    with pytest.raises(InputError, match="Did you mean 'mmlu'"):
        load_categories("mmul")


def test_a_file_without_a_column_is_about_the_column_that_is_given(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("x: [a]\n")
    columns = [one.column for one in parse_groupings([], [str(path)])]
    assert columns == ["config"]
    (one,) = parse_groupings(["subject"], [str(path)])
    assert (one.name, one.column) == ("c", "subject")
    with pytest.raises(InputError, match="no column in the file"):
        parse_groupings(["subject", "split"], [str(path)])
    with pytest.raises(InputError, match="'mmlu' twice"):
        parse_groupings(["mmlu"], ["mmlu"])


# Gaps and averages --------------------------------------------------------------------------------


def test_gaps_of_categories_and_their_averages_by_hand(report, groups, tmp_path):
    """Science: leaked 1 1, clean 0 0. Humanities: leaked 1, clean 0 1. Dance has no category."""
    scores = write_scores(tmp_path / "scores.csv")
    account = score_gap([scores], report, groupings=parse_groupings([], [groups]))
    found = {gap.subset: (gap.all.n, gap.leaked.n, gap.clean.n, gap.gap) for gap in account.gaps}
    assert found == {
        None: (8, 3, 4, pytest.approx(1 - 1 / 4)),
        "science": (4, 2, 2, 1.0),
        "humanities": (4 - 1, 1, 2, 0.5),
        "(no category)": (1, 0, 0, None),
    }
    (one,) = account.averages
    assert (one.by, one.n_categories, one.n_items, one.n_without_category) == ("groups", 2, 7, 1)
    assert one.micro_score.value == pytest.approx(4 / 7)
    assert one.macro_score.value == pytest.approx((2 / 4 + 2 / 3) / 2)
    assert one.micro_gap.value == pytest.approx(1 - 1 / 4)
    assert one.macro_gap.value == pytest.approx((1 + 0.5) / 2)
    assert one.macro_gap.low is None
    assert "no interval for the macro gap: none in science, humanities" in one.remark
    (problem,) = account.problems
    assert "1 item with values in no category: 'dance' (1)" in problem.found


def test_a_category_without_leaks_is_not_in_the_macro_gap(report, tmp_path):
    scores = write_scores(tmp_path / "scores.csv")
    account = score_gap([scores], report, groupings=parse_groupings(["subject"], []))
    (one,) = account.averages
    assert (one.n_categories, one.n_in_macro_gap) == (5, 2)
    assert one.macro_gap.value == 1.0  # of algebra and history
    assert "macro gap excludes dance, law, physics: no leaked or no clean items" in one.remark


def test_an_average_over_one_category_is_the_category_s():
    rng = np.random.default_rng(2)
    leaked, clean = (rng.random(40) < 0.7).astype(float), (rng.random(90) < 0.5).astype(float)
    assert mean_gap_interval({"a": (leaked, clean)}) == interval(leaked, clean, "a")


def test_every_category_counts_the_same_in_a_macro_average():
    """The interval of the mean of two means: half the variance of each, added."""
    rng = np.random.default_rng(3)
    one, other = (rng.random(2_000) < 0.5).astype(float), (rng.random(50) < 0.5).astype(float)
    low, high = mean_interval({"one": one, "other": other})
    sd = (0.25 / 2_000 + 0.25 / 50) ** 0.5 / 2
    assert (high - low) / 2 == pytest.approx(1.96 * sd, rel=0.1)
    assert (low + high) / 2 == pytest.approx((one.mean() + other.mean()) / 2, abs=0.01)


def test_a_column_of_the_results_groups_items_that_the_report_has_no_value_of(tmp_path):
    report = write_quiz(tmp_path / "report.duckdb", extras=False)
    scores = write_scores(tmp_path / "scores.csv", [("Subject", SUBJECTS)])
    account = score_gap([scores], report, groupings=parse_groupings(["Subject"], []))
    assert account.problems == []
    subsets = [gap.subset for gap in account.gaps]
    assert subsets == [None, "algebra", "dance", "history", "law", "physics"]
    rates = {one.category: (one.n_items, one.n_leaked) for one in account.rates if one.category}
    assert rates["algebra"] == (3, 2)
    with pytest.raises(InputError, match=r"no column 'subject'.*Subject"):
        score_gap([scores], report, groupings=parse_groupings(["subject"], []))


def test_a_harness_s_raw_row_has_columns_too(tmp_path):
    report = write_quiz(tmp_path / "report.duckdb", extras=False)
    path = tmp_path / "samples_quiz_2025-01-01T00-00-00.0.jsonl"
    rows = [
        {"doc_id": n, "doc": {"question": f"question number {n}", "meta": {"subject": subject}}}
        | {"filtered_resps": [""], "metrics": ["acc"], "acc": SCORES[n]}
        for n, subject in enumerate(SUBJECTS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    account = score_gap([path], report, groupings=parse_groupings(["meta.subject"], []))
    assert {gap.subset: gap.all.n for gap in account.gaps}["history"] == 2


def test_rows_that_disagree_on_an_item_are_reported(tmp_path):
    report = write_quiz(tmp_path / "report.duckdb", extras=False)
    one = write_scores(tmp_path / "one.csv", [("kind", ["a"] * 8)])
    two = tmp_path / "two.csv"
    two.write_text("model,benchmark,id,score,kind\nheron,quiz,f0,1,b\n")
    account = score_gap([one, two], report, groupings=parse_groupings(["kind"], []))
    (problem,) = account.problems
    assert "the value 'b' of 'kind'; another row of the item has 'a'" in problem.found


def test_lists_and_objects_are_no_categories(tmp_path):
    report = write_quiz(tmp_path / "report.duckdb", extras=False)
    rows = [
        {"model": "gull", "benchmark": "quiz", "id": f"f{n}", "score": score}
        | {"kind": ["a", "b"] if n else "a"}
        for n, score in enumerate(SCORES)
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    account = score_gap([path], report, groupings=parse_groupings(["kind"], []))
    assert {gap.subset: gap.all.n for gap in account.gaps} == {None: 8, "a": 1, "(no category)": 7}
    assert "7 items without a value for 'kind'" in account.problems[0].found


def test_results_without_a_split_are_rated_in_all_splits(tmp_path):
    item = {"benchmark": "quiz", "is_indexed": True, "config": "a", "instance_index": 0}
    items = [
        {**item, "split": name, "question": f"question of {name}", "fingerprints": [name]}
        for name in ("dev", "test")
    ]
    report = write_quiz(tmp_path / "r.duckdb", items=items, matches=[])
    path = tmp_path / "scores.csv"
    path.write_text(
        "model,benchmark,id,score,split\ngull,quiz,dev,1,dev\nheron,quiz,dev,1,\nheron,quiz,test,1,\n"
    )
    account = score_gap([path], report, groupings=parse_groupings(["config"], []))
    assert {count.split for count in account.joins} == {"dev", None}
    assert {one.split for one in account.rates} == {"dev", "test"}


def test_the_order_of_rows_changes_no_byte(report, groups, tmp_path):
    scores = write_scores(tmp_path / "scores.csv")
    head, *lines = scores.read_text().splitlines()
    groupings = parse_groupings(["split"], [groups])
    write(score_gap([scores], report, groupings=groupings), tmp_path / "one")
    scores.write_text("\n".join([head, *reversed(lines)]))
    write(score_gap([scores], report, groupings=groupings), tmp_path / "two")
    for name in ("gap.csv", "averages.csv", "rates.csv", "gap.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_page_has_averages_and_rates(report, groups, tmp_path):
    scores = write_scores(tmp_path / "scores.csv")
    page = as_markdown(score_gap([scores], report, groupings=parse_groupings([], [groups])))
    assert "## Averages over categories" in page
    assert "macro average of 2" in page
    plain = as_markdown(score_gap([scores], report))
    assert "## Averages over categories" not in plain
    assert "## Leak rates by category" not in plain


# Detectors ----------------------------------------------------------------------------------------


def test_leaked_and_clean_can_be_those_of_one_detector(report, tmp_path):
    scores = write_scores(tmp_path / "scores.csv")
    by_all, exact, ratcliff, both = (
        score_gap([scores], report, detectors=names).gaps[0]
        for names in ((), ("exact",), ("ratcliff",), ("ratcliff", "exact"))
    )

    def counts(gap):
        return gap.leaked.n, gap.no_answer.n, gap.not_checkable.n, gap.clean.n

    assert counts(by_all) == counts(both) == (3, 1, 0, 4)
    assert counts(exact) == (3, 0, 1, 4)
    assert counts(ratcliff) == (1, 1, 0, 6)


def test_what_clean_means_is_said(report):
    notes = about_detectors(load_report_items(report, ["ratcliff"]), ["ratcliff"])
    assert "other detectors may have found it" in notes[0]
    assert notes[1:] == ["The report gives 2 of the 6 clean items the status leaked."]
    with pytest.raises(InputError, match=r"one of exact, ratcliff.*Did you mean 'exact'"):
        load_report_items(report, ["exakt"])


def test_a_candidate_counts_as_found_by_the_detector_that_is_asked_for(tmp_path):
    place = {"benchmark": "quiz", "split": "test", "instance_index": 1, "detector": "reworded"}
    report = write_quiz(
        tmp_path / "report.duckdb",
        matches=[{**place, "row": 1, "score": 0.9, "needs_review": True}],
        visibility=[{**place, "is_visible": True}],
    )
    items = load_report_items(report, ["reworded"])
    (found,) = [one for one in items.rows if one.verdict == "leaked"]
    assert (found.instance_index, found.decision) == (1, "review")
    assert "they need review" in about_detectors(items, ["reworded"])[-1]


# Leak rates ---------------------------------------------------------------------------------------


def test_leak_rates_by_hand(report, groups):
    """Science: 2 of 4. Humanities: 1 of 3. Dance, which has no answer, has no category."""
    items = load_report_items(report)
    found = leak_rates(items, parse_groupings([], [groups]))
    rates = {one.category or one.kind: one for one in found.rates}
    assert [*rates] == ["science", "humanities", "(no category)", "micro average", "macro average"]
    shares = {name: (one.n_leaked, one.n_items, one.leak_rate) for name, one in rates.items()}
    assert shares == {
        "science": (2, 4, 0.5),
        "humanities": (1, 3, pytest.approx(1 / 3)),
        "(no category)": (0, 1, 0.0),
        "micro average": (3, 7, pytest.approx(3 / 7)),
        "macro average": (3, 7, pytest.approx((1 / 2 + 1 / 3) / 2)),
    }
    assert rates["(no category)"].n_no_answer == 1
    assert (rates["science"].low, rates["science"].high) == wilson(0.5, 4)
    assert "'dance' (1)" in found.problems[0].found


def test_splits_are_rated_apart_unless_they_are_the_categories(tmp_path):
    item = {"benchmark": "quiz", "question": "q", "fingerprints": ["f"], "is_indexed": True}
    items = [
        {**item, "split": name, "config": "a", "instance_index": 0} for name in ("dev", "test")
    ]
    report = load_report_items(write_quiz(tmp_path / "r.duckdb", items=items, matches=[]))
    rates = leak_rates(report, parse_groupings(["config", "split"], [])).rates
    parts = [(one.by, one.split, one.category) for one in rates if one.kind == "category"]
    assert parts == [
        *(("config", "dev", "a"), ("config", "test", "a")),
        *(("split", "", "dev"), ("split", "", "test")),
    ]
    found = leak_rates(report, parse_groupings(["config"], []), splits={"quiz": {"dev"}}).rates
    assert {one.split for one in found} == {"dev"}


def test_without_the_number_of_items_there_is_no_rate(tmp_path):
    report = write_quiz(tmp_path / "r.duckdb", benchmarks=[{"benchmark": "quiz"}])
    found = leak_rates(load_report_items(report), parse_groupings(["subject"], []))
    assert {one.leak_rate for one in found.rates} == {None}


def test_an_unknown_column_or_benchmark_is_an_error(report):
    items = load_report_items(report)
    with pytest.raises(InputError, match=r"config, split, subject.*Did you mean 'subject'"):
        require_groupings(items, parse_groupings(["subjekt"], []))
    with pytest.raises(InputError, match="a benchmark of the report: quiz"):
        require_groupings(items, parse_groupings([], ["mmlu"]))


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ([2, 3] * 8, [0.19] * 16),  # tiny categories
        ([2, 3] * 8, [0.02, 0.4] * 8),
        ([100] * 57, [0.01] * 57),  # rare leaks
        ([1000, 1000, 1000, 10], [0.02, 0.02, 0.02, 0.5]),  # a small category of another rate
        ([42, 20], [0.12, 0.3]),
    ],
)
def test_the_interval_of_a_macro_rate_holds_the_true_one(sizes, rates):
    rng = np.random.default_rng(7)
    n_worlds = 600
    worlds = rng.binomial(sizes, rates, size=(n_worlds, len(sizes))).tolist()
    intervals = [mean_share_interval([*zip(hits, sizes, strict=True)]) for hits in worlds]
    n_held = sum(low <= np.mean(rates) <= high for low, high in intervals)
    assert n_held / n_worlds >= 0.92


def test_the_interval_of_one_rate_is_wilson_s():
    assert mean_share_interval([(11, 60)]) == pytest.approx(wilson(11 / 60, 60))
    assert mean_share_interval([(0, 30), (0, 30)]) == pytest.approx(wilson(0, 60))
