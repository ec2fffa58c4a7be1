"""A short answer near its question: whole, with its signs, and not where it stands by chance.

N-grams of tokens have no signs, and "2400" begins with the token of "240". A short answer is
therefore read in the text itself. docs/aligned.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from decon_core.alignment.measures import measure_of, places_in, words_counted
from decon_core.alignment.stated_answers import (
    LONGEST,
    Piece,
    are_equal,
    folded,
    has_maths,
    is_cut,
    is_part_before,
    is_part_or_wrong,
    pieces_of,
    stated_answer,
    stated_labels,
    states_other,
)
from decon_core.text.markup import stripped, stripped_with_offsets

_REST = 60  # characters behind a window in which an answer that begins within it may end
# At the beginning of lines that are quoted, commented out, of a list, or of a diff.
_LINE_MARK = re.compile(r"^[^\S\n]*(?:(?://|>+|#(?!#)|[|;%*])(?=\s)|\+)", re.MULTILINE)
_FEW = 6  # words before an answer that is the first word behind the question
# Words that often stand near a question by chance.
_FREQUENT = frozenset(
    (
        *("yes", "no", "true", "false", "right", "wrong", "correct", "incorrect", "none"),
        *("ja", "nein", "oui", "non", "vrai", "faux", "sí", "si", "да", "нет"),
    )
)
_LABEL = re.compile(
    r"(?:^|[\s(\[*])([A-Ja-j])(?:[)\]]+|\.\s)|(?:^|[\s(])(\d{1,2})[.)]+[\s*$\"'\\(]*$"
)
_LABELLED = re.compile(r"(?:^|[\s(\[*])(?:[A-Ja-j]|\d{1,2})[.)\]]+[\s$\\(]*$")
_NEXT_LABEL = re.compile(r"[\s$\\),;]*[\s(](?:(?:[B-Kb-k]|\d{1,2})[.)]|[A-Z])")
_IS_LABEL = re.compile(r"[A-Ja-j][.)]\s*\w")
_MOST_OF_LABEL = 12  # characters
_NEXT_LIST = re.compile(r"(?<!: )\b[Aa][.)]\s(?=.{0,200}\b[Bb][.)])", re.DOTALL)
_MOST_OF_CHOICE = 200  # characters between the label of a choice and an answer
_DIRECTLY = re.compile(r"\W*(?:[^\W\d_]+\W*:\W*)?")
_FIRST_NUMBER = re.compile(
    r"[^\w\n]*(?:\(?[A-Ja-j][.)]\s*)?(?<![\w-])(?P<value>[-$€£]?\d[\d.,/]*%?)\s+[A-Z]"
)
_OPENS = re.compile(r"(?:^|[\n:>|?.!。？：\"'(\\])[\s*_$\"'(\[{\\]*$")
_CLOSES = re.compile(r"[\s*_$)\]}]*(?:$|[\n,.;:!|<\"'—。，！\\-])")
_ALONE_BEFORE, _LIST_NUMBER = (re.compile(of) for of in (r"\W*", r"\W*\d{1,3}[.)]\W*"))
_ALONE_ON_LINE = re.compile(r"[\s*_$)\]}.]*(?:$|\n)")
_LETTER = re.compile(r"[^\W\d_]")


class Window(NamedTuple):
    """The text behind a question in which its answer may be, and the question in that text."""

    text: str
    first: int
    stop: int
    asked: str
    others: Sequence[tuple[int, int]] = ()  # where the text has a wrong choice

    def is_of_other(self, start: int, stop: int) -> bool:
        """Return whether a place is only a part of a wrong choice, as "III" of "I and III"."""
        return any(
            first <= start and stop <= last and stop - start < last - first
            for first, last in self.others
        )


def short_answer(answers: Sequence[str], window: Window) -> tuple[int, int] | None:
    """Return the characters of a short answer that the text behind a question states or has."""
    short = [answer for answer in answers if len(answer) <= LONGEST]
    if not short:
        return None
    stated = stated_answer(short, window.text, window.first)
    if stated and not window.is_of_other(*stated):
        return stated
    plain = stripped_with_offsets(window.text[window.first : window.stop + _REST])
    behind = _LINE_MARK.sub(lambda mark: " " * len(mark[0]), folded(plain.text))
    wanted = [of for answer in short if (of := [*map(_text, pieces_of(_plain(answer)))])]
    has_other = states_other(wanted, behind)
    for start, stop in _places(short, behind, window.asked):
        first, last = (window.first + at for at in plain.original(start, stop))
        if first >= window.stop or window.is_of_other(first, last):
            continue
        if _counts(behind, start, stop, has_other=has_other):
            return first, last
    return None


def is_whole(answers: Sequence[str], text: str) -> bool:
    """Return whether a text has one of the answers as a whole."""
    behind = folded(stripped(text))
    return any(any(_whole_places(answer, behind, pieces_of(behind))) for answer in answers)


def has_formula(answers: Sequence[str], text: str) -> bool:
    """Return whether a text has the numbers and signs of an answer that is not short, in order.

    Answers that are short do not count.
    """
    there = _signs(text)
    long = [_signs(answer) for answer in answers if len(answer) > LONGEST]
    return not long or any(
        there[at : at + len(of)] == of for of in long for at in range(len(there) - len(of) + 1)
    )


def _signs(text: str) -> list[str]:
    return [piece.text for piece in pieces_of(_plain(text)) if not piece.text.isalpha()]


def is_wrong_choice(text: str, start: int, stop: int) -> bool:
    """Return whether what stands at a place is a choice, and the text states that of another."""
    label, stated = _labels(text, start, stop)
    return bool(label and stated) and label != stated


def _counts(text: str, start: int, stop: int, *, has_other: bool) -> bool:
    """Return whether a whole answer stands at a place that does not say otherwise."""
    answer = text[start:stop]
    is_letter = _LETTER.fullmatch(answer) is not None
    if is_letter and _IS_LABEL.match(text, start) and not _is_alone(text, start):
        return False
    label, stated = _labels(text, start, stop)
    if label and stated:
        return label == stated
    if has_other and not _DIRECTLY.fullmatch(text, 0, start):
        return False
    if is_letter or answer.lower() in _FREQUENT:
        return bool(is_letter and label) or _is_first(text, start, stop)
    return True


def _is_alone(text: str, start: int) -> bool:
    """Return whether a label right behind a question names a choice, and does not begin a list."""
    return text[start] not in "Aa" and _DIRECTLY.fullmatch(text, 0, start) is not None


def _labels(text: str, start: int, stop: int) -> tuple[str, str]:
    """Return the label of a choice at a place, and the one that the text states behind it."""
    before = text[max(0, start - _MOST_OF_CHOICE) : start]
    label = next(reversed([(of[1] or of[2]).upper() for of in _LABEL.finditer(before)]), None)
    if not label:
        return "", ""
    list_of_other = _NEXT_LIST.search(text, stop)
    region = text[: list_of_other.start()] if list_of_other else text
    return label, next(stated_labels(region, 0, is_number=label.isdigit()), "")


def _is_first(text: str, start: int, stop: int) -> bool:
    """Return whether a word that is often there by chance is the answer by its place.

    It is among the first words, alone on its line, or that of a numbered list of answers.
    """
    before = [piece.text for piece in pieces_of(text[:start]) if piece.text.isalnum()]
    is_other = any(word.lower() in _FREQUENT for word in before)
    line = text[:start].rpartition("\n")[2]
    if before and not is_other and _ALONE_ON_LINE.match(text, stop):
        is_letter = _LETTER.fullmatch(text[start:stop]) is not None
        if (_ALONE_BEFORE if is_letter else _LIST_NUMBER).fullmatch(line):
            return True
    is_few = len(before) <= _FEW and not is_other
    return bool(is_few and _OPENS.search(text[:start]) and _CLOSES.match(text, stop))


# Places -------------------------------------------------------------------------------------------


def _places(answers: Sequence[str], text: str, asked: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has one of the answers: as it is, or its number with the same unit."""
    words, pieces = words_counted(asked), pieces_of(text)
    for answer in answers:
        measure = measure_of(answer)
        is_number = measure is not None and not measure.unit
        for start, stop in _whole_places(answer, text, pieces):
            if not is_number or _is_choice(text, start, stop):
                yield start, stop
        first = _FIRST_NUMBER.match(text)
        if is_number and first and measure_of(first["value"]) == measure:
            yield first.span("value")
        if measure:
            yield from places_in(measure, text, words)


def _is_choice(text: str, start: int, stop: int) -> bool:
    """Return whether a number stands between the label of a choice and the next label."""
    before = text[max(0, start - _MOST_OF_LABEL) : start]
    return bool(_LABELLED.search(before) and _NEXT_LABEL.match(text, stop))


def _whole_places(answer: str, text: str, pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    wanted = [*map(_text, pieces_of(_plain(answer)))]
    if len(wanted) > 1 and wanted[0].lower() in ("a", "an", "the") and len(wanted[1]) > 1:
        wanted = wanted[1:]
    for at in range(len(pieces) - len(wanted) + 1) if wanted else ():
        found = pieces[at : at + len(wanted)]
        if are_equal(found, wanted) and not _is_part(text, found):
            yield found[0].start, found[-1].stop


def _is_part(text: str, found: Sequence[Piece]) -> bool:
    """Return whether an answer is only a part of a longer number, word or formula."""
    start, stop = found[0].start, found[-1].stop
    before = text[start - 1 : start]
    if before in ("'", "’") and text[start - 2 : start - 1].isalnum():
        return True
    if found[0].text[0].isdigit() and before.isascii() and before.isalpha():
        return True
    if has_maths([*map(_text, found)]) and is_part_before(text, start):
        return True
    return is_cut(text, stop) if len(found) == 1 else is_part_or_wrong(text, stop)


def _plain(answer: str) -> str:
    return folded(stripped(answer))


def _text(piece: Piece) -> str:
    return piece.text
