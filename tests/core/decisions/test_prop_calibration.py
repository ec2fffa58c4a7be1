"""The probability by score: as the oracle has it, never falling, whatever the order of pairs."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.decisions.calibration import (
    ALL,
    Calibration,
    Curve,
    Point,
    calibrate,
    cross_validated,
    fit_steps,
    wilson,
)
from tests.oracle import calibration as oracle

# Few different scores, so that many are equal.
SCORES = st.one_of(
    st.integers(0, 20).map(lambda n: n / 20), st.floats(0, 1).map(lambda x: round(x, 6))
)
JUDGED = st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=300)


def points(judged, *, detector="decon", benchmark="quiz"):
    return [
        Point(detector, benchmark, f"{n:016x}", f"{n // 2:016x}", score, is_sd)
        for n, (score, is_sd) in enumerate(judged)
    ]


@given(JUDGED, st.floats(0, 1))
def test_the_probability_is_that_of_the_oracle(judged, score):
    curve = Curve(fit_steps(judged))
    for at in (round(score, 6), *(one for one, _ in judged[:20])):
        step, wanted = curve.step_at(at), oracle.probability(judged, at)
        assert (step is None) == (wanted is None)
        if step is not None and wanted is not None:
            assert step.n_sd * wanted.denominator == wanted.numerator * step.n_judged


@given(JUDGED)
def test_it_never_falls_and_stays_within_its_interval_and_within_0_and_1(judged):
    steps = fit_steps(judged)
    assert sum(one.n_judged for one in steps) == len(judged)
    assert sum(one.n_sd for one in steps) == sum(is_sd for _, is_sd in judged)
    for one in steps:
        assert one.score_from <= one.score_to
        assert 0 <= one.low <= one.probability <= one.high <= 1
    for one, following in pairwise(steps):
        assert one.score_to < following.score_from
        assert one.probability <= following.probability
        assert one.low <= following.low
        assert one.high <= following.high


@given(JUDGED, st.randoms(use_true_random=False))
def test_no_order_of_the_pairs_makes_a_difference(judged, rng):
    every = points(judged) + points(judged[:30], benchmark="exam")
    before = calibrate(every)
    rng.shuffle(every)
    assert calibrate(every) == before
    assert Calibration.from_json(json.loads(json.dumps(before.to_json()))) == before


@given(JUDGED)
def test_more_certain_than_the_pairs_it_is_never(judged):
    """The interval of a step is not narrower than that of all its pairs and those beyond it."""
    steps = fit_steps(judged)
    for at, one in enumerate(steps):
        below = [wilson(other.probability, other.n_judged)[0] for other in steps[: at + 1]]
        assert one.low == max(below)


def test_a_text_of_two_benchmarks_is_one_pair_of_all():
    twice = points([(0.5, True)]) + points([(0.6, True)], benchmark="exam")
    found = calibrate(twice).curves
    assert found["decon", ALL].n_judged == 1
    assert (found["decon", "quiz"].n_judged, found["decon", "exam"].n_judged) == (1, 1)


def test_a_benchmark_with_too_few_pairs_takes_the_curve_of_all():
    few = points([(0.5, True)] * 20, benchmark="exam")
    many = [one._replace(pair=f"p{one.pair}") for one in points([(0.5, False)] * 30)]
    found = calibrate(few + many)
    assert found.probability("decon", "exam", 0.7, least=5) == 1.0
    assert found.probability("decon", "exam", 0.7, least=21) == 0.4
    assert found.probability("decon", "new", 0.7, least=50) == 0.4
    assert found.probability("decon", "quiz", 0.7, least=51) is None
    assert calibrate(few[:19]).probability("decon", "exam", 0.7, least=5) is None
    assert found.probability("ratcliff", "quiz", 0.7, least=1) is None
    assert found.probability("decon", "quiz", 0.4999, least=1) is None
    assert found.n_judged("decon") == 50


def test_pairs_of_an_item_are_in_one_fold_and_one_item_cannot_be_validated():
    alone = [one._replace(item="a") for one in points([(n / 10, n > 4) for n in range(10)])]
    assert cross_validated(alone) is None
    rng = random.Random(1)
    judged = [(score, rng.random() < score) for score in (rng.random() for _ in range(400))]
    fit = cross_validated(points(judged))
    assert fit is not None
    assert fit.brier < fit.brier_of_share
    assert fit.error < 0.08


@pytest.mark.parametrize("n", [60, 300])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(n):
    """At the middle of the scores of a step, in 200 worlds of a known rising probability."""
    rng = np.random.default_rng(n)
    covered, asked = 0, 0
    for _ in range(200):
        scores = rng.random(n)
        truth = 1 / (1 + np.exp(-12 * (scores - 0.6)))
        for one in fit_steps(
            [*zip(scores.tolist(), (rng.random(n) < truth).tolist(), strict=True)]
        ):
            inside = truth[(scores >= one.score_from) & (scores <= one.score_to)]
            covered += one.low <= inside.mean() <= one.high
            asked += 1
    assert covered / asked > 0.93
