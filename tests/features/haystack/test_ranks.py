"""Ranks, percentiles and amplification: the example of the write-up, ties, and a slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.seeding import fractions
from decon_core.features.haystack.run import amplification, rank

SCORES = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=30)


def test_items_that_are_all_in_the_top_five_percent_become_twenty_times_as_frequent():
    """GAPERON, section 3.1.2: 35 items in 100,000 documents; a cut at 5 % gives a factor of 20."""
    documents = fractions("documents", 99_965)
    planted = 0.951 + 0.049 * fractions("planted", 35)
    ranking = rank(documents, planted)
    assert ranking.percentiles.min() > 95
    found = amplification(ranking, 0.05)
    assert found.n_kept == 4_998
    assert found.planted_kept == 35
    assert found.amplification == pytest.approx(20, abs=0.01)
    assert found.low < 20 <= found.high + 0.01


def test_a_scorer_that_does_not_favour_items_amplifies_nothing():
    ranking = rank(fractions("documents", 20_000), fractions("planted", 2_000))
    for cut in (0.05, 0.25, 0.5):
        found = amplification(ranking, cut)
        assert found.low < 1 < found.high
    assert amplification(ranking, 1.0).amplification == 1


def test_equal_scores_share_the_middle_of_their_ranks():
    ranking = rank(np.array([3.0, 2.0, 2.0, 1.0]), np.array([4.0, 2.0, 1.0, 0.0]))
    assert ranking.ranks.tolist() == [1.0, 3.0, 4.5, 5.0]
    assert ranking.percentiles.tolist() == [100.0, 50.0, 12.5, 0.0]


def test_of_equal_scores_at_the_cut_as_many_are_kept_as_by_chance():
    constant = rank(np.zeros(99), np.zeros(10))
    found = amplification(constant, 0.2)
    assert found.n_kept == 20
    assert found.planted_kept == pytest.approx(10 * 20 / 99)
    assert found.amplification == pytest.approx(1)


def test_the_place_of_an_item_does_not_depend_on_the_other_planted_items():
    documents = fractions("documents", 500)
    together = rank(documents, np.array([0.9, 0.95, 0.2]))
    alone = rank(documents, np.array([0.2]))
    assert together.ranks[2] == alone.ranks[0]


@given(SCORES, SCORES, st.integers(1, 100))
def test_ranks_and_kept_items_equal_those_of_a_plain_count(documents, planted, percent):
    ranking = rank(np.array(documents), np.array(planted))
    found = amplification(ranking, percent / 100)
    n, kept = len(documents), 0.0
    for at, score in enumerate(planted):
        above = sum(one > score for one in documents)
        equal = sum(one == score for one in documents)
        assert ranking.ranks[at] == 1 + above + equal / 2
        assert ranking.percentiles[at] == pytest.approx(100 * (n - above - equal / 2) / n)
        of_equal = [above + before < found.n_kept for before in range(max(equal, 1))]
        kept += 1 if found.n_kept == n else np.mean(of_equal)
    assert found.planted_kept == pytest.approx(kept)
    assert found.low <= found.amplification <= found.high


@given(SCORES, SCORES, st.lists(st.integers(1, 100), min_size=2, max_size=2).map(sorted))
def test_a_filter_that_keeps_more_documents_keeps_no_fewer_items(documents, planted, percents):
    ranking = rank(np.array(documents), np.array(planted))
    few, many = (amplification(ranking, one / 100).planted_kept for one in percents)
    assert few <= many
