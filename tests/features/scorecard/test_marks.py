"""Every number against one that was counted by hand."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.decisions.calibration import wilson
from decon_core.features.scorecard import marks
from decon_core.features.scorecard.marks import FINDINGS, cohens_kappa, mark
from decon_core.features.scorecard.planted_shards import TRUTH

THRESHOLDS = {"a": 0.5, "b": 0.5}


def truth_of(*rows):
    """(kind, transformation, grade) in document 0, 1, ...; items have the document's number."""
    return pl.DataFrame(
        [
            {
                "shard": "s",
                "row": at,
                "planting": str(at),
                "kind": kind,
                "transformation": transformation,
                "grade": grade,
                "benchmark": "quiz",
                "split": "test",
                "instance_index": at,
                "start": 0,
                "stop": 1,
                "place": "alone",
            }
            for at, (kind, transformation, grade) in enumerate(rows)
        ],
        schema=TRUTH,
    )


def findings_of(*rows):
    """(detector, document, item, score); from 0.5 on it is a leak, at 0.3 without the answer."""
    return pl.DataFrame(
        [
            (detector, "s", row, "quiz", "test", item, score, score >= 0.5, score == 0.3)
            for detector, row, item, score in rows
        ],
        schema=FINDINGS,
        orient="row",
    )


PLANT, OTHER = ("plant", "verbatim", ""), ("plant", "words replaced", "5 %")
NEGATIVE = ("hard_negative", "passage alone", "")
TRUTH_ROWS = truth_of(PLANT, PLANT, OTHER, OTHER, NEGATIVE, NEGATIVE)
FINDING_ROWS = findings_of(
    ("a", 0, 0, 0.9),
    ("a", 1, 1, 0.8),
    ("a", 2, 2, 0.6),
    ("a", 3, 7, 0.9),  # another item in the document of a plant
    ("a", 4, 9, 0.7),  # a false alarm
    ("a", 5, 9, 0.4),
    ("b", 0, 0, 0.9),
    ("b", 3, 3, 0.5),
    ("b", 8, 3, 0.9),  # background
    ("b", 8, 4, 0.9),
)


@pytest.fixture
def marked():
    return mark(TRUTH_ROWS, FINDING_ROWS, thresholds=THRESHOLDS, n_background=10)


def test_no_answer_is_counted_apart_and_never_where_there_is_a_leak():
    findings = findings_of(
        ("a", 0, 0, 0.9),  # a leak, and no answer elsewhere in the document
        ("a", 0, 0, 0.3),
        ("a", 1, 1, 0.3),
        ("a", 4, 9, 0.3),  # a hard negative
        ("a", 8, 3, 0.3),  # background
        ("a", 9, 3, 0.3),
        ("a", 9, 4, 0.9),
    )
    found = mark(TRUTH_ROWS, findings, thresholds=THRESHOLDS, n_background=10)
    a, b = found.totals.iter_rows(named=True)
    names = ("n_no_answer", "n_negatives_no_answer", "n_background_no_answer")
    assert [a[name] for name in names] == [1, 1, 1]
    assert [b[name] for name in names] == [0, 0, 0]
    assert (a["n_found"], a["n_false_alarms"], a["n_background_flagged"]) == (1, 0, 1)
    assert found.recall.filter(detector="a", transformation="verbatim")["n_no_answer"][0] == 1
    assert found.negatives.filter(detector="a")["n_no_answer"].to_list() == [1]


def test_recall_is_counted_by_rule_and_transformation(marked):
    rows = marked.recall.select(
        "detector", "transformation", "grade", "n", "n_found", "recall"
    ).rows()
    assert rows == [
        ("a", "verbatim", "", 2, 2, 1.0),
        ("b", "verbatim", "", 2, 1, 0.5),
        ("a", "words replaced", "5 %", 2, 1, 0.5),
        ("b", "words replaced", "5 %", 2, 1, 0.5),
    ]


def test_any_item_flagged_in_a_hard_negative_is_a_false_alarm(marked):
    rows = marked.negatives.select("detector", "negative", "n", "n_flagged").rows()
    assert rows == [("a", "passage alone", 2, 1), ("b", "passage alone", 2, 0)]


def test_totals_are_those_of_the_tables(marked):
    a, b = marked.totals.rows(named=True)
    assert (a["n_planted"], a["n_found"], a["n_false_alarms"], a["precision"]) == (4, 3, 1, 0.75)
    assert (b["n_planted"], b["n_found"], b["n_false_alarms"], b["precision"]) == (4, 2, 0, 1.0)
    assert (a["n_background_flagged"], b["n_background_flagged"], b["n_background"]) == (0, 1, 10)


def test_a_curve_has_a_point_for_each_score(marked):
    points = marked.curves.filter(detector="a").select("score", "n_found", "n_false_alarms").rows()
    assert points == [(0.9, 1, 0), (0.8, 2, 0), (0.7, 2, 1), (0.6, 3, 1), (0.4, 3, 2)]
    assert marked.curves.filter(detector="a")["recall"].to_list() == [0.25, 0.5, 0.5, 0.75, 0.75]
    precision = 0.25 * 1 + 0.25 * 1 + 0.25 * 0.75
    assert marked.totals["average_precision"][0] == pytest.approx(precision)


def test_agreement_counts_planted_items(marked):
    (row,) = marked.agreement.rows(named=True)
    counts = [row[f"n_{name}"] for name in ("both", "only_first", "only_second", "neither")]
    assert counts == [1, 2, 1, 0]
    assert row["jaccard"] == 0.25
    # They agree on 1 of 4; by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2.
    assert row["kappa"] == pytest.approx((0.25 - 0.5) / 0.5)


def test_what_one_rule_finds_alone_and_all_find(marked):
    assert marked.found.rows() == [("quiz", "a", 4, 3, 2, 1, 0), ("quiz", "b", 4, 2, 1, 1, 0)]


def test_a_rule_that_saw_nothing_is_in_every_table(marked):
    none = mark(TRUTH_ROWS, FINDING_ROWS.clear(), thresholds=THRESHOLDS)
    assert none.totals["n_found"].to_list() == [0, 0]
    assert none.totals["precision"].to_list() == [None, None]
    assert none.totals["average_precision"].to_list() == [0.0, 0.0]
    assert none.agreement["jaccard"].to_list() == [None]
    assert none.agreement["kappa"].to_list() == [None]
    assert none.recall.height == marked.recall.height


def test_tables_have_their_declared_columns(marked):
    for name in ("recall", "negatives", "totals", "curves", "agreement", "found"):
        schema = marks.SCHEMAS[name]
        assert getattr(marked, name).schema == schema
        empty = mark(TRUTH_ROWS.clear(), FINDING_ROWS.clear(), thresholds=THRESHOLDS)
        assert getattr(empty, name).schema == schema


def test_the_order_of_rows_changes_nothing(marked):
    again = mark(
        TRUTH_ROWS.reverse(), FINDING_ROWS.reverse(), thresholds=THRESHOLDS, n_background=10
    )
    for name in ("recall", "negatives", "totals", "curves", "agreement", "found"):
        assert getattr(again, name).equals(getattr(marked, name))


def test_several_calls_of_one_item_count_once(marked):
    twice = mark(
        TRUTH_ROWS,
        pl.concat([FINDING_ROWS, findings_of(("a", 0, 0, 0.2))]),
        thresholds=THRESHOLDS,
        n_background=10,
    )
    assert twice.totals.equals(marked.totals)


def test_wilson_agrees_with_published_values():
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for n_found, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(n_found / n if n else 0, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 300), st.integers(1, 300))
def test_prop_an_interval_holds_its_share(n_found, n):
    low, high = wilson(min(n_found, n) / n if n else 0, n)
    assert 0 <= low <= min(n_found, n) / n + 1e-12
    assert min(n_found, n) / n - 1e-12 <= high <= 1


def test_kappa_of_a_textbook_example():
    # Cohen's kappa for 20 both, 5 and 10 one only, 15 neither: (0.7 - 0.5) / 0.5.
    assert cohens_kappa(20, 5, 10, 15) == pytest.approx(0.4)
    assert cohens_kappa(5, 0, 0, 0) is None
    assert cohens_kappa(0, 0, 0, 0) is None
