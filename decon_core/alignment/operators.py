"""Operators and comparison signs between the units of a question, which the units leave out.

Texts are typed in many ways, so signs differ only if both texts have some between the same two
units, as many of them, and not the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import pairwise
from typing import Any

import numpy as np

from decon_core.alignment.kinds import EDITED, VARIANT, VERBATIM
from decon_core.alignment.nominations import Compared
from decon_core.alignment.units import Units
from decon_core.kernels.arrays import Array

# A fast test: signs that are no punctuation, or others beside a digit.
_IS_SIGN = re.compile(r"[+<>=*^×÷·−＋－＝＜＞&]")
_IS_BESIDE_DIGIT = re.compile(r"[-–/](?: ?\d|(?<=\d.)|(?<=\d .))")
_MAY_BE_SIGN = re.compile(r"[-+*/=<>^!−–－＋×·⋅∗＊÷∕⁄／＝＜＞！&]")
_ALIKE = str.maketrans("−–－＋×·⋅∗＊÷∕⁄／＝＜＞！", "---+*****////=<>!")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# What begins a line of a quotation, a list or a comment, in JSON as well.
_BEGINS_LINE = re.compile(r"(?:\n|\\n)[ \t]*(?:[->#*+|;%/]+[ \t]+)*")
_NO_SIGN = re.compile(r"[-=]+>|-{2,}|[=*+<>^]{4,}")  # arrows, dashes and rules
_SIGN = re.compile(r"\*\*|<=|>=|!=|=+|[-+*/<>^]")
_SIGNS = ("+", "-", "*", "/", "=", "<", ">", "<=", ">=", "!=", "^")
_CODES = {sign: number for number, sign in enumerate(_SIGNS, start=1)}
_CODES["**"] = _CODES["^"]
_BITS = 4  # of the code of a sign
_MOST_SIGNS = 3
_ONE_SIGN = (1 << _BITS) - 1
_OF_WORDS = 1 << _BITS * _MOST_SIGNS  # added if both units are words
_BETWEEN_WORDS = frozenset(_CODES[sign] for sign in "-*/")  # of lists and compounds
_MINUS, _DIVIDED = _CODES["-"], _CODES["/"]


def signs_in(between: str) -> int:
    """Return a number for the signs between two units; 0 if there are none, or it is in doubt."""
    plain = _BEGINS_LINE.sub(" ", _TAG.sub(" ", unescape(between))).translate(_ALIKE)
    signs = _SIGN.findall(_NO_SIGN.sub(" ", plain))
    if len(signs) > _MOST_SIGNS or any(map(str.isalnum, plain)):
        return 0
    code = 0
    for sign in signs:
        code = code << _BITS | _CODES[sign if sign in _CODES else sign[0]]  # "==" is "="
    return code


def operators_of(texts: Sequence[str], units: Units) -> dict[str, Array]:
    """Return which units of texts without mark-up have signs behind them, and which signs."""
    counts, found = np.zeros(len(texts), np.int64), []
    for number, (text, (first, stop)) in enumerate(
        zip(texts, pairwise(units.edges.tolist()), strict=True)
    ):
        if _IS_SIGN.search(text) or _IS_BESIDE_DIGIT.search(text):
            of_text = [*_operators_in(text, units, first, stop)]
            counts[number] = len(of_text)
            found += of_text
    table = np.array(found, np.int64).reshape(-1, 2)
    return {
        "n_operators": counts,
        "operator_units": table[:, 0],
        "operators": table[:, 1].astype(np.uint16),
    }


def _operators_in(text: str, units: Units, first: int, stop: int) -> Iterator[tuple[int, int]]:
    signs = [sign.start() for sign in _MAY_BE_SIGN.finditer(text)]
    gaps = np.unique(np.searchsorted(units.starts[first:stop], signs, side="right") - 1)
    starts, stops = units.starts[first:stop], units.stops[first:stop]
    for at in gaps[(gaps >= 0) & (gaps < starts.size - 1)].tolist():
        end, begin = int(stops[at]), int(starts[at + 1])
        if not (code := signs_in(text[end:begin])):
            continue
        if not (_is_operand(text[starts[at] : end]) or _is_operand(text[begin : stops[at + 1]])):
            code |= _OF_WORDS
        if not _may_be_no_sign(code, code):
            yield at, code


def _may_be_no_sign(code: int, there: int) -> bool:
    """Whether signs are between words, and may be those of a list or a compound."""
    digits = (there >> shift & _ONE_SIGN for shift in range(0, _OF_WORDS.bit_length() - 1, _BITS))
    return bool(code & _OF_WORDS) and not _BETWEEN_WORDS.isdisjoint(digits)


def _is_operand(unit: str) -> bool:
    return len(unit) == 1 or any(map(str.isdecimal, unit))


class Operators:
    """The operators of all indexed questions."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._edges, self._units = arrays["operator_edges"], arrays["operator_units"]
        self._operators = arrays["operators"]

    def kind_of(self, place: Compared, kind: tuple[str, float], text: str) -> tuple[str, float]:
        """Return the kind of a place: a variant if the text has other operators."""
        first, stop = self._edges[place.nomination.question :][:2].tolist()
        if first == stop or kind[0] not in (VERBATIM, EDITED):
            return kind
        comparison, codes = place.claim.comparison, self._operators[first:stop]
        in_item, starts, stops = comparison.found_at.T
        is_next = (np.diff(in_item) == 1) & (np.diff(comparison.places) == 1)
        _, found, numbers = np.intersect1d(
            in_item[:-1][is_next], self._units[first:stop], assume_unique=True, return_indices=True
        )
        at = np.flatnonzero(is_next)[found]
        gaps = zip(
            codes[numbers].tolist(), stops[at].tolist(), starts[at + 1].tolist(), strict=True
        )
        if any(_is_changed(code, text, edge, start) for code, edge, start in gaps):
            return VARIANT, comparison.weight_found / comparison.weight
        return kind


def _is_changed(code: int, text: str, stop: int, start: int) -> bool:
    there = signs_in(text[stop:start])
    if _may_be_no_sign(code, there):
        return False
    code &= ~_OF_WORDS
    if not there or code == there or _n_signs(code) != _n_signs(there):
        return False
    # A date may have either.
    is_date = text[stop - 1].isdecimal() and text[start].isdecimal()
    return not (is_date and {code, there} == {_MINUS, _DIVIDED})


def _n_signs(code: int) -> int:
    return -(-code.bit_length() // _BITS)
