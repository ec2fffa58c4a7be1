"""Estimates from a sample: intervals hold the number of the whole corpus in repeated draws."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.corpus.sample import Sample
from decon_core.decisions import sampling

N_DRAWS = 200
LEAST_COVERAGE = 0.93


def estimate(n_found, n=1000, n_documents=100_000, share=0.01):
    drawn = {"n_sampled": n, "n_draws": n, "n_documents": n_documents}
    return sampling.documents(n_found, **drawn, share=share)


def test_the_interval_for_documents_is_that_of_clopper_and_pearson():
    # Their 95 % intervals of 3 and of 0 in 1000: 0.0619 % to 0.8742 %, and 0 to 0.3682 %.
    assert (estimate(3).value, estimate(3).low, estimate(3).high) == (300, 62, 874)
    assert (estimate(0).value, estimate(0).low, estimate(0).high) == (0, 0, 368)


def test_what_the_sample_shows_is_certain():
    assert estimate(990, n_documents=1010, share=0.99).low >= 990
    assert estimate(0, n_documents=1010, share=0.99).high <= 10
    nothing = sampling.documents(0, n_sampled=0, n_draws=0, n_documents=7, share=0.01)
    assert (nothing.low, nothing.high) == (0, 7)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_prop_more_found_is_never_less_estimated(n_found, times):
    one, more = estimate(n_found), estimate(min(n_found + times, 1000))
    assert one.low <= one.value <= one.high
    assert (one.low <= more.low, one.value <= more.value, one.high <= more.high) == (True,) * 3


# Where leaks lie in shards of 3000, 40 and 700 rows.
PLACES = {
    "none": np.array([], np.int64),
    "a single one": np.array([1717]),
    "one in each run of rows": np.arange(7, 3740, 25),
    "side by side": np.arange(100, 180),
    "in the last rows, and in the short shard": np.arange(2990, 3060),
    "nearly everywhere": np.setdiff1d(np.arange(3740), np.arange(0, 3740, 40)),
    "anywhere": np.random.default_rng(7).choice(3740, 60, replace=False),
}
SHARDS = {"a": 3000, "b": 40, "c": 700}


@pytest.mark.parametrize(
    ("places", "share"), [*((name, "0.04") for name in PLACES), ("anywhere", "0.3")]
)
def test_the_interval_holds_the_rate_of_documents_in_repeated_draws(places, share):
    is_leak = np.zeros(sum(SHARDS.values()), np.bool_)
    is_leak[PLACES[places]] = True
    values, n_held = [], 0
    for seed in range(N_DRAWS):
        sample = Sample.of(Fraction(share), seed=seed)
        is_taken = np.concatenate([sample.takes(name, np.arange(n)) for name, n in SHARDS.items()])
        found = sampling.documents(
            int(is_leak[is_taken].sum()),
            n_sampled=int(is_taken.sum()),
            n_draws=sum(map(sample.n_draws, SHARDS.values())),
            n_documents=is_leak.size,
            share=sample.share,
        )
        values.append(found.value)
        n_held += found.low <= is_leak.sum() <= found.high
    assert n_held / N_DRAWS >= LEAST_COVERAGE
    error = 4 * np.std(values) / np.sqrt(N_DRAWS)
    assert abs(np.mean(values) - is_leak.sum()) <= error + 0.03 * is_leak.sum()


def documents_of_items(copies, together=1):
    """Return a row per copy: the item and its document; so many items share each document."""
    items = np.repeat(np.arange(copies.size), copies)
    within = np.concatenate([np.arange(n) for n in copies])
    return items, items // together * int(copies.max()) + within


def estimates_of_items(items, documents, *, share, n_items, together=1):
    """Yield the estimate of each draw; every document is drawn for itself."""
    rng = np.random.default_rng(11)
    for _ in range(N_DRAWS):
        is_drawn = rng.random(documents.max() + 1) < share
        taken = is_drawn[documents]
        counts = np.unique(np.bincount(items[taken]), return_counts=True)
        by_documents = dict(zip(*(one.tolist() for one in counts), strict=True))
        by_documents.pop(0, None)
        yield sampling.items(by_documents, share=share, n_items=n_items, n_most_together=together)


RNG = np.random.default_rng(3)
COPIES = {
    "one copy of each": np.ones(400, np.int64),
    "five copies of each": np.full(300, 5),
    "a few with very many copies": np.minimum(RNG.zipf(1.7, 400), 1000),
    "a geometric number": RNG.geometric(0.2, 300),
    "one or a hundred": np.repeat([1, 100], [200, 100]),
    "few items": np.array([1, 1, 2, 3]),
}


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("share", [0.01, 0.1])
@pytest.mark.parametrize("copies", COPIES)
def test_the_interval_holds_the_number_of_leaked_items_in_repeated_draws(copies, share, together):
    n = COPIES[copies].size
    pairs = documents_of_items(np.sort(COPIES[copies]), together)
    found = [*estimates_of_items(*pairs, share=share, n_items=50 * n, together=together)]
    is_held = [one.low <= n <= one.high for one in found]
    assert np.mean(is_held) >= LEAST_COVERAGE
    assert all(one.low <= one.value <= one.high for one in found)
    if together == 1:
        assert np.mean([one.value for one in found]) <= 1.02 * n  # rather too low


def test_one_document_with_all_items_is_beyond_what_a_sample_can_tell():
    """The assumption of the upper bound does not hold: the document is mostly not drawn."""
    pairs = np.arange(2000), np.zeros(2000, np.int64)
    found = [*estimates_of_items(*pairs, share=0.01, n_items=5000)]
    assert np.mean([one.high < 2000 for one in found]) > 0.9
    assert all(one.low in (0, 2000) for one in found)


def test_an_estimate_of_items_is_never_more_than_there_are():
    found = sampling.items({1: 40, 2: 3}, share=0.01, n_items=50)
    assert (found.low, found.high) == (43, 50)
    assert found.value <= 50


def test_a_large_share_leaves_little_open():
    found = sampling.items({1: 10, 2: 90}, share=0.99, n_items=1000)
    assert found.high <= 102


# Whole shards -------------------------------------------------------------------------------------

N_SHARDS = 400
RATES = {
    "the same everywhere": np.full(N_SHARDS, 0.003),
    "a third of the shards": np.where(np.arange(N_SHARDS) % 3, 0, 0.02),
    "every twentieth shard": np.where(np.arange(N_SHARDS) % 20, 0, 0.2),
    "some shards full of leaks": np.where(np.arange(N_SHARDS) % 100, 0, 1.0),
    "all degrees": np.random.default_rng(3).gamma(0.5, 0.02, N_SHARDS),
}


@pytest.mark.parametrize("n_drawn", [20, 60])
@pytest.mark.parametrize("rates", RATES)
def test_the_interval_holds_the_share_of_documents_in_repeated_draws_of_shards(rates, n_drawn):
    rng = np.random.default_rng(7)
    n = np.round(rng.lognormal(6, 0.7, N_SHARDS)).astype(int)
    n_leaky = rng.binomial(n, RATES[rates])
    share, n_held, values = n_leaky.sum() / n.sum(), 0, []
    for _ in range(N_DRAWS):
        drawn = rng.choice(N_SHARDS, n_drawn, replace=False)
        shards = [*zip(n_leaky[drawn].tolist(), n[drawn].tolist(), strict=True)]
        value, low, high = sampling.share_of_documents(shards)
        assert 0 <= low <= value <= high <= 1
        n_held += low <= share <= high
        values.append(value)
    assert n_held / N_DRAWS >= LEAST_COVERAGE
    assert abs(np.mean(values) - share) <= 4 * np.std(values) / np.sqrt(N_DRAWS) + 0.03 * share


def test_a_share_of_documents_of_equal_shards_is_the_share_of_full_ones():
    """Then shards are like single documents: 3 of 30 drawn, and 0 of 20."""
    _, low, high = sampling.share_of_documents([(50, 50)] * 3 + [(0, 50)] * 27 + [(0, 0)] * 9)
    assert (round(low, 4), round(high, 4)) == (0.0211, 0.2653)  # Clopper and Pearson's
    assert sampling.share_of_documents([(0, 50)] * 20) == (0, 0, pytest.approx(1 - 0.025**0.05))


def test_fewer_than_twenty_shards_with_documents_give_no_interval():
    assert sampling.share_of_documents([(1, 50)] * 19 + [(0, 0)] * 5) is None
