"""Where a text states an answer, and what stands behind a question and is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.alignment.pieces import wanted_of
from decon_core.alignment.stated_answers import _STATEMENT, _statements, stated_answer
from tests.oracle import alignment as oracle


def stated(answer, text):
    place = stated_answer([wanted_of(answer)], text, 0)
    return place and text[slice(*place)]


@pytest.mark.parametrize(
    "text",
    [
        "Question 18: How many cars are there? Answer: 43",
        "Answer: 43\nQuestion 2: How many goats are there?\nAnswer: 18",
        "There were 43 goats, and 18 of them were ill.",
        "The report of 2018 is on page 18 of volume 18.",
        "Answer: 1918",
        "Answer: 43 (see page 18)",
        "Answer to question 18: 43",
        "Answer 18: 43",
        "width=18 height='18'",
        "x != 18, y >= 18, z = 18x, 18 = w",
        "The answer is not 18.",
        "The answer can't be 18.",
        "Wrong answer: 18",
        "Answer: 18 is not correct.",
        "Answer: 18:30",
        "Answer: 18 - 3",
        "= 18/5",
        "\\boxed{18\\pi}",
        "#### 43\n#### 18",
        "The answers are below.\n18",
        "Answer:\n" + "The committee met again in spring. " * 3 + "18",
    ],
)
def test_numbers_that_are_not_the_stated_answer(text):
    assert stated("18", text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Answer choices: A. oak B. elm C. ash",
        "Select the best answer: A) oak B) elm C) ash",
        "Answer choices:\n(A) oak\n(B) elm\n(C) ash\nAnswer: C",
        "Answer: C\nWhat is the highest hill?\nAnswer: A",
        "The answer is a riddle.",
        "Answer: A train is longer.",
        "A = 3, thus x = A",
        "The answer is not A.",
        "Section A has the answers.",
    ],
)
def test_letters_that_are_not_the_stated_answer(text):
    assert stated("A", text) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("one", "I asked everybody, but no one."),
        ("one", "The answer is no one."),
        ("Hemmel", "Answer: Tilde\nWhere was she born?\nAnswer: Hemmel"),
        ("18 cars", "Answer: 18 goats"),
        ("C", "Select the best answer:\nC. ash"),
        ("18 cars", "Answer: 43 cars"),
    ],
)
def test_words_that_are_not_the_stated_answer(answer, text):
    assert stated(answer, text) is None


_OPENINGS = st.sampled_from(oracle.OPENINGS)
_BETWEEN = st.sampled_from(["", "not ", "therefore ", "**", "never "])
_VALUES = st.sampled_from(["18", "1,018", "1018", "-18", "43", "A", "B", "Hemmel"])
_ENDS = st.sampled_from([".", "", "\n", " cars.", "}", "5", ".5", "/7", " + 2", " is wrong.", "x"])


@given(_VALUES, _OPENINGS, _BETWEEN, _VALUES, _ENDS)
def test_a_stated_answer_is_that_of_the_oracle(answer, opening, between, value, end):
    there = stated(answer, f"{opening}{between}{value}{end}")
    assert (there is not None) == oracle.is_stated(answer, opening, between, value, end)


_OTHER_PIECES = (
    *("answer", "ANSWER", "=", "==", "#", "#####", "\\box", "答", "解答案", "İ", "ответ", "선정답"),
    *("选A", "选 B", "n=1", "ab=1", "!=", "correct choice", " ", "s", "x"),
)
_PIECES = st.sampled_from([*oracle.OPENINGS, *_OTHER_PIECES])


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_statements_are_all_that_their_pattern_finds(text):
    found = [statement.span() for statement in _statements(text)]
    assert found == [statement.span() for statement in _STATEMENT.finditer(text)]
