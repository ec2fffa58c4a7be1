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


def test_a_whole_question_comes_before_a_longer_one_with_the_same_end():
    short = "Which of the following orders of the boats may be the right one?"
    longer = f"If the keel of the barge is repaired before that of the sloop on Monday, {short}"
    assert siblings(claim(longer, short), claim(short, short)) == [True, False]
    edited = longer.replace("repaired", "mended").replace("Monday", "Tuesday")
    assert siblings(claim(longer, edited), claim(short, edited)) == [False, True]


def test_words_of_its_passage_are_not_those_of_an_item():
    text = LYNX.replace("lynx", "animal")
    one = claim(LYNX, text)
    is_of_passage = np.ones(one.comparison.places.size, np.bool_)
    assert siblings(one._replace(is_of_passage=is_of_passage)) == [True]
    is_of_passage[5:] = False
    assert siblings(one._replace(is_of_passage=is_of_passage)) == [False]
    whole = claim(LYNX, LYNX)
    is_of_passage = np.ones(whole.comparison.places.size, np.bool_)
    assert siblings(whole._replace(is_of_passage=is_of_passage)) == [False]


def test_nothing_is_attributed_to_nobody():
    assert attributed([]) == []


WEIGHTS = st.integers(1, 9_000)
PLACES = st.dictionaries(st.integers(0, 9), WEIGHTS, min_size=1, max_size=8)
TOGETHER = st.builds(  # the places of a question that was found as a whole
    lambda first, weights: dict(enumerate(weights, first)),
    st.integers(0, 6),
    st.lists(WEIGHTS, min_size=1, max_size=6),
)
FOUND = st.booleans().flatmap(
    lambda is_whole: st.builds(
        oracle.Found,
        weights=TOGETHER if is_whole else PLACES,
        support=st.integers(0, 20_000),
        weight=st.integers(1, 40_000),
        n_units=st.integers(1, 16),
        is_whole=st.just(is_whole),
        of_passage=st.frozensets(st.integers(0, 9)),
    )
)


def claimed(one):
    places = np.array(sorted(one.weights))
    comparison = compared(LYNX, LYNX)._replace(
        weight=one.weight,
        weight_found=sum(one.weights.values()),
        n_units=one.n_units,
        n_found=one.n_units if one.is_whole else 0,
        places=places,
        weights=np.array([one.weights[at] for at in places.tolist()]),
    )
    return Claim(comparison, one.support, np.isin(places, [*one.of_passage]))


@pytest.mark.parametrize(("n_shared", "expected"), [(1, False), (3, False), (4, True)])
def test_a_few_words_of_the_next_question_do_not_make_an_edited_copy_a_sibling(n_shared, expected):
    def found(first, stop, weight, *, is_whole=False):
        weights = dict.fromkeys(range(first, stop), 1_000)
        return oracle.Found(weights, 0, weight, weight // 1_000, is_whole)

    edited, rival = found(0, 10, 16_000), found(0, 6, 16_000)
    whole = found(10 - n_shared, 18 - n_shared, 8_000, is_whole=True)
    assert siblings(*map(claimed, (edited, rival, whole)))[0] == expected
    assert oracle.siblings((edited, rival, whole))[0] == expected


@settings(max_examples=fewer(60))
@given(st.lists(FOUND, min_size=1, max_size=6), st.randoms())
def test_siblings_are_those_of_the_oracle_in_any_order(drawn, random):
    claims = [*map(claimed, drawn)]
    expected = oracle.siblings(drawn)
    assert siblings(*claims) == expected
    if len({oracle.evidence(one, drawn) for one in drawn}) == len(drawn):
        order = random.sample(range(len(claims)), len(claims))
        assert siblings(*(claims[at] for at in order)) == [expected[at] for at in order]
