"""What fills the blank of a question is the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment import blanks
from decon_core.alignment.blanks import _BLANK, _MARKS, blanks_of, filled_with
from decon_core.alignment.units import units_of
from tests.core.alignment.aligning import FORM, compared
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

LEFT = "Tilde could not lift the anvil onto the cart in Hemmel market because the"
RIGHT = "was far too heavy for one person."
MARKS = ["_", "____", "[MASK]", "<blank>", "(  )", "()", "（ ）", "……", ".....", "＿＿"]
MARKS += [r"\_\_\_\_", "____ ____", "__1__", "[MASK] [MASK]"]


def filled(question, answer, text):
    """Return the words of a text that fill the blanks of a question with an answer."""
    marked = np.array(blanks_of(question, FORM), np.int64)
    one = compared(question, text)
    place, is_other = filled_with([answer], marked, one, text, FORM) if one else (None, False)
    assert not (place and is_other)
    return place and text[slice(*place)]


@pytest.mark.parametrize("mark", MARKS)
def test_what_stands_where_the_blank_was_is_the_answer(mark):
    question = f"{LEFT} {mark} {RIGHT}"
    before, after = "He said: ", " So he did."
    right, wrong = (f"{before}{LEFT} {one} {RIGHT}{after}" for one in ("anvil", "cart"))
    assert filled(question, "anvil", right) == filled(question, "the anvil", right) == "anvil"
    assert filled(question, "anvil", wrong) is None
    assert filled(question, "anvil", f"{before}{question}{after}") is None
    assert filled(question, "anvil", f"{before}{LEFT} not the anvil {RIGHT}{after}") is None


def test_other_words_fill_a_blank_only_within_the_question():
    inner, last = f"{LEFT} ____ {RIGHT}", f"{LEFT} ____."
    for question, mark, expected in (
        (inner, "cart", True),
        (inner, "(2)", True),
        (inner, "____", False),
        (inner, "[BLANK]", False),
        (inner, "", False),
        (last, "cart", False),
    ):
        text = question.replace("____", mark)
        marked = np.array(blanks_of(question, FORM), np.int64)
        found = filled_with(["anvil"], marked, compared(question, text), text, FORM)
        assert found == (None, expected)


def test_an_article_before_the_blank_may_change():
    question = "Every spring the ferrymen elected a ____ who alone could forbid the crossing."
    text = question.replace("a ____", "an old warden")
    assert filled(question, "old warden", text) == "old warden"
    assert filled(question, "warden", text) is None


def test_several_blanks_are_all_filled():
    question = (
        "The bakers of ____ promised the millers of ____ a tenth of every loaf on market days."
    )
    text = question.replace("____", "Orlen", 1).replace("____", "Hemmel")
    assert filled(question, "Orlen and Hemmel", text) == text[14:50]
    assert filled(question, "Orlen; Hemmel", text)
    assert filled(question, "Hemmel; Orlen", text) is None
    assert filled(question, "Orlen", text) is None


def test_blanks_in_a_row_are_one():
    for mark in ("____ ____", r"\_\_\_\_", "[MASK] [MASK]", "__1__ __2__"):
        assert len(blanks_of(f"The bakers of {mark} promised a tenth.", FORM)) == 1
    assert len(blanks_of("He was looking for _ in the garden.", FORM)) == 1
    assert len(blanks_of("The capital of France is ( ).", FORM)) == 1


def test_a_question_with_many_blanks_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(blanks, "units_of", lambda *of: (read.append(of), units_of(*of))[1])
    assert len(blanks_of("the ____ word " * 40, FORM)) == 40
    assert len(read) == 1


def test_a_blank_at_an_end_is_filled_by_the_words_there():
    start = "____ was the first keeper of the lighthouse of Sund in that long autumn."
    assert filled(start, "Tilde Morven", start.replace("____", "They say that Tilde Morven")) == (
        "Tilde Morven"
    )
    assert filled(start, "Tilde Morven", start.replace("____", "They say that Tilde")) is None
    end = "The first keeper of the lighthouse of Sund in that long autumn was ____."
    assert filled(end, "Tilde Morven", end.replace("____.", "Tilde Morven. More of it tomorrow."))
    assert filled(end, "Tilde Morven", end.replace("____.", "Oskar. Tilde Morven was not.")) is None


@pytest.mark.parametrize(
    "text",
    [
        "def f(): return __init__",
        "f(x) = x_1 + g()",
        "He waits... and waits.",
        "array[0]()",
        "x = ()",
        "x = ( )",
        "run(lambda: ())",
        "print ()",
        "int main( ) {",
        "for _ in range(3):",
        "f(x, ( ))",
        "a_\\_b",
    ],
)
def test_code_and_dots_are_no_blanks(text):
    assert blanks_of(text, FORM) == []


_WORDS = st.sampled_from(["baker", "oven", "potter", "sextant", "a", "the", "an", "and", "12"])


@settings(max_examples=fewer(300))
@given(st.data(), st.lists(_WORDS, min_size=1, max_size=3), st.lists(_WORDS, max_size=4))
def test_a_filling_is_that_of_the_oracle(data, answer, filling):
    words = LEFT.split()
    at = data.draw(st.integers(4, len(words) - 4))  # few words may be left out beside a gap
    question = " ".join([*words[:at], "____", *words[at:]])
    text = " ".join([*words[:at], *filling, *words[at:]])
    found = filled(question, " ".join(answer), text)
    expected = oracle.is_filled(filling, answer)
    # A filling with words of the question may be aligned in another way.
    if not {*filling, *answer} & {word.lower() for word in words}:
        assert (found is not None) == expected


@given(st.text("_＿\\a1 .…[]<>()（）mask", max_size=12))
def test_what_fails_the_fast_test_has_no_blank(question):
    if _BLANK.search(question):
        assert any(mark in question for mark in _MARKS)
