"""What equals a threshold on paper reaches it: in the oracle, in the engine, and in decisions.

Paper is `fractions.Fraction`: every weight and threshold is the decimal number that the method
publishes, and every overlap is a count over a count.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.policy import Policy
from decon_core.config.rounding import exceeds
from decon_core.decisions.common_ngrams import _are_common
from decon_core.decisions.judging import highest_thresholds, judge
from decon_core.kernels.scores import base_scores
from decon_core.schemas import MATCHES
from tests.core.detectors import engine
from tests.oracle.decon import (
    Entry,
    Match,
    Tokens,
    base_score,
    build_index,
    detect,
    penalized,
    reaches,
    total_length,
)
from tests.oracle.worlds import STRANGER, entry, noise, run
from tests.uncompiled import fewer

SLOW = settings(derandomize=True, max_examples=fewer(25))
HUNDREDTHS = range(31, 101)
DECAY_START, DECAY_END = 20, 50


def hundredths(n: int) -> Fraction:
    return Fraction(n, 100)


# Paper --------------------------------------------------------------------------------------------


def paper_weights(one: Entry) -> tuple[Fraction, Fraction, Fraction]:
    n_grams = max(1, len(one.question) - 4)
    c_q = min(Fraction(1), Fraction(1, 2) + Fraction(1, 2) * Fraction(n_grams, 20))
    if one.answer and one.passage:
        lost = hundredths(70) * (1 - c_q)
        answer, passage = hundredths(20) + lost / 2, hundredths(10) + lost / 2
        n_different = len(set(one.answer))
        c_a = min(Fraction(1), Fraction(1, 2) + Fraction(1, 2) * Fraction(n_different, 4))
        return hundredths(70) * c_q, answer * c_a, passage + answer * (1 - c_a)
    if one.answer:
        return hundredths(75) * c_q, hundredths(25) + hundredths(75) * (1 - c_q), Fraction(0)
    if one.passage:
        return hundredths(85) * c_q, Fraction(0), hundredths(15) + hundredths(85) * (1 - c_q)
    return Fraction(1), Fraction(0), Fraction(0)


def paper_decay(length: int, target: Fraction) -> Fraction:
    share = Fraction(length - DECAY_START, DECAY_END - DECAY_START)
    return 1 - (1 - target) * min(Fraction(1), max(Fraction(0), share))


def paper_base(one: Entry, overlaps: tuple[Fraction, Fraction, Fraction]) -> Fraction:
    return sum(
        (weight * overlap for weight, overlap in zip(paper_weights(one), overlaps, strict=True)),
        Fraction(0),
    )


def paper_score(one: Entry, base: Fraction, threshold: Fraction) -> Fraction:
    required = paper_decay(total_length(one), threshold)
    return base if base == 1 else base * threshold / required


def is_leak_on_paper(
    one: Entry, overlaps: tuple[Fraction, Fraction, Fraction], threshold: Fraction
) -> bool:
    least = max(Fraction(0), (threshold - hundredths(30)) / hundredths(70))
    gate = max(least, paper_decay(len(one.question), least))
    score = paper_score(one, paper_base(one, overlaps), threshold)
    return overlaps[0] >= gate and score >= threshold


# Every sum that equals a threshold ----------------------------------------------------------------


def sums_that_equal_a_threshold() -> list[tuple[Entry, tuple[Fraction, Fraction, Fraction], int]]:
    """Long items, so that no penalty applies, and shares of their n-grams."""
    cases = []
    for n_question in (9, 14, 24, 64):
        for answer, passage in (((), ()), (1, ()), ((), 1), (1, 1), (2, 1)):
            one = entry(
                run(0, n_question),
                () if answer == () else run(500, 2 if answer == 2 else 12),
                () if passage == () else run(700, 63),
            )
            for n in range(21):
                for a in (0, 3, 5, 10) if one.answer else (0,):
                    for p in (0, 6, 10, 20) if one.passage else (0,):
                        overlaps = Fraction(n, 20), Fraction(a, 10), Fraction(p, 20)
                        on_paper = 100 * paper_base(one, overlaps)
                        if on_paper.denominator == 1 and int(on_paper) in HUNDREDTHS:
                            cases.append((one, overlaps, int(on_paper)))
    return cases


def test_sums_of_weights_that_equal_a_threshold_on_paper_reach_it():
    cases = sums_that_equal_a_threshold()
    assert len(cases) > 400
    below = 0
    rows: dict[int, list[pa.Table]] = {}
    for one, overlaps, threshold in cases:
        question, answer, passage = map(float, overlaps)
        base = base_score(one, question, answer, passage, Policy())
        below += base < threshold / 100
        assert reaches(base, threshold / 100)
        scores = np.zeros(1)
        base_scores(
            np.array([max(1, len(one.question) - 4)]),
            np.array([len(set(one.answer))]),
            np.array([bool(one.passage)], np.uint8),
            np.array([[question, answer, passage]]),
            scores,
        )
        assert scores[0] == base
        row = of_match(one, base, overlap=1.0, n_question=100, n_total=100)
        rows.setdefault(threshold, []).append(row)
    assert below  # or plain comparison would do
    for threshold, same in rows.items():
        matches = pa.concat_tables(same)
        policy = Policy(contamination_score_threshold=threshold / 100, lowest_recorded_score=0.31)
        assert judge(matches, policy)[1].tolist() == [True] * len(same)
        assert [*highest_thresholds(matches, policy)] == [threshold / 100] * len(same)


def of_match(
    one: Entry,
    base: float,
    *,
    overlap: float,
    n_question: int,
    n_total: int,
    detector: str = "decon",
) -> pa.Table:
    nothing = {field.name: None if field.nullable else "" for field in MATCHES}
    nothing |= {field.name: 0 for field in MATCHES if field.type in (pa.int64(), pa.float64())}
    row = {"detector": detector, "base_score": base, "question_overlap": overlap}
    row |= {"question_tokens": n_question, "total_tokens": n_total}
    return pa.Table.from_pylist([nothing | row], schema=MATCHES)


# Whole scans --------------------------------------------------------------------------------------


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[Entry, tuple[Fraction, Fraction, Fraction], Tokens]:
    """An item, a document that holds some of it, and what share of each part that is."""
    n_question = draw(st.sampled_from([14, 24, 34, 54, 60, 74]))
    one = entry(
        run(0, n_question),
        draw(st.sampled_from([(), run(500, 2), run(500, 7), run(500, 12)])),
        draw(st.sampled_from([(), run(700, 8), run(700, 23), run(700, 43)])),
    )
    n_grams = n_question - 4
    n = draw(st.one_of(st.just(n_grams), st.integers(n_grams // 3, n_grams)))
    document = noise(40) + one.passage[draw(st.integers(0, len(one.passage))) :]
    n_passage = max(0, len(document) - 40 - 3)
    document += (1_500_000, *one.question[: n + 4])
    n_answer, n_answer_grams = 0, max(1, len(one.answer) - 2)
    if 0 < len(one.answer) <= 3:
        n_answer = draw(st.integers(0, 1))
        document += one.answer if n_answer else ()
    elif one.answer:
        n_answer = draw(st.integers(0, n_answer_grams))
        document += one.answer[: n_answer + 2]
    overlaps = (
        Fraction(n, n_grams),
        Fraction(n_answer, n_answer_grams),
        Fraction(n_passage, max(1, len(one.passage) - 3)),
    )
    return one, overlaps, document + noise(40, 2_000_000)


def found_by_all(one: Entry, document: Tokens, policy: Policy) -> list[Match]:
    """What the oracle finds; the engine finds the same."""
    known = [one, STRANGER]
    matches = detect(document, build_index(known, policy))
    assert engine.detect_all([document], engine.search_for(known, policy), policy) == [matches]
    return matches


@SLOW
@given(cases(), st.sampled_from(HUNDREDTHS), st.sampled_from(["exhaustive", "reference"]))
def test_a_scan_and_a_decision_call_what_paper_calls(
    case: tuple[Entry, tuple[Fraction, Fraction, Fraction], Tokens], n: int, sampling: str
) -> None:
    one, overlaps, document = case
    policy = Policy(
        contamination_score_threshold=n / 100,
        lowest_recorded_score=0.31,
        keep_no_answer=False,
        sampling=sampling,  # type: ignore[arg-type] # one of the two
        perfect_match_decay_start=DECAY_START,
        perfect_match_decay_end=DECAY_END,
    )
    on_paper = is_leak_on_paper(one, overlaps, hundredths(n))
    assert bool(found_by_all(one, document, policy)) == on_paper
    kept = found_by_all(one, document, policy.at_floor)
    rows = [
        of_match(
            one,
            match.base_score,
            overlap=match.question_overlap,
            n_question=len(one.question),
            n_total=total_length(one),
        )
        for match in kept
    ]
    called = [judge(row, policy)[1][0] for row in rows]
    assert any(called) == on_paper
    assert [penalized(match.base_score, total_length(one), policy) for match in kept] == [
        judge(row, policy)[0][0] for row in rows
    ]


@pytest.mark.parametrize("sampling", ["exhaustive", "reference"])
def test_a_whole_question_and_passage_without_the_answer_reach_the_threshold(sampling):
    one = entry(run(0, 60), run(500, 12), run(700, 20))
    document = noise(40) + one.passage + (1_500_000,) + one.question + noise(40, 2_000_000)
    (match,) = found_by_all(one, document, Policy(sampling=sampling))
    assert match.base_score == 0.7 + 0.1 < 0.8


def test_a_match_exactly_at_the_evidence_floor_is_kept():
    # 0.75 * 44 / 55 = 0.6, with an overlap of 0.8
    one = entry(run(0, 59), run(500, 12))
    document = noise(20) + one.question[:48] + noise(40, 2_000_000)
    (match,) = found_by_all(one, document, Policy(keep_no_answer=False).at_floor)
    assert match.base_score == pytest.approx(0.6, abs=1e-12)


# Comparisons that ask for more than a threshold ---------------------------------------------------


def share_of(n):
    share = 0.0
    for _ in range(n):
        share += 0.01  # 0.7 becomes 0.7000000000000004
    return share


def test_no_share_equal_to_a_threshold_exceeds_it():
    for n in range(1, 100):
        assert not exceeds(share_of(n), n / 100), n
        assert exceeds((n + 1) / 101, n / 100), n


@pytest.mark.parametrize("n", [1, 7, 29, 58, 70, 99])
def test_a_score_equal_to_a_threshold_is_a_leak_but_for_the_rule_that_asks_for_more(n):
    share = share_of(n)
    row = of_match(entry(run(0, 9)), share, overlap=0.0, n_question=9, n_total=9)
    for detector in ("ratcliff", "longest_match", "exact"):
        names = {"exact": "exact_threshold"}.get(detector, f"{detector}_threshold")
        floors = {
            "ratcliff_lowest_recorded": 0.01,
            "longest_match_lowest_recorded": 0.01,
        }
        policy = dataclasses.replace(Policy(detectors=BUILT_IN, **floors), **{names: n / 100})
        own = row.set_column(MATCHES.get_field_index("detector"), "detector", pa.array([detector]))
        assert judge(own, policy)[1].tolist() == [detector != "longest_match"]


@pytest.mark.parametrize(("share", "n"), [(0.29, 100), (0.07, 100), (0.001, 3000), (0.57, 100)])
def test_an_ngram_in_exactly_the_common_share_of_documents_is_not_common(share, n):
    policy = Policy(common_share=share, common_least_documents=1)
    on_paper = round(share * n)
    counts = pa.chunked_array([[on_paper, on_paper + 1]])
    assert _are_common(counts, n, policy).to_pylist() == [False, True]
