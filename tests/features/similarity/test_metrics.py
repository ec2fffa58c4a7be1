"""Metrics of a pair: what each counts, and that the fast ones equal the plain ones."""

from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decon_core.features.similarity.metrics import (
    LEXICAL,
    containment,
    difflib_ratio,
    jaccard,
    longest_common_subsequence,
    number_agreement,
    overlap,
    pair_metrics,
    rouge_l,
    words_of,
)
from tests.oracle import similarity as oracle

WORDS = st.lists(st.sampled_from("abcd"), max_size=40)
TEXTS = st.text(st.sampled_from("ab c\né東"), max_size=40)


def test_words_are_lower_case_without_punctuation():
    assert words_of("She SAYS: “don't_go!”") == ("she", "says", "don", "t", "go")


def test_a_character_of_a_script_without_spaces_is_a_word():
    assert words_of("東京 tower 2") == ("東", "京", "tower", "2")
    assert jaccard(words_of("私は東京にいる"), words_of("彼は東京にいる"), 2) == 5 / 7


def test_marks_on_letters_do_not_split_a_word():
    assert words_of("हिन्दी भाषा") == ("हिन्दी", "भाषा")


def test_jaccard_counts_distinct_ngrams():
    assert jaccard(["a", "b", "c"], ["a", "b", "d"], 2) == 1 / 3
    assert jaccard(["a", "b", "a", "b"], ["a", "b"], 2) == 1 / 2


def test_overlap_is_of_the_text_with_fewer_ngrams():
    assert overlap(["a", "b", "c"], ["x", "a", "b", "c", "y"], 2) == 1.0
    assert overlap(["x", "a", "b", "c", "y"], ["a", "b", "d"], 2) == 1 / 2
    assert overlap([], ["a"], 2) == 0.0


def test_a_text_shorter_than_the_ngram_is_one_ngram():
    assert jaccard(["a"], ["a"], 3) == 1.0
    assert jaccard(["a"], ["a", "b"], 3) == 0.0


@pytest.mark.parametrize("metric", ["jaccard_1", "jaccard_2", "rouge_l", "difflib"])
def test_nothing_is_like_a_text_without_words(metric):
    assert LEXICAL[metric]("some words", "") == 0.0


@given(WORDS, WORDS)
def test_the_longest_common_subsequence_is_the_oracles(words, others):
    expected = oracle.longest_common_subsequence(words, others)
    assert longest_common_subsequence(words, others) == expected


def test_rouge_l_is_f1_of_the_longest_common_subsequence():
    assert rouge_l(["a", "b", "c", "d"], ["a", "x", "c"]) == 2 * 2 / 7


@given(TEXTS, TEXTS)
@example("", "")
@example("a" * 300, "a" * 250)
def test_the_ratio_is_that_of_difflib_without_its_rule_for_frequent_characters(text, other):
    assert difflib_ratio(text, other) == oracle.difflib_ratio(text, other)


def test_difflib_itself_ignores_frequent_characters_of_long_texts():
    text = "the quick brown fox jumps over the lazy dog " * 6
    other = text.replace("quick", "slow")
    assert SequenceMatcher(None, text, other).ratio() < difflib_ratio(text, other)


def test_long_texts_take_no_quadratic_time():
    rng = np.random.default_rng(0)
    text, other = ("".join(rng.choice([*"etaoin "], 60_000)) for _ in range(2))
    assert 0 < difflib_ratio(text, other) < 0.2  # difflib itself would take half an hour


def test_containment_is_of_the_first_text_in_the_second():
    text = "The baker bakes muffins."
    assert containment(text, "Baking: a muffin, flour, an oven and a bakery") < 1.0
    assert containment(text, "A baker who is baking a muffin on Tuesday") == 1.0
    assert containment("A baker who is baking a muffin on Tuesday", text) < 1.0


def test_a_text_of_stop_words_has_no_containment():
    assert containment("it is what it is", "a baker") is None


def test_numbers_agree_as_values():
    assert number_agreement("three eggs for $1,200 at 15 %", "3.0 eggs, 1200 dollars, 0.15") == 1.0
    assert number_agreement("3 eggs and 4 hens", "3 eggs and 5 hens") == 1 / 3
    assert number_agreement("three eggs", "some eggs") == 0.0
    assert number_agreement("eggs", "hens") is None


def test_the_columns_of_pairs_are_those_of_the_metrics():
    columns = pair_metrics(["two eggs", "hens"], ["2 eggs", "cocks"])
    assert [*columns] == [*LEXICAL]
    assert columns["numbers"][0] == 1.0
    assert np.isnan(columns["numbers"][1])


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_a_pair_has_the_same_metrics_alone_and_among_others(pairs):
    texts, others = zip(*pairs, strict=True)
    together = pair_metrics(texts, others)
    for row, (text, other) in enumerate(pairs):
        alone = pair_metrics([text], [other])
        for name, column in together.items():
            np.testing.assert_array_equal(column[row], alone[name][0])
