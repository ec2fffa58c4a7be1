"""The answer of an item near its question: a long one by its n-grams, a short one by its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.alignment.answer_places import FEWEST_TOKENS, grams, place_of_answer, places_of
from decon_core.alignment.blanks import filled_with
from decon_core.alignment.comparison import Comparison, Questions
from decon_core.alignment.denials import is_wrong_behind
from decon_core.alignment.nominations import Compared, Item, Nomination
from decon_core.alignment.short_answers import (
    Window,
    has_formula,
    is_whole,
    is_wrong_choice,
    short_answer,
)
from decon_core.alignment.stated_answers import SHORT, ShortAnswers, beginnings_of_answers
from decon_core.alignment.units import units_of
from decon_core.alignment.windows import MARGIN
from decon_core.config.policy import LEAST_ANSWER_OVERLAP
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.decon import Matches
from decon_core.detectors.detector import Span
from decon_core.kernels import clusters
from decon_core.kernels.arrays import Array, Integers, Numbers, Table
from decon_core.kernels.question_index import Index
from decon_core.text.characters import Form

if TYPE_CHECKING:
    from decon_core.index.joined_index import Search as GramIndex
    from decon_core.text.word_cache import Places

_ANSWER = slice(clusters.ANSWER_START, clusters.ANSWER_STOP + 1)  # columns
_LEAST_REPEATED = 0.6  # share of a question that must come before an answer that repeats its words
_LEAST_COPIES = 3  # halves of a question: a place with as many tokens has it more than once
_BEHIND = 50  # tokens behind a question and its choices in which a short answer is searched for


@dataclass(frozen=True, eq=False)
class Document:
    """A document with nominations, and the characters of each."""

    text: str
    tokens: Numbers
    places: Places
    nominations: Sequence[Nomination]
    spans: Sequence[Span]

    @staticmethod
    def of(number: int, nominations: Sequence[Nomination], texts: BatchTexts) -> Document:
        text, places = texts.batch.text_at(number), texts.places(number)
        spans = [places.characters(nomination.start, nomination.stop) for nomination in nominations]
        return Document(text, texts.tokens.row(number), places, nominations, spans)

    def tokens_of(self, comparison: Comparison) -> Span:
        return self.places.tokens(comparison.start, comparison.stop)

    def end_of_window(self, comparison: Comparison, room: int) -> int:
        """Return the character up to which an answer may be behind a question and its choices."""
        stop = min(self.tokens_of(comparison)[1] + _BEHIND + room, self.tokens.size)
        return self.places.characters(stop - 1, stop)[1]


class Answers:
    """Search the answers of items beside their questions."""

    def __init__(self, search: GramIndex, index: Index, own: Mapping[str, Any], form: Form) -> None:
        self._search, self._index, self._own, self._form = search, index, own, form
        self._questions, self._short = Questions(own), ShortAnswers(own)

    def long(
        self, item: Item, place: Compared, matches: Matches, document: Document
    ) -> Span | None:
        """Return the characters of a longer answer, unless another one is there."""
        row = matches.whole[item.row].tolist()
        start, stop = self._tokens_of_answer(row, document)
        if start < 0:
            return None
        there = document.places.characters(start, stop)
        if item.rival < 0:
            return there
        first, room = place.claim.comparison.stop, int(self._index.entry_room[row[clusters.ENTRY]])
        behind = document.text[first : document.end_of_window(place.claim.comparison, room)]
        # An earlier choice may have its words, and the answer may have a label of its own.
        half = self._tokens_of(row[clusters.ENTRY]).size // 2 + 1
        last_copy = document.places.characters(max(start, stop - half), stop)
        if there[0] >= first and is_wrong_choice(behind, *(at - first for at in last_copy)):
            return None
        rival = matches.scores[item.rival, clusters.ANSWER]
        if rival < -item.missing:
            return there
        first, last = self._tokens_of_answer(matches.whole[item.rival].tolist(), document)
        if first >= stop or start >= last:
            return there
        # Both have the same words. Formulas may have other signs.
        text = document.text[min(there[0], place.claim.comparison.stop) : there[1] + 1]
        is_equal = rival == -item.missing and has_formula(self._short.of(item.number), text)
        return there if is_equal else None

    def short(
        self, item: Item, entry: int, place: Compared, matches: Matches, document: Document
    ) -> Span | None:
        """Return a short answer that is stated, fills the blank, or is near the question."""
        answers, comparison = self._short.of(item.number), place.claim.comparison
        question, text = place.nomination.question, document.text
        edges = self._own["blank_edges"][question : question + 2]
        stop = document.end_of_window(comparison, int(self._index.entry_room[entry]))
        if edges[0] < edges[1]:
            blanks = self._own["blanks"][2 * edges[0] : 2 * edges[1]].reshape(-1, 2)
            filled, is_filled = filled_with(answers, blanks, comparison, text, self._form)
            if filled:
                return filled
            stop = comparison.stop if is_filled else stop
        asked = text[comparison.start : comparison.stop]
        others: list[Span] = []
        if item.rival >= 0:
            others = self._copies(matches.whole[item.rival].tolist(), document)
        window = Window(text, comparison.stop, stop, asked, others)
        found = short_answer(answers, window)
        return found and self._from_first_copy(found, matches.whole[item.row].tolist(), document)

    def _from_first_copy(self, found: Span, row: Sequence[int], document: Document) -> Span:
        """Return an answer from its first copy on, which may be among the choices."""
        if self._tokens_of(row[clusters.ENTRY]).size < FEWEST_TOKENS:
            return found
        copies = [found, *self._copies(row, document)]
        return min(start for start, _ in copies), max(stop for _, stop in copies)

    def _copies(self, row: Sequence[int], document: Document) -> list[Span]:
        """Return the characters of each copy of a record's answer where some of it was found."""
        answer, (start, stop) = self._tokens_of(row[clusters.ENTRY]), row[_ANSWER]
        copies = places_of(answer, document.tokens[start:stop]) if start >= 0 else []
        return [document.places.characters(start + at, start + at + answer.size) for at in copies]

    def repeated(
        self, item: int, entry: int, place: Compared, document: Document
    ) -> tuple[Comparison, Span] | None:
        """Return an answer that repeats the question, and the comparison without its words.

        An answer of which no word was compared with the question, as in a blank, has taken none.
        """
        index, comparison = self._search.index, place.claim.comparison
        answer = self._tokens_of(entry)
        question = self._search.entry_question[entry]
        asked = index.question_tokens[slice(*index.question_offsets[[question, question + 1]])]
        if answer.size < FEWEST_TOKENS or places_of(answer, asked):
            return None
        start, stop = document.tokens_of(comparison)
        first = max(0, start - answer.size)
        within = document.tokens[first : stop + answer.size]
        for at in places_of(answer, within):
            there = document.places.characters(first + at, first + at + answer.size)
            short = self._short.of(item)
            if short and not is_whole(short, document.text[there[0] : there[1] + 1]):
                continue
            compared = self._compared_before(place.nomination.question, document.text, there[0])
            if compared and compared.weight_found >= _LEAST_REPEATED * compared.weight:
                return compared if comparison.has_words_in(*there) else comparison, there
        return None

    def stated(self, item: Item, entry: int, place: Compared, document: Document) -> Span | None:
        """Return a longer answer that is farther away, if the text states all of it."""
        answer, comparison = self._tokens_of(entry), place.claim.comparison
        row = rows_of_entries(self._search, self._own, np.array([entry]))
        if answer.size < FEWEST_TOKENS or item.is_wrong or self._own["answer_sort"][row] == SHORT:
            return None
        text, short = document.text, self._short.of(item.number)
        for at in beginnings_of_answers(text, comparison.start, comparison.stop):
            first = document.places.tokens(at, len(text))[0]
            if np.array_equal(document.tokens[first : first + answer.size], answer):
                start, stop = document.places.characters(first, first + answer.size)
                if not is_wrong_behind(text, stop) and has_formula(short, text[start : stop + 1]):
                    return start, stop
        return None

    def behind_last_copy(
        self, item: Item, entry: int, place: Compared, matches: Matches, document: Document
    ) -> tuple[Comparison, Span, float] | None:
        """Return the last of several copies in a row, with the answer behind it and its share.

        A prompt and an answer that repeats it are nominated as one place.
        """
        nomination, comparison = place.nomination, place.claim.comparison
        number = self._search.entry_question[entry]
        n_asked = np.diff(self._search.index.question_offsets[[number, number + 1]])[0]
        if 2 * (nomination.stop - nomination.start) < _LEAST_COPIES * n_asked:
            return None
        stop = document.places.characters(nomination.stop - 1, nomination.stop)[1]
        last = self._compared_before(nomination.question, document.text, stop, 3)
        if last is None or last.weight_found < comparison.weight_found:
            return None
        there = place._replace(claim=place.claim._replace(comparison=last))
        if short := self.short(item, entry, there, matches, document):
            return last, short, 1.0
        share, answer = self._long_behind(entry, document.tokens_of(last)[1], document)
        if share < LEAST_ANSWER_OVERLAP or item.rival >= 0:
            return None
        return last, document.places.characters(*answer), share

    def _long_behind(self, entry: int, first: int, document: Document) -> tuple[float, Span]:
        """Return the share of an answer's n-grams behind a token, and the tokens of the answer."""
        index, answer = self._search.index, self._tokens_of(entry)
        number, policy = np.int64(index.entry_answer[entry]), index.policy
        tokens = document.tokens[first : first + max(2 * answer.size, policy.long_answer_window)]
        if answer.size <= policy.short_answer:
            at = next(iter(places_of(answer, tokens[: policy.short_answer_window])), None)
            return (0.0, (0, 0)) if at is None else (1.0, (first + at, first + at + answer.size))
        levels = index.answer_weights[slice(*index.answer_weight_offsets[[number, number + 1]])]
        weights = index.weights[levels.astype(np.int64)]
        size = policy.answer_ngram_size
        there = {*grams(tokens, size)}
        found = np.array([gram in there for gram in dict.fromkeys(grams(answer, size))])
        if not weights[found].sum():
            return 0.0, (0, 0)
        start, stop = place_of_answer(answer, tokens, size)
        return float(weights[found].sum() / weights.sum()), (first + start, first + stop)

    def _compared_before(
        self, question: int, text: str, stop: int, halves: int = 4
    ) -> Comparison | None:
        """Compare a question with so many halves of its length before a character."""
        n_before = halves * int(self._own["n_characters"][question]) // 2
        start = max(0, stop - n_before - MARGIN)
        units = units_of([text[start:stop]], self._form)
        whole = table([(0, len(units))])
        (compared,) = self._questions.compare(np.array([question]), units, whole, whole)
        return compared and compared._replace(
            start=compared.start + start, stop=compared.stop + start
        )

    def _tokens_of(self, entry: int) -> Array:
        """Return the tokens of the answer of a record."""
        index = self._search.index
        number = np.int64(index.entry_answer[entry])
        return index.answer_tokens[slice(*index.answer_offsets[[number, number + 1]])]

    def _tokens_of_answer(self, row: Sequence[int], document: Document) -> Span:
        """Return the tokens of a found answer, whose words may also occur farther away."""
        index, entry, (start, stop) = self._search.index, row[clusters.ENTRY], row[_ANSWER]
        if start < 0:
            return start, stop
        answer = self._tokens_of(entry)
        if stop - start <= answer.size:
            return start, stop
        size, room = index.policy.answer_ngram_size, int(self._index.entry_room[entry])
        first, last = place_of_answer(answer, document.tokens[start:stop], size, room)
        return start + first, start + last


def rows_of_entries(
    search: GramIndex, own: Mapping[str, Any], entries: Integers | slice = slice(None)
) -> Integers:
    """Return the rows of entries among the records of all benchmarks."""
    rows: Integers = own["record_edges"][search.entry_part[entries]] + search.entry_record[entries]
    return rows


def table(rows: Sequence[Sequence[int]]) -> Table:
    return np.array(rows, np.int64).reshape(-1, 2)
