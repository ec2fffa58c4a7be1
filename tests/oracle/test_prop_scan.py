"""What holds of every scan, whatever the records and the document."""

import dataclasses
from collections import defaultdict

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Policy, Sampling
from tests.oracle.decon import (
    Entry,
    Match,
    Tokens,
    build_index,
    count,
    decay,
    detect,
    is_no_answer,
    least_question_overlap,
    penalized,
    reaches,
    report,
    total_length,
)
from tests.oracle.strategies import NOISE, entries, policies, token_runs, worlds
from tests.oracle.worlds import entry
from tests.uncompiled import fewer

SLOW = settings(derandomize=True, max_examples=fewer(25))
SAMPLINGS: st.SearchStrategy[Sampling] = st.sampled_from(["reference", "exhaustive"])
World = tuple[list[Entry], Tokens]


def place(match: Match) -> tuple[int, int, int]:
    return match.start, match.number, match.end


def uncalled(match: Match) -> Match:
    return dataclasses.replace(match, score=0.0, is_no_answer=False)


def keys(matches: list[Match]) -> set[tuple[int, int, int]]:
    return {(match.number, match.start, match.end) for match in matches}


@SLOW
@given(worlds(), policies())
def test_exhaustive_mode_finds_all_that_sampling_finds(world: World, policy: Policy) -> None:
    known, document = world
    sampled, exhaustive = (
        detect(document, build_index(known, dataclasses.replace(policy, sampling=mode)))
        for mode in ("reference", "exhaustive")
    )
    for match in sampled:
        assert any(
            wide.number == match.number
            and wide.start <= match.start
            and match.end <= wide.end
            and wide.score >= match.score
            and wide.n_matched >= match.n_matched
            for wide in exhaustive
        )


@SLOW
@given(worlds(), policies())
def test_exhaustive_mode_finds_all_at_every_sampling_step_together(
    world: World, policy: Policy
) -> None:
    known, document = world
    wide = {
        match.number
        for match in detect(
            document, build_index(known, dataclasses.replace(policy, sampling="exhaustive"))
        )
    }
    for step in range(1, 8):
        sampling = dataclasses.replace(policy, sampling="reference", sample_every_m_tokens=step)
        assert {m.number for m in detect(document, build_index(known, sampling))} <= wide


@SLOW
@given(
    SAMPLINGS,
    token_runs(5, 40, st.integers(0, 30)),
    st.one_of(st.just(()), token_runs(1, 3, st.integers(0, 30)), token_runs(4, 30)),
    entries(most=3),
    token_runs(0, 40, NOISE),
    token_runs(0, 40, NOISE),
)
def test_a_verbatim_question_and_answer_scores_exactly_one_anywhere(
    sampling: Sampling,
    question: Tokens,
    answer: Tokens,
    others: list[Entry],
    before: Tokens,
    after: Tokens,
) -> None:
    policy = Policy(sampling=sampling)
    one = entry(question, answer, benchmark="target")
    index = build_index([one, *others], policy)
    f = index.frequencies
    # A question or an answer that every record shares tells nothing and is not looked for.
    assume(any(f.idf(f.question[gram]) > 0 for gram in index.postings if 0 in index.postings[gram]))
    if len(answer) > 3:
        assume(any(f.idf(n) > 0 for gram, n in f.answer.items() if set(gram) <= set(answer)))
        grams = {answer[i : i + 3] for i in range(len(answer) - 2)}
        assume(any(f.idf(f.answer[gram]) > 0 for gram in grams))
    else:
        assume(not answer or all(f.idf(f.token[token]) > 0 for token in answer))
    document = before + question + answer + after
    assume(len(document) >= 10)
    if sampling == "reference":
        assume(len(question) >= 14)  # ten n-grams: every tenth position meets one
        assume(not any(one.question == before[-5:] for one in others))
    best = max((m.score for m in detect(document, index) if m.number == 0), default=0.0)
    assert best == 1.0


@SLOW
@given(worlds(), policies(sampling="exhaustive"))
def test_benchmark_by_benchmark_is_all_at_once_when_frequencies_are_frozen(
    world: World, policy: Policy
) -> None:
    known, document = world
    frozen = count(known, policy)
    index = build_index(known, policy, frozen)
    together = detect(document, index)
    parts: defaultdict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(known):
        parts[one.record.benchmark].append(number)
    apart: list[Match] = []
    reported_apart: list[Match] = []
    for numbers in parts.values():
        part = build_index([known[n] for n in numbers], policy, frozen)
        matches = detect(document, part)
        apart += [dataclasses.replace(m, number=numbers[m.number]) for m in matches]
        reported_apart += [
            dataclasses.replace(m, number=numbers[m.number]) for m in report(matches, part)
        ]
    assert sorted(apart, key=place) == together
    assert sorted(reported_apart, key=place) == sorted(report(together, index), key=place)


@SLOW
@given(worlds(), policies(), SAMPLINGS, st.floats(0.1, 1.0))
def test_a_higher_threshold_never_adds_matches(
    world: World, policy: Policy, sampling: Sampling, share: float
) -> None:
    known, document = world
    floor = policy.lowest_recorded_score
    threshold = floor + share * (1.0 - floor)
    lower = dataclasses.replace(policy, sampling=sampling)
    higher = dataclasses.replace(lower, contamination_score_threshold=min(1.0, threshold))
    below, above = (detect(document, build_index(known, p)) for p in (lower, higher))
    assert keys(above) <= keys(below)
    scores = {(m.number, m.start, m.end): m for m in below}
    for match in above:
        same = scores[match.number, match.start, match.end]
        # the threshold decides what is called, never what was seen
        assert uncalled(match) == uncalled(same)


@SLOW
@given(worlds(), policies(), SAMPLINGS, st.floats(0.1, 1.0))
def test_matches_at_the_floor_decide_every_higher_threshold(
    world: World, policy: Policy, sampling: Sampling, share: float
) -> None:
    """Deciding again from kept matches is scanning again with the higher threshold."""
    known, document = world
    floor = policy.lowest_recorded_score
    lower = dataclasses.replace(policy, sampling=sampling)
    higher = dataclasses.replace(
        lower, contamination_score_threshold=min(1.0, floor + share * (1.0 - floor))
    )
    again = []
    least = least_question_overlap(higher)
    for match in detect(document, build_index(known, lower)):
        one = known[match.number]
        if match.question_overlap < max(least, decay(len(one.question), least, higher)):
            continue
        score = penalized(match.base_score, total_length(one), higher)
        is_leak = reaches(score, higher.contamination_score_threshold)
        is_without_answer = higher.keep_no_answer and is_no_answer(
            one, match.question_overlap, match.passage, higher
        )
        if is_leak or is_without_answer:
            called = dataclasses.replace(match, score=score, is_no_answer=not is_leak)
            again.append(called)
    assert again == detect(document, build_index(known, higher))


@SLOW
@given(worlds(), policies())
def test_the_report_keeps_one_best_match_for_every_item_and_place(
    world: World, policy: Policy
) -> None:
    known, document = world
    index = build_index(known, policy)
    matches = detect(document, index)
    reported = report(matches, index)

    def item(match: Match) -> tuple[str, int, int]:
        record = known[match.number].record
        return record.benchmark, record.instance, match.start

    assert len({item(match) for match in reported}) == len(reported)
    assert {item(match) for match in reported} == {item(match) for match in matches}
    for match in reported:
        rivals = [m for m in matches if item(m) == item(match)]
        leaks = [m for m in rivals if not m.is_no_answer]
        assert match.is_no_answer is not bool(leaks)
        rivals = leaks or rivals
        assert match.score == max(m.score for m in rivals)
        best = [m for m in rivals if m.score == match.score]
        correct = [m for m in best if known[m.number].record.is_correct] or best
        assert match.number == min(m.number for m in correct)


@SLOW
@given(worlds(), policies())
def test_scores_and_overlaps_stay_between_zero_and_one(world: World, policy: Policy) -> None:
    known, document = world
    for match in detect(document, build_index(known, policy)):
        for value in (match.question_overlap, match.answer.overlap, match.passage.overlap):
            assert 0.0 <= value <= 1.0
        assert 0.0 <= match.score <= match.base_score <= 1.0
        is_leak = reaches(match.score, policy.contamination_score_threshold)
        assert is_leak is not match.is_no_answer
        for piece in (match.answer, match.passage):
            assert piece.overlap == 0.0 or 0 <= piece.start < piece.stop <= len(document)
