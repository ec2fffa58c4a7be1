"""Texts are split into words, characters and numbers, as the oracle does it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.units import units_of
from tests.core.alignment.aligning import FORM, read
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

PIECES = [
    "three",
    "thousand",
    "3,000",
    "3000",
    "1/2",
    "½",
    "15%",
    "7.",
    "12am",
    "x^2",
    "The",
    "Anna",
    "Mr.",
    "don't",
    "日本",
    "語",
    "จง",
    "หา",
    "<b>",
    "</b>",
    "&nbsp;",
    "&amp;",
    "\\n\\n",
    "—",
    "“",
    "”",
    ".",
    ",",
    "1234567",
    "1234568",
    "and",
    "a",
    "half",
    "İ",
    "ﬁne",
    "é",
    "30mph",
    "1.5",
]


@pytest.mark.parametrize("text", ["3,000", "3000", "three thousand", "Three Thousand", "3000.0"])
def test_a_number_is_one_unit_with_its_value(text):
    units = read(f"about {text} people")
    assert units.keys == ("about", "3000", "people")
    assert units.is_number == (False, True, False)
    assert f"about {text} people"[units.starts[1] : units.stops[1]] == text


def test_long_numbers_differ_in_their_last_digit():
    first, second = read("1234567 1234568").keys
    assert first != second


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("二次方程的解是3", (*"二次方程的解是", "3")),
        ("จงหา x", (*"จงหา", "x")),
        ("ひらがなとカナ", tuple("ひらがなとカナ")),
        ("don't stop", ("don", "t", "stop")),
        ("", ()),
        ("?!", ()),
    ],
)
def test_scripts_without_spaces_have_single_characters(text, keys):
    assert read(text).keys == keys


def test_markup_is_no_unit_and_does_not_divide_a_number():
    text = "<p>Two&nbsp;hundred of <b>12</b>,500 <i>birds</i></p>"
    units = read(text)
    assert units.keys == ("200", "of", "12500", "birds")
    shown = [text[start:stop] for start, stop in zip(units.starts, units.stops, strict=True)]
    assert shown == ["Two&nbsp;hundred", "of", "12</b>,500", "birds"]


def test_a_name_has_a_capital_within_a_sentence():
    units = read("Yesterday Anna met Bob. She gave I think 3 Books")
    names = [key for key, is_name in zip(units.keys, units.is_name, strict=True) if is_name]
    assert names == ["anna", "bob", "books"]


def test_units_of_a_range_of_characters_and_of_a_longer_text():
    text = "one red bird sings"
    units = read(text)
    assert units.within((4, 12)).keys == ("red", "bird")
    assert units.within((5, 9)).keys == ("bird",)
    assert units_of(text, FORM, start=7).stops == (10, 14, 19, 25)
    assert len(units.weights) == len(units) == 4
    assert units.weights[3] > units.weights[1]  # "sings" is rarer than "red"


@settings(max_examples=fewer(60))
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from([" ", "", "\n"]))
def test_units_are_those_of_the_oracle(pieces, space):
    text = space.join(pieces)
    units = read(text)
    columns = (units.keys, units.starts, units.stops, units.is_number, units.is_name)
    assert [*zip(*columns, strict=True)] == [tuple(one) for one in oracle.units(text, FORM)]
    assert all(a < b for a, b in zip(units.starts, units.stops, strict=True))
    assert [*units.starts] == sorted(units.starts)
