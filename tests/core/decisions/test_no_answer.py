"""No answer: a question that was found without its answer is neither a leak nor clean."""

import pyarrow as pa
import pytest

from decon_core.config.policy import Policy
from decon_core.decisions.decide import decide
from decon_core.decisions.judging import judge
from decon_core.decisions.verdicts import NO_VERDICTS, Verdict, Verdicts
from decon_core.schemas import ENTRIES, MATCHES

WORDS = Policy(tokenizer_str="words", eval_min_token_length=20)
TEXT_IDS = [f"{number:016x}" for number in range(4)]


def match(**values):
    """A row of a scan result: a whole question of 60 tokens, whose answer was not found."""
    filler = {"string": "x", "int64": 0, "double": 0.0}
    row = {field.name: None if field.nullable else filler[str(field.type)] for field in MATCHES}
    row |= {"detector": "decon", "question_overlap": 1.0, "answer_overlap": 0.0, "base_score": 0.75}
    row |= {"question_start": 0, "question_stop": 60, "n_matched": 56, "n_grams": 56}
    return row | {"question_tokens": 60, "total_tokens": 64, "text_id": TEXT_IDS[0]} | values


def entries(*matches, policy=WORDS, verdicts=NO_VERDICTS):
    return decide(pa.Table.from_pylist(list(matches), schema=MATCHES), policy, verdicts).to_pylist()


def classes(*matches, **settings):
    return [(one["is_contaminated"], one["is_no_answer"]) for one in entries(*matches, **settings)]


LEAK, NO_ANSWER, NEITHER = (True, False), (False, True), (False, False)


def said(verdict):
    return Verdicts(
        {TEXT_IDS[0]: Verdict(pair=TEXT_IDS[0], fingerprint=TEXT_IDS[0], verdict=verdict)}
    )


def test_a_whole_question_without_its_answer_is_no_answer():
    assert classes(match()) == [NO_ANSWER]
    assert classes(match(base_score=0.8)) == [LEAK]
    nothing_else = match(answer_overlap=None, base_score=0.75, question_overlap=0.75)
    assert classes(nothing_else) == [NEITHER]  # the record is its question


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"question_overlap": 0.79, "base_score": 0.6}, NEITHER),
        ({"question_overlap": 0.8, "base_score": 0.6}, NO_ANSWER),
        # A question of 30 tokens must be found to 1 - 0.2 * 10 / 30 = 93 %.
        ({"question_overlap": 0.92, "question_tokens": 30, "base_score": 0.69}, NEITHER),
        ({"question_overlap": 0.94, "question_tokens": 30, "base_score": 0.7}, NO_ANSWER),
        ({"question_tokens": 20}, NO_ANSWER),
        ({"question_tokens": 19}, NEITHER),  # by itself it would not be indexed
    ],
)
def test_the_question_is_judged_as_a_record_of_its_own(values, expected):
    assert classes(match(**values)) == [expected]


def test_a_short_question_behind_its_passage_is_no_answer_without_the_answer():
    """As of reading comprehension: the questions alone are too short to be indexed."""
    short = {"question_tokens": 12, "n_grams": 8, "total_tokens": 140, "base_score": 0.695}
    there = {"passage_overlap": 1.0, "passage_start": 100, "passage_stop": 220}
    assert classes(match(**short, **there)) == [NO_ANSWER]
    # 0.595 of the question, 0.405 of the passage
    assert classes(match(**short, **there | {"passage_overlap": 0.51})) == [NO_ANSWER]
    assert classes(match(**short, **there | {"passage_overlap": 0.50})) == [NEITHER]
    assert classes(match(**short, passage_overlap=0.0)) == [NEITHER]


def test_of_other_rules_nothing_is_no_answer():
    for detector in ("ratcliff", "longest_match", "exact"):
        assert classes(match(detector=detector, base_score=0.2)) == [NEITHER]


def test_the_threshold_of_today_decides():
    half = match(question_overlap=0.85, base_score=0.6375)
    assert classes(half) == [NO_ANSWER]
    assert classes(half, policy=Policy(contamination_score_threshold=0.9)) == [NEITHER]
    assert classes(half, policy=Policy(contamination_score_threshold=0.62)) == [LEAK]


def test_a_person_who_clears_a_text_clears_it_of_this_too():
    assert classes(match(), verdicts=said("template")) == [NEITHER]
    assert classes(match(), verdicts=said("unsure")) == [NO_ANSWER]
    assert classes(match(), verdicts=said("leak")) == [LEAK]


def test_of_several_records_a_leak_speaks_first_then_one_that_is_no_answer():
    choices = [
        match(record=0, base_score=0.74, question_overlap=0.7, text_id=TEXT_IDS[1]),
        match(record=1, base_score=0.72, text_id=TEXT_IDS[2]),
        match(record=2, base_score=0.9, text_id=TEXT_IDS[3]),
    ]
    assert [one["record"] for one in entries(*choices)] == [2]
    assert [one["record"] for one in entries(*choices[:2])] == [1]
    cleared = match(record=4, base_score=0.95, question_stop=58)
    (one,) = entries(*choices[:2], cleared, verdicts=said("template"))
    assert (one["record"], one["is_no_answer"]) == (1, True)


def test_no_match_is_both():
    found = [match(row=n, base_score=n / 20, question_overlap=n / 20) for n in range(21)]
    judged = judge(pa.Table.from_pylist(found, schema=MATCHES), WORDS)
    assert not (judged.is_leak & judged.is_no_answer).any()
    assert "is_no_answer" in ENTRIES.names
