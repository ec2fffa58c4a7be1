"""Questions with a blank, whose answer is the words that a text has in place of the blank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from decon_core.alignment.comparison import Comparison
from decon_core.alignment.units import units_of
from decon_core.kernels.arrays import Table
from decon_core.text.characters import Form

_MARKS = ("_", "＿", "[", "<", "(", "（", "…", "....")  # each blank has one of these
_LINE = r"(?:\\?_|＿)+"  # with the backslashes of Markdown
_BLANK = re.compile(
    rf"(?<![a-z0-9_\\＿]){_LINE}(?:\d{{1,2}}{_LINE})?(?![a-z0-9_＿])|[\[<](?:mask|blank|gap)[\]>]"
    r"|(?P<brackets>(?<![a-z0-9_\])])\(\s*\))|（\s*）|\.{4,}|…{2,}",
    re.IGNORECASE,
)
# What stands before and behind code in brackets, or behind the name of an unused variable.
_CODE_BEFORE = re.compile(r"[=:,(]\s{0,2}$")
_WORD_BEFORE = re.compile(r"[^\W\d_]\s{0,2}$")
_WORD_BEHIND = re.compile(r"\s{0,2}[^\W\d_]")
_WORD = re.compile(r"[^\W_]")
_LOOP = re.compile(r"\s+in\s+\w[\w.]*\s?[(\[:)]")
_MOST_BESIDE = 4  # characters before a blank that are read
_DROPPED = "a an the and"
_LONGEST_ANSWER = 200  # characters that are read where the question ends with the blank


def blanks_of(question: str, form: Form) -> list[tuple[int, int]]:
    """Return the range of units that marks each blank of a question; it may be empty."""
    if not any(map(question.__contains__, _MARKS)):  # twenty times faster than to search
        return []
    found = (blank for blank in _BLANK.finditer(question) if not _is_code(question, blank))
    edges = [edge for blank in found for edge in blank.span()]
    if not edges:
        return []
    places = np.searchsorted(units_of([question], form).starts, edges).tolist()
    blanks = [*zip(places[::2], places[1::2], strict=True)]
    merged = blanks[:1]
    for first, stop in blanks[1:]:
        if first > merged[-1][1]:
            merged.append((first, stop))
        else:
            merged[-1] = merged[-1][0], stop
    return merged


def _is_code(text: str, blank: re.Match[str]) -> bool:
    """Return whether what looks like a blank is an empty pair of brackets or a variable in code."""
    start, stop = blank.span()
    before = text[max(0, start - _MOST_BESIDE) : start]
    if blank["brackets"] is None:
        return before == "for " and _LOOP.match(text, stop) is not None
    if _CODE_BEFORE.search(before):
        return True
    is_between_words = _WORD_BEFORE.search(before) and _WORD_BEHIND.match(text, stop)
    return stop - start == 2 and not is_between_words


def filled_with(
    answers: Sequence[str], blanks: Table, comparison: Comparison, text: str, form: Form
) -> tuple[tuple[int, int] | None, bool]:
    """Return the characters of an answer if it fills all blanks, and whether other words do so.

    Articles are ignored. What fills a blank at an end of the question is not known.
    """
    found = [_gap(blank, comparison, len(text)) for blank in blanks.tolist()]
    gaps = [gap for gap in found if gap]
    if not gaps or len(gaps) < len(found):
        return None, False
    filled = [word for gap in gaps for word in _words(text[: gap.stop], form, gap.start)]
    for answer in answers:
        keys = [word.key for word in _words(answer, form)]
        there = filled
        if len(gaps) == 1 and gaps[0].is_open:
            there = filled[-len(keys) :] if gaps[0].is_first else filled[: len(keys)]
        if keys and [word.key for word in there] == keys:
            return (there[0].start, there[-1].stop), False
    return None, not any(gap.is_open or _is_blank(text, gap) for gap in gaps)


def _is_blank(text: str, gap: _Gap) -> bool:
    """Return whether a gap has no words or has another mark of a blank."""
    there = text[gap.start : gap.stop]
    return not _WORD.search(there) or _BLANK.search(there) is not None


class _Word(NamedTuple):
    key: int
    start: int
    stop: int


class _Gap(NamedTuple):
    """The characters in place of a blank; more if the question begins or ends with the blank."""

    start: int
    stop: int
    is_first: bool
    is_open: bool


def _gap(blank: Sequence[int], comparison: Comparison, length: int) -> _Gap | None:
    """Return what is in place of a blank; None if the words next to the blank are not there.

    One word may be missing on each side, such as "a" of the question if the text has "an".
    """
    units, starts, stops = comparison.found_at.T
    first, last = blank
    before, after = np.searchsorted(units, blank).tolist()
    is_first, is_last = first == 0, last == comparison.n_units
    is_cut = before == 0 < first or (after == units.size and not is_last)
    # If the text has the mark of the blank, too, the blank was not filled.
    if before != after or is_cut:
        return None
    if before and units[before - 1] < first - 2:
        return None
    if not is_last and units[after] > last + 1:
        return None
    stop = min(int(stops[-1]) + _LONGEST_ANSWER, length) if is_last else int(starts[after])
    start = max(0, stop - _LONGEST_ANSWER) if is_first else int(stops[before - 1])
    return _Gap(start, stop, is_first, is_first or is_last)


def _words(text: str, form: Form, first: int = 0) -> list[_Word]:
    """Return the words of a text from `first` on, without articles."""
    dropped, units = _dropped(form), units_of([text[first:]], form)
    columns = units.keys, units.starts + first, units.stops + first
    words = map(_Word, *(column.tolist() for column in columns))
    return [word for word in words if word.key not in dropped]


@lru_cache(maxsize=8)
def _dropped(form: Form) -> frozenset[int]:
    return frozenset(units_of([_DROPPED], form).keys.tolist())
