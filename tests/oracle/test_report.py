"""Section 6: one entry per benchmark item and place."""

from decon_core.config.policy import Policy
from tests.oracle.decon import NOT_FOUND, Entry, Match, build_index, detect, report
from tests.oracle.worlds import EXHAUSTIVE, STRANGER, entry, noise, run

Q = run(100, 60)


def match(number: int, score: float, *, start: int = 0, end: int = 55) -> Match:
    return Match(number, start, end, 56, 1.0, NOT_FOUND, NOT_FOUND, score, score)


def winners(entries: list[Entry], *matches: Match) -> list[int]:
    index = build_index([*entries, STRANGER], EXHAUSTIVE)
    return [one.number for one in report(matches, index)]


def choices(*is_correct: bool | None) -> list[Entry]:
    return [entry(Q, (7 + i,), is_correct=one) for i, one in enumerate(is_correct)]


def test_the_best_scoring_choice_of_a_row_is_reported() -> None:
    entries = choices(True, False, False)
    assert winners(entries, match(0, 0.8), match(1, 0.9), match(2, 0.85)) == [1]


def test_between_equal_scores_the_correct_choice_wins() -> None:
    entries = choices(False, False, True)
    assert winners(entries, match(0, 0.9), match(1, 0.9), match(2, 0.9)) == [2]
    # not known is not correct
    assert winners(choices(None, True), match(0, 0.9), match(1, 0.9)) == [1]
    assert winners(choices(None, False), match(0, 0.9), match(1, 0.9)) == [0]


def test_a_better_score_beats_the_correct_choice() -> None:
    assert winners(choices(True, False), match(0, 0.9), match(1, 0.95)) == [1]


def test_between_equal_choices_the_first_record_wins_in_any_order_of_matches() -> None:
    entries = choices(False, False, False)
    assert winners(entries, match(2, 0.9), match(0, 0.9), match(1, 0.9)) == [0]
    assert winners(entries, match(1, 0.9), match(2, 0.9)) == [1]


def test_places_instances_and_benchmarks_are_reported_apart() -> None:
    entries = [
        entry(Q, instance=1),
        entry(Q, instance=2),
        entry(Q, instance=1, benchmark="other"),
    ]
    assert winners(entries, match(0, 0.9), match(1, 0.9), match(2, 0.9)) == [0, 1, 2]
    assert winners(entries, match(0, 0.9), match(0, 0.9, start=70, end=125)) == [0, 0]


def test_the_question_s_start_decides_and_not_its_end() -> None:
    entries = choices(False, False)
    assert winners(entries, match(0, 0.9, end=55), match(1, 0.95, end=50)) == [1]


def test_a_multiple_choice_row_in_a_document_is_reported_by_the_choice_that_stands_there() -> None:
    """All choices share the question; only the third one's answer follows it."""
    for policy in (Policy(sampling="reference"), EXHAUSTIVE):
        entries = [entry(Q, run(500 + 10 * i, 2), is_correct=i == 0) for i in range(4)]
        index = build_index([*entries, STRANGER], policy)
        document = noise(7) + Q + entries[2].answer + noise(60, 2_000_000)
        # the others: 0.75 * 1 + 0.25 * 0 = 0.75 < 0.8
        assert [(one.number, one.score) for one in report(detect(document, index), index)] == [
            (2, 1.0)
        ]
        # all four listed within 50 tokens: four perfect scores, the correct choice is kept
        listed = noise(7) + Q + run(500, 2) + run(510, 2) + run(520, 2) + run(530, 2)
        matches = detect(listed + noise(60, 2_000_000), index)
        assert [one.score for one in matches] == [1.0] * 4
        assert [one.number for one in report(matches, index)] == [0]


def test_matches_of_a_document_come_in_order_of_position_and_record() -> None:
    entries = [entry(Q), entry(run(300, 60), instance=1)]
    index = build_index([*entries, STRANGER], EXHAUSTIVE)
    document = run(300, 60) + noise(20) + Q + noise(20, 2_000_000) + run(300, 60)
    assert [(one.start, one.number) for one in detect(document, index)] == [
        (0, 1),
        (80, 0),
        (160, 1),
    ]
