"""Operators between the units of a question: which are signs, and which differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decon_core as dc
from decon_core.alignment.operators import _SIGNS, _is_changed, signs_in
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

POLICY = {"detectors": ["aligned"]}
ASKED = "What does the clerk of the mill at Hemmel get who computes {} on the back of a sack?"
BOAT = "A boat sails at 9 knots and a tug follows it at 15 knots. When do the two of them meet?"


def decoded(code):
    signs = []
    while code:
        signs.insert(0, _SIGNS[(code & 15) - 1])
        code >>= 4
    return signs


@pytest.mark.parametrize(
    ("between", "signs"),
    [
        (" + ", "+"),
        ("$ − $", "-"),
        ("**–**", ""),
        (" &lt;= ", "<="),
        ("</b> × <i>", "*"),
        ("^{", "^"),
        ("**", "^"),
        (" == ", "="),
        ("=-", "=-"),
        ("|>", ">"),
        (" -> ", ""),
        (" -- ", ""),
        ("\n=====\n", ""),
        ("\n> ", ""),
        ("\n  - ", ""),
        (" +\n> > ", "+"),
        ("\n-", "-"),
        (r"\n# + ", ""),
        (" plus ", ""),
        ("+-+-", ""),
        (", ", ""),
    ],
)
def test_signs_are_what_stands_between_operands(between, signs):
    several = ["<="] if signs == "<=" else [*signs]
    found = decoded(signs_in(between))
    assert found == several or (between == "**–**" and found == ["^", "-", "^"])


CASES = {
    "48 + 17 - 5": (
        ["48 - 17 + 5", "48 * 17 - 5", "48 + 17 / 5 "],
        ["48+17-5", "48 + 17 − 5", "48 + 17\n> - 5", "48 17 5", "$48$ + **17** - <b>5</b>"],
    ),
    "$x^2+5x-6=0$": (
        ["$x^2-5x+6=0$", "x^2+5x-6<0"],
        [r"\(x^2 + 5x - 6 = 0\)", "$x^{2}+5x-6=0$", "x**2 + 5x - 6 == 0"],
    ),
    "|x-3|<2": (["|x-3|>2", "|x-3|<=2"], ["|x - 3| &lt; 2", "|x - 3|<2"]),
    "a <= b": (["a != b", "a < b"], ["a<=b", "`a` <= `b`", "a &lt;= b"]),
    "limit == total": (["limit != total"], ["limit = total", "limit total", "limit - total"]),
    "12/5/2020": (["12+5/2020"], ["12-5-2020"]),
    "a well-known sum": ([], ["a well known sum", "a well/known sum", "a *well*-known sum"]),
}


@pytest.fixture(scope="module")
def index():
    questions = [*map(ASKED.format, CASES), BOAT]
    return {
        question: dc.build_index(
            [{"question": one, "answer": "forty crowns"} for one in (question, BOAT)],
            policy=POLICY,
        )
        for question in questions
    }


@pytest.mark.parametrize("formula", CASES)
def test_other_operators_make_a_variant_and_another_spelling_none(index, formula):
    others, alike = CASES[formula]
    asked = ASKED.format(formula)
    for text, kind in (
        *((text, "verbatim") for text in (formula, *alike)),
        *((text, "variant") for text in others),
    ):
        (found,) = index[asked].check(f"{ASKED.format(text)} Answer: forty crowns")
        assert (text, found.kind) == (text, kind)


PIECES = [*"+-*/=<>!^−–×·÷", "<=", "**", "==", "!=", " ", " ", "$", "|", ","]


@settings(max_examples=fewer(1_000))
@given(*[st.lists(st.sampled_from(PIECES), max_size=4).map(" ".join)] * 2)
def test_signs_are_those_of_the_oracle(one, other):
    ours, theirs = decoded(signs_in(one)), oracle.signs(one)
    assert ours == (theirs if len(theirs) <= 3 else [])
    text = f"x{other}y"
    signs = oracle.signs(other)
    if len(theirs) <= 3 >= len(signs):
        is_other = oracle.are_other_signs(theirs, signs)
        assert _is_changed(signs_in(one), text, 1, len(text) - 1) == (is_other and bool(signs))
