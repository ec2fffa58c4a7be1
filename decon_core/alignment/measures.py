"""Answers that are a number with a unit: "48 km/h" is "forty-eight kilometres per hour".

The number must be equal, and the text must have the same unit, or none if the unit is a common one.
Common units are known in several spellings, all others only in the singular and plural.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from decon_core.alignment.pieces import (
    ALL_UNSPACED,
    END,
    is_minus_before,
    is_part_before,
    is_part_behind,
)
from decon_core.text.characters import MARKS
from decon_core.text.content_words import is_content
from decon_core.text.numbers import Number, lowered, numbers_in

_SPELLINGS = """
    km kilometre kilometer kms 公里 千米, m metre meter 米, cm centimetre centimeter 厘米
    mm millimetre millimeter
    kg kilogram kilogramme kilo kgs 千克 公斤, g gram gramme 克, mg milligram, t tonne
    l litre liter
    ml millilitre milliliter, s second sec 秒, min minute mins 分钟, h hour hr hrs 小时
    day, week, month, year yr yrs
    mile mi, ft foot feet, in inch inches, yd yard, lb pound lbs £, oz ounce
    gal gallon, $ dollar usd us$, € euro eur, cent ¢, degree ° deg, celsius °c, fahrenheit °f
    hz hertz, n newton, j joule, w watt, kw kilowatt, v volt, pa pascal, mol mole, ohm Ω ω
"""
_UNIT_OF = {
    spelling: group.split()[0]
    for line in _SPELLINGS.splitlines()
    for group in line.split(",")
    for spelling in group.split()
}
_COMMON = frozenset((*_UNIT_OF.values(), "%"))
_RATES = {"mph": "mile/h", "kph": "km/h", "kmh": "km/h", "kmph": "km/h"}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "²": "2", "³": "3"}
_CURRENCIES = "$€£"
_CURRENCY_BEFORE = re.compile(rf"(?:us\$|[{_CURRENCIES}]|\b(?:usd|eur))(?=\s?$)")  # a number
# LaTeX around a number and its unit.
_LATEX = re.compile(r"\\(?:mathrm|text|textrm|operatorname|rm)\b\s*\{?|\\[ ,;:!]|[~{}$]")
_WORD = rf"(?:[^\W\d_²³][{MARKS}]*)+"
_ONE = (
    rf"(?:(?:square|sq\.?|cubic)\s+)?(?:degrees?\s+(?=celsius|fahrenheit)|°\s?(?=[cf]\b))?"
    rf"(?:{_WORD}|[{_CURRENCIES}¢°])(?:\^?[23²³])?"
)
_UNIT = re.compile(rf"\s*-?\s*({_ONE})(?:\s*(?:/|per\b)\s*({_ONE}))?")
_PART = re.compile(rf"square|sq|cubic|{_WORD}|[\d²³]|\S")
_WORDS = re.compile(rf"\s*{_WORD}(?:\s{_WORD}){{0,2}}")
_PERCENT = re.compile(r"%|per\s?cent")
_LETTERS = re.compile(_WORD)
# Units in scripts without spaces, and in Korean, are behind a number, or the word for "how many".
_GLUED = re.compile(rf"(?:\d|[何几幾]|多少|몇)\s*([가-힣{ALL_UNSPACED}]{{1,3}})")
_NAME = re.compile(r"\s(?!Celsius|Fahrenheit)[A-Z][a-z]{2,}")  # as in "50 Cent"
_LIST_NUMBER = re.compile(r"[.):]\s")
_MOST_OF_SIGN = 4  # characters of a currency before a number
_MOST_BEHIND = 40  # characters behind a number that may be its unit


class Measure(NamedTuple):
    value: float
    unit: str
    is_name: bool = False  # "50 Cent"

    @property
    def may_lack_unit(self) -> bool:
        """Whether the number alone is the answer, too: "48" for "48 km/h"."""
        return not self.unit or (not self.is_name and _is_common(self.unit))


@lru_cache(maxsize=1 << 12)
def measure_of(answer: str) -> Measure | None:
    """Return the number and unit of an answer that consists of nothing else."""
    text = answer.lower().strip().rstrip(".。")
    number = next(iter(numbers_in(text)), None)
    if number is None:
        return None
    before, behind = text[: number.start].strip(), _plain(text[number.stop :])
    value, is_percent = _value_in(text, number), _has_percent(text, number)
    if _CURRENCY_BEFORE.fullmatch(before) and not behind.strip():
        return Measure(value, _UNIT_OF[before])
    if before.endswith(("-", "−")):
        before, value = before[:-1], -value
    if before.strip("\\([$"):
        return None
    if not behind.strip(" )]"):
        return Measure(value, "%" if is_percent else "")
    unit, is_name = _UNIT.fullmatch(behind), _NAME.search(answer.strip()) is not None
    if unit:
        return Measure(value, _spelled(unit), is_name)
    if _WORDS.fullmatch(behind):
        return Measure(value, _singular(behind), is_name)
    return None


def places_in(
    measure: Measure, text: str, counted: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """Yield the characters of equal numbers in a text that have the unit, or need none.

    `counted`: words that may follow a number whose unit is not known.
    """
    low = lowered(text)
    for number in numbers_in(text):
        if _value_in(low, number) != abs(measure.value) or is_part_before(low, number.start):
            continue
        has_sign = is_minus_before(low, number.start) == (measure.value < 0)
        if has_sign and _has_unit(measure, low, number, counted):
            yield number.start, number.stop


def words_counted(question: str) -> set[str]:
    """Return the words of a question that may follow its answer, a number: "18 crates"."""
    words = _LETTERS.findall(question.lower())
    glued = {run[1][:n] for run in _GLUED.finditer(question) for n in range(1, 4)}
    return {_name(word) for word in words if len(word) > 1 and is_content(word)} | glued


def _value_in(text: str, number: Number) -> float:
    """Return the value of a number as it is written: that of "25 %" is 25."""
    return float(f"{100 * number.value:.9g}") if _has_percent(text, number) else number.value


def _has_percent(text: str, number: Number) -> bool:
    return _PERCENT.search(text, number.start, number.stop) is not None


def _has_unit(measure: Measure, text: str, number: Number, counted: Collection[str]) -> bool:
    """Return whether an equal number has the same unit, or may lack it."""
    if _has_percent(text, number):
        return measure.unit in ("", "%")
    behind = _plain(text[number.stop : number.stop + _MOST_BEHIND])
    if END.match(behind):
        sign = _CURRENCY_BEFORE.search(text, max(0, number.start - _MOST_OF_SIGN), number.start)
        is_price = sign is not None and _UNIT_OF[sign[0]] == measure.unit
        return (is_price or measure.may_lack_unit) and _is_number_alone(measure.unit, text, number)
    found, words = _UNIT.match(behind), _WORDS.match(behind)
    unit, names = found and _spelled(found), _singular(words[0]).split() if words else []
    if measure.unit:
        is_of_words = " " in measure.unit and f"{' '.join(names)} ".startswith(f"{measure.unit} ")
        return measure.unit == unit or is_of_words
    starts = [name[:n] for name in names[:1] if not name.isascii() for n in range(1, 4)]
    return bool(unit and _is_common(unit)) or any(of in counted for of in [*names[:2], *starts])


def _is_number_alone(unit: str, text: str, number: Number) -> bool:
    """Return whether a number without a unit may be a measure, and is no list number or time."""
    word, line = text[slice(*number[1:])], text[: number.start].rpartition("\n")[2]
    if word == "one" or (unit and word[0].isalpha()) or is_part_behind(text, number.stop):
        return False
    is_label = word.isdecimal() and _LIST_NUMBER.match(text, number.stop) is not None
    if is_label and (not line.strip() or re.search(rf"\b{int(word) - 1}[.)]\s", line)):
        return False  # "18. What is", "2. Six 3. Seven"
    sign = line.rstrip()[-1:]
    is_formula = line.endswith("$") and text.startswith(("$", "\\"), number.stop)
    return not unit or is_formula or sign not in _CURRENCIES or _UNIT_OF.get(sign, unit) == unit


def _is_common(unit: str) -> bool:
    return all(name.rstrip("23") in _COMMON for name in unit.split("/"))


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
    single = word.removesuffix("s") if len(word) > 2 else word  # not "ms" and "ns"
    known = _RATES.get(word) or _UNIT_OF.get(word) or _UNIT_OF.get(single)
    return known or single


def _singular(words: str) -> str:
    return " ".join(map(_name, words.split()))
