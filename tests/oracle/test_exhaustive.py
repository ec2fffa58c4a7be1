"""Section 7: what sampling finds, exhaustive mode finds too, and what sampling jumps over."""

import pytest

from decon_core.config.policy import Policy
from tests.oracle.decon import (
    NOT_FOUND,
    Cluster,
    exhaustive_clusters,
    find_answer,
    find_passage,
    question_end,
    sampled_clusters,
)
from tests.oracle.worlds import (
    EXHAUSTIVE,
    SAMPLING,
    entry,
    five_grams,
    found,
    noise,
    numbers_found,
    run,
    world,
)


def test_a_record_jumped_over_by_sampling_is_found() -> None:
    """The hit at 0 is walked right to its 11th miss at 11; the other question stands at 7."""
    first, jumped_over = entry(run(100, 5)), entry(run(200, 5))
    document = first.question + noise(2) + jumped_over.question + noise(30, 2_000_000)
    assert numbers_found(document, first, jumped_over, policy=SAMPLING) == [0]
    assert numbers_found(document, first, jumped_over, policy=EXHAUSTIVE) == [0, 1]


@pytest.mark.parametrize("at", range(1, 25))
def test_a_short_question_between_the_samples_is_found(at: int) -> None:
    one = entry(run(100, 5))
    document = noise(at) + one.question + noise(30, 2_000_000)
    assert numbers_found(document, one, policy=EXHAUSTIVE) == [0]
    assert bool(numbers_found(document, one, policy=SAMPLING)) is (at % 10 == 0)


@pytest.mark.parametrize(("n_between", "n_clusters"), [(10, 1), (11, 2)])
def test_a_record_s_hits_belong_together_up_to_ten_misses(n_between: int, n_clusters: int) -> None:
    one = entry(run(100, 20))
    # n-gram 0 at 0 and n-gram 15 behind `n_between` others: 4 of them touch the first's tokens
    document = run(100, 5) + noise(n_between - 4) + run(115, 5) + noise(20, 2_000_000)
    clusters = list(exhaustive_clusters(five_grams(document), world(one, policy=EXHAUSTIVE)))
    assert len(clusters) == n_clusters
    assert clusters[0].start == 0
    assert clusters[-1].end == n_between + 1


def test_a_repeated_ngram_keeps_an_exhaustive_cluster_alive() -> None:
    """n-gram 0 at 0 and 7, n-gram 5 at 14: sampling gives up at 12, after 6 + 5 misses."""
    q = run(100, 10)
    document = q[:5] + noise(2) + q[:5] + noise(2, 2_000_000) + q[5:] + noise(20, 3_000_000)
    grams = five_grams(document)
    index = world(entry(q), policy=EXHAUSTIVE)
    assert list(exhaustive_clusters(grams, index)) == [Cluster(0, frozenset({q[:5], q[5:]}), 0, 14)]
    assert next(sampled_clusters(grams, index)).end == 7


def test_hot_ngrams_alone_are_no_exhaustive_cluster_but_count_in_one() -> None:
    hot = run(0, 5)
    policy = Policy(hot_ngram_records=1)  # N = 8: hot above max(1, 2 * floor(sqrt(8))) = 4
    holders = [entry(hot + run(100 * (i + 1), 10)) for i in range(5)]
    index = world(*holders, entry(run(5000, 5)), entry(run(6000, 5)), policy=policy)
    assert list(exhaustive_clusters(five_grams(hot + noise(20)), index)) == []
    document = hot + run(100, 1) + noise(20)  # one n-gram more, of the first record only
    assert list(exhaustive_clusters(five_grams(document), index)) == [
        Cluster(0, frozenset({hot, (1, 2, 3, 4, 100)}), 0, 1)
    ]


def test_every_record_is_followed_whatever_the_others_do() -> None:
    shared = run(0, 5)
    one, other = entry(shared + run(100, 30)), entry(shared + run(200, 5))
    document = shared + run(100, 30) + run(200, 5) + noise(20)
    clusters = list(exhaustive_clusters(five_grams(document), world(one, other, policy=EXHAUSTIVE)))
    assert [(c.number, c.start, c.end) for c in clusters] == [(0, 0, 30), (1, 0, 0), (1, 35, 35)]


def test_an_answer_that_wide_boundaries_lose_is_found_by_narrow_ones() -> None:
    """Eight echoes of the question's first n-gram, 8 positions apart, lead up to the question.

    Each echo is a hit, so the exhaustive cluster begins at 0 and ends, cut to the question's 24
    tokens, at q_end = 23; the answer at 64 + 24 + 5 = 93 is 70 tokens on, outside the 50.
    A sampled seed in the question (at 64) counts echoes as repeats: 7 misses to the one at 56, and
    the 11th at 52. So it starts at 56, q_end = 79, and the answer stands 14 tokens on.
    """
    one = entry(run(100, 24), (7, 8))
    echoes = tuple(token for i in range(8) for token in run(100, 5) + noise(3, 2_000_000 + 10 * i))
    document = echoes + one.question + noise(5) + one.answer + noise(30, 3_000_000)
    assert document[93:95] == one.answer
    index = world(one, policy=EXHAUSTIVE)
    (wide,) = exhaustive_clusters(five_grams(document), index)
    assert (wide.start, wide.end) == (0, 83)
    assert question_end(0, 83, one.question, EXHAUSTIVE) == 23
    assert find_answer(document, 23, one, index) == NOT_FOUND
    assert question_end(56, 83, one.question, EXHAUSTIVE) == 79
    (match,) = found(document, one, policy=EXHAUSTIVE)
    assert (match.score, match.answer.start, match.answer.stop) == (1.0, 93, 95)
    assert (match.start, match.end) == (0, 83)  # the boundaries reported are the wide ones


def test_a_passage_that_wide_boundaries_lose_is_found_by_narrow_ones() -> None:
    """Echo at 0, passage at 5, echo at 11, question at 19.

    Echoes are 10 misses apart, so the exhaustive cluster begins at 0, before the passage. A seed in
    the question has 7 misses to the echo at 11, which forgives nothing, and leaves four later: it
    begins at 11, and the passage's two 4-grams at 6 = 11 - 5 and 5 are seen.
    """
    one = entry(run(100, 24), (), run(500, 5))
    document = (
        run(100, 5) + one.passage + noise(1) + run(100, 5) + noise(3, 2_000_000)
        + one.question + noise(30, 3_000_000)
    )  # fmt: skip
    index = world(one, policy=EXHAUSTIVE)
    (wide,) = exhaustive_clusters(five_grams(document), index)
    assert (wide.start, wide.end) == (0, 38)
    assert find_passage(document, 0, one, index) == NOT_FOUND
    assert find_passage(document, 11, one, index).overlap == 1.0
    (match,) = found(document, one, policy=EXHAUSTIVE)
    assert (match.passage.overlap, match.score) == (1.0, 1.0)


@pytest.mark.parametrize("misses", [1, 2, 3, 11])
def test_exhaustive_clusters_contain_sampled_ones_for_any_number_of_misses(misses: int) -> None:
    policy = Policy(sampling="reference", question_max_consecutive_misses=misses)
    one = entry(run(100, 24))
    document = run(100, 24) + noise(20)
    index = world(one, policy=policy)
    (wide,) = exhaustive_clusters(five_grams(document), index)
    (sampled,) = sampled_clusters(five_grams(document), index)
    assert wide == sampled == Cluster(0, frozenset(five_grams(one.question)), 0, 19)
