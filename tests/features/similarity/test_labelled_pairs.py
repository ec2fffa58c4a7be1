"""Labelled pairs: reading a file, and AUC and recall with ties, intervals and undefined values."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.errors import InputError
from decon_core.features.similarity.labelled_pairs import (
    LabelledPairs,
    read_labelled_pairs,
    score_kinds,
    score_metrics,
)
from decon_core.features.similarity.pair_card import score_pairs
from tests.oracle import similarity as oracle

# Few distinct values: many ties.
VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=150)


def pairs_of(n_duplicates, n_others, *, kinds=None):
    n = n_duplicates + n_others
    return LabelledPairs(
        originals=tuple(f"original {at}" for at in range(n)),
        others=tuple(f"other {at}" for at in range(n)),
        are_duplicates=np.arange(n) < n_duplicates,
        kinds=tuple(kinds or [""] * n),
    )


def score(duplicates, others):
    values = np.array([*duplicates, *others], np.float64)
    (found,) = score_metrics(pairs_of(len(duplicates), len(others)), {"metric": values})
    return found


@given(VALUES, VALUES)
def test_auc_and_recall_are_the_oracles(duplicates, others):
    found = score(duplicates, others)
    assert found.auc == pytest.approx(oracle.auc(duplicates, others))
    assert (found.recall, found.above) == oracle.recall(duplicates, others, 1)


def test_equal_values_win_half():
    assert score([0.5] * 3, [0.5] * 4).auc == 0.5


def test_one_percent_of_the_other_pairs_may_be_above():
    others = [0.9, 0.8, *np.linspace(0, 0.5, 198)]
    found = score([0.95, 0.85, 0.6, 0.4], others)
    assert found.above == 0.5  # 2 of 200 are above
    assert found.recall == 0.75


def test_below_a_hundred_other_pairs_none_may_be_above():
    found = score([0.95, 0.85], [0.9, *np.linspace(0, 0.5, 98)])
    assert (found.above, found.recall) == (0.9, 0.5)


def test_a_value_that_too_many_other_pairs_have_is_not_exceeded_by_itself():
    assert score([1.0] * 9, [1.0] * 3 + [0.0] * 97).recall == 0.0


def test_pairs_without_a_value_rank_last():
    found = score([0.5, math.nan], [math.nan, 0.0])
    assert found.n_undefined == 2
    assert found.auc == (1 + 1 + 0 + 0.5) / 4
    assert (found.recall, found.above) == (0.5, 0.0)


def test_without_any_value_nothing_is_found():
    found = score([math.nan] * 2, [math.nan] * 3)
    assert (found.auc, found.recall, found.above) == (0.5, 0.0, -math.inf)


@given(VALUES, VALUES)
def test_a_score_is_within_its_interval(duplicates, others):
    found = score(duplicates, others)
    assert 0 <= found.auc_low <= found.auc <= found.auc_high <= 1
    assert 0 <= found.recall_low <= found.recall <= found.recall_high <= 1


def test_more_pairs_make_a_narrower_interval():
    rng = np.random.default_rng(0)
    few, many = (score(rng.normal(1, 1, n), rng.normal(0, 1, n)) for n in (50, 2000))
    assert many.auc_high - many.auc_low < (few.auc_high - few.auc_low) / 4


def test_a_perfect_score_of_few_pairs_is_not_certain():
    found = score([1.0] * 8, [0.0] * 8)
    assert (found.auc, found.auc_high) == (1.0, 1.0)
    assert found.auc_low < 0.85


def test_pairs_of_one_original_do_not_narrow_the_interval():
    rng = np.random.default_rng(1)
    values = np.append(rng.normal(1, 1, 60), rng.normal(0, 1, 60))
    alone = pairs_of(60, 60)
    repeated = LabelledPairs(
        *(10 * column for column in (alone.originals, alone.others)),
        np.tile(alone.are_duplicates, 10),
        10 * alone.kinds,
    )
    (one,), (ten,) = (
        score_metrics(pairs, {"metric": np.tile(values, n)})
        for pairs, n in ((alone, 1), (repeated, 10))
    )
    assert one.auc == pytest.approx(ten.auc)
    assert ten.auc_high - ten.auc_low == pytest.approx(one.auc_high - one.auc_low, rel=0.01)


def test_a_kind_is_scored_against_all_pairs_of_the_other_label():
    pairs = pairs_of(2, 4, kinds=["same", "same", "near", "near", "far", "far"])
    values = {"metric": np.array([0.9, 0.5, 0.7, 0.7, 0.1, 0.1])}
    scores = score_kinds(pairs, values)
    assert [(one.kind, one.is_duplicate, one.n) for one in scores] == [
        ("same", True, 2),
        ("far", False, 2),
        ("near", False, 2),
    ]
    assert [one.auc for one in scores] == [0.75, 1.0, 0.5]


def test_without_kinds_there_is_no_such_table():
    assert score_kinds(pairs_of(1, 1), {"metric": np.array([1.0, 0.0])}) == []


# Files ----------------------------------------------------------------------------------------


def write(folder, *lines, name="pairs.jsonl"):
    path = folder / name
    path.write_text(
        "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    )
    return path


GOOD = {"original": "two eggs", "other": "2 eggs", "label": True}
BAD = {"original": "two eggs", "other": "hens", "label": 0, "kind": "topic"}


def test_rows_that_hold_no_pair_are_reported_with_place_and_reason(tmp_path):
    path = write(
        tmp_path, GOOD, "{", "[1]", {**GOOD, "other": " "}, {**GOOD, "label": "maybe"}, BAD
    )
    pairs, problems = read_labelled_pairs(path)
    assert (len(pairs), pairs.kinds) == (2, ("", "topic"))
    reasons = {str(one).rpartition("pairs.jsonl ")[2].split(";")[0] for one in problems}
    assert len(problems) == 4
    assert any(one.startswith("row 4: found `other`") for one in reasons)
    assert any(one.startswith("row 5: found `label`") for one in reasons)


@pytest.mark.parametrize("label", [True, 1, "true", "True", "1"])
def test_a_label_may_be_written_in_these_ways(tmp_path, label):
    pairs, problems = read_labelled_pairs(write(tmp_path, {**GOOD, "label": label}, BAD))
    assert pairs.are_duplicates.tolist() == [True, False]
    assert not problems


def test_a_csv_file_is_read_too(tmp_path):
    lines = ["original,other,label", "two eggs,2 eggs,1", "two eggs,hens,0"]
    pairs, _ = read_labelled_pairs(write(tmp_path, *lines, name="pairs.csv"))
    assert pairs.others == ("2 eggs", "hens")


@pytest.mark.parametrize("rows", [[GOOD], [BAD], ["{"]])
def test_a_file_needs_pairs_of_both_labels(tmp_path, rows):
    with pytest.raises(InputError, match="label"):
        read_labelled_pairs(write(tmp_path, *rows))


def test_a_file_that_does_not_exist_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_labelled_pairs(tmp_path / "absent.jsonl")


def test_the_card_holds_the_scores_and_the_values_of_each_pair(tmp_path):
    card = score_pairs(write(tmp_path, GOOD, BAD, "{"))
    card.write(tmp_path / "card")
    scores = json.loads((tmp_path / "card" / "pairs.json").read_text())
    assert (scores["n_pairs"], scores["n_unreadable"]) == (2, 1)
    by_name = {one["metric"]: one for one in scores["metrics"]}
    assert by_name["numbers"]["auc"] == 1.0
    page = (tmp_path / "card" / "pairs.md").read_text()
    assert "1 row contains no pair" in page
    lines = (tmp_path / "card" / "pairs.csv").read_text().splitlines()
    assert lines[0].startswith("pair,label,kind,jaccard_1")
    assert lines[2].startswith("2,false,topic,")
    drawing = (tmp_path / "card" / "pairs.svg").read_text()
    assert "jaccard_1: duplicates" in drawing
    assert "numbers: other pairs" in drawing


def test_a_card_is_the_same_when_made_again(tmp_path):
    path = write(tmp_path, GOOD, BAD)
    for folder in ("a", "b"):
        score_pairs(path, seed=3).write(tmp_path / folder)
    for name in ("pairs.md", "pairs.json", "pairs.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
