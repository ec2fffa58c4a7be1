"""A short answer near its question: whole, with its signs, and not where it stands by chance.

docs/aligned.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from decon_core.alignment.labels import LABEL, LETTERS, is_pair, labels_of
from decon_core.alignment.measures import measure_of, places_in, words_counted
from decon_core.alignment.pieces import (
    END,
    Piece,
    folded,
    pieces_of,
    plain,
    wanted_of,
    whole_at,
    with_separate_cells,
    without_article,
)
from decon_core.alignment.stated_answers import (
    LONGEST,
    labels_alone,
    listed_answer,
    stated_answer,
    stated_choice,
    stated_labels,
    states_other,
)
from decon_core.text.markup import stripped, stripped_with_offsets
from decon_core.text.plain_letters import with_plain_letters

_REST = 60  # characters behind a window in which an answer that begins within it may end
# At the beginning of lines that are quoted, commented out, of a list, or of a diff.
_LINE_MARK = re.compile(r"^[^\S\n]*(?:(?://|>+|[#|;%*])(?=\s)|\+)", re.MULTILINE)
_FEW = 6  # words before an answer that is the first word behind the question
# Words that often stand near a question by chance.
_FREQUENT_ONES = (
    "yes no true false right wrong correct incorrect none ja nein oui non vrai faux sí si да нет"
)
_FREQUENT = frozenset(_FREQUENT_ONES.split())
_SYNONYMS = {"true": "yes", "yes": "true", "false": "no", "no": "false"}
_MOST_OF_CHOICE = 200  # characters between the label of a choice and an answer, or the next label
# What stands before and behind a number that is a choice, or the first word: "(B) 240 (C) 250".
_CHOICE_BEFORE = re.compile(rf"(?:^|{LABEL})[^\w\n]*$")
_CHOICE_BEHIND = re.compile(rf"[\s$\\),;(]*(?<=[\s(])(?:{LABEL}|[A-Z])")
_MOST_OF_LABEL = 12  # characters
_OPENING = " \t\r\n*_$\"'([{\\"  # signs before an answer
# Of the text before an answer, from its end to its beginning, because that takes linear time.
_SIGNS_BEFORE = r"[\s*_$\"'(\[{\\]*"
_OPENS = re.compile(rf"{_SIGNS_BEFORE}+(?:$|[:>|?.!。？：])|{_SIGNS_BEFORE}[\n\"'(\\]")
_CLOSES = re.compile(rf"[$_]*{END.pattern}")
_LIST_NUMBER = re.compile(r"\W*\d{1,3}[.)]\W*")
_LINE = re.compile(rf"\s*([^\n]{{1,{_MOST_OF_CHOICE}}})")
_SIGNS = re.compile(r"\W*")
_LETTER = re.compile(r"[^\W\d_]")
_REST_OF_LINE = re.compile(r"[*_$]*[^\S\n]*(?:\n|$)")


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
    short = [plain(answer) for answer in answers if len(answer) <= LONGEST and wanted_of(answer)]
    short += [_SYNONYMS[word] for word in map(str.lower, short) if word in _SYNONYMS]
    if not short:
        return None
    pieces = [[of.text for of in pieces_of(answer)] for answer in short]
    stated = stated_answer(pieces, window.text, window.first)
    stated = stated or listed_answer(
        pieces, window.text, window.first - len(window.asked), window.first
    )
    if stated and not window.is_of_other(*stated):
        return stated
    left = stripped_with_offsets(window.text[window.first : window.stop + _REST])
    letters = with_plain_letters(left.text)
    text = _LINE_MARK.sub(lambda mark: " " * len(mark[0]), folded(letters.text))
    text = with_separate_cells(text)
    behind = _Behind(text, [*map(wanted_of, short)])
    for place in behind.places(short, plain(window.asked)):
        first, last = (window.first + at for at in left.original(*letters.original(*place)))
        if first < window.stop and not window.is_of_other(first, last) and behind.counts(*place):
            return first, last
    return None


def is_whole(answers: Sequence[str], text: str) -> bool:
    """Return whether a text has one of the answers as a whole."""
    behind = _Behind(plain(stripped(text)))
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
    return _Behind(folded(text)).by_label(start, stop) is False


def _is_choice(text: str, start: int, stop: int) -> bool:
    before = _CHOICE_BEFORE.search(text, max(0, start - _MOST_OF_LABEL), start)
    return bool(before and _CHOICE_BEHIND.match(text, stop))


class _Behind:
    """A text behind a question, and where answers in it are by chance."""

    def __init__(self, text: str, wanted: Sequence[Sequence[str]] = ()) -> None:
        self.text, self._wanted = text, wanted
        self._labels = labels_of(text)

    @cached_property
    def _pieces(self) -> list[Piece]:
        return pieces_of(self.text)

    @cached_property
    def _listed(self) -> set[int]:
        """Where a list of choices has a letter as a label."""
        letters = (label for label in self._labels if label.text.isalpha())
        return {of.start for a, b in pairwise(letters) if is_pair(a, b) for of in (a, b)}

    @cached_property
    def _states_other(self) -> bool:
        return states_other(self._wanted, self.text)

    def places(self, answers: Sequence[str], asked: str) -> Iterator[tuple[int, int]]:
        """Yield where one of the answers is: as a whole, or its number with the same unit."""
        words = words_counted(asked)
        for answer in answers:
            measure = measure_of(answer)
            for place in self.whole(answer):
                if not measure or measure.unit or _is_choice(self.text, *place):
                    yield place
            if measure:
                yield from places_in(measure, self.text, words)

    def whole(self, answer: str) -> Iterator[tuple[int, int]]:
        wanted = without_article(wanted_of(answer))
        for at in range(len(self._pieces)):
            if place := whole_at(self.text, self._pieces, at, wanted):
                yield place

    # Rules: whether an answer at a place counts; None if the rule does not apply -----------------

    def counts(self, start: int, stop: int) -> bool:
        """Return what the first rule says that applies to a place."""
        rules = self.by_own_label, self.by_label, self.by_other_answer, self.by_frequent_word
        verdicts = (rule(start, stop) for rule in rules)
        return next((verdict for verdict in verdicts if verdict is not None), True)

    def by_own_label(self, start: int, stop: int) -> bool | None:
        """A letter that is the label of a choice does not count, but "(C)" alone does."""
        own = next((label for label in self._labels if label.start == start), None)
        if not own or not _LETTER.fullmatch(self.text, start, stop):
            return None
        is_of_list = start in self._listed
        return False if is_of_list or not _REST_OF_LINE.match(self.text, own.stop) else None

    def by_label(self, start: int, stop: int) -> bool | None:
        """If the text states the label of a choice, only the choice with this label counts."""
        label = self._label_before(start)
        if not label:
            return None
        region = self.text[: self._next_list(stop)]
        known = {of.text for of in self._labels if of.start < len(region)}
        stated = next(stated_labels(region, is_number=label.isdigit(), known=known), None)
        return self._by_stated_choice(region, start, stop) if stated is None else label == stated

    def _by_stated_choice(self, region: str, start: int, stop: int) -> bool | None:
        """If the text states a choice in full, or by its label alone, only this choice counts."""
        stated = stated_choice(region, self._choices(region))
        if stated and not (stated[0] < stop and start < stated[1]):
            return stated[2] == self._label_before(start)
        known = {label.text for label in self._labels}
        places = {*labels_alone(region, stop)} - self._listed if stated is None else ()
        alone = known.intersection(region[at] for at in places)
        return False if alone and self._label_before(start) not in alone else None

    def by_other_answer(self, start: int, _stop: int) -> bool | None:
        """If the text states another value, an answer counts only directly behind the question."""
        is_directly = len(self._words_before(start)) <= 1  # as behind "Answer:"
        return None if is_directly or not self._states_other else False

    def by_frequent_word(self, start: int, stop: int) -> bool | None:
        """Letters, and words such as "yes", count as a choice or as the first words."""
        is_letter = _LETTER.fullmatch(self.text, start, stop) is not None
        if not is_letter and self.text[start:stop].lower() not in _FREQUENT:
            return None
        return bool(is_letter and self._label_before(start)) or self._is_first(start, stop)

    def _words_before(self, start: int) -> list[str]:
        words = (of.text.lower() for of in self._pieces if of.stop <= start)
        return [word for word in words if word.isalnum()]

    def _label_before(self, start: int) -> str:
        """Return the label before an answer; a number must be directly before it."""
        for label in reversed(self._labels):
            is_before = start - _MOST_OF_CHOICE <= label.start and label.stop <= start
            is_letter = label.text.isalpha()
            if is_before and (is_letter or _SIGNS.fullmatch(self.text, label.stop, start)):
                return label.text
        return ""

    def _choices(self, region: str) -> list[tuple[str, Sequence[str]]]:
        """Return the label of each choice of a list, and its pieces."""
        ends = [label.start for label in self._labels[1:]] + [len(region)]
        lines = [
            (label.text, _LINE.match(region, label.stop, end))
            for label, end in zip(self._labels, ends, strict=True)
            if end <= len(region)
        ]
        return [(label, wanted_of(line[1])) for label, line in lines if line and wanted_of(line[1])]

    def _next_list(self, stop: int) -> int:
        """Return where the next list of choices begins."""
        pairs = pairwise(label for label in self._labels if label.start >= stop)
        return next((a.start for a, b in pairs if a.text + b.text == LETTERS[:2]), len(self.text))

    def _is_first(self, start: int, stop: int) -> bool:
        """Return whether an answer is among the first words, or in a numbered list of answers."""
        text, before = self.text, self._words_before(start)
        if not _FREQUENT.isdisjoint(before):
            return False
        is_few = len(before) <= _FEW and self._opens(start)
        is_in_list = _LIST_NUMBER.fullmatch(text[:start].rpartition("\n")[2]) is not None
        return (is_few or is_in_list) and _CLOSES.match(text, stop) is not None

    def _opens(self, start: int) -> bool:
        """Whether a line, sentence, quotation or bracket begins at a place."""
        return _OPENS.match(self.text[:start][::-1]) is not None
