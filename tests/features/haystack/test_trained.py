"""The small classifiers: deterministic, and they tell apart what they were trained on."""

import numpy as np

from decon_core.features.haystack.trained import instructions, teaching_texts, train
from tests.core.conftest import words

WEB = [f"welcome to the page of {words(n, 30)}" for n in range(60)]


def test_every_example_is_filled_and_no_two_are_the_same():
    for texts in (instructions(), teaching_texts()):
        assert len(texts) == len(set(texts)) > 500
        assert not any(sign in text for text in texts for sign in "{}")


def test_texts_that_were_not_trained_on_are_told_apart():
    scorer = train(instructions(200), WEB[:40])
    held_out = scorer(instructions(300)[250:])
    assert np.median(held_out) > 0 > np.median(scorer(WEB[40:]))


def test_the_same_texts_give_the_same_scores_in_any_company():
    texts = [*instructions(20), *WEB[:20], "", "ein \ud800 Wort"]
    scores = train(instructions(40), WEB)(texts)
    again = train(instructions(40), WEB)
    assert scores.tolist() == [float(again([text])[0]) for text in texts]
    assert again([]).tolist() == []


def test_groups_count_equally_whatever_their_sizes():
    texts = [*instructions(10), *WEB]
    scores, repeated = train(instructions(10), WEB)(texts), train(instructions(10) * 5, WEB)(texts)
    assert repeated.mean() - scores.mean() < 0.1


def test_the_order_of_words_counts():
    scorer = train(["a dog bit a man"], ["a man bit a dog"])
    right, wrong = scorer(["the dog bit a man", "the man bit a dog"])
    assert right > 0 > wrong
