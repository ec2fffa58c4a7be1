"""Texts are split into words, characters and numbers, as the oracle does it."""

from itertools import compress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.units import spelled_units
from decon_core.text.canonical import canonical
from tests.core.alignment.aligning import FORM, read, spelled
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
    "か\u3099。",
    "\u3099",
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
    "（",
    "，",
    "f（x）＝1，y",
    "\u200b",
    "\u00ad",
    "4\u200b8",
]


def test_invisible_characters_do_not_part_a_number():
    text = "sold 1\u200b2\u00ad\u200b5 pears and 4\u200b8km"
    assert spelled(text) == spelled("sold 125 pears and 48km")


def test_full_width_signs_part_words():
    text = "Let f（x，y）＝3；find f（1，2）．"
    assert " ".join(spelled(text)) == canonical(text, FORM) == "let f x y 3 find f 1 2"


def test_nuls_part_words_and_not_letters():
    text = "the\0box and\0a\0bag. c\0o\0n\0"
    assert " ".join(spelled(text)) == canonical(text, FORM) == "the box and a bag con"


TEXTS = st.tuples(
    st.sampled_from([" ", "", "\n"]), st.lists(st.sampled_from(PIECES), max_size=14)
).map(lambda drawn: drawn[0].join(drawn[1]))


@pytest.mark.parametrize("text", ["3,000", "3000", "three thousand", "Three Thousand", "3000.0"])
def test_a_number_is_one_unit_with_its_value(text):
    text_around = f"about {text} people"
    units = read(text_around)
    assert spelled(text_around) == ["about", "3000", "people"]
    assert units.is_number.tolist() == [0, 1, 0]
    assert f"about {text} people"[units.starts[1] : units.stops[1]] == text


def test_long_numbers_differ_in_their_last_digit():
    first, second = spelled("1234567 1234568")
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
    assert spelled(text) == [*keys]


def test_markup_is_no_unit_and_does_not_divide_a_number():
    text = "<p>Two&nbsp;hundred of <b>12</b>,500 <i>birds</i></p>"
    units = read(text)
    assert spelled(text) == ["200", "of", "12500", "birds"]
    shown = [text[start:stop] for start, stop in zip(units.starts, units.stops, strict=True)]
    assert shown == ["Two&nbsp;hundred", "of", "12</b>,500", "birds"]


def test_a_name_has_a_capital_within_a_sentence():
    text = "Yesterday Anna met Bob. She gave I think 3 Books"
    names = [*compress(spelled(text), read(text).is_name.tolist())]
    assert names == ["anna", "bob", "books"]


@settings(max_examples=fewer(60))
@given(st.lists(TEXTS, max_size=4))
def test_units_of_several_texts_are_those_of_the_oracle(texts):
    found = read(*texts)
    expected = [oracle.units(text, FORM) for text in texts]
    assert found.lengths.tolist() == [*map(len, expected)]
    columns = found.starts, found.stops, found.is_number, found.is_name
    keys = [key for text in texts for key in spelled(text)]
    assert [*zip(keys, *(column.tolist() for column in columns), strict=True)] == [
        tuple(unit) for of_text in expected for unit in of_text
    ]
    of_key = dict(zip(found.keys.tolist(), keys, strict=True))
    assert [of_key[key] for key in found.keys.tolist()] == keys
    assert len({*keys}) == len(of_key)


def test_many_texts_are_read_in_several_stretches(monkeypatch):
    texts = ["one red bird", "", "12 birds sing", "x"] * 5
    together = read(*texts)
    monkeypatch.setattr("decon_core.alignment.units._MOST_CHARACTERS", 20)
    apart = read(*texts)
    for column, values in vars(together).items():
        assert vars(apart)[column].tolist() == values.tolist()
    units, spelled = spelled_units(texts, FORM)
    assert spelled(np.arange(len(units))) == ["1", "red", "bird", "12", "birds", "sing", "x"] * 5


@pytest.mark.parametrize("mark", ["> ", ">> ", "# ", "// ", "* ", "; ", "| ", "-- ", "% "])
def test_a_number_goes_on_behind_the_mark_of_a_line(mark):
    for parts in (
        ("reduced by 15", "percent"),
        ("twenty", "five"),
        ("one", "half"),
    ):
        assert spelled(f"{mark}It is {f'{chr(10)}{mark}'.join(parts)} of it") == spelled(
            f"It is {' '.join(parts)} of it"
        )
