"""Matching by size: the quick way against a plain one that looks at every free place."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decon_core.mixtures.match_sizes import matching
from tests.uncompiled import fewer

SIZES = st.one_of(st.integers(0, 12), st.integers(0, 500))


def plain_matching(wanted, pool):
    """The places that are taken: as `matching` says it, with lists, one after the other."""
    order = sorted(range(len(pool)), key=lambda at: (pool[at], at))
    sizes = [pool[at] for at in order]
    free, taken = set(range(len(pool))), []
    for size in sorted(wanted, reverse=True)[: len(pool)]:
        taken.append(min(free, key=lambda place: beside(sizes[place], size, place)))
        free.remove(taken[-1])
    for _ in range(50):
        missing = sum(wanted) - sum(sizes[place] for place in taken)
        swaps = [
            (abs(missing - sizes[place] + sizes[old]), number, place)
            for number, old in enumerate(taken)
            for place in sorted(free, key=lambda place: ends_first(sizes, old, place, missing))
        ]
        rest, number, place = min(swaps, key=lambda swap: swap[:2], default=(0, 0, 0))
        if len(wanted) >= len(pool) or rest >= abs(missing):
            break
        free ^= {place, taken[number]}
        taken[number] = place
    return sorted(order[place] for place in taken)


def beside(found, size, place):
    """The nearest first; of two as near the larger; of equal ones the one next to the size."""
    return abs(found - size), found < size, place if found >= size else -place


def ends_first(sizes, old, place, missing):
    """The smaller ones first, from the largest down; then the others, from the smallest up."""
    is_above = sizes[place] >= sizes[old] + missing
    return is_above, place if is_above else -place


@settings(max_examples=fewer(150), derandomize=True)
@given(st.lists(SIZES, max_size=25), st.lists(SIZES, max_size=60))
@example([7, 7, 7], [7, 7, 7, 7, 1, 9])
@example([500], [0, 0, 0])
@example([0, 0], [3, 3, 3])
def test_prop_the_same_places_are_taken_as_by_looking_at_all_of_them(wanted, pool):
    found = matching(np.array(wanted, np.int64), np.array(pool, np.int64))
    assert sorted(found.tolist()) == plain_matching(wanted, pool)


@settings(max_examples=fewer(80), derandomize=True)
@given(st.lists(st.integers(0, 500), max_size=40), st.lists(st.integers(0, 500), max_size=300))
def test_prop_each_is_taken_once_as_many_as_are_wanted_and_of_nearly_one_sum(wanted, pool):
    wanted, pool = np.array(wanted, np.int64), np.array(pool, np.int64)
    taken = matching(wanted, pool)
    assert taken.size == np.unique(taken).size == min(wanted.size, pool.size)
    if 0 < wanted.size < pool.size:
        # No single change for a free one would bring the sums nearer.
        missing = int(wanted.sum() - pool[taken].sum())
        free = np.setdiff1d(np.arange(pool.size), taken)
        others = missing - (pool[free][None, :] - pool[taken][:, None])
        assert np.abs(others).min() >= abs(missing)
