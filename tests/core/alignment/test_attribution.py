"""Which of the items at a place it belongs to, as the oracle says it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.attribution import Claim, attributed
from tests.core.alignment.aligning import compared
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

LYNX = "Which of these four statements about the lynx is true in the wild of Norway?"
OTTER = "Which of these four statements about the otter is true in the wild of Norway?"
BAKER = "What does a baker of muffins earn if every visitor of the puppet theatre buys two?"


def claim(question, text, *, support=0):
    return Claim(compared(question, text), support)


def siblings(*claims):
    return [one.is_sibling for one in attributed(claims)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_sibling_that_shares_the_template_is_marked(is_first):
    pair = [claim(LYNX, LYNX), claim(OTTER, LYNX)]
    expected = [False, True]
    if not is_first:
        pair, expected = pair[::-1], expected[::-1]
    assert siblings(*pair) == expected


def test_equal_items_are_both_kept():
    again = LYNX.replace("Which", "WHICH,")
    assert siblings(claim(LYNX, LYNX), claim(again, LYNX), claim(OTTER, LYNX)) == [
        False,
        False,
        True,
    ]


def test_a_whole_item_within_a_longer_one_is_a_sibling():
    longer = f"{LYNX} Give a reason from what you have read about its prey."
    assert siblings(claim(LYNX, longer), claim(longer, longer)) == [True, False]


def test_items_at_other_words_are_both_kept():
    text = f"{LYNX} {BAKER}"
    assert siblings(claim(LYNX, text), claim(BAKER, text)) == [False, False]


def test_the_passage_decides_between_equal_parts():
    text = LYNX.replace("lynx", "animal")
    assert siblings(claim(LYNX, text), claim(OTTER, text, support=9)) == [True, False]
    assert siblings(claim(LYNX, text, support=9), claim(OTTER, text)) == [False, True]


def test_nothing_is_attributed_to_nobody():
    assert attributed([]) == []


PLACES = st.dictionaries(st.integers(0, 9), st.integers(1, 9_000), min_size=1, max_size=8)
FOUND = st.tuples(PLACES, st.integers(0, 20_000), st.integers(1, 9), st.booleans())


@settings(max_examples=fewer(60))
@given(st.lists(FOUND, min_size=1, max_size=6), st.randoms())
def test_siblings_are_those_of_the_oracle_in_any_order(drawn, random):
    one = compared(LYNX, LYNX)
    claims = [
        Claim(
            one._replace(
                weight_found=sum(places.values()),
                n_units=len(places) + more,
                n_found=len(places) + more * is_whole,
                places=np.array(sorted(places)),
                weights=np.array([places[at] for at in sorted(places)]),
            ),
            support,
        )
        for places, support, more, is_whole in drawn
    ]
    expected = oracle.siblings(
        [
            oracle.Found(places, support, len(places) + more, is_whole)
            for places, support, more, is_whole in drawn
        ]
    )
    assert siblings(*claims) == expected
    evidence = [one.comparison.weight_found + one.support for one in claims]
    if len({*evidence}) == len(evidence):
        order = random.sample(range(len(claims)), len(claims))
        assert siblings(*(claims[at] for at in order)) == [expected[at] for at in order]
