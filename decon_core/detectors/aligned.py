"""The `aligned` detector: n-grams nominate an item, an alignment of words says what was copied.

A place is nominated if a small share of a question's n-grams is there. The question is then
aligned with the words around it (`alignment/`), which tells a copy, an edited copy, the same
question with other numbers or names, and a part of it from text that only shares a template. Items
of a benchmark that are nominated at the same place are told apart by the words that only one of
them has. docs/aligned.md has the method, `tests/oracle/alignment.py` a plain twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.alignment.answer_places import FEWEST_TOKENS, place_of_answer, places_of
from decon_core.alignment.attribution import attributed
from decon_core.alignment.blanks import filled_with
from decon_core.alignment.comparison import Comparison, Questions
from decon_core.alignment.kinds import (
    EDITED,
    FEWEST_WORDS,
    LEAST_PASSAGE,
    LEAST_WEIGHT,
    PART,
    TEMPLATE,
    VARIANT,
    VERBATIM,
    has_passage,
)
from decon_core.alignment.measures import measure_of, stands_in
from decon_core.alignment.nominations import (
    Compared,
    Item,
    Nomination,
    about_nearest,
    kind_at,
    most_likely,
    of_a_kind,
    one_of_a_place,
    sizes_of_own_answers,
)
from decon_core.alignment.operators import Operators
from decon_core.alignment.passages import Passages
from decon_core.alignment.questions import COLUMNS, index_of, sizes_in, sizes_of
from decon_core.alignment.sentences import Sentences
from decon_core.alignment.stated_answers import ShortAnswers, stated_answer
from decon_core.alignment.units import units_of
from decon_core.alignment.windows import MARGIN, Around, window_around
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
from decon_core.kernels.arrays import Array, Integers, Numbers, Table, distinct

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.index.joined_index import Search as GramIndex
    from decon_core.text.word_cache import Places, Ragged


_NOMINATED = 0.12  # share of a question's n-grams, by weight
# Columns.
_ANSWER = slice(clusters.ANSWER_START, clusters.ANSWER_STOP + 1)
_PASSAGE = slice(clusters.PASSAGE_START, clusters.PASSAGE_STOP + 1)
_LEAST_REPEATED = 0.6  # share of a question that must come before an answer that repeats its words
_BEHIND = 50  # tokens behind a question in which a number with its unit is searched for
_WHOLE_ANSWER = 0.9  # share of its n-grams


@register
class Aligned(Detector):
    name = "aligned"
    summary = "words of the question, in order, and the changes made to them"
    reads = Reads.OWN
    threshold = Threshold(setting="aligned_threshold", of=(EDITED,))
    versions = (("aligned", 12),)
    own_columns = COLUMNS
    uses_ngram_index = True
    needed_parts = ("answer",)
    fewest_words = FEWEST_WORDS
    finds_every_place = True
    finds_other_numbers = True
    kinds = (
        Kind(VERBATIM, needs_answer=True),
        Kind(EDITED, needs_answer=True),
        # A question with other numbers or names has another answer.
        Kind(VARIANT, "numbers, names or operators in the question were replaced", is_apart=True),
        Kind(PART, "only a part of the item was found", is_apart=True, needs_answer=True),
        Kind(
            TEMPLATE,
            "only text that the question shares with other items was found",
            is_apart=True,
            needs_answer=True,
        ),
    )
    advice = (
        "**To clean a corpus, use `aligned`.** It is the default. It finds items despite all the "
        "changes of form that `decon` allows for, and edited copies as well: if one word in ten "
        "was replaced, left out or added, it finds nearly all items. It reports copies with other "
        "numbers or names, and parts of a question, separately, because these need review; nearly "
        "all of the hard negatives that it flagged are such copies. If several items share a "
        "template, it attributes a place only to the item whose own words occur there."
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
            n_words, weights = sizes_in(own.arrays, own.number)
        else:
            questions = texts.stored.table(["question"])["question"]
            n_words, weights = sizes_of(questions.to_pylist(), policy.form)
        has_little = (weights < LEAST_WEIGHT) | (n_words < FEWEST_WORDS)
        says_little = has_little & ~has_more[texts.alike]
        places = np.where(unmet.places > 0, unmet.places + 1, says_little)
        return Unmet((None, "too little evidence", *unmet.reasons[1:]), places, unmet.details)


# Search -------------------------------------------------------------------------------------------


class _AlignedSearch(ClusterSearch):
    def __init__(self, indexes: Indexes) -> None:
        self._form, self._own = indexes.policy.form, indexes.own[Aligned.name]
        items = self._own["item_of"][_rows_of_entries(indexes.grams, self._own)]
        super().__init__(
            indexes.grams, indexes.policy, least_overlap=_NOMINATED, item_of_entry=items
        )
        self._answers, self._sentences = ShortAnswers(self._own), Sentences(self._own, self._form)
        self._questions, self._operators = Questions(self._own), Operators(self._own)
        self._passages = Passages(self._search.index)
        sizes = np.append(np.diff(self._search.index.answer_offsets), 0)  # the last: no answer
        self._answer_sizes = sizes[self._search.index.entry_answer]
        self._own_sizes = sizes_of_own_answers(self._search.index, indexes.grams.entry_part, sizes)

    def compile(self, documents: Ragged) -> None:
        super().compile(documents)
        for _ in self._compared([]):
            pass
        self._passages.compile(documents)

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return for each document, item and place what the place is to the item."""
        matches = self.detect(texts.tokens, texts.hits, with_matched=False)
        texts.find_places(distinct(matches.whole[:, clusters.DOCUMENT]).tolist())
        documents = [
            _Document.of(number, most_likely([*nominations]), texts)
            for number, nominations in groupby(
                self._with_passages([*self._nominations(matches)], texts.tokens),
                lambda nomination: nomination.document,
            )
        ]
        findings: list[Finding] = []
        for document, compared in zip(documents, self._compared(documents), strict=True):
            findings += self._in_document(document, compared, matches)
        return Nominations.of(findings)

    def _nominations(self, matches: Matches) -> Iterator[Nomination]:
        """Yield the matches by document, those of the records of one question together.

        Records with another passage are another item.
        """
        whole, scores = matches.whole, matches.scores
        entries = whole[:, clusters.ENTRY]
        parts = self._search.entry_part[entries]
        rows = _rows_of_entries(self._search, self._own, entries)
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
        # The right choice of an item comes first, then a long answer that was found as a whole,
        # then the record with most of its answer.
        answered = scores[:, clusters.ANSWER]
        is_telling = (answered >= _WHOLE_ANSWER) & (self._answer_sizes[entries] >= TELLING_ANSWER)
        order = np.lexsort([-answered, ~is_telling, is_wrong, *keys.T[::-1]])
        keys, best = keys[order], scores[order]
        first_of_item = firsts(keys)
        of_items = order[first_of_item]
        items = [
            *map(
                Item,
                item_of[of_items].tolist(),
                (is_wrong[of_items] > 0).tolist(),
                (~is_telling[of_items]).tolist(),
                (-answered[of_items]).tolist(),
                of_items.tolist(),
            )
        ]
        first = firsts(keys[:, :-1])
        item_edges = [*np.searchsorted(first_of_item, first).tolist(), len(items)]
        own = np.where(answered >= _WHOLE_ANSWER, self._own_sizes[entries], 0)[order]
        n_own = np.add.reduceat(own, first) if first.size else own
        best = np.maximum.reduceat(best, first) if first.size else best
        first_keys, first_parts = keys[first].tolist(), parts[order[first]].tolist()
        passages = whole[order[first], _PASSAGE].tolist()
        columns = first_keys, first_parts, best.tolist(), n_own.tolist(), passages
        for key, part, shares, n_own_tokens, passage_tokens, edges in zip(
            *columns, pairwise(item_edges), strict=True
        ):
            document, question, start, end, passage, _ = key
            yield Nomination(
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
                told=n_own_tokens / TELLING_ANSWER if passage >= 0 else 0.0,
            )

    def _with_passages(self, nominations: Sequence[Nomination], tokens: Ragged) -> list[Nomination]:
        """Add the passages that are elsewhere than right before the question."""
        wanted = {
            (nomination.document, nomination.passage_number)
            for nomination in nominations
            if nomination.passage is not None and not has_passage(nomination.passage)
        }
        if not wanted:
            return [*nominations]
        found = self._passages.in_documents(tokens, sorted(wanted), LEAST_PASSAGE)
        return [
            nomination.with_passage(found.get((nomination.document, nomination.passage_number)))
            for nomination in nominations
        ]

    def _beside_passages(
        self, document: _Document, compared: Iterable[Compared], starts: Integers
    ) -> Iterator[Compared]:
        """Mark the words of items that belong to their passages; `starts`: of all units."""
        for nomination, claim in compared:
            if nomination.passage is None:
                yield Compared(nomination, claim)
                continue
            is_of_passage = self._passages.words_of(
                nomination.passage_number,
                document.tokens,
                document.places,
                starts[claim.comparison.places],
                claim.comparison.stop,
            )
            yield Compared(nomination, claim._replace(is_of_passage=is_of_passage))

    def _compared(self, documents: Sequence[_Document]) -> Iterator[list[Compared]]:
        """Yield of each document the nominations that are of a kind, compared with its words."""
        nominations = [nomination for document in documents for nomination in document.nominations]
        questions = np.array([nomination.question for nomination in nominations], np.int64)
        n_characters = self._own["n_characters"][questions].tolist()
        n_in_each = [len(document.nominations) for document in documents]
        number_of = np.repeat(np.arange(len(documents)), n_in_each)
        spans = _table([span for document in documents for span in document.spans])
        rows = zip(number_of.tolist(), spans.tolist(), n_characters, strict=True)
        windows = _table(
            [window_around(documents[number].text, span, length) for number, span, length in rows]
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
            of_places = about_nearest(one_of_a_place([*of_a_kind(of_document)]))
            yield [*self._beside_passages(document, of_places, around.units.starts)]
            at = stop

    def _in_document(
        self, document: _Document, compared: Sequence[Compared], matches: Matches
    ) -> list[Finding]:
        findings: list[Finding] = []
        for part in sorted({place.nomination.part for place in compared}):
            of_part = [place for place in compared if place.nomination.part == part]
            claims = attributed([place.claim for place in of_part])
            for place, claim in zip(of_part, claims, strict=True):
                if kind := kind_at(claim, place.nomination):
                    kind = self._sentences.kind_of(place, kind, document.text)
                    kind = self._operators.kind_of(place, kind, document.text)
                    findings += self._findings(place, kind, matches, document)
        return findings

    def _tokens_of(self, entry: int) -> Array:
        """Return the tokens of the answer of a record, which has one."""
        index = self._search.index
        number = int(index.entry_answer[entry])
        return index.answer_tokens[slice(*index.answer_offsets[number : number + 2])]

    def _tokens_of_answer(self, entry: int, found: Span, document: _Document) -> Span:
        """Return the tokens of a found answer, whose words may also occur farther away."""
        index, (start, stop) = self._search.index, found
        if start < 0:
            return found
        answer = self._tokens_of(entry)
        if stop - start <= answer.size:
            return found
        size, room = index.policy.answer_ngram_size, int(self._index.entry_room[entry])
        first, last = place_of_answer(answer, document.tokens[start:stop], size, room)
        return start + first, start + last

    def _findings(
        self,
        place: Compared,
        kind: tuple[str, float],
        matches: Matches,
        document: _Document,
    ) -> Iterator[Finding]:
        nomination = place.nomination
        for item in nomination.items:
            comparison, score = place.claim.comparison, kind[1]
            whole = matches.whole[item.row].tolist()
            entry = whole[clusters.ENTRY]
            start, stop = self._tokens_of_answer(entry, whole[_ANSWER], document)
            overlap = -item.missing if self._search.index.entry_answer[entry] >= 0 else None
            answer = document.places.characters(start, stop) if start >= 0 else None
            name = _with_answer(kind[0], overlap, stop - start)
            if overlap is not None and overlap < LEAST_ANSWER_OVERLAP and name != TEMPLATE:
                if other := self._other_answer(item.number, place, document):
                    overlap, answer = 1.0, other
                elif repeated := self._repeated(entry, place, document):
                    comparison, answer = repeated
                    overlap = 1.0
                    if comparison.weight_found < comparison.weight:
                        score = min(score, comparison.weight_found / comparison.weight)
                        name = EDITED if name == VERBATIM else name
            passage = None
            if has_passage(nomination.passage):
                passage = document.places.characters(*nomination.passage_tokens)
            yield Finding(
                document=nomination.document,
                part=nomination.part,
                record=int(self._search.entry_record[entry]),
                score=score,
                question_overlap=comparison.weight_found / comparison.weight,
                answer_overlap=overlap,
                passage_overlap=nomination.passage,
                n_matched=comparison.n_found // comparison.units_per_word,
                question_tokens=comparison.n_units // comparison.units_per_word,
                question=(nomination.start, nomination.stop),
                question_place=(comparison.start, comparison.stop),
                answer_place=answer,
                passage_place=passage,
                kind=name,
            )

    def _other_answer(self, item: int, place: Compared, document: _Document) -> Span | None:
        """Return an answer that is stated, fills the blank, or has its unit spelled otherwise."""
        answers, comparison = self._answers.of(item), place.claim.comparison
        question, text = place.nomination.question, document.text
        if stated := stated_answer(answers, text, comparison.stop):
            return stated
        edges = self._own["blank_edges"][question : question + 2]
        if edges[0] < edges[1]:
            blanks = self._own["blanks"][2 * edges[0] : 2 * edges[1]].reshape(-1, 2)
            if filled := filled_with(answers, blanks, comparison, text, self._form):
                return filled
        if measures := [*filter(None, map(measure_of, answers))]:
            behind = text[comparison.stop : document.end_of_window(comparison)]
            places = (stands_in(measure, behind) for measure in measures)
            if there := next(filter(None, places), None):
                return comparison.stop + there[0], comparison.stop + there[1]
        return None

    def _repeated(
        self, entry: int, place: Compared, document: _Document
    ) -> tuple[Comparison, Span] | None:
        """Return an answer that repeats the question, and the comparison without its words.

        An answer of which no word was compared with the question, as in a blank, has taken none.
        """
        index, comparison = self._search.index, place.claim.comparison
        answer = self._tokens_of(entry)
        if answer.size < FEWEST_TOKENS:
            return None
        question = int(self._search.entry_question[entry])
        asked = index.question_tokens[slice(*index.question_offsets[question : question + 2])]
        if places_of(answer, asked):
            return None
        start, stop = document.tokens_of(comparison)
        first = max(0, start - answer.size)
        within = document.tokens[first : stop + answer.size]
        for at in places_of(answer, within):
            there = document.places.characters(first + at, first + at + answer.size)
            compared = self._compared_before(place.nomination.question, document.text, there[0])
            if compared and compared.weight_found >= _LEAST_REPEATED * compared.weight:
                return compared if comparison.has_words_in(*there) else comparison, there
        return None

    def _compared_before(self, question: int, text: str, stop: int) -> Comparison | None:
        start = max(0, stop - 2 * int(self._own["n_characters"][question]) - MARGIN)
        units = units_of([text[start:stop]], self._form)
        whole = _table([(0, len(units))])
        (compared,) = self._questions.compare(np.array([question]), units, whole, whole)
        return compared and compared._replace(
            start=compared.start + start, stop=compared.stop + start
        )


def _rows_of_entries(
    search: GramIndex, own: Mapping[str, Any], entries: Integers | slice = slice(None)
) -> Integers:
    """Return the rows of entries among the records of all benchmarks."""
    rows: Integers = own["record_edges"][search.entry_part[entries]] + search.entry_record[entries]
    return rows


def _with_answer(kind: str, overlap: float | None, n_tokens: int) -> str:
    """Return the kind of a question with an answer: beside its own long one it is no other."""
    is_there = overlap is not None and overlap >= _WHOLE_ANSWER and n_tokens >= TELLING_ANSWER
    return EDITED if kind == VARIANT and is_there else kind


@dataclass(frozen=True, eq=False)
class _Document:
    """A document with nominations, and the characters of each."""

    text: str
    tokens: Numbers
    places: Places
    nominations: Sequence[Nomination]
    spans: Sequence[Span]

    @staticmethod
    def of(number: int, nominations: Sequence[Nomination], texts: BatchTexts) -> _Document:
        text, places = texts.batch.text_at(number), texts.places(number)
        spans = [places.characters(nomination.start, nomination.stop) for nomination in nominations]
        return _Document(text, texts.tokens.row(number), places, nominations, spans)

    def tokens_of(self, comparison: Comparison) -> Span:
        return self.places.tokens(comparison.start, comparison.stop)

    def end_of_window(self, comparison: Comparison) -> int:
        """Return the character up to which an answer may be behind a question."""
        stop = min(self.tokens_of(comparison)[1] + _BEHIND, self.tokens.size)
        return self.places.characters(stop - 1, stop)[1]


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return np.array(rows, np.int64).reshape(-1, 2)
