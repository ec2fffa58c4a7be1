"""The oracle and a second reading of the specification agree."""

import dataclasses

import pytest
from hypothesis import given, settings

from decon_core.config.policy import Policy
from tests.oracle import naive
from tests.oracle.decon import (
    Cluster,
    Entry,
    Tokens,
    build_index,
    detect,
    exhaustive_clusters,
    sampled_clusters,
)
from tests.oracle.strategies import policies, worlds
from tests.oracle.worlds import five_grams
from tests.uncompiled import fewer

SLOW = settings(derandomize=True, max_examples=fewer(30))


def naively(found: list[naive.Cluster]) -> list[Cluster]:
    return [Cluster(one.record, one.grams, one.start, one.end) for one in found]


@SLOW
@given(worlds(), policies(sampling="reference"))
def test_sampled_clusters_are_those_of_the_naive_reading(
    world: tuple[list[Entry], Tokens], policy: Policy
) -> None:
    known, document = world
    expected = naive.sampled(
        [one.question for one in known],
        document,
        step=policy.sample_every_m_tokens,
        allowed=policy.question_max_consecutive_misses,
        hot_records=policy.hot_ngram_records,
    )
    if len(document) >= 10:
        index = build_index(known, policy)
        assert list(sampled_clusters(five_grams(document), index)) == naively(expected)


@SLOW
@given(worlds(), policies())
def test_exhaustive_clusters_are_those_of_the_naive_reading(
    world: tuple[list[Entry], Tokens], policy: Policy
) -> None:
    known, document = world
    expected = naive.exhaustive(
        [one.question for one in known],
        document,
        allowed=policy.question_max_consecutive_misses,
        hot_records=policy.hot_ngram_records,
    )
    if len(document) >= 10:
        index = build_index(known, policy)
        assert list(exhaustive_clusters(five_grams(document), index)) == naively(expected)


@SLOW
@given(worlds(), policies(sampling="reference", keep_no_answer=False))
def test_sampled_scores_are_those_of_the_naive_reading(
    world: tuple[list[Entry], Tokens], policy: Policy
) -> None:
    known, document = world
    items = [naive.Item(one.question, one.answer, one.passage) for one in known]
    threshold = policy.contamination_score_threshold
    expected: dict[tuple[int, int, int], float] = {}
    for cluster in naive.sampled(
        [one.question for one in known],
        document,
        step=policy.sample_every_m_tokens,
        allowed=policy.question_max_consecutive_misses,
        hot_records=policy.hot_ngram_records,
    ):
        score = naive.score(
            items,
            document,
            cluster,
            threshold=threshold,
            decay_start=policy.perfect_match_decay_start,
            decay_end=policy.perfect_match_decay_end,
            short_window=policy.short_answer_window_length,
            long_window=policy.min_long_answer_window,
            passage_distance=policy.min_passage_distance,
        )
        if score is not None and score >= threshold:
            expected[cluster.record, cluster.start, cluster.end] = score
    matches = detect(document, build_index(known, policy))
    assert {(m.number, m.start, m.end): m.score for m in matches} == pytest.approx(expected)


@SLOW
@given(worlds(), policies(sampling="exhaustive"))
def test_an_exhaustive_score_is_the_best_of_what_any_seed_could_have_seen(
    world: tuple[list[Entry], Tokens], policy: Policy
) -> None:
    """Components one by one: an answer from one boundary, a passage from another."""
    known, document = world
    index = build_index(known, policy)
    for match in detect(document, index):
        plain = dataclasses.replace(policy, sampling="reference")
        only_wide = detect_wide(document, known, match.number, plain, match.start, match.end)
        assert only_wide is None or match.score >= only_wide


def detect_wide(
    document: Tokens, known: list[Entry], number: int, policy: Policy, start: int, end: int
) -> float | None:
    from tests.oracle.decon import call

    index = build_index(known, policy)
    grams = five_grams(document)
    for cluster in exhaustive_clusters(grams, index):
        if (cluster.number, cluster.start, cluster.end) == (number, start, end):
            match = call(document, grams, cluster, index)
            return match.score if match else None
    raise AssertionError("the reported match is no cluster")
