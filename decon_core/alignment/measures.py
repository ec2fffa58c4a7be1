"""Answers that are a number with a unit: "48 km/h" is "forty-eight kilometres per hour".

The number must be equal, and the text must have the same unit or none. Common units are known in
several spellings, all others only in the singular and plural.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from decon_core.text.numbers import numbers_in

_SPELLINGS = """
    km kilometre kilometer kms, m metre meter, cm centimetre centimeter, mm millimetre millimeter
    kg kilogram kilogramme kilo kgs, g gram gramme, mg milligram, t tonne, l litre liter
    ml millilitre milliliter, s second sec, min minute mins, h hour hr hrs, day, week, month
    year yr yrs, mile mi, ft foot feet, in inch inches, yd yard, lb pound lbs £, oz ounce
    gal gallon, $ dollar usd, € euro eur, cent ¢, degree ° deg, celsius °c, fahrenheit °f, hz hertz
    n newton, j joule, w watt, kw kilowatt, v volt, pa pascal, mol mole, ohm Ω ω
"""
_UNIT_OF = {
    spelling: group.split()[0]
    for line in _SPELLINGS.splitlines()
    for group in line.split(",")
    for spelling in group.split()
}
_RATES = {"mph": "mile/h", "kph": "km/h", "kmh": "km/h", "kmph": "km/h"}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "²": "2", "³": "3"}
_CURRENCIES = "$€£"
# LaTeX around a number and its unit.
_LATEX = re.compile(r"\\(?:mathrm|text|textrm|operatorname|rm)\b\s*\{?|\\[ ,;:!]|[~{}$]")
_ONE = (
    rf"(?:(?:square|sq\.?|cubic)\s+)?(?:degrees?\s+(?=celsius|fahrenheit)|°\s?(?=[cf]\b))?"
    rf"(?:[^\W\d_]+|[{_CURRENCIES}¢°])(?:\^?[23²³])?"
)
_UNIT = re.compile(rf"\s*-?\s*({_ONE})(?:\s*(?:/|per\b|p\.)\s*({_ONE}))?")
_PART = re.compile(r"square|sq|cubic|[^\W\d_]+|[\d²³]|\S")
_WORDS = re.compile(r"\s*[^\W\d_]+(?:\s[^\W\d_]+){0,2}")
# What may follow a number without a unit.
_END = re.compile(r"\s*(?:$|[\n.,;:!?)\]*|<\"']|\\[)\]])")
_LIST_NUMBER = re.compile(r"[.):]\s")
_MOST_BEHIND = 40  # characters behind a number that may be its unit


class Measure(NamedTuple):
    value: float
    unit: str


def measure_of(answer: str) -> Measure | None:
    """Return the number and unit of an answer that consists of nothing else."""
    text = answer.lower().strip().rstrip(".")
    number = next(iter(numbers_in(text)), None)
    if number is None:
        return None
    before, behind = text[: number.start].strip(), _plain(text[number.stop :])
    if before and before in _CURRENCIES and not behind.strip():
        return Measure(number.value, _UNIT_OF[before])
    if before.strip("\\([$"):
        return None
    unit = _UNIT.fullmatch(behind)
    if unit:
        return Measure(number.value, _spelled(unit))
    return Measure(number.value, _singular(behind)) if _WORDS.fullmatch(behind) else None


def stands_in(measure: Measure, text: str) -> tuple[int, int] | None:
    """Return the characters of an equal number in a text, if it has the same unit or none."""
    low = text.lower()
    if len(low) != len(text):
        return None
    for number in numbers_in(text):
        if number.value == measure.value and _has_unit(measure.unit, low, number[1:]):
            return number.start, number.stop
    return None


def _has_unit(unit: str, text: str, place: tuple[int, int]) -> bool:
    """Return whether a number has this unit or none, and is not the number of a list item."""
    start, stop = place
    sign = text[start - 1 : start]
    if sign == "-" or text[start - 2 : start - 1].isdigit():
        return False
    behind = _plain(text[stop : stop + _MOST_BEHIND])
    if _END.match(text, stop) or _END.match(behind):
        is_of_list = not text[:start].rpartition("\n")[2].strip() and _LIST_NUMBER.match(text, stop)
        is_other = sign in ("€", "£") and _UNIT_OF[sign] != unit
        return not is_of_list and not is_other
    found = _UNIT.match(behind)
    if found and _spelled(found) == unit:
        return True
    words = _WORDS.match(behind)
    return " " in unit and words is not None and f"{_singular(words[0])} ".startswith(f"{unit} ")


def _plain(text: str) -> str:
    return _LATEX.sub(" ", text)


def _spelled(unit: re.Match[str]) -> str:
    return "/".join(_one_spelled(part) for part in unit.groups() if part)


def _one_spelled(unit: str) -> str:
    """Return the one way in which all spellings of a unit are written: "m2" for "square metres"."""
    parts = [part for part in _PART.findall(unit) if part not in "^."]
    if parts[0] in ("degree", "degrees", "°") and len(parts) > 1:
        parts = [f"°{parts[1][0]}"]
    power = "".join(_POWERS.get(part, part if part.isdigit() else "") for part in parts)
    names = [part for part in parts if part not in _POWERS and not part.isdigit()]
    return "".join(map(_name, names)) + power


def _name(word: str) -> str:
    single = word.removesuffix("s")
    known = _RATES.get(word) or _UNIT_OF.get(word) or _UNIT_OF.get(single)
    return known or single


def _singular(words: str) -> str:
    return " ".join(map(_name, words.split()))
