"""Which scores are refused beside which others."""

import pytest

from decon_core.features.results.scales import Part, mix_of_scales


def mix(*tops, metric="acc", declared=(), is_of_items=True):
    parts = [
        Part(task=f"task{n}", metric=metric, place=f"{n}.csv", highest=top, is_of_items=is_of_items)
        for n, top in enumerate(tops)
    ]
    return mix_of_scales("here", parts, declared, "Rescale.")


@pytest.mark.parametrize("is_of_items", [True, False])
@pytest.mark.parametrize("tops", [(1, 100), (0.62, 57.1), (57.1, 0, 0.3), (0.8, 9.5, -3)])
def test_scores_above_1_beside_scores_up_to_1_are_refused(tops, is_of_items):
    assert mix(*tops, is_of_items=is_of_items)


@pytest.mark.parametrize(
    "tops", [(), (0.3,), (1, 1, 0.2), (57.1, 100), (0, 100), (0, 1), (-2, 80), (-2, 0.5)]
)
def test_scores_on_one_scale_and_zeros_are_not(tops):
    assert mix(*tops) is None
    assert mix(*tops, is_of_items=False) is None


def test_a_score_of_an_item_a_little_above_1_is_of_no_certain_scale():
    assert mix(1.15, 0.97, metric="comet") is None
    assert mix(1.15, 60, metric="comet") is None
    assert mix(1.15, 0.97, metric="comet", is_of_items=False)
    assert mix(1 + 1e-9, 0.97, is_of_items=False) is None
    assert mix(1 + 1e-9, 60, is_of_items=False)


@pytest.mark.parametrize(
    "metric", ["word_perplexity", "bits_per_byte", "bleu_diff", "predicted_index_raw", "metricx"]
)
def test_metrics_without_an_upper_bound_may_be_above_and_below_1(metric):
    assert mix(0.7, 1.4, 12, metric=metric) is None


def test_low_scores_of_0_to_100_are_declared():
    assert mix(0.8, 43, declared=["task0"]) is None
    assert mix(0.8, 43, declared=["*"]) is None
    assert mix(0.8, 43, declared=["other"])
    said = str(mix(0.8, 0.4, declared=["task0"]))  # what is declared is another scale, too
    assert "a scale beyond 1 (acc of task0, up to 0.8, in 0.csv)" in said
    assert mix(0, 0.4, declared=["task0"]) is None


def test_a_refusal_names_some_of_each_scale_and_counts_the_others():
    said = str(mix(100, 1, 1, 1, 1, 1, 1))
    assert said == (
        "here: found a scale beyond 1 (acc of task0, up to 100, in 0.csv) and scores of 1 or less "
        "(acc of task1, up to 1, in 1.csv; acc of task2, up to 1, in 2.csv; acc of task3, up to 1, "
        "in 3.csv; acc of task4, up to 1, in 4.csv; and 2 more); expected scores on one scale, "
        "because they are averaged or compared. Rescale."
    )
