"""No answer: the oracle, the kernel and the columns of scan results call the same matches so."""

import dataclasses

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Policy, Sampling
from decon_core.decisions.judging import judge
from decon_core.schemas import MATCHES
from tests.core.detectors import engine
from tests.oracle.decon import (
    NOT_FOUND,
    Entry,
    Match,
    NearMatch,
    Tokens,
    base_score,
    build_index,
    detect,
    is_no_answer,
    question_grams,
    total_length,
)
from tests.oracle.strategies import policies, worlds
from tests.oracle.worlds import entry, found, noise, run
from tests.uncompiled import fewer

SLOW = settings(derandomize=True, max_examples=fewer(40))
SAMPLINGS: st.SearchStrategy[Sampling] = st.sampled_from(["exhaustive", "reference"])
World = tuple[list[Entry], Tokens]


def scan_result(matches: list[Match], known: list[Entry]) -> pa.Table:
    """These matches as a scan result keeps them."""
    filler = {"string": "", "int64": 0, "double": 0.0}
    row = {field.name: None if field.nullable else filler[str(field.type)] for field in MATCHES}
    return pa.Table.from_pylist(
        [row | columns(match, known[match.number]) for match in matches], schema=MATCHES
    )


def columns(match: Match, one: Entry) -> dict[str, object]:
    there = match.passage != NOT_FOUND
    return {
        "detector": "decon",
        "base_score": match.base_score,
        "question_overlap": match.question_overlap,
        "answer_overlap": match.answer.overlap if one.answer else None,
        "passage_overlap": match.passage.overlap if one.passage else None,
        "passage_start": match.passage.start if there else None,
        "passage_stop": match.passage.stop if there else None,
        "n_grams": len(question_grams(one, Policy())),
        "question_tokens": len(one.question),
        "total_tokens": total_length(one),
    }


@SLOW
@given(worlds(), policies(), SAMPLINGS, st.floats(0.1, 1.0))
def test_the_columns_of_a_scan_result_decide_as_the_oracle_does(
    world: World, policy: Policy, sampling: Sampling, share: float
) -> None:
    known, document = world
    lower = dataclasses.replace(policy, sampling=sampling, keep_no_answer=True)
    floor = lower.lowest_recorded_score
    threshold = min(1.0, floor + share * (1.0 - floor))
    higher = dataclasses.replace(lower, contamination_score_threshold=threshold)
    kept = detect(document, build_index(known, lower))
    judged = judge(scan_result(kept, known), higher)
    called = [
        dataclasses.replace(match, score=score, is_no_answer=bool(without_answer))
        for match, score, is_leak, without_answer, *_ in zip(kept, *judged, strict=True)
        if is_leak or without_answer
    ]
    assert called == detect(document, build_index(known, higher))
    assert not (judged.is_leak & judged.is_no_answer).any()


@SLOW
@given(worlds(), policies(), SAMPLINGS)
def test_without_no_answer_the_same_leaks_are_found_and_nothing_else(
    world: World, policy: Policy, sampling: Sampling
) -> None:
    """The published detector is what it was: the setting only adds what is no leak."""
    known, document = world
    kept, left_out = (
        dataclasses.replace(policy, sampling=sampling, keep_no_answer=keep)
        for keep in (True, False)
    )
    every = detect(document, build_index(known, kept))
    leaks = [match for match in every if not match.is_no_answer]
    assert detect(document, build_index(known, left_out)) == leaks
    (by_engine,) = engine.detect_all([document], engine.search_for(known, left_out), left_out)
    assert by_engine == leaks
    (by_engine,) = engine.detect_all([document], engine.search_for(known, kept), kept)
    assert by_engine == every


@pytest.mark.parametrize("n_tokens", [20, 21, 30, 43, 60])
@pytest.mark.parametrize("sampling", ["exhaustive", "reference"])
def test_a_whole_question_without_its_answer_is_found_whatever_its_length(
    n_tokens: int, sampling: Sampling
) -> None:
    """By the record's score those of 20 to 43 tokens would lie below the lowest recorded score."""
    policy = Policy(sampling=sampling).at_floor
    one = entry(run(0, n_tokens), run(500, 6))
    document = noise(20) + one.question + noise(20, 2_000_000)
    (match,) = found(document, one, policy=policy)
    assert (match.question_overlap, match.is_no_answer) == (1.0, match.score < 0.6)
    without = dataclasses.replace(policy, keep_no_answer=False)
    assert bool(found(document, one, policy=without)) == (match.score >= 0.6)
    assert judge(scan_result([match], [one]), Policy()).is_no_answer.tolist() == [True]


@pytest.mark.parametrize(
    ("one", "question", "passage", "expected"),
    [
        (entry(run(0, 20), run(500, 6)), 1.0, NOT_FOUND, True),
        (entry(run(0, 20)), 1.0, NOT_FOUND, False),  # nothing is missing
        (entry(run(0, 19), run(500, 6)), 1.0, NOT_FOUND, False),  # not indexed by itself
        (entry(run(0, 19), (), run(500, 40)), 1.0, NOT_FOUND, False),
        (entry(run(0, 60), (), run(500, 40)), 0.8, NOT_FOUND, True),
        (entry(run(0, 12), run(400, 6), run(500, 40)), 1.0, NearMatch(1.0, 30, 70), True),
        (entry(run(0, 12), run(400, 6), run(500, 40)), 1.0, NearMatch(0.4, 30, 70), False),
        (entry(run(0, 12), run(400, 6), run(500, 7)), 1.0, NearMatch(1.0, 30, 37), False),
    ],
)
def test_what_is_no_answer(
    one: Entry, question: float, passage: NearMatch, *, expected: bool
) -> None:
    policy = Policy(eval_min_token_length=20)
    assert is_no_answer(one, question, passage, policy) is expected
    base = base_score(one, question, 0.0, passage.overlap, policy)
    match = Match(0, 0, 0, 1, question, NOT_FOUND, passage, base, base)
    judged = judge(scan_result([match], [one]), policy)
    assert judged.is_no_answer[0] == (expected and not judged.is_leak[0])


def test_the_setting_is_part_of_the_scan_fingerprint() -> None:
    names = {
        Policy(keep_no_answer=keep).scan_fingerprint(tokenizer="t", snapshot="s")
        for keep in (True, False)
    }
    assert len(names) == 2
