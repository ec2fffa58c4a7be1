"""The nearest paragraphs: equal to the oracle's, however the paragraphs are divided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.features.neighbours.nearest import EDGES, Nearest, drawn, n_by_bin, similarity
from decon_core.features.neighbours.vectors import SCALE, rounded
from tests.oracle import similarity as oracle


def vectors(draw, least):
    n = draw(st.integers(least, 30))
    # Few different values: many paragraphs are equally similar.
    values = st.lists(st.sampled_from([-18_000, -7, 0, 7, 18_000]), min_size=3, max_size=3)
    return np.array([draw(values) for _ in range(n)], np.int16).reshape(n, 3)


@given(st.data())
def test_the_nearest_are_the_oracles_in_any_division(data):
    items, paragraphs = (data.draw(st.composite(vectors)(least=1)) for _ in range(2))
    top = data.draw(st.integers(1, 5))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(paragraphs)), max_size=4)))
    nearest = Nearest(items, top)
    best = []
    for start, stop in zip([0, *cuts], [*cuts, len(paragraphs)], strict=True):
        best += nearest.add(paragraphs[start:stop], start).tolist()
    expected = oracle.nearest(items.tolist(), paragraphs.tolist(), top)
    rows = [
        (item, rank, place, float(similarity(np.array([product]))[0]))
        for item, found in enumerate(expected)
        for rank, (product, place) in enumerate(found, start=1)
    ]
    assert [*zip(*(column.tolist() for column in nearest.nearest()), strict=True)] == rows
    products = paragraphs.astype(np.int64) @ items.T.astype(np.int64)
    assert best == similarity(products.max(axis=1)).tolist()
    assert nearest.best.tolist() == similarity(products.max(axis=0)).tolist()


def test_the_best_similarity_is_counted_by_source_and_the_nearest_are_not():
    items = np.array([[SCALE, 0]], np.int16)
    nearest = Nearest(items, 1)
    nearest.add(np.array([[SCALE, 0]], np.int16), 0)
    nearest.start_source()
    nearest.add(np.array([[0, SCALE]], np.int16), 1)
    assert nearest.best.tolist() == [0.0]
    assert nearest.nearest()[2].tolist() == [0]


def test_rounding_changes_a_cosine_by_less_than_a_ten_thousandth():
    rng = np.random.default_rng(0)
    exact = rng.normal(size=(200, 384)).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    products = rounded(exact).astype(np.float64) @ rounded(exact).T.astype(np.float64)
    assert np.abs(similarity(products) - exact @ exact.T).max() < 1e-4


def test_a_value_at_an_edge_is_in_the_bin_above_it():
    counts = n_by_bin(np.array([*EDGES, 1.0, -0.3, -np.inf]))
    assert counts.tolist() == [2, *[1] * 18, 2]


@given(st.data())
def test_a_draw_takes_some_of_each_items_nearest_and_says_how_many_they_stand_for(data):
    items, paragraphs = (data.draw(st.composite(vectors)(least=1)) for _ in range(2))
    near, n = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    nearest = Nearest(items, near)
    nearest.add(paragraphs, 0)
    found = nearest.nearest()
    chosen, stand_for = drawn(found, n, "name")
    all_rows = {*zip(*(column.tolist() for column in found), strict=True)}
    rows = [*zip(*(column.tolist() for column in chosen), strict=True)]
    assert rows == sorted(rows, key=lambda row: row[:2])
    assert {*rows} <= all_rows
    n_near = min(near, len(paragraphs))
    assert len(rows) == len({*rows}) == min(n, n_near) * len(items)
    assert stand_for.sum() == pytest.approx(len(all_rows))


def test_another_name_draws_others():
    rng = np.random.default_rng(0)
    items, paragraphs = rng.integers(-9, 9, (1, 3)), rng.integers(-9, 9, (500, 3))
    nearest = Nearest(items.astype(np.int16), 400)
    nearest.add(paragraphs.astype(np.int16), 0)
    found = nearest.nearest()
    draws = [drawn(found, 100, name)[0].ranks for name in ("one", "one", "other")]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()
    assert 150 < draws[0].mean() < 250  # from all of the nearest, not only the first
