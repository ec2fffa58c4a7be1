"""Find the numbers in an English text, as values: "three", "3", "3.0", "$1,200", "15 %", "1/2".

A value has no sign and no unit: a hyphen before digits is a range or a list more often than a
minus. Ordinals ("3rd", "the third month") are no numbers; "two thirds" and "twice" are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from decon_core.kernels import plain_numbers
from decon_core.kernels.arrays import Bytes, Floats, Integers, Numbers, Words64, distinct
from decon_core.kernels.jit import plain


class Number(NamedTuple):
    """A number in a text, with its range of characters."""

    value: float
    start: int
    stop: int


SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ADDED = {word: float(n) for n, word in enumerate(SMALL_NUMBERS.split())} | {
    word: 10.0 * n for n, word in enumerate(TENS.split(), 2)
}
_SCALES = {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_FACTORS = {
    **dict.fromkeys(("twice", "double", "doubles", "doubled", "doubling"), 2.0),
    **dict.fromkeys(("thrice", "triple", "triples", "tripled", "tripling"), 3.0),
    **dict.fromkeys(("quadruple", "quadruples", "quadrupled", "quadrupling"), 4.0),
}
# A part stands alone only if it cannot be an ordinal: "half" does, "third" does not.
_PARTS = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1}
_ALONE = ("half", "quarter")
_SIGNS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_VALUES = _ADDED | _SCALES | _FACTORS | _PARTS | {"halves": 0.5}
NUMBER_WORDS = frozenset(_VALUES)


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|(?<!\d)\.\d+"
_COUNTED = rf"(?:{_any([*_ADDED, *_SCALES])})\b"
_PART = rf"(?:{_any(_PARTS)})s?\b|halves\b"
_NUMBER = re.compile(
    rf"""
    (?P<whole>\d+)\s+(?P<mixed_over>\d+)/(?P<mixed_under>[1-9]\d*)(?![\d/])
    | (?<![\d/.])(?P<over>\d+)\s?/\s?(?P<under>[1-9]\d*)(?![\d/.])
    | (?P<digits>{_DIGITS})(?!\d*(?:st|nd|rd|th)\b)(?:[\s-]?(?P<scale>{_any(_SCALES)})s?\b)?
    | \b(?P<words>{_COUNTED}(?:(?:[\s-]+|\s+and\s+){_COUNTED})*)
    | \b(?P<factor>{_any(_FACTORS)})\b
    | \b(?P<part>{_any(_ALONE)})\b
    | (?P<sign>[{_any(_SIGNS).replace("|", "")}])
    """,
    re.VERBOSE,
)
_WORD = re.compile(_COUNTED)
_N_CHARACTERS = 1 << 17  # no digit and no white space is beyond
# Places at which a number may begin. Searching these first, and the numbers only there, takes a
# third of the time of searching the numbers.
_POINT_OR_DIGITS = re.compile(r"[.\d]\d*")
_SIGN = re.compile(f"[{''.join(_SIGNS)}]")
_LETTERS = re.compile("[a-z]+")
FIRST_WORDS = frozenset((*_ADDED, *_SCALES, *_FACTORS, *_ALONE))
# What may follow a number and belongs to it.
_AND_PART = re.compile(rf"\s+and\s+(?:a|one)[\s-]+(half|quarter|third)\b|\s?([{''.join(_SIGNS)}])")
_OF_PARTS = re.compile(rf"[\s-]+({_PART})")
_PERCENT = re.compile(r"\s?%|[\s-]+per\s?cent\b")
# Most numbers are followed by none of these.
_MAY_FOLLOW = re.compile(rf"\s?[%{''.join(_SIGNS)}]|[\s-]+(?:and\s|per|{_PART})")
_LEADING_DIGITS = re.compile(r"(\d{1,15})(?!\d|(?:st|nd|rd|th)$)")


def numeral_of(word: str) -> str | None:
    """Return what a word of canonical text contributes to a number: "200" to "1,200", "3" as three.

    Two texts whose numbers are equal mostly have equal numerals. None if it is no numeral, or zero.
    """
    value = _VALUES.get(word)
    if value is None and word[0].isdigit() and (digits := _LEADING_DIGITS.match(word)):
        value = float(digits[1])
    return f"{value:.15g}" if value else None


def numbers_in(text: str) -> list[Number]:
    """Return the numbers of a text, in order."""
    text = lowered(text)
    numbers: list[Number] = []
    at = 0
    for start in _beginnings(text):
        if start >= at:
            there, at = _numbers_at(text, start)
            numbers += there
    return numbers


def _numbers_at(text: str, start: int) -> tuple[list[Number], int]:
    """Return the numbers that begin at a place of a text in lower case, and where they end."""
    match = _NUMBER.match(text, start)
    if not match and text[start] == ".":
        match = _NUMBER.match(text, start + 1)
    if not match:
        return [], start
    numbers = [*_values_of(match)]
    last = _with_suffix(text, numbers.pop(), is_word=match["words"] is not None)
    numbers.append(Number(float(f"{last.value:.9g}"), last.start, last.stop))
    return numbers, max(last.stop, match.end())


def numbers_of_texts(
    characters: Numbers, edges: Integers, texts: Sequence[str]
) -> tuple[Floats, Integers, Integers]:
    """Return what `numbers_in` finds in each of several texts: values, starts and stops.

    The texts, with a character after each, are the characters between the edges.
    """
    values, (starts, stops) = np.empty(characters.size), np.empty((2, characters.size), np.int64)
    tables = (_kinds(), *_number_words())
    n = plain_numbers.find_numbers(characters, edges, *tables, values, starts, stops)
    found = values[:n], starts[:n], stops[:n]
    pieces: list[Sequence[Any]] = []
    done = 0
    unread = starts[:n][starts[:n] == stops[:n]]
    for at in distinct(np.searchsorted(edges, unread, side="right") - 1).tolist():
        first, stop = np.searchsorted(starts[:n], edges[at : at + 2]).tolist()
        there = values[first:stop], starts[first:stop] - edges[at], stops[first:stop] - edges[at]
        rows = zip(*(column.tolist() for column in there), strict=True)
        numbers = np.array(_all_read(texts[at], [Number(*row) for row in rows])).reshape(-1, 3).T
        places = numbers[1:].astype(np.int64) + edges[at]
        pieces += [column[done:first] for column in found], (numbers[0], *places)
        done = stop
    pieces.append([column[done:] for column in found])
    values, starts, stops = map(np.concatenate, zip(*pieces, strict=True))
    return values, starts, stops


def _all_read(text: str, rows: Sequence[Number]) -> list[Number]:
    """Return the numbers of a text of which some stop where they start: these are read now."""
    text = lowered(text)
    numbers: list[Number] = []
    at = 0
    for row in rows:
        if row.start < at:
            if row.stop > at:  # it hides what begins within it
                return numbers_in(text)
        elif row.start < row.stop:
            numbers.append(row)
            at = row.stop
        else:
            there, at = _numbers_at(text, row.start)
            numbers += there
    return numbers


@lru_cache(maxsize=1)
def _kinds() -> Bytes:
    """Return what the characters outside ASCII are to numbers."""
    characters = np.arange(_N_CHARACTERS, dtype=np.uint32).view("U1")
    kinds = np.where(np.strings.isspace(characters), plain_numbers.IS_SPACE, 0).astype(np.uint8)
    is_sign = np.isin(characters, [*_SIGNS])
    kinds[np.strings.isdecimal(characters) | is_sign] |= plain_numbers.BEGINS_NUMBER
    return kinds


@lru_cache(maxsize=1)
def _number_words() -> tuple[Words64, Floats, Bytes]:
    """Return a table of the words that a number begins or goes on with, and their values.

    And which second and third letters those have that are a number alone.
    """
    values = {word: _VALUES[word] for word in FIRST_WORDS}
    scales, parts = (f"{word}s" for word in _SCALES), (f"{word}s" for word in _PARTS)
    names = dict.fromkeys((*scales, *_PARTS, *parts, "halves"), math.nan) | values
    keys, values_of = np.zeros(4 * len(names), np.uint64), np.empty(4 * len(names))
    key_of, slot_of = plain(plain_numbers.key_of_word), plain(plain_numbers.slot_of_word)
    with np.errstate(over="ignore"):  # hashes wrap around
        for name, value in names.items():
            key = key_of(np.array([*map(ord, name)], np.uint32), 0, len(name))
            slot = slot_of(key, keys)
            keys[slot], values_of[slot] = key, value
    may_be = np.zeros(plain_numbers.N_PAIRS, np.uint8)
    pair_of = plain(plain_numbers.pair_of)
    may_be[[pair_of(np.array([*map(ord, word)], np.uint32), 0) for word in values]] = 1
    return keys, values_of, may_be


def lowered(text: str) -> str:
    """Lower-case a text, keeping the number of its characters."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def _beginnings(text: str) -> list[int]:
    """Return in order where a number may begin."""
    places = [digits.start() for digits in _POINT_OR_DIGITS.finditer(text) if digits[0] != "."]
    if not text.isascii():
        places += [sign.start() for sign in _SIGN.finditer(text)]
    for word in FIRST_WORDS.intersection(_LETTERS.findall(text)):
        at = text.find(word)
        while at >= 0:
            places.append(at)
            at = text.find(word, at + 1)
    return sorted(places)


def _values_of(match: re.Match[str]) -> Iterator[Number]:
    start, stop = match.span()
    if digits := match["digits"]:
        factor = _SCALES[match["scale"]] if match["scale"] else 1.0
        yield Number(float(digits.replace(",", "")) * factor, start, stop)
    elif match["whole"]:
        part = int(match["mixed_over"]) / int(match["mixed_under"])
        yield Number(int(match["whole"]) + part, start, stop)
    elif match["over"]:
        yield Number(int(match["over"]) / int(match["under"]), start, stop)
    elif match["words"]:
        yield from _counted(match["words"], start)
    else:
        word = match["factor"] or match["part"] or match["sign"]
        yield Number((_FACTORS | _PARTS | _SIGNS)[word], start, stop)


def _counted(words: str, start: int) -> Iterator[Number]:
    """Yield the numbers that a run of number words spells: "two hundred and five", "five and six".

    A word continues a number if it is a scale, or smaller than the last word's place allows.
    """
    number: Number | None = None
    room = 0.0  # a following word is added if it is below this
    for word in _WORD.finditer(words):
        first, stop = start + word.start(), start + word.end()
        value = _ADDED.get(word[0])
        if number is None:
            number = Number(_SCALES[word[0]] if value is None else value, first, stop)
        elif value is None:
            number = number._replace(value=_scaled(number.value, _SCALES[word[0]]), stop=stop)
        elif value < room:
            number = number._replace(value=number.value + value, stop=stop)
        else:
            yield number
            number = Number(value, first, stop)
        room = _SCALES.get(word[0], 10.0 if value is not None and value >= 20 else 0.0)
    if number is not None:
        yield number


def _scaled(value: float, scale: float) -> float:
    """Multiply what a scale word refers to: in "one thousand two hundred" only the two."""
    below = value % (scale * 10) if value >= scale * 10 else value
    return value - below + below * scale


def _with_suffix(text: str, number: Number, *, is_word: bool) -> Number:
    """Include "and a half", "thirds" after a number word, and a percent sign."""
    if not _MAY_FOLLOW.match(text, number.stop):
        return number
    if added := _AND_PART.match(text, number.stop):
        part = _PARTS[added[1]] if added[1] else _SIGNS[added[2]]
        number = number._replace(value=number.value + part, stop=added.end())
    elif is_word and (parts := _OF_PARTS.match(text, number.stop)):
        part = _PARTS["half" if parts[1] == "halves" else parts[1].removesuffix("s")]
        number = number._replace(value=number.value * part, stop=parts.end())
    if percent := _PERCENT.match(text, number.stop):
        number = number._replace(value=number.value / 100, stop=percent.end())
    return number
