"""Which units are an item's own, as the oracle says it."""

from itertools import compress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.siblings import items_with_runs, own_of
from tests.core.alignment.aligning import read, spelled
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

TEMPLATE = "which of these four statements about the animal called {} is true in the wild"
LONE = "a baker sells muffins to every visitor of the puppet theatre"


def own_of_each(questions, n_items=None):
    units = read(*questions)
    shared = items_with_runs(units.keys, units.lengths, np.array(n_items or [1] * len(questions)))
    is_own, is_in_own_run, n_family = own_of(*shared, units.lengths)
    of_each = (np.split(of, units.edges[1:-1]) for of in (is_own, is_in_own_run))
    return [*zip(*of_each, n_family.tolist(), strict=False)]


def own_words(questions, n_items=None):
    return [
        ([*compress(spelled(question), is_own.tolist())], n_family)
        for question, (is_own, _, n_family) in zip(
            questions, own_of_each(questions, n_items), strict=True
        )
    ]


def test_all_words_of_a_lone_question_are_its_own():
    assert own_words([LONE]) == [(LONE.split(), 1)]


def test_of_a_template_only_what_fills_it_is_own():
    animals = [
        "ox",
        "lynx",
        "heron",
        "newt",
        "crane",
        "adder",
        "perch",
        "shrike",
        "bison",
        "stoat",
        "viper",
    ]
    found = own_words([*map(TEMPLATE.format, animals), LONE])
    assert found[:-1] == [([animal], 11) for animal in animals]
    assert found[-1] == (LONE.split(), 1)


def test_what_a_tenth_of_a_family_shares_still_tells_it_apart():
    names = [f"beast{letter}" for letter in "abcdefghijklmnopqr"]
    found = own_words([TEMPLATE.format(f"{one}") for one in ("grey ox", "grey lynx", *names)])
    assert [words for words, _ in found[:3]] == [["grey", "ox"], ["grey", "lynx"], ["beasta"]]
    assert {n_family for _, n_family in found} == {20}


def test_a_question_about_several_passages_is_shared_by_them():
    (words, n_family), (others, _) = own_words(["what does the author believe", LONE], [12, 1])
    assert (words, n_family) == ([], 12)
    assert others == LONE.split()


def test_a_run_may_be_own_though_all_its_units_are_shared():
    questions = ["red green blue white", "red green blue", "green blue white"]
    assert [middles.tolist() for _, middles, _ in own_of_each([*questions, "red blue white"])] == [
        *([False] * 4, [False] * 3, [False] * 3),
        [False, True, False],
    ]


def test_a_run_that_an_item_repeats_counts_once():
    assert own_words(["row row row row row row"]) == [(["row"] * 6, 1)]


def test_items_without_words():
    assert own_words(["", LONE, "?"]) == [([], 1), (LONE.split(), 1), ([], 1)]
    assert own_words([]) == []


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee"]), max_size=9)


@settings(max_examples=fewer(60))
@given(st.lists(st.tuples(WORDS, st.integers(1, 15)), min_size=1, max_size=8))
def test_own_units_are_those_of_the_oracle(items):
    n_items = [n for _, n in items]
    expected = oracle.own_units([words for words, _ in items], n_items)
    found = own_of_each([" ".join(words) for words, _ in items], n_items)
    assert [(own.tolist(), middles.tolist(), n) for own, middles, n in found] == expected
