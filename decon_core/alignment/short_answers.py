"""A short answer near its question: whole, with its signs, and not where it stands by chance.

docs/aligned.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from decon_core.alignment.measures import measure_of, places_in, words_counted
from decon_core.alignment.pieces import (Piece, begins_with, folded, is_part, pieces_of, wanted_of, without_article)
from decon_core.alignment.stated_answers import (
    LONGEST,
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
_LABEL = re.compile(r"(?<![^\s(*])(?<![A-Z]\. )\[?([A-Ja-j]|\d{1,2})(?:\.?[)\]]+|\.(?!\w))")
_MOST_OF_CHOICE = 200  # characters between the label of a choice and an answer, or the next label
_DIRECTLY = re.compile(r"\W*(?:[^\W\d_]+\W*:\W*)?")
_BEFORE_NUMBER, _BEHIND_NUMBER = re.compile(r"[^\w\n]*"), re.compile(r"[\s$\\),;(]*(?<=[\s(])")
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
    short = [answer for answer in answers if len(answer) <= LONGEST and wanted_of(answer)]
    if not short:
        return None
    wanted = [[of.text for of in pieces_of(answer)] for answer in short]
    stated = stated_answer(wanted, window.text, window.first)
    if stated and not window.is_of_other(*stated):
        return stated
    plain = stripped_with_offsets(window.text[window.first : window.stop + _REST])
    behind = _Behind(_LINE_MARK.sub(lambda mark: " " * len(mark[0]), folded(plain.text)))
    has_other = states_other(wanted, behind.text)
    for start, stop in behind.places(short, window.asked):
        first, last = (window.first + at for at in plain.original(start, stop))
        if first >= window.stop or window.is_of_other(first, last):
            continue
        if behind.counts(start, stop, has_other=has_other):
            return first, last
    return None


def is_whole(answers: Sequence[str], text: str) -> bool:
    """Return whether a text has one of the answers as a whole."""
    behind = _Behind(folded(stripped(text)))
    return any(any(behind.whole(answer)) for answer in answers)


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
    return [piece for piece in wanted_of(text) if not piece.isalpha()]


def is_wrong_choice(text: str, start: int, stop: int) -> bool:
    """Return whether what stands at a place is a choice, and the text states that of another."""
    return _Behind(text).is_stated_choice(start, stop) is False


class _Behind:
    """A text behind a question, and where answers in it are by chance."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _pieces(self) -> list[Piece]:
        return pieces_of(self.text)

    @cached_property
    def _labels(self) -> list[Piece]:
        """The labels of choices, such as "(A)", "b." and "3)"."""
        return [Piece(label[1].upper(), label.start(1), label.end()) for label in _LABEL.finditer(self.text)]

    def places(self, answers: Sequence[str], asked: str) -> Iterator[tuple[int, int]]:
        """Yield where one of the answers is: as a whole, or its number with the same unit."""
        words = words_counted(asked)
        for answer in answers:
            measure = measure_of(answer)
            for place in self.whole(answer):
                if not measure or measure.unit or self._is_choice(*place):
                    yield place
            if measure:
                yield from places_in(measure, self.text, words)

    def whole(self, answer: str) -> Iterator[tuple[int, int]]:
        wanted = without_article(wanted_of(answer))
        for at in range(len(self._pieces)):
            if begins_with(self._pieces[at : at + len(wanted)], wanted):
                place = self._pieces[at].start, self._pieces[at + len(wanted) - 1].stop
                if not is_part(self.text, *place, wanted):
                    yield place

    def counts(self, start: int, stop: int, *, has_other: bool) -> bool:
        """Return whether an answer at a place is not there by chance."""
        answer = self.text[start:stop]
        is_letter = _LETTER.fullmatch(answer) is not None
        if is_letter and self._is_label_of_list(start):
            return False
        is_stated = self.is_stated_choice(start, stop)
        if is_stated is not None:
            return is_stated
        if has_other and not _DIRECTLY.fullmatch(self.text, 0, start):
            return False
        if is_letter or answer.lower() in _FREQUENT:
            return bool(is_letter and self._label_of(start)) or self._is_first(start, stop)
        return True

    def is_stated_choice(self, start: int, stop: int) -> bool | None:
        """Return whether the text states the label of the choice; None if it is none."""
        label = self._label_of(start)
        if not label:
            return None
        lists = self._next_list(stop)
        stated = next(stated_labels(self.text[:lists], is_number=label.isdigit()), None)
        return None if stated is None else label == stated

    def _label_of(self, start: int) -> str:
        """Return the label before an answer; a number must be directly before it."""
        for label in reversed(self._labels):
            if start - _MOST_OF_CHOICE <= label.start and label.stop <= start:
                if label.text.isalpha() or not re.search(r"\w", self.text[label.stop : start]):
                    return label.text
        return ""

    def _next_list(self, stop: int) -> int:
        """Return where the next list of choices begins."""
        behind = [label for label in self._labels if label.start >= stop]
        for first in behind:
            if first.text == "A" and not self.text[: first.start].endswith(": "):
                if any(of.text == "B" and 0 < of.start - first.stop < _MOST_OF_CHOICE for of in behind):
                    return first.start
        return len(self.text)

    def _is_label_of_list(self, start: int) -> bool:
        """Return whether a letter is the label of a choice, and not that of the answer."""
        is_label = any(label.start == start for label in self._labels)
        is_alone = self.text[start] not in "Aa" and _DIRECTLY.fullmatch(self.text, 0, start)
        return is_label and not is_alone

    def _is_choice(self, start: int, stop: int) -> bool:
        """Return whether a number is a choice, or first, and a label or a sentence follows."""
        firsts = [0, *(label.stop for label in self._labels)]
        if not any(_BEFORE_NUMBER.fullmatch(self.text, at, start) for at in firsts if at <= start):
            return False
        behind = _BEHIND_NUMBER.match(self.text, stop)
        at = behind.end() if behind else stop
        return bool(behind) and (
            self.text[at : at + 1].isupper() or any(label.start == at for label in self._labels)
        )

    def _is_first(self, start: int, stop: int) -> bool:
        """Return whether a word that is often there by chance is the answer by its place.

        It is among the first words, alone on its line, or that of a numbered list of answers.
        """
        text = self.text
        before = [of.text for of in self._pieces if of.stop <= start and of.text.isalnum()]
        if any(word.lower() in _FREQUENT for word in before):
            return False
        line = text[:start].rpartition("\n")[2]
        is_letter = _LETTER.fullmatch(text[start:stop]) is not None
        is_alone = _ALONE_ON_LINE.match(text, stop) and (
            _ALONE_BEFORE if is_letter else _LIST_NUMBER
        ).fullmatch(line)
        is_few = len(before) <= _FEW and _OPENS.search(text[:start]) and _CLOSES.match(text, stop)
        return bool(is_alone or is_few)
