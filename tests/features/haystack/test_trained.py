"""The small classifiers: deterministic, and they tell apart what they were trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.features.haystack.examples import instructions, teaching_texts
from decon_core.features.haystack.trained import (
    _N_FEATURES,
    _PENALTY,
    _RATE,
    _STEPS,
    Groups,
    TrainedScorer,
    features_of,
    train,
)
from tests.core.conftest import words

WEB = [f"welcome to the page of {words(n, 30)}" for n in range(60)]


def test_every_example_is_filled_and_no_two_are_the_same():
    for texts in (instructions(), teaching_texts()):
        assert len(texts) == len(set(texts)) > 500
        assert not any(sign in text for text in texts for sign in "{}")


def test_texts_that_were_not_trained_on_are_told_apart():
    scorer = train(instructions(200), WEB[:40])
    held_out = scorer.score(instructions(300)[250:])
    assert np.median(held_out) > 0 > np.median(scorer.score(WEB[40:]))


def test_the_same_texts_give_the_same_scores_in_any_company():
    texts = [*instructions(20), *WEB[:20], "", "ein \ud800 Wort"]
    scores = train(instructions(40), WEB).score(texts)
    again = train(instructions(40), WEB)
    assert scores.tolist() == [float(again.score([text])[0]) for text in texts]


def test_groups_count_equally_whatever_their_sizes():
    scorer = train(instructions(10), WEB)
    repeated = train(instructions(10) * 5, WEB)
    assert np.allclose(scorer.score(WEB), repeated.score(WEB), atol=1e-5)


def test_features_have_length_one_and_differ_by_the_order_of_words():
    features = features_of(["a dog bit a man", "a man bit a dog", ""])
    lengths = np.bincount(features.rows, features.values**2, minlength=3)
    assert np.allclose(lengths, [1, 1, 0])
    first, second = (set(features.columns[features.rows == row].tolist()) for row in (0, 1))
    assert first != second
    assert len(first & second) >= 4


FLOATS = st.floats(-1e6, 1e6)


@given(groups=st.lists(st.lists(FLOATS, max_size=20), max_size=8))
def test_prop_sums_of_groups_are_those_of_each_group_alone(groups):
    numbers = np.array([number for group in groups for number in group], np.float64)
    of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    sums = Groups.of(of, len(groups)).sums(numbers)
    plain = np.bincount(of, numbers, minlength=len(groups))
    assert np.allclose(sums, plain, rtol=0, atol=1e-6)
    alone = [Groups.of(np.zeros(len(one), np.int64), 1).sums(np.array(one)) for one in groups]
    assert sums.tolist() == [float(one[0]) for one in alone]


def train_all_columns(positive, negative):
    """Train as `train` does, with a weight for each of the possible features in every step."""
    features = features_of([*positive, *negative])
    rows, columns, values = features.rows, features.columns, features.values
    is_positive = np.arange(features.n) < len(positive)
    share = np.where(is_positive, 0.5 / len(positive), 0.5 / len(negative))
    weights, bias = np.zeros(_N_FEATURES), 0.0
    for _ in range(_STEPS):
        logits = np.bincount(rows, values * weights[columns], minlength=features.n) + bias
        residuals = (1 / (1 + np.exp(-logits)) - is_positive) * share
        gradient = np.bincount(columns, values * residuals[rows], minlength=_N_FEATURES)
        weights -= _RATE * (gradient + _PENALTY * weights)
        bias -= _RATE * float(residuals.sum())
    return weights, bias


@pytest.mark.parametrize("positive", [instructions(20), ["", "a dog bit a man"], [""]])
def test_training_without_unused_features_gives_the_same_weights_and_scores(positive):
    negative = [*WEB, ""] if len(positive) > 1 else [""]
    scorer = train(positive, negative)
    weights, bias = train_all_columns(positive, negative)
    assert np.allclose(scorer.weights, weights, rtol=0, atol=1e-12)
    assert abs(scorer.bias - bias) < 1e-12
    texts = [*positive, *negative]
    assert scorer.score(texts).tolist() == TrainedScorer(weights, bias).score(texts).tolist()
