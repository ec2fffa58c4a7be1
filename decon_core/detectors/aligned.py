"""The `aligned` detector: n-grams nominate an item, an alignment of words says what was copied.

A place is nominated if a small share of a question's n-grams is there. The question is then
aligned with the words around it (`alignment/`), which tells a copy, an edited copy, the same
question with other numbers or names, and a part of it from text that only shares a template. Items
of a benchmark that are nominated at the same place are told apart by the words that only one of
them has. docs/aligned.md has the method, `tests/oracle/alignment.py` a plain twin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decon_core.alignment.answer_places import place_of_answer
from decon_core.alignment.attribution import Claim, attributed
from decon_core.alignment.comparison import Comparison, Questions
from decon_core.alignment.kinds import (
    EDITED,
    FEWEST_UNITS,
    LEAST_WEIGHT,
    PART,
    TEMPLATE,
    VARIANT,
    VERBATIM,
    has_passage,
    kind_of,
)
from decon_core.alignment.questions import COLUMNS, index_of, sizes_in, sizes_of
from decon_core.alignment.stated_answers import stated_answer
from decon_core.alignment.windows import Around
from decon_core.config.detector_registry import Kind, Reads, Threshold, register
from decon_core.config.policy import LEAST_ANSWER_OVERLAP, TELLING_ANSWER, Policy
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.decon import (
    ClusterSearch,
    Matches,
    index_visibility,
    possible_blocks,
)
from decon_core.detectors.detector import (
    Detector,
    Finding,
    Indexes,
    Nominations,
    Search,
    Span,
    firsts,
)
from decon_core.detectors.visibility import RecordTexts, Unmet
from decon_core.kernels import clusters
from decon_core.kernels.arrays import Integers, Numbers, Table, distinct

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.storage.tables import Array
    from decon_core.text.word_cache import Places, Ragged


_NOMINATED = 0.12  # share of a question's n-grams, by weight
_MOST_AT_A_PLACE = 8  # items of a benchmark that are compared with the same words
_WORD_REST = re.compile(r"\S+")
_MARGIN = 80  # characters around a nomination, besides those that the question may fill
_PASSAGE_WEIGHT = 20_000  # what a whole passage adds in favour of an item
# Columns.
_ANSWER = slice(clusters.ANSWER_START, clusters.ANSWER_STOP + 1)
_PASSAGE = slice(clusters.PASSAGE_START, clusters.PASSAGE_STOP + 1)
_WHOLE_ANSWER = 0.9  # share of its n-grams


@register
class Aligned(Detector):
    name = "aligned"
    summary = "words of the question, in order, and the changes made to them"
    reads = Reads.OWN
    threshold = Threshold(setting="aligned_threshold", of=(EDITED,))
    versions = (("aligned", 7),)
    own_columns = COLUMNS
    uses_ngram_index = True
    needed_parts = ("answer",)
    fewest_words = FEWEST_UNITS
    finds_every_place = True
    finds_other_numbers = True
    kinds = (
        Kind(VERBATIM, needs_answer=True),
        Kind(EDITED, needs_answer=True),
        # A question with other numbers or names has another answer.
        Kind(VARIANT, "numbers or names in the question were replaced", is_apart=True),
        Kind(PART, "only a part of the question was found", is_apart=True, needs_answer=True),
        Kind(
            TEMPLATE,
            "only text that the question shares with other items was found",
            is_apart=True,
            needs_answer=True,
        ),
    )
    advice = (
        "**To find edited copies and what was changed in them, use `aligned`.** It finds questions "
        "in which some words were replaced, left out or added. It reports copies with other "
        "numbers or names, and parts of a question, separately; these need review. If several "
        "items share a template, it attributes a place only to the item whose own words occur "
        "there."
    )

    def own_index(self, records: Iterable[pa.Table], policy: Policy) -> Mapping[str, Array]:
        return index_of(records, policy.form)

    def search(self, indexes: Indexes) -> Search:
        return _AlignedSearch(indexes)

    def is_bounded(self, policy: Policy) -> bool:
        del policy
        return True

    def possible_blocks(self, indexes: Indexes, sketch: PackSketch) -> Possible:
        """Only in these can a question be nominated."""
        return possible_blocks(indexes.grams, sketch, least_overlap=_NOMINATED)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        """What the n-gram index lacks is not nominated, and short questions say too little."""
        from decon_core.index.joined_index import most_records_of_own, most_records_of_search

        most_of_own = most_records_of_own(*texts.part.sizes)
        limit = min(most_records_of_search(policy, texts.part.n_records), most_of_own)
        unmet = index_visibility(texts, policy, limit)
        entries = texts.part.entries
        has_more = np.zeros(texts.alike.size, np.bool_)
        for field in ("answer", "passage"):
            with_field = entries.records[entries.fields[field].of_entry >= 0]
            has_more[texts.alike[with_field]] = True
        if own := texts.own.get(self.name):
            n_units, weights = sizes_in(own.arrays, own.number)
        else:
            questions = texts.stored.table(["question"])["question"]
            n_units, weights = sizes_of(questions.to_pylist(), policy.form)
        has_little = (weights < LEAST_WEIGHT) | (n_units < FEWEST_UNITS)
        says_little = has_little & ~has_more[texts.alike]
        places = np.where(unmet.places > 0, unmet.places + 1, says_little)
        return Unmet((None, "too little evidence", *unmet.reasons[1:]), places, unmet.details)


# Search -------------------------------------------------------------------------------------------


class _Item(NamedTuple):
    """Of the matches of an item at one place the best: of its right choice, with its answer."""

    number: int
    is_wrong: bool
    missing: float  # minus the share of the answer that stands near
    row: int  # row of the match


class _Nomination(NamedTuple):
    """A question, the tokens of a document where it may be, and the matches of its items."""

    document: int
    part: int
    question: int
    passage_number: int  # -1: the item has no passage
    start: int
    stop: int
    items: list[_Item]
    score: float
    passage: float | None  # share of it that stands near; None: there is none
    passage_tokens: Span
    is_answered: bool  # an answer of a record stands near

    def order(self) -> tuple[float, int, int, int]:
        """The likeliest of a benchmark come first. Other benchmarks do not change the order."""
        return -self.score, self.question, self.start, self.items[0].number

    def joined(self, other: _Nomination) -> _Nomination:
        """Return the union of both: an edit parts n-grams, and the answer may be near some only."""
        best: dict[int, _Item] = {}
        for item in sorted((*self.items, *other.items)):
            best.setdefault(item.number, item)
        is_answered = self.is_answered or other.is_answered
        return self._replace(items=[*best.values()], is_answered=is_answered)


class _Compared(NamedTuple):
    nomination: _Nomination
    claim: Claim

    def order(self) -> tuple[int, int, int, int]:
        """By item, then place."""
        nomination = self.nomination
        return (
            nomination.question,
            nomination.passage_number,
            self.claim.comparison.start,
            nomination.start,
        )

    def joined(self, other: _Compared) -> _Compared:
        """Return that which found most of the item, with the best answers of both."""
        is_less = self.claim.comparison.weight_found < other.claim.comparison.weight_found
        best, second = (other, self) if is_less else (self, other)
        return _Compared(best.nomination.joined(second.nomination), best.claim)

    def is_again(self, other: _Compared) -> bool:
        """Whether both say of the same item that it is at about the same words."""
        if self.order()[:2] != other.order()[:2]:
            return False
        this, that = self.claim.comparison, other.claim.comparison
        shared = min(this.stop, that.stop) - max(this.start, that.start)
        return 2 * shared >= min(this.stop - this.start, that.stop - that.start)


class _AlignedSearch(ClusterSearch):
    def __init__(self, indexes: Indexes) -> None:
        super().__init__(indexes.grams, indexes.policy, least_overlap=_NOMINATED)
        self._form, self._own = indexes.policy.form, indexes.own[Aligned.name]
        self._questions = Questions(self._own)

    def compile(self, documents: Ragged) -> None:
        super().compile(documents)
        for _ in self._compared([]):
            pass

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return for each document, item and place what the place is to the item."""
        matches = self.detect(texts.tokens, texts.hits, with_matched=False)
        texts.find_places(distinct(matches.whole[:, clusters.DOCUMENT]).tolist())
        documents = [
            _Document.of(number, _most_likely([*nominations]), texts)
            for number, nominations in groupby(
                self._nominations(matches), lambda nomination: nomination.document
            )
        ]
        findings: list[Finding] = []
        for document, compared in zip(documents, self._compared(documents), strict=True):
            findings += self._in_document(document, compared, matches)
        return Nominations.of(findings)

    def _nominations(self, matches: Matches) -> Iterator[_Nomination]:
        """Yield the matches by document, those of the records of one question together.

        Records with another passage are another item.
        """
        whole, scores = matches.whole, matches.scores
        entries = whole[:, clusters.ENTRY]
        parts, records = self._search.entry_part[entries], self._search.entry_record[entries]
        rows = self._own["record_edges"][parts] + records
        item_of, is_wrong = self._own["item_of"][rows], self._own["is_wrong"][rows]
        keys = np.column_stack(
            [
                whole[:, clusters.DOCUMENT],
                self._own["question_of"][rows],
                whole[:, [clusters.START, clusters.END]],
                self._search.index.entry_passage[entries],
                item_of,
            ]
        )
        # The right choice of an item comes first, then the record with most of its answer.
        order = np.lexsort([-scores[:, clusters.ANSWER], is_wrong, *keys.T[::-1]])
        keys, best = keys[order], scores[order]
        first_of_item = firsts(keys)
        of_items = order[first_of_item]
        items = [
            *map(
                _Item,
                item_of[of_items].tolist(),
                (is_wrong[of_items] > 0).tolist(),
                (-scores[of_items, clusters.ANSWER]).tolist(),
                of_items.tolist(),
            )
        ]
        first = firsts(keys[:, :-1])
        item_edges = [*np.searchsorted(first_of_item, first).tolist(), len(items)]
        best = np.maximum.reduceat(best, first) if first.size else best
        first_keys, first_parts = keys[first].tolist(), parts[order[first]].tolist()
        passages = whole[order[first], _PASSAGE].tolist()
        questions = zip(
            first_keys, first_parts, best.tolist(), passages, pairwise(item_edges), strict=True
        )
        for key, part, shares, passage_tokens, edges in questions:
            document, question, start, end, passage, _ = key
            yield _Nomination(
                document,
                part,
                question,
                passage,
                start,
                end + self._ngram_size,
                items[slice(*edges)],
                score=shares[clusters.BASE],
                passage=shares[clusters.PASSAGE] if passage >= 0 else None,
                passage_tokens=passage_tokens,
                is_answered=shares[clusters.ANSWER] >= LEAST_ANSWER_OVERLAP,
            )

    def _compared(self, documents: Sequence[_Document]) -> Iterator[list[_Compared]]:
        """Yield of each document the nominations that are of a kind, compared with its words."""
        nominations = [nomination for document in documents for nomination in document.nominations]
        questions = np.array([nomination.question for nomination in nominations], np.int64)
        n_characters = self._own["n_characters"][questions].tolist()
        n_in_each = [len(document.nominations) for document in documents]
        number_of = np.repeat(np.arange(len(documents)), n_in_each)
        spans = _table([span for document in documents for span in document.spans])
        rows = zip(number_of.tolist(), spans.tolist(), n_characters, strict=True)
        windows = _table(
            [_window(documents[number].text, span, length) for number, span, length in rows]
        )
        around = Around([document.text for document in documents], number_of, windows, self._form)
        compared = self._questions.compare(
            questions,
            around.units,
            around.within(number_of, windows),
            around.touched(number_of, spans),
        )
        at = 0
        for document in documents:
            stop = at + len(document.nominations)
            of_document = zip(document.nominations, compared[at:stop], strict=True)
            yield _one_of_a_place([*_of_a_kind(of_document)])
            at = stop

    def _in_document(
        self, document: _Document, compared: Sequence[_Compared], matches: Matches
    ) -> list[Finding]:
        findings: list[Finding] = []
        for part in sorted({place.nomination.part for place in compared}):
            of_part = [place for place in compared if place.nomination.part == part]
            claims = attributed([place.claim for place in of_part])
            for place, claim in zip(of_part, claims, strict=True):
                kind = _kind(claim, place.nomination)
                if kind:
                    findings += self._findings(place, kind, matches, document)
        return findings

    def _tokens_of_answer(self, entry: int, found: Span, document: _Document) -> Span:
        """Return the tokens of a found answer: words of it may also occur further away."""
        index, (start, stop) = self._search.index, found
        number = np.int64(index.entry_answer[entry])
        answer = index.answer_tokens[slice(*index.answer_offsets[[number, number + 1]])]
        if start < 0 or stop - start <= answer.size:
            return found
        size = index.policy.answer_ngram_size
        first, last = place_of_answer(answer, document.tokens[start:stop], size)
        return start + first, start + last

    def _findings(
        self,
        place: _Compared,
        kind: tuple[str, float],
        matches: Matches,
        document: _Document,
    ) -> Iterator[Finding]:
        nomination, comparison = place.nomination, place.claim.comparison
        for *_, missing, row in nomination.items:
            whole = matches.whole[row].tolist()
            entry = whole[clusters.ENTRY]
            start, stop = self._tokens_of_answer(entry, whole[_ANSWER], document)
            overlap = -missing if self._search.index.entry_answer[entry] >= 0 else None
            answer = document.places.characters(start, stop) if start >= 0 else None
            if overlap == 0 and (stated := self._stated_answer(entry, place, document)):
                overlap, answer = 1.0, stated
            passage = None
            if has_passage(nomination.passage):
                passage = document.places.characters(*nomination.passage_tokens)
            yield Finding(
                document=nomination.document,
                part=nomination.part,
                record=int(self._search.entry_record[entry]),
                score=kind[1],
                question_overlap=comparison.weight_found / comparison.weight,
                answer_overlap=overlap,
                passage_overlap=nomination.passage,
                n_matched=comparison.n_found,
                question_tokens=comparison.n_units,
                question=(nomination.start, nomination.stop),
                question_place=(comparison.start, comparison.stop),
                answer_place=answer,
                passage_place=passage,
                kind=_with_answer(kind[0], overlap, stop - start),
            )

    def _stated_answer(self, entry: int, place: _Compared, document: _Document) -> Span | None:
        index = self._search.index
        number = np.int64(index.entry_answer[entry])
        answer = index.answer_tokens[slice(*index.answer_offsets[[number, number + 1]])]
        if answer.size > index.policy.short_answer:
            return None
        of_question = place.nomination.stop, place.claim.comparison.stop
        return stated_answer(answer, of_question, document.tokens, document.text, document.places)


def _kind(claim: Claim, nomination: _Nomination) -> tuple[str, float] | None:
    return kind_of(
        claim.comparison,
        passage=nomination.passage,
        is_sibling=claim.is_sibling,
        is_answered=nomination.is_answered,
    )


def _with_answer(kind: str, overlap: float | None, n_tokens: int) -> str:
    """Return the kind of a question with an answer: beside its own long one it is no other."""
    is_there = overlap is not None and overlap >= _WHOLE_ANSWER and n_tokens >= TELLING_ANSWER
    return EDITED if kind == VARIANT and is_there else kind


def _of_a_kind(compared: Iterable[tuple[_Nomination, Comparison | None]]) -> Iterator[_Compared]:
    for nomination, comparison in compared:
        if comparison:
            claim = Claim(comparison, round(_PASSAGE_WEIGHT * (nomination.passage or 0.0)))
            if _kind(claim, nomination):
                yield _Compared(nomination, claim)


def _most_likely(nominations: Sequence[_Nomination]) -> list[_Nomination]:
    """Return those with the highest scores, of each benchmark a few at each place."""
    if len(nominations) <= _MOST_AT_A_PLACE:
        return [*nominations]
    depth: dict[int, Integers] = {}
    end = max((nomination.stop for nomination in nominations), default=0)
    kept = []
    for nomination in sorted(nominations, key=_Nomination.order):
        of_part = depth.setdefault(nomination.part, np.zeros(end, np.int64))
        at = of_part[nomination.start : nomination.stop]
        if 2 * np.count_nonzero(at >= _MOST_AT_A_PLACE) < at.size:
            at += 1
            kept.append(nomination)
    return kept


def _one_of_a_place(compared: Sequence[_Compared]) -> list[_Compared]:
    """Return of each item one comparison at each place: that which found most of it."""
    kept: list[_Compared] = []
    for place in sorted(compared, key=_Compared.order):
        if kept and place.is_again(kept[-1]):
            kept[-1] = kept[-1].joined(place)
        else:
            kept.append(place)
    return sorted(kept, key=lambda of: of.nomination.order()[1:])


@dataclass(frozen=True, eq=False)
class _Document:
    """A document with nominations, and the characters of each."""

    text: str
    tokens: Numbers
    places: Places
    nominations: Sequence[_Nomination]
    spans: Sequence[Span]

    @staticmethod
    def of(number: int, nominations: Sequence[_Nomination], texts: BatchTexts) -> _Document:
        text, places = texts.batch.text_at(number), texts.places(number)
        spans = [places.characters(nomination.start, nomination.stop) for nomination in nominations]
        return _Document(text, texts.tokens.row(number), places, nominations, spans)


def _window(text: str, span: Sequence[int], n_characters: int) -> Span:
    """Return the span and what surrounds it, as far as the question may reach."""
    missing = max(0, n_characters - (span[1] - span[0]))
    margin = missing + n_characters // 4 + _MARGIN
    start, stop = max(0, span[0] - margin), min(len(text), span[1] + margin)
    before = text[max(0, start - _MARGIN) : start]
    if before and not before[-1].isspace():
        start -= len(before.rsplit(None, 1)[-1])
    word_rest = _WORD_REST.match(text, stop, stop + _MARGIN)
    return start, word_rest.end() if word_rest else stop


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return np.array(rows, np.int64).reshape(-1, 2)
