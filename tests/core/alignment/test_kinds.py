"""What a place is to an item: an example of each kind and of neighbours, and the oracle."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.kinds import (
    EDITED,
    KINDS,
    PART,
    TEMPLATE,
    VARIANT,
    VERBATIM,
    kind_of,
)
from tests.core.alignment.aligning import compared
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

BOAT = (
    "Before noon a pilot boat leaves the harbour at a speed of 9 knots, and 2 hours later a tug "
    "follows it at 15 knots. After how many hours does the tug reach the boat?"
)
RIVER = "Which river of Siberia flows past the city of Krasnoyarsk and ends in the Kara Sea?"
ANIMALS = [
    "lynx",
    "otter",
    "heron",
    "newt",
    "crane",
    "adder",
    "perch",
    "shrike",
    "bison",
    "stoat",
    "viper",
    "badger",
]
TOWNS = [
    "Bodo",
    "Tromso",
    "Narvik",
    "Alta",
    "Kiruna",
    "Umea",
    "Lulea",
    "Oulu",
    "Kemi",
    "Inari",
    "Vaasa",
    "Kotka",
]
FAMILY = [
    f"Which of these four statements about the {animal} of the northern forests is true according "
    f"to the field report that the {town} museum of zoo{town.lower()} sent?"
    for animal, town in zip(ANIMALS * 2, TOWNS + TOWNS[6:] + TOWNS[:6], strict=True)
]


def kind(question, text, *others, passage=None, is_sibling=False, is_answered=False):
    beside = {"passage": passage, "is_sibling": is_sibling, "is_answered": is_answered}
    one = compared(question, text, *others)
    found = kind_of(one, **beside) if one else None
    return found and found[0]


def of_family(text):
    return kind(FAMILY[0], text, *FAMILY[1:])


def changed(text, *changes):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_the_order_of_the_kinds():
    assert KINDS == (VERBATIM, EDITED, VARIANT, PART, TEMPLATE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOAT.upper(), VERBATIM),
        (BOAT.replace(",", "").replace("boat", "<b>boat</b>"), VERBATIM),
        (BOAT.replace("9", "nine"), VERBATIM),
        (changed(BOAT, ("harbour", "port"), ("reach", "meet"), ("pilot ", "")), EDITED),
        (changed(BOAT, ("9", "8"), ("15", "14"), ("2", "3")), VARIANT),
        (BOAT[: BOAT.index(", and")], PART),
        ("The committee met before noon and heard a report on drains.", None),
        ("After how many hours does the committee reach the harbour?", None),
    ],
)
def test_an_example_of_each_kind(text, expected):
    assert kind(BOAT, f"He wrote: {text} So much for that.") == expected


def test_an_example_of_a_template():
    assert of_family(FAMILY[0]) == VERBATIM
    assert (
        of_family(changed(FAMILY[0], ("lynx", "ox"), ("Bodo", "Rome"), ("zoobodo", "art")))
        == TEMPLATE
    )
    assert of_family(FAMILY[1]) == TEMPLATE
    assert kind(BOAT, BOAT, is_sibling=True) == TEMPLATE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The first word that differs makes it edited.
        (BOAT, VERBATIM),
        (changed(BOAT, ("pilot boat", "pilot's boat")), EDITED),
        # One of three numbers makes another problem.
        (changed(BOAT, ("9", "8")), VARIANT),
        # Other numbers in all of it, or beside a part.
        (changed(BOAT, ("9", "8"), ("2 hours", "4 hours"), ("15", "14")), VARIANT),
        ("Of 8 knots, and 2 hours later a tug follows it at 15 knots. After how many", PART),
        # A part that says something, and one that says too little.
        (BOAT[: BOAT.index(", and")], PART),
        ("Before noon a pilot leaves", None),
    ],
)
def test_examples_at_the_edge_of_two_kinds(text, expected):
    assert kind(BOAT, f"He wrote: {text} So much for that.") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (changed(RIVER, ("Siberia", "Asia")), EDITED),
        (changed(RIVER, ("Siberia", "Lapland"), ("Krasnoyarsk", "Kemi")), VARIANT),
    ],
)
def test_half_of_the_names_make_a_variant(text, expected):
    assert kind(RIVER, text) == expected


@pytest.mark.parametrize(("changes", "expected"), [(1, EDITED), (2, VARIANT)])
def test_a_third_of_the_numbers_make_a_variant(changes, expected):
    question = f"{BOAT} Write down 1 answer."
    new = [("9", "8"), ("2 hours", "4 hours")][:changes]
    assert kind(question, changed(question, *new)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of Siberia flows past Krasnoyarsk and ends", PART),
        ("Siberia flows past Krasnoyarsk and ends", None),
    ],
)
def test_seven_words_in_a_row_are_a_part(text, expected):
    question = "Which river of Siberia flows past Krasnoyarsk and ends in the Kara Sea?"
    assert kind(question, text) == expected


@pytest.mark.parametrize(("passage", "expected"), [(None, PART), (0.49, PART), (0.5, None)])
def test_what_a_passage_says_is_no_part(passage, expected):
    assert kind(BOAT, BOAT[: BOAT.index(", and")], passage=passage) == expected


def test_examples_at_the_edge_of_part_and_template():
    own = FAMILY[0][FAMILY[0].index("is true") :]
    shared = changed(FAMILY[0], (" about the lynx", ""), (" that the Bodo museum of zoobodo", ""))
    assert of_family(own) == PART
    assert of_family(shared) == TEMPLATE
    assert of_family(own[: own.index("report")]) is None


@pytest.mark.parametrize(("n_words", "expected"), [(20, PART), (19, None)])
def test_a_long_run_of_a_longer_question_is_a_part(n_words, expected):
    question = " ".join(f"{one}{other}" for one in "bdfghjklmn" for other in "aeiouy")
    text = " ".join(question.split()[:n_words])
    assert kind(question, f"He wrote: {text} so much for that.") == expected


def test_a_run_of_its_own_makes_a_part_though_others_have_its_words():
    question = "Seven blue herons quietly watch muddy otters near the abandoned lighthouse of Bodo."
    half = "Seven blue herons quietly watch muddy otters"
    words = half.split()
    runs = [" ".join(words[first : first + 3]) for first in range(5)]
    assert kind(question, half, runs[0], runs[2], runs[4]) == PART
    assert kind(question, half, *runs) == TEMPLATE


@pytest.mark.parametrize(
    ("passage", "expected"), [(None, VERBATIM), (0.2, TEMPLATE), (0.49, TEMPLATE), (0.5, VERBATIM)]
)
def test_a_question_of_many_passages_needs_its_passage(passage, expected):
    question = "According to the passage, the author would most likely agree with which statement?"
    lone = "What does a baker of muffins earn if every visitor of the puppet theatre buys two?"
    one = compared(question, question, lone)
    shared = one._replace(own_weight=0, own_found=0, n_family=12)
    found = kind_of(shared, passage=passage, is_sibling=False, is_answered=False)
    assert found[0] == expected


@pytest.mark.parametrize(
    ("told", "expected"), [(0.35, TEMPLATE), (0.4, PART), (0.95, PART), (1.0, VERBATIM)]
)
def test_without_its_passage_a_question_of_many_needs_answers_about_it_alone(told, expected):
    shared = compared(BOAT, BOAT)._replace(own_weight=0, own_found=0, n_family=12)
    beside = {"passage": 0.0, "is_answered": True, "told": told}
    assert kind_of(shared, is_sibling=False, **beside)[0] == expected
    assert kind_of(shared, is_sibling=True, **beside)[0] == TEMPLATE


def test_what_says_too_little_is_nothing_but_whole_beside_its_answer():
    assert kind("What is it for?", "What is it for?") is None
    assert kind("What is it for?", "What is it for?", is_answered=True) == VERBATIM
    assert kind("What is it for?", "What was it for?", is_answered=True) is None


def test_numbers_alone_are_nothing_but_a_question_of_numbers():
    years = "2001, 2002, 2003, 2004, 2005, 2006, 2007"
    assert kind(f"What do the years {years} have in common?", years) is None
    assert kind(years, years) == VERBATIM


def test_signs_of_a_formula_are_nothing_without_its_words():
    question = "Let $f(x) = x^2 - 4x + 1$. What is the value of $f(f(4))$?"
    assert kind(question, "f = lambda x: x**2 - 4*x + 1  # fourier(f, I, 4)") is None
    assert kind(question, changed(question, ("value", "number"))) == EDITED
    question = "If 2 w + 4 t = 14 and 4 w + 5 t = 25, find 2 w + 3 t."
    assert kind(question, changed(question, ("find", "give"))) == EDITED
    fives = "5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5"
    assert kind(f"What is the value of {fives}?", fives) is None


def test_characters_of_scripts_without_spaces_are_parts_of_words():
    question = "在标准大气压下纯净的水加热到多少摄氏度会沸腾并变成水蒸气"
    assert kind(question, f"他写道{question}就这些") == VERBATIM
    assert kind(question, f"他写道{changed(question, ('纯净', '清澈'))}就这些") == EDITED
    assert kind(question, f"他写道{question[:14]}就这些") == PART
    assert kind(question, f"他写道{question[:13]}就这些") is None
    assert kind("ในวันที่อากาศดีน้ำเดือดที่อุณหภูมิกี่องศา", "ในวันที่อากาศดีน้ำเดือดมาก") is None


WORDS = BOAT.split()
NOISE = [f"{one}{other}" for one in "bdfghjklmnprst" for other in ("adle", "ern", "itch", "ock")]


@settings(max_examples=fewer(300))
@given(st.integers(1, len(WORDS) - 1), st.integers(0, len(NOISE)))
def test_a_whole_question_is_never_nothing_however_much_is_inserted(at, n_inserted):
    text = " ".join([*WORDS[:at], *NOISE[:n_inserted], *WORDS[at:]])
    assert kind(BOAT, text) in (VERBATIM, EDITED, PART)


@pytest.mark.parametrize("n_inserted", range(0, 24, 2))
def test_a_whole_question_in_three_pieces_is_a_copy(n_inserted):
    between = NOISE[:n_inserted]
    text = " ".join([*WORDS[:10], *between, *WORDS[10:22], *between, *WORDS[22:]])
    assert kind(BOAT, text) in (VERBATIM, EDITED)


def test_an_alphabet_is_no_part_of_a_question_with_many_other_words():
    letters = " ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert kind(f"{BOAT} {BOAT} {letters}", f"In this locale: {letters}.") is None


SHARES = st.one_of(st.none(), st.sampled_from([0.0, 0.49, 0.5, 1.0]))


@cache
def whole_question():
    return compared(BOAT, BOAT)


@st.composite
def comparisons(draw):
    """Draw counts of units, so that they meet the limits, which are twentieths of them."""
    times = draw(st.sampled_from([1, 5]))
    n_units, n_found = 20 * times, times * draw(st.integers(4, 20))
    n_least, n_most = (20, 20) if n_found == n_units else (5, 19)
    weight = draw(st.sampled_from([10_000, 40_000]))
    own = draw(st.sampled_from([4_000, 5_000, 20_000, 36_000]))
    return whole_question()._replace(
        n_units=n_units,
        n_found=n_found,
        weight=weight,
        weight_found=weight // 20 * draw(st.integers(n_least, n_most)),
        longest=min(n_found, times * draw(st.integers(1, 20))),
        n_in_pieces=min(n_found, times * draw(st.integers(1, 20))),
        extent=max(n_found, times * draw(st.integers(4, 20))),
        n_inserted=draw(st.integers(0, n_found // 2)),
        own_weight=own,
        own_found=own * draw(st.integers(n_least, n_most)) // 20,
        own_runs_found=draw(st.sampled_from([0, 8_999, 9_000])),
        words_found=draw(st.sampled_from([0, 1_999, 2_000, 12_000])),
        n_family=draw(st.sampled_from([1, 19, 20, 21])),
        units_per_word=draw(st.sampled_from([1, 1, 2, 4])),
        n_numbers_found=draw(st.sampled_from([0, 1, 2, 4, n_found])),
        n_numbers_changed=draw(st.integers(0, 3)),
        n_names_found=draw(st.integers(0, 3)),
        n_names_changed=draw(st.integers(0, 3)),
    )


@settings(max_examples=fewer(1_000))
@given(comparisons(), SHARES, st.booleans(), st.booleans(), st.sampled_from([0.0, 0.4, 1.0]))
def test_kinds_are_those_of_the_oracle(one, passage, is_sibling, is_answered, told):
    beside = {"passage": passage, "is_sibling": is_sibling, "is_answered": is_answered}
    beside["told"] = told
    of_item = {"n_family": one.n_family, "units_per_word": one.units_per_word}
    expected = oracle.kind(one._asdict(), **of_item, **beside)
    assert kind_of(one, **beside) == expected
