"""Interval and chance of a gap, against plain loops and worlds in which the truth is known."""

from itertools import combinations
from statistics import mean

import numpy as np
import pytest

from decon_core.decisions.statistics import N_DRAWS, interval, p_value


def by_loops(leaked, clean):
    """Every way to call as many items leaked: the share with a difference as large."""
    scores = [*leaked, *clean]
    observed = abs(mean(leaked) - mean(clean))
    hits = []
    for chosen in combinations(range(len(scores)), len(leaked)):
        inside = [scores[at] for at in chosen]
        outside = [score for at, score in enumerate(scores) if at not in chosen]
        hits.append(abs(mean(inside) - mean(outside)) >= observed - 1e-12)
    return float(np.mean(hits))


@pytest.mark.parametrize(
    ("leaked", "clean"),
    [
        ([1, 1, 0], [0, 0, 1, 0, 0]),
        ([1, 1, 1, 1], [0, 0, 0]),
        ([0], [1, 1, 1, 0, 1]),
        ([1, 0], [0, 1]),
        ([0.2, 0.9, 0.4], [0.1, 0.3, 0.35, 0.2]),
        ([0.5, 0.25, 1.0], [0.5, 0.5, 0.0, 0.25, 0.75]),
    ],
)
def test_the_chance_of_few_items_is_that_of_every_way_to_draw_them(leaked, clean):
    found = p_value(np.array(leaked, float), np.array(clean, float), "any")
    assert found == pytest.approx(by_loops(leaked, clean), abs=1e-12)


def test_two_of_two_against_none_of_three_by_hand():
    """Of the 10 ways to choose 2 of 5 items one gives (1, 1), and none is as far the other way."""
    assert p_value(np.array([1.0, 1.0]), np.zeros(3), "any") == pytest.approx(1 / 10)


def test_scores_that_are_all_the_same_are_no_gap():
    assert p_value(np.ones(4), np.ones(9), "any") == 1.0


def test_the_chance_that_is_drawn_is_near_the_exact_one():
    rng = np.random.default_rng(3)
    leaked, clean = rng.random(8).round(2) + 0.2, rng.random(8).round(2)
    exact = by_loops([*leaked], [*clean])  # 12,870 ways: more than are tried
    drawn = p_value(leaked, clean, "any")
    assert drawn == pytest.approx(exact, abs=4 * (exact * (1 - exact) / N_DRAWS) ** 0.5)
    assert drawn * (N_DRAWS + 1) == pytest.approx(round(drawn * (N_DRAWS + 1)))


def test_what_was_observed_counts_as_one_draw():
    leaked, clean = np.arange(100.0, 120.0), np.arange(0.0, 20.0)
    assert p_value(leaked, clean, "any") == 1 / (N_DRAWS + 1)


def test_the_interval_is_that_of_items_drawn_one_by_one():
    leaked, clean = np.repeat([1.0, 0.0], [20, 10]), np.repeat([1.0, 0.0], [30, 40])
    rng = np.random.default_rng(0)
    gaps = [
        rng.choice(leaked, leaked.size).mean() - rng.choice(clean, clean.size).mean()
        for _ in range(10_000)
    ]
    assert interval(leaked, clean, "any") == pytest.approx(
        tuple(np.quantile(gaps, [0.025, 0.975])), abs=0.02
    )
    # The same items with scores of three values go the long way.
    many = np.append(leaked[:-1], 1e-9)
    assert interval(many, clean, "any") == pytest.approx(interval(leaked, clean, "any"), abs=0.02)


def test_a_name_decides_the_draws():
    rng = np.random.default_rng(1)
    leaked, clean = rng.random(15), rng.random(30)
    assert interval(leaked, clean, "a") == interval(leaked, clean, "a")
    assert interval(leaked, clean, "a") != interval(leaked, clean, "b")
    assert p_value(leaked, clean, "a") == p_value(leaked, clean, "a")


@pytest.mark.parametrize("is_graded", [False, True])
def test_the_interval_holds_the_true_gap_in_95_of_100_worlds(is_graded):
    rng = np.random.default_rng(11)
    n_worlds, n_held = 400 if not is_graded else 120, 0
    for world in range(n_worlds):
        if is_graded:
            leaked, clean, truth = rng.normal(0.6, 0.2, 60), rng.normal(0.5, 0.3, 90), 0.1
        else:
            leaked = (rng.random(60) < 0.7).astype(float)
            clean, truth = (rng.random(150) < 0.5).astype(float), 0.2
        low, high = interval(leaked, clean, f"world {world}")
        n_held += low <= truth <= high
    assert 0.91 <= n_held / n_worlds <= 0.985


@pytest.mark.parametrize("is_graded", [False, True])
def test_without_an_effect_every_chance_is_as_likely(is_graded):
    rng = np.random.default_rng(5)
    n_worlds, n_items = (150, 60) if is_graded else (400, 2_000)
    found = []
    for world in range(n_worlds):
        scores = rng.random(n_items)
        scores = scores if is_graded else (scores < 0.6).astype(float)
        found.append(p_value(scores[: n_items // 3], scores[n_items // 3 :], f"world {world}"))
    for share in (0.1, 0.25, 0.5, 0.75):
        noise = 4 * (share * (1 - share) / n_worlds) ** 0.5
        step = 0 if is_graded else 0.08  # sums of zeros and ones are whole, so some are missing
        assert share - step - noise <= np.mean([p <= share for p in found]) <= share + noise


def test_a_true_effect_is_seen():
    leaked, clean = np.repeat([1.0, 0.0], [80, 20]), np.repeat([1.0, 0.0], [200, 200])
    low, high = interval(leaked, clean, "any")
    assert 0.15 < low < 0.3 < high < 0.45
    assert p_value(leaked, clean, "any") < 1e-6


def test_many_items_are_no_matter():
    leaked, clean = np.repeat([1.0, 0.0], [2_000, 2_000]), np.repeat([1.0, 0.0], [5_000, 5_040])
    low, high = interval(leaked, clean, "any")
    assert low < 0.002 < high
    assert 0.5 < p_value(leaked, clean, "any") <= 1
