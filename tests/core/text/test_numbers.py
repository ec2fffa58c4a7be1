"""Numbers in a text, as values."""

import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.text import numbers
from decon_core.text.numbers import numbers_in, numbers_of_texts
from tests.uncompiled import fewer


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("three 3 3.0 three", [3, 3, 3, 3]),
        ("$1,200 and 1200", [1200, 1200]),
        ("15 % of 15 percent, 15%", [0.15, 0.15, 0.15]),
        ("1/2 or half or 0.5 or ½", [0.5, 0.5, 0.5, 0.5]),
        ("2 1/2 cups, 2½ cups, two and a half cups", [2.5, 2.5, 2.5]),
        ("one hundred and five", [105]),
        ("one thousand two hundred thirty-four", [1234]),
        ("two hundred five thousand", [205_000]),
        ("a dozen, two dozen, 3 dozen", [12, 24, 36]),
        ("3 million and 1.5 million", [3e6, 1.5e6]),
        ("two thirds, three-quarters, two halves", [0.666666667, 0.75, 1]),
        ("twice as many, doubled; tripled", [2, 2, 3]),
        # not one number
        ("five and six", [5, 6]),
        ("twenty five six", [25, 6]),
        ("1,2,3", [1, 2, 3]),
        ("10-15 at 3:30", [10, 15, 3, 30]),
        ("5/10/2020", [5, 10, 2020]),
        # no numbers
        ("the third month, 3rd, 21st, hundreds of freight trains", []),
        ("someone, bone, tent", []),
    ],
)
def test_values(text, values):
    assert [number.value for number in numbers_in(text)] == values


def test_the_range_of_a_number_is_its_characters():
    text = "İt has Two Hundred and five rooms, 15 % of 1,200."
    ranges = [text[number.start : number.stop] for number in numbers_in(text)]
    assert ranges == ["Two Hundred and five", "15 %", "1,200"]


@given(st.lists(st.integers(0, 999_999), max_size=8))
def test_written_numbers_are_read_back(values):
    plain = [number.value for number in numbers_in(", ".join(map(str, values)))]
    assert plain == values
    grouped = [number.value for number in numbers_in("; ".join(f"{n:,}" for n in values))]
    assert grouped == values


@given(st.text(alphabet="0123456789.,/% twohundredandhalf½-", max_size=60))
def test_ranges_are_in_order_and_do_not_overlap(text):
    found = numbers_in(text)
    edges = [edge for number in found for edge in (number.start, number.stop)]
    assert edges == sorted(edges)
    assert all(number.start < number.stop for number in found)


_PIECES = """
    one two half third quarter hundred thousand and 1 12 3. . / 1,234 , st th rd - % ½ percent
    twice x é _ .5 ٣ fifth halves
"""


@given(st.lists(st.sampled_from([*_PIECES.split(), " ", "and a "]), max_size=10).map("".join))
def test_no_number_begins_where_none_is_searched(text):
    with patch.object(numbers, "_beginnings", lambda lower: range(len(lower))):
        everywhere = numbers_in(text)
    assert numbers_in(text) == everywhere


_MORE_PIECES = """
    . , , / - % _ 0 00 1 12 123 1234 0.05 1,234 1.5 1234567 .5 st TH nd rd Two twenty dozens million
    per cent percent and a and half thirds tenth Twice doubles \u0663 \u212a \xbd \xe9 \u2028 x
    oneself three\x1c \n
"""
_TEXTS = st.lists(st.sampled_from([*_MORE_PIECES.split(" "), " ", " "]), max_size=12).map("".join)


@settings(max_examples=fewer(500))
@given(st.lists(_TEXTS | st.text(max_size=8), max_size=4))
def test_numbers_of_several_texts_are_those_of_each(texts):
    characters = np.array([*map(ord, "".join(f"{text}1" for text in texts))], np.uint32)
    edges = np.cumsum([0, *(len(text) + 1 for text in texts)])
    expected = [
        (value, start + edge, stop + edge)
        for edge, text in zip(edges.tolist(), texts, strict=False)
        for value, start, stop in numbers_in(text)
    ]
    columns = numbers_of_texts(characters, edges, texts)
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == expected


def test_no_character_beyond_the_table_begins_a_number():
    beyond = map(chr, range(numbers._N_CHARACTERS, sys.maxunicode + 1))
    assert not any(character.isdecimal() or character.isspace() for character in beyond)
