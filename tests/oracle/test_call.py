"""Section 4: the gates, where the question ends, and what is found after and before it."""

import math

import pytest

from decon_core.config.policy import Policy
from tests.oracle.decon import (
    NOT_FOUND,
    Cluster,
    Entry,
    Match,
    NearMatch,
    Tokens,
    build_index,
    call,
    decay,
    detect,
    find_answer,
    find_passage,
    least_question_overlap,
    penalized,
    question_end,
    question_grams,
)
from tests.oracle.worlds import SAMPLING, STRANGER, entry, five_grams, noise, run, world

LN2 = math.log(2)
FLAT = Policy(sampling="reference", perfect_match_decay_start=0, perfect_match_decay_end=1)


def called(document: Tokens, one: Entry, n_matched: int, policy: Policy) -> Match | None:
    """What is made of a cluster at 0 that holds the first `n_matched` n-grams of the question."""
    index = world(one, policy=policy)
    matched = question_grams(one, policy)[:n_matched]
    cluster = Cluster(0, frozenset(matched), 0, len(five_grams(one.question)) - 1)
    return call(document, five_grams(document), cluster, index)


@pytest.mark.parametrize(
    ("threshold", "least"),
    [
        (0.8, 0.5 / 0.7),  # 0.714...
        (1.0, 1.0),
        (0.65, 0.5),
        (0.3, 0.0),
        (0.1, 0.0),  # never negative
    ],
)
def test_the_least_question_overlap_leaves_room_for_answer_and_passage(
    threshold: float, least: float
) -> None:
    policy = Policy(contamination_score_threshold=threshold, lowest_recorded_score=0.1)
    assert least_question_overlap(policy) == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 1.0),
        (19, 1.0),
        (20, 1.0),
        (21, 1.0 - 0.2 * 1 / 30),
        (35, 0.9),
        (49, 1.0 - 0.2 * 29 / 30),
        (50, 0.8),
        (500, 0.8),
    ],
)
def test_decay_is_a_straight_line_between_twenty_and_fifty(length: int, expected: float) -> None:
    assert decay(length, 0.8, Policy()) == pytest.approx(expected)


def test_decay_bends_where_the_policy_says() -> None:
    policy = Policy(perfect_match_decay_start=10, perfect_match_decay_end=14)
    # 1 - (1 - 0.6) * (11 - 10) / (14 - 10) = 0.9
    assert decay(11, 0.6, policy) == pytest.approx(0.9)
    assert decay(10, 0.6, policy) == 1.0
    assert decay(14, 0.6, policy) == 0.6


@pytest.mark.parametrize(
    ("length", "overlap", "factor"),
    [(20, 1.0, 0.8), (35, 0.857, 0.889), (50, 0.714, 1.0), (80, 0.714, 1.0)],
)
def test_the_needed_overlap_and_the_factor_of_the_score_are_those_of_the_page(
    length: int, overlap: float, factor: float
) -> None:
    """docs/decon-detector.md, sections 4 and 5, at the default threshold of 0.8."""
    policy = Policy()
    assert decay(length, least_question_overlap(policy), policy) == pytest.approx(overlap, abs=5e-4)
    assert penalized(0.9, length, policy) == pytest.approx(0.9 * factor, abs=5e-4)
    assert penalized(1.0, length, policy) == 1.0


@pytest.mark.parametrize(("n_matched", "passes"), [(7, False), (8, True), (10, True)])
def test_gate_one_asks_for_the_least_overlap(n_matched: int, passes: bool) -> None:
    """14 tokens, 10 n-grams of equal weight; gate 1 at 0.714 lies between 7/10 and 8/10."""
    one = entry(run(100, 14), run(500, 60))
    match = called(one.question + one.answer + noise(5), one, n_matched, FLAT)
    # Even 7/10 would score enough: c_q = 0.5 + 0.5 * 10 / 20 = 0.75, so
    # 0.75 * 0.75 * 0.7 + (0.25 + 0.75 * 0.25) * 1.0 = 0.39375 + 0.4375 = 0.83125
    assert (match is not None) is passes
    if match:
        assert match.question_overlap == pytest.approx(n_matched / 10)
        assert match.score == pytest.approx(0.5625 * n_matched / 10 + 0.4375)


@pytest.mark.parametrize(("n_matched", "passes"), [(26, False), (27, True)])
def test_gate_two_asks_more_of_a_shorter_question(n_matched: int, passes: bool) -> None:
    """35 tokens, half way between 20 and 50: (1 + 0.714) / 2 = 0.857. 31 n-grams."""
    one = entry(run(100, 35), run(500, 60))
    match = called(one.question + one.answer + noise(5), one, n_matched, SAMPLING)
    # 26 / 31 = 0.839 would have scored 0.75 * 0.839 + 0.25 = 0.879; 27 / 31 = 0.871 passes
    assert (match is not None) is passes
    if match:
        assert match.score == pytest.approx(0.75 * 27 / 31 + 0.25)


@pytest.mark.parametrize(("n_matched", "passes"), [(15, False), (16, True)])
def test_gate_two_wants_all_of_a_question_of_twenty_tokens(n_matched: int, passes: bool) -> None:
    one = entry(run(100, 20), run(500, 60))
    document = one.question + one.answer + noise(5)
    assert (called(document, one, n_matched, SAMPLING) is not None) is passes


@pytest.mark.parametrize(("n_matched", "passes"), [(32, False), (33, True)])
def test_gate_two_is_gate_one_from_fifty_tokens_on(n_matched: int, passes: bool) -> None:
    """50 tokens, 46 n-grams: 32/46 = 0.696 < 0.714 < 0.717 = 33/46."""
    one = entry(run(100, 50), run(500, 20), run(700, 20))
    passage_then_question = one.passage + one.question
    document = passage_then_question + one.answer
    index = world(one, policy=SAMPLING)
    matched = question_grams(one, SAMPLING)[:n_matched]
    # the passage may not touch the question: its last token is never looked at
    cluster = Cluster(0, frozenset(matched), 21, 66)
    match = call(
        one.passage + noise(1) + one.question + one.answer,
        five_grams(document),
        cluster,
        index,
    )
    assert (match is not None) is passes
    if match:
        # 0.7 * 33/46 + 0.2 + 0.1 = 0.802; u = 46 and t = 20 give full confidence, L = 90
        assert match.score == pytest.approx(0.7 * 33 / 46 + 0.3)


def test_question_overlap_is_weighted_by_idf() -> None:
    """54 tokens, 50 n-grams; another record holds the first 48, whose idf is then ln(2/2) = 0."""
    policy = Policy(
        sampling="reference", contamination_score_threshold=0.5, lowest_recorded_score=0.5
    )
    one, other = entry(run(100, 54)), entry(run(100, 52))
    index = build_index([one, other], policy)
    # 53 tokens = n-grams 0..48: of the two that weigh ln 2 each, one is there: exactly 0.5
    matches = detect(run(100, 53) + noise(20), index)
    assert [(match.number, match.n_matched, match.score) for match in matches] == [(0, 49, 0.5)]
    # the other record's own overlap is 0 / 0 = 0: it is not found though it stands there verbatim


@pytest.mark.parametrize(
    ("start", "end", "q_end"),
    [
        (10, 29, 33),  # 24 tokens for 24: the question ends with the cluster, 29 + 4
        (10, 40, 33),  # 40 + 5 - 10 = 35 tokens, 11 too many: 40 + 4 - 11
        (10, 25, 29),  # 20 tokens, the question's end is edited: no excess
        (0, 0, 4),
    ],
)
def test_the_question_ends_where_a_whole_one_would(start: int, end: int, q_end: int) -> None:
    assert question_end(start, end, run(100, 24), SAMPLING) == q_end


def short_answer(document: Tokens, one: Entry, q_end: int) -> NearMatch:
    return find_answer(document, q_end, one, world(one, policy=SAMPLING))


QA = entry(run(100, 24), (7, 8, 9))


@pytest.mark.parametrize(("gap", "is_found"), [(0, True), (1, True), (49, True), (50, False)])
def test_a_short_answer_starts_within_fifty_tokens_after_the_question(
    gap: int, is_found: bool
) -> None:
    """q_end = 23; a gap of g puts the answer at q_end + 1 + g: 24, 25, 73 = q_end + 50, 74."""
    document = QA.question + noise(gap) + QA.answer + noise(9, 2_000_000)
    expected = NearMatch(1.0, 24 + gap, 27 + gap) if is_found else NOT_FOUND
    assert short_answer(document, QA, 23) == expected


def test_a_short_answer_is_found_at_the_very_end_and_not_when_cut_off() -> None:
    assert short_answer(QA.question + QA.answer, QA, 23).overlap == 1.0
    assert short_answer(QA.question + QA.answer[:2], QA, 23) == NOT_FOUND


def test_a_short_answer_must_stand_in_one_piece() -> None:
    assert short_answer((*QA.question, 7, 1_000_000, 8, 9), QA, 23) == NOT_FOUND
    assert short_answer((*QA.question, 9, 8, 7), QA, 23) == NOT_FOUND


def test_a_short_answer_before_the_question_s_end_does_not_count() -> None:
    assert short_answer(QA.answer + QA.question + noise(9), QA, 26) == NOT_FOUND
    # its first token at q_end itself
    assert short_answer(QA.question[:-1] + QA.answer + noise(9), QA, 23) == NOT_FOUND


def test_the_first_short_answer_is_the_one_reported() -> None:
    document = QA.question + noise(3) + QA.answer + QA.answer
    assert short_answer(document, QA, 23) == NearMatch(1.0, 27, 30)


@pytest.mark.parametrize(
    ("n_records", "overlap"),
    [
        (2, 0.0),  # token 100 in two fields (question, answer) of two records: ln(2/2) = 0
        (3, 1.0),  # ln(3/2) > 0
    ],
)
def test_a_short_answer_that_weighs_nothing_counts_nothing(n_records: int, overlap: float) -> None:
    one = entry(run(100, 24), (100,))
    others = [entry(run(1000 * i, 24)) for i in range(1, n_records)]
    index = build_index([one, *others], SAMPLING)
    assert find_answer(one.question + one.answer, 23, one, index).overlap == overlap


def test_a_short_answer_of_negative_weight_counts_nothing() -> None:
    # token 100 in four fields of two records: ln(2/4) < 0
    entries = [entry(run(100, 24), (100,)), entry((*run(200, 24), 100), (100,))]
    index = build_index(entries, SAMPLING)
    assert index.frequencies.token[100] == 4
    assert find_answer((*run(100, 24), 100), 23, entries[0], index) == NOT_FOUND


def test_answers_of_three_tokens_are_short_and_of_four_long() -> None:
    scattered = noise(1, 3_000_000)
    three = entry(run(100, 24), run(500, 3))
    four = entry(run(100, 24), run(500, 4))
    document = run(100, 24) + run(500, 3) + scattered
    assert short_answer(document, three, 23).overlap == 1.0
    assert short_answer(document, four, 23).overlap == pytest.approx(1 / 2)  # one of two trigrams


@pytest.mark.parametrize(
    ("gap", "overlap"),
    [
        (96, 1.0),  # answer at q_end + 97..100: both trigrams end inside W = 100
        (97, 0.5),  # the second trigram would end at q_end + 101
        (98, 0.0),
    ],
)
def test_a_long_answer_s_window_is_a_hundred_tokens(gap: int, overlap: float) -> None:
    one = entry(run(100, 24), run(500, 4))
    document = one.question + noise(gap) + one.answer + noise(50, 2_000_000)
    assert short_answer(document, one, 23).overlap == pytest.approx(overlap)


@pytest.mark.parametrize(("gap", "n_found"), [(60, 58), (61, 57), (117, 1), (118, 0)])
def test_a_long_answer_s_window_is_twice_its_length_where_that_is_more(
    gap: int, n_found: int
) -> None:
    """60 tokens, 58 trigrams, W = 120: with a gap of 60 the answer ends at q_end + 120."""
    one = entry(run(100, 24), run(500, 60))
    document = one.question + noise(gap) + one.answer + noise(50, 2_000_000)
    assert short_answer(document, one, 23).overlap == pytest.approx(n_found / 58)


def test_a_long_answer_cut_by_the_document_s_end_is_found_in_part() -> None:
    one = entry(run(100, 24), run(500, 10))  # 8 trigrams
    # 6 of its tokens are there: 4 trigrams
    assert short_answer(one.question + run(500, 6), one, 23) == NearMatch(4 / 8, 24, 30)


def test_every_trigram_of_a_long_answer_counts_once() -> None:
    one = entry(run(100, 24), run(500, 6))  # 4 trigrams
    document = one.question + run(500, 4) * 5 + noise(5)  # two of them, five times
    assert short_answer(document, one, 23).overlap == pytest.approx(2 / 4)


def test_a_long_answer_begins_behind_the_question_s_end() -> None:
    one = entry(run(100, 24), run(500, 4))
    # with q_end = 24 the first trigram begins at q_end and does not count
    assert short_answer(one.question + one.answer, one, 24).overlap == pytest.approx(1 / 2)
    assert short_answer(one.answer + one.question + noise(20), one, 27) == NOT_FOUND


def test_long_answer_overlap_is_weighted_by_idf() -> None:
    """N = 4 answers hold (1,2,3) twice, (2,3,4) once: ln 2 and ln 4 = 2 ln 2."""
    one = entry(run(100, 24), (1, 2, 3, 4))
    entries = [one, entry(run(200, 24), (1, 2, 3, 5)), entry(run(300, 24)), STRANGER]
    index = build_index(entries, SAMPLING)
    document = (*one.question, 1, 2, 3, *noise(5))
    assert find_answer(document, 23, one, index).overlap == pytest.approx(LN2 / (3 * LN2))
    document = (*one.question, 2, 3, 4, *noise(5))
    assert find_answer(document, 23, one, index).overlap == pytest.approx(2 / 3)


def passage(document: Tokens, one: Entry, start: int) -> NearMatch:
    return find_passage(document, start, one, world(one, policy=SAMPLING))


PQ = entry(run(100, 24), (), run(500, 4))  # one 4-gram, W = 100


@pytest.mark.parametrize(
    ("gap", "is_found"),
    [
        (0, False),  # at start - 4: it would hold the token right before the question
        (1, True),  # at start - 5
        (97, True),  # at start - 101 = start - 1 - W
        (98, False),
    ],
)
def test_a_passage_is_looked_for_from_five_to_a_hundred_and_one_before(
    gap: int, is_found: bool
) -> None:
    document = noise(30, 3_000_000) + PQ.passage + noise(gap) + PQ.question
    start = 34 + gap
    expected = NearMatch(1.0, 30, 34) if is_found else NOT_FOUND
    assert passage(document, PQ, start) == expected


@pytest.mark.parametrize(("gap", "n_found"), [(61, 57), (62, 56), (117, 1), (118, 0)])
def test_a_passage_s_window_is_twice_its_length_where_that_is_more(gap: int, n_found: int) -> None:
    """60 tokens, 57 4-grams, W = 120. With a gap of 61 its first 4-gram is at start - 121."""
    one = entry(run(100, 24), (), run(500, 60))
    document = noise(30, 3_000_000) + one.passage + noise(gap) + one.question
    assert passage(document, one, 90 + gap).overlap == pytest.approx(n_found / 57)


def test_a_passage_may_begin_the_document() -> None:
    assert passage(PQ.passage + noise(1) + PQ.question, PQ, 5) == NearMatch(1.0, 0, 4)


@pytest.mark.parametrize("start", range(5))
def test_nothing_is_looked_for_before_the_document(start: int) -> None:
    # A negative position must not read the document's end, where the passage stands.
    document = noise(start) + PQ.question + PQ.passage
    assert passage(document, PQ, start) == NOT_FOUND


def test_a_passage_after_the_question_does_not_count() -> None:
    document = noise(10) + PQ.question + PQ.passage + noise(10, 2_000_000)
    assert passage(document, PQ, 10) == NOT_FOUND


# w0 w1 w2 w3 z w3 w4 w5 w6: six 4-grams, of which (w0..w3) is the first and (w3..w6) the last
TWICE = (500, 501, 502, 503, 600, 503, 504, 505, 506)


def test_two_misses_in_a_row_do_not_end_a_passage() -> None:
    one = entry(run(100, 24), (), TWICE)
    # w0..w6 without a break: hits at 0 and 3, misses at 2 and 1
    document = run(500, 7) + noise(1) + one.question
    assert passage(document, one, 8).overlap == pytest.approx(2 / 6)


def test_three_misses_in_a_row_end_a_passage() -> None:
    one = entry(run(100, 24), (), TWICE)
    # w0..w3 w3..w6: hits at 0 and 4, misses at 3, 2 and 1
    document = run(500, 4) + run(503, 4) + noise(1) + one.question
    assert passage(document, one, 9) == NearMatch(pytest.approx(1 / 6), 4, 8)  # type: ignore[arg-type] # approx stands in for a float


def test_the_tolerated_misses_are_the_policy_s() -> None:
    one = entry(run(100, 24), (), TWICE)
    document = run(500, 4) + run(503, 4) + noise(1) + one.question
    for tolerated, n_found in ((2, 1), (3, 2)):
        policy = Policy(passage_max_consecutive_misses=tolerated)
        overlap = find_passage(document, 9, one, world(one, policy=policy)).overlap
        assert overlap == pytest.approx(n_found / 6)


def test_a_repeated_passage_ngram_forgives_the_misses_before_it() -> None:
    # a b c a q z y x a: six 4-grams, the first a b c a, the last z y x a
    a, b, c, q, z, y, x = run(500, 7)
    one = entry(run(100, 24), (), (a, b, c, a, q, z, y, x, a))
    # a b c a at 6, misses at 5 and 4, a b c a again at 3, misses at 2 and 1, z y x a at 0
    document = (z, y, x, a, b, c, a, b, c, a, *noise(1), *one.question)
    assert passage(document, one, 11).overlap == pytest.approx(2 / 6)


def test_misses_before_the_first_passage_hit_do_not_count() -> None:
    one = entry(run(100, 24), (), run(500, 8))
    document = one.passage + noise(60) + one.question
    assert passage(document, one, 68).overlap == 1.0


def test_every_passage_ngram_counts_once() -> None:
    one = entry(run(100, 24), (), run(500, 8))  # 5 4-grams
    periodic = entry(run(100, 24), (), (1, 2, 1, 2, 1, 2, 1, 3, 4))
    document = one.passage[:4] + noise(1) + one.question
    assert passage(document, one, 5).overlap == pytest.approx(1 / 5)
    # 1212 2121 1212 2121 1213 2134: four different ones; two of them are there, many times
    document = (1, 2) * 10 + noise(1) + periodic.question
    assert passage(document, periodic, 21).overlap == pytest.approx(2 / 4)


def test_a_passage_shorter_than_an_ngram_is_never_found() -> None:
    one = entry(run(100, 24), (), run(500, 3))
    assert passage(one.passage + noise(2) + one.question, one, 5) == NOT_FOUND
