"""Answers that are a number with a unit, and where a text has the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.alignment.measures import Measure, measure_of, places_in
from decon_core.alignment.pieces import folded
from tests.oracle import alignment as oracle


def found(answer, text):
    place = next(places_in(measure_of(answer), folded(text)), None)
    return place and text[slice(*place)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("48 km/h", Measure(48, "km/h")),
        ("forty-eight kilometres per hour.", Measure(48, "km/h")),
        ("48 kph", Measure(48, "km/h")),
        ("0.25 kg", Measure(0.25, "kg")),
        ("40 crowns", Measure(40, "crown")),
        ("$1,200", Measure(1200, "$")),
        ("12 square metres", Measure(12, "m2")),
        ("12 m^2", Measure(12, "m2")),
        ("12 m²", Measure(12, "m2")),
        ("20 °C", Measure(20, "celsius")),
        ("20 degrees Celsius", Measure(20, "celsius")),
        ("48", Measure(48, "")),
        ("(48)", Measure(48, "")),
        ("-48", Measure(-48, "")),
        ("1/4", Measure(0.25, "")),
        ("25 %", Measure(25, "%")),
        ("the 48 km/h of a tram", None),
        ("48 km/h or 50 km/h", None),
        ("48 cars of the train to Hemmel", None),
        ("Hemmel", None),
    ],
)
def test_a_measure_is_one_number_and_its_unit(answer, expected):
    assert measure_of(answer) == expected


@pytest.mark.parametrize(
    "text",
    [
        "48",
        "48 km/h",
        "48km/h.",
        "48 kilometers per hour",
        "forty-eight kilometres per hour",
        r"\(48\ \mathrm{km/h}\)",
        r"\(48\) as we saw",
        r"$48$ km/h",
        r"\boxed{48\text{ km/h}}",
        "**48**",
        "48, as we saw",
        "it is 50 or 48.",
    ],
)
def test_the_number_decides_without_a_unit_and_with_the_same(text):
    assert found("48 km/h", f"Answer: {text}\nThanks.")


@pytest.mark.parametrize(
    "text",
    ["77", "77 km/h", "48 miles", "48 km", "480", "4.8", "48.5", "48 m/s", "-48", "€48", "48 + 2"],
)
def test_another_number_or_unit_is_another_answer(text):
    assert found("48 km/h", f"Answer: {text}\nThanks.") is None


def test_of_other_units_the_plural_is_the_same():
    assert found("40 crowns", "They paid forty crowns in all.") == "forty"
    assert found("1 crown", "one crown") == "one"
    assert found("40 crowns", "They met forty kings.") is None
    assert found("40 crowns", "They paid forty crowns per day.") is None
    assert found("40 old crowns", "They paid 40 old crowns in all.") == "40"
    assert found("40 old crowns", "They paid 40 new crowns in all.") is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("One Direction", "I asked everybody, but no one."),
        ("5 apples", "Question 5: What is"),
        ("5 km", "Question 5: What is"),
        ("5 h", "It starts at 5:30"),
        ("40 m", "It costs $40."),
        ("40 m", "It costs €40."),
        ("40 m", "It costs $ 40."),
        ("40 m", "It took 40 ms."),
        ("5 °C", "It was −5 °C."),
        ("5 °C", "It was minus 5 °C."),
        ("10 Downing Street", "See page 10."),
        ("10 m", "See page 10."),
        ("10 m", "See No. 10."),
        ("50 Cent", "He paid 50."),
        ("12 January", "There were 12."),
        ("48 km", "It is 48,5 km away."),
        ("5 N", "It took 5 ns."),
        ("5 km", "There were five."),
    ],
)
def test_a_number_that_names_or_counts_something_else_is_no_answer(answer, text):
    assert found(answer, text) is None


def test_a_number_in_a_formula_or_with_the_sign_of_its_currency_is_the_answer():
    assert found("40 m", "It is $40$.") == "40"
    assert found("40 dollars", "It costs $40.") == "40"
    assert found("50 cents", "He paid 50.") == "50"
    assert found("48 km", "48 1") is None
    assert found("48 km", "48 km 7x") == "48"  # the first character has none before it


@pytest.mark.parametrize("end", "，。；：！）」”’—")
def test_a_number_may_end_at_a_full_width_sign(end):
    assert (
        found("48公里", f"速度是48{end}然后") == found("48公里。", f"速度是48 km{end}然后") == "48"
    )
    assert found("48公里", f"速度是48小时{end}然后") is None


def test_the_number_of_a_list_is_no_answer():
    assert found("48 km/h", "\n48. What is next?") is None
    assert found("3 km", "1. Five 2. Six 3. Seven") is None


_UNITS = st.sampled_from(["km/h", "kilometres per hour", "kg", "kilograms", "crowns", "", "km"])
_NUMBERS = st.sampled_from(["48", "forty-eight", "48.0", "50", "1,200", "4.8"])


@given(_NUMBERS, _UNITS.filter(bool), _NUMBERS, _UNITS)
def test_equal_measures_are_those_of_the_oracle(number, unit, other, other_unit):
    there = found(f"{number} {unit}", f"Answer: {other} {other_unit}\nThanks.")
    expected = oracle.is_same_measure((number, unit), (other, other_unit))
    assert (there is not None) == expected
