"""Section 5: weights, confidence, the length penalty, the decision."""

from dataclasses import replace
from itertools import product

import pytest

from decon_core.config.policy import Policy
from tests.oracle.decon import (
    Tokens,
    answer_confidence,
    base_score,
    penalized,
    question_confidence,
    total_length,
    weights,
)
from tests.oracle.worlds import SAMPLING, entry, found, noise, run

POLICY = Policy()
SURE = run(100, 24)  # 20 unique n-grams: c_q = 1
UNSURE = run(100, 14)  # 10 unique n-grams: c_q = 0.5 + 0.5 * 10 / 20 = 0.75
ANSWER = run(500, 10)
PASSAGE = run(700, 10)


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 0.525), (10, 0.75), (19, 0.975), (20, 1.0), (21, 1.0)]
)
def test_question_confidence_grows_to_twenty_ngrams(n: int, expected: float) -> None:
    # 0.5 + 0.5 * n / 20
    assert question_confidence(n) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "expected"), [(1, 0.625), (2, 0.75), (3, 0.875), (4, 1.0), (5, 1.0)])
def test_answer_confidence_grows_to_four_tokens(n: int, expected: float) -> None:
    # 0.5 + 0.5 * n / 4
    assert answer_confidence(n) == pytest.approx(expected)


WEIGHTS = {
    "Q": (SURE, (), (), (1.0, 0.0, 0.0)),
    "Q_unsure": (UNSURE, (), (), (1.0, 0.0, 0.0)),  # nobody to give the loss to
    "QA": (SURE, ANSWER, (), (0.75, 0.25, 0.0)),
    # 0.75 * 0.75 = 0.5625; 0.25 + 0.75 * 0.25 = 0.4375
    "QA_unsure_question": (UNSURE, ANSWER, (), (0.5625, 0.4375, 0.0)),
    # c_a matters in QAP only
    "QA_unsure_answer": (SURE, (1, 2), (), (0.75, 0.25, 0.0)),
    "QP": (SURE, (), PASSAGE, (0.85, 0.0, 0.15)),
    # 0.85 * 0.75 = 0.6375; 0.15 + 0.85 * 0.25 = 0.3625
    "QP_unsure_question": (UNSURE, (), PASSAGE, (0.6375, 0.0, 0.3625)),
    "QAP": (SURE, ANSWER, PASSAGE, (0.7, 0.2, 0.1)),
    # loss 0.7 * 0.25 = 0.175, half each: 0.2 + 0.0875, 0.1 + 0.0875
    "QAP_unsure_question": (UNSURE, ANSWER, PASSAGE, (0.525, 0.2875, 0.1875)),
    # t = 2, c_a = 0.75: 0.2 * 0.75 = 0.15, the other 0.05 to the passage
    "QAP_unsure_answer": (SURE, (1, 2), PASSAGE, (0.7, 0.15, 0.15)),
    # 0.2875 * 0.75 = 0.215625; 0.1875 + 0.2875 * 0.25 = 0.259375
    "QAP_both_unsure": (UNSURE, (1, 2), PASSAGE, (0.525, 0.215625, 0.259375)),
    # five tokens, two different: t = 2
    "QAP_repetitive_answer": (SURE, (1, 1, 1, 1, 2), PASSAGE, (0.7, 0.15, 0.15)),
    # 24 tokens of period 2: two different n-grams, c_q = 0.5 + 0.5 * 2 / 20 = 0.55
    "QA_repetitive_question": ((1, 2) * 12, ANSWER, (), (0.4125, 0.5875, 0.0)),
    # a question of 3 tokens has one n-gram: c_q = 0.525; 0.75 * 0.525, the rest to the answer
    "QA_short_question": (run(100, 3), ANSWER, (), (0.39375, 0.60625, 0.0)),
}


@pytest.mark.parametrize(
    ("question", "answer", "passage", "expected"), WEIGHTS.values(), ids=WEIGHTS.keys()
)
def test_weights_follow_composition_and_confidence(
    question: Tokens, answer: Tokens, passage: Tokens, expected: tuple[float, float, float]
) -> None:
    got = weights(entry(question, answer, passage), POLICY)
    assert got == pytest.approx(expected)
    assert sum(got) == pytest.approx(1.0)


def test_the_base_score_is_the_weighted_sum_of_overlaps() -> None:
    one = entry(UNSURE, (1, 2), PASSAGE)
    # 0.525 * 0.8 + 0.215625 * 1.0 + 0.259375 * 0.4 = 0.42 + 0.215625 + 0.10375 = 0.739375
    assert base_score(one, 0.8, 1.0, 0.4, POLICY) == pytest.approx(0.739375)
    # 0.75 * 0.9 + 0.25 * 0.5 = 0.675 + 0.125 = 0.8
    assert base_score(entry(SURE, ANSWER), 0.9, 0.5, 0.0, POLICY) == pytest.approx(0.8)
    # 0.85 * 0.9 + 0.15 * 0.5 = 0.765 + 0.075 = 0.84
    assert base_score(entry(SURE, (), PASSAGE), 0.9, 0.0, 0.5, POLICY) == pytest.approx(0.84)
    assert base_score(entry(SURE), 0.9, 0.0, 0.0, POLICY) == pytest.approx(0.9)


def test_a_component_that_was_not_found_still_weighs() -> None:
    # 0.75 * 1.0 + 0.25 * 0.0: present, not found
    assert base_score(entry(SURE, ANSWER), 1.0, 0.0, 0.0, POLICY) == pytest.approx(0.75)


def test_a_perfect_match_scores_exactly_one_whatever_the_weights() -> None:
    lengths = product([*range(1, 22), 33], [0, 1, 2, 3, 4, 7], [0, 9])
    for n_grams, n_answer, n_passage in lengths:
        one = entry(run(0, n_grams + 4), run(500, n_answer), run(700, n_passage))
        score = base_score(one, 1.0, float(n_answer > 0), float(n_passage > 0), POLICY)
        assert score == 1.0, (n_grams, n_answer, n_passage)


def test_no_base_score_exceeds_one() -> None:
    assert base_score(entry(SURE), 1.0000000000000002, 0.0, 0.0, POLICY) == 1.0


def test_length_counts_different_answer_tokens_only() -> None:
    # 24 + 2 + 10
    assert total_length(entry(SURE, (7, 7, 7, 7, 8), PASSAGE)) == 36
    assert total_length(entry(SURE, (7, 7, 7, 7, 8))) == 26
    # question and passage tokens all count, repeats too
    assert total_length(entry((1,) * 9, (), (2,) * 8)) == 17


@pytest.mark.parametrize(
    ("score", "length", "expected"),
    [
        (0.9, 20, 0.9 * 0.8 / 1.0),  # 0.72
        (0.9, 26, 0.9 * 0.8 / 0.96),  # r = 1 - 0.2 * 6 / 30 = 0.96: 0.75
        (0.96, 26, 0.8),  # just enough
        (0.9, 35, 0.8),  # r = 0.9
        (0.9, 50, 0.9),  # r = 0.8, not above the threshold
        (0.9, 99, 0.9),
        (1.0, 5, 1.0),
        (1.0, 35, 1.0),
        (0.9999, 5, 0.9999 * 0.8),
    ],
)
def test_the_length_penalty_scales_all_but_perfect_scores(
    score: float, length: int, expected: float
) -> None:
    assert penalized(score, length, POLICY) == pytest.approx(expected)
    assert (penalized(score, length, POLICY) == 1.0) is (score == 1.0)


def test_the_length_penalty_follows_the_threshold() -> None:
    policy = Policy(contamination_score_threshold=0.6)
    # r = 1 - 0.4 * 15 / 30 = 0.8; 0.9 * 0.6 / 0.8
    assert penalized(0.9, 35, policy) == pytest.approx(0.675)


def test_unique_answer_tokens_decide_the_penalty_of_a_whole_match() -> None:
    """Question of 30 tokens, 26 n-grams; answer (7 7 7 7 8), 3 trigrams 777 (once), 778: two.

    The document holds the whole question and 7 7 7 only: overlaps 1 and 1/2.
    base = 0.75 + 0.25 * 0.5 = 0.875. L = 30 + 2 = 32, r = 1 - 0.2 * 12 / 30 = 0.92:
    0.875 * 0.8 / 0.92 = 0.7609. With all five answer tokens, L = 35, r = 0.9, it would be 0.7778.
    """
    policy = Policy(sampling="reference", keep_no_answer=False)
    one = entry(run(100, 30), (7, 7, 7, 7, 8))
    document = (*one.question, 7, 7, 7, *noise(20))
    assert found(document, one, policy=policy) == []
    # At threshold 0.7: r = 1 - 0.3 * 12 / 30 = 0.88 > 0.875, so 0.875 * 0.7 / 0.88 = 0.696 < 0.7.
    # With L = 35 it would be r = 0.85 and 0.7206: found.
    seven = replace(policy, contamination_score_threshold=0.7)
    assert found(document, one, policy=seven) == []
    # At 0.69: r = 1 - 0.31 * 0.4 = 0.876 > 0.875; at 0.68: r = 0.872: 0.875 * 0.68 / 0.872
    lower = Policy(sampling="reference", contamination_score_threshold=0.68)
    (match,) = found(document, one, policy=lower)
    assert match.base_score == pytest.approx(0.875)
    assert match.score == pytest.approx(0.875 * 0.68 / 0.872)


def test_a_score_at_the_threshold_is_contaminated() -> None:
    """Four trigrams of equal weight, all but one found: 0.75 * 1 + 0.25 * 0.75 = 0.9375 exactly."""
    one = entry(run(100, 50), run(500, 6))
    document = one.question + one.answer[:5] + noise(20)
    for threshold, is_found in ((0.9375, True), (0.9376, False), (0.9374, True)):
        policy = Policy(
            sampling="reference", contamination_score_threshold=threshold, keep_no_answer=False
        )
        assert bool(found(document, one, policy=policy)) is is_found


def test_a_short_verbatim_question_with_its_answer_is_contaminated() -> None:
    one = entry(run(100, 5), (7,))
    (match,) = found(one.question + one.answer + noise(20), one, policy=SAMPLING)
    assert match.score == 1.0  # L = 6 asks for a perfect score, and it is one


def test_a_verbatim_question_without_its_answer_is_not() -> None:
    one = entry(run(100, 60), ANSWER)
    # 0.75 * 1 + 0.25 * 0 = 0.75 < 0.8
    (match,) = found(one.question + noise(20), one, policy=SAMPLING)
    assert (match.score, match.is_no_answer) == (0.75, True)
    published = replace(SAMPLING, keep_no_answer=False)
    assert found(one.question + noise(20), one, policy=published) == []


def test_a_whole_match_adds_up() -> None:
    """QAP: passage of 12 (9 4-grams), question of 40 (36 n-grams), answer of 8 (6 trigrams).

    The document holds the passage's last 8 tokens (5 of 9), the question's first 38 (34 of 36),
    the answer's first 6 (4 of 6). u = 36 and t = 8: full confidence. L = 40 + 8 + 12 = 60.
    gate 2: decay(40, 0.714) = 1 - 0.2857 * 20 / 30 = 0.8095 <= 34/36 = 0.944.
    score = 0.7 * 34/36 + 0.2 * 4/6 + 0.1 * 5/9 = 0.66111 + 0.13333 + 0.05556 = 0.85
    """
    one = entry(run(100, 40), run(500, 8), run(700, 12))
    document = (
        noise(10) + one.passage[4:] + noise(1, 2_000_000)
        + one.question[:38] + noise(2, 3_000_000) + one.answer[:6] + noise(20, 4_000_000)
    )  # fmt: skip
    (match,) = found(document, one, policy=SAMPLING)
    assert (match.start, match.end) == (19, 52)  # 10 + 8 + 1, and 34 n-grams from there
    assert match.question_overlap == pytest.approx(34 / 36)
    assert match.answer.overlap == pytest.approx(4 / 6)
    assert match.passage.overlap == pytest.approx(5 / 9)
    assert match.score == pytest.approx(0.85)
    assert (match.answer.start, match.answer.stop) == (59, 65)
    assert (match.passage.start, match.passage.stop) == (10, 18)
