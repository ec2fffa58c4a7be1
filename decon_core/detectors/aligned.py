"""The `aligned` detector: n-grams nominate an item, an alignment of words says what was copied.

A place is nominated if a small share of a question's n-grams is there. The question is then
aligned with the words around it (`alignment/`), which tells a copy, an edited copy, the same
question with other numbers or names, and a part of it from text that only shares a template. Items
of a benchmark that are nominated at the same place are told apart by the words that only one of
them has. docs/aligned.md has the method, `tests/oracle/alignment.py` a plain twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from decon_core.alignment.attribution import attributed
from decon_core.alignment.comparison import Questions
from decon_core.alignment.interruptions import joined
from decon_core.alignment.kinds import (
    EDITED,
    FEWEST_WORDS,
    KINDS,
    LEAST_PASSAGE,
    LEAST_WEIGHT,
    PART,
    TEMPLATE,
    VARIANT,
    VERBATIM,
    has_passage,
)
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
from decon_core.alignment.stated_answers import SHORT
from decon_core.alignment.windows import Around, window_around
from decon_core.config.detector_registry import Kind, Reads, Threshold, register
from decon_core.config.policy import LEAST_ANSWER_OVERLAP, TELLING_ANSWER, Policy
from decon_core.detectors.aligned_answers import Answers, Document, rows_of_entries, table
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
    firsts,
)
from decon_core.detectors.visibility import RecordTexts, Unmet
from decon_core.kernels import clusters
from decon_core.kernels.arrays import Array, Integers, distinct

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.text.word_cache import Ragged


_NOMINATED = 0.12  # share of a question's n-grams, by weight
_PASSAGE = slice(clusters.PASSAGE_START, clusters.PASSAGE_STOP + 1)  # columns
_COPY = 0.6  # score; an edited question with a lower one is no copy by default
_WHOLE_ANSWER = 0.9  # share of its n-grams


@register
class Aligned(Detector):
    name = "aligned"
    summary = "words of the question, in order, and the changes made to them"
    reads = Reads.OWN
    threshold = Threshold(setting="aligned_threshold", of=(EDITED,))
    versions = (("aligned", 14),)
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
        "**To clean a corpus, use `aligned`.** It is the default. It ignores the same changes of "
        "form as `decon`, and it finds edited copies as well: if one word in ten was replaced, "
        "left out or added, it finds nearly all items. It reports copies with other numbers or "
        "names, and parts of a question, separately, because these need review; nearly all of the "
        "hard negatives that it flagged are such copies. If several items share a template, it "
        "reports only the item whose own words occur in the text."
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
        items = self._own["item_of"][rows_of_entries(indexes.grams, self._own)]
        super().__init__(
            indexes.grams, indexes.policy, least_overlap=_NOMINATED, item_of_entry=items
        )
        self._questions, self._sentences = (Questions(self._own), Sentences(self._own, self._form))
        self._operators = Operators(self._own)
        self._answers = Answers(self._search, self._index, self._own, self._form)
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
            Document.of(number, most_likely([*nominations]), texts)
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
        rows = rows_of_entries(self._search, self._own, entries)
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
        # then the record with most of its answer. A short answer is read in the text later.
        found = scores[:, clusters.ANSWER]
        is_read = (self._own["answer_sort"][rows] == SHORT) & (is_wrong == 0)
        answered = np.where(is_read, 0.0, found)
        is_telling = (answered >= _WHOLE_ANSWER) & (self._answer_sizes[entries] >= TELLING_ANSWER)
        order = np.lexsort([-found, -answered, ~is_telling, is_wrong, *keys.T[::-1]])
        keys, best = keys[order], scores[order]
        first_of_item = firsts(keys)
        of_items = order[first_of_item]
        rivals = _rivals(order, first_of_item, is_wrong)
        items = [
            *map(
                Item,
                item_of[of_items].tolist(),
                (is_wrong[of_items] > 0).tolist(),
                (~is_telling[of_items]).tolist(),
                (-answered[of_items]).tolist(),
                of_items.tolist(),
                rivals.tolist(),
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
        self, document: Document, compared: Iterable[Compared], starts: Integers
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

    def _compared(self, documents: Sequence[Document]) -> Iterator[list[Compared]]:
        """Yield of each document the nominations that are of a kind, compared with its words."""
        nominations = [nomination for document in documents for nomination in document.nominations]
        questions = np.array([nomination.question for nomination in nominations], np.int64)
        n_characters = self._own["n_characters"][questions].tolist()
        n_in_each = [len(document.nominations) for document in documents]
        number_of = np.repeat(np.arange(len(documents)), n_in_each)
        spans = table([span for document in documents for span in document.spans])
        rows = zip(number_of.tolist(), spans.tolist(), n_characters, strict=True)
        windows = table(
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
            of_document = [*zip(document.nominations, compared[at:stop], strict=True)]
            of_document += joined(of_document, self._questions, around.units)
            of_places = about_nearest(one_of_a_place([*of_a_kind(of_document)]))
            yield [*self._beside_passages(document, of_places, around.units.starts)]
            at = stop

    def _in_document(
        self, document: Document, compared: Sequence[Compared], matches: Matches
    ) -> list[Finding]:
        found: list[tuple[int, Finding]] = []
        for part in sorted({place.nomination.part for place in compared}):
            of_part = [place for place in compared if place.nomination.part == part]
            claims = attributed([place.claim for place in of_part])
            for place, claim in zip(of_part, claims, strict=True):
                if kind := kind_at(claim, place.nomination):
                    kind = self._operators.kind_of(place, kind, document.text)
                    items = (item.number for item in place.nomination.items)
                    findings = self._findings(place, kind, matches, document)
                    found += zip(items, findings, strict=True)
        return _best_of_places(found)

    def _findings(
        self,
        place: Compared,
        kind: tuple[str, float],
        matches: Matches,
        document: Document,
    ) -> Iterator[Finding]:
        nomination = place.nomination
        for item in nomination.items:
            comparison, (name, score) = place.claim.comparison, kind
            entry = int(matches.whole[item.row, clusters.ENTRY])
            overlap = -item.missing if self._search.index.entry_answer[entry] >= 0 else None
            answer = self._answers.long(item, place, matches, document) if overlap else None
            if overlap is not None and name != TEMPLATE and not item.is_wrong:
                overlap = overlap if answer else 0.0
                if overlap >= _WHOLE_ANSWER and self._answer_sizes[entry] >= TELLING_ANSWER:
                    # A question with another number beside its own long answer is no other.
                    name = EDITED if name == VARIANT else name
            if overlap is not None and overlap < LEAST_ANSWER_OVERLAP and name != TEMPLATE:
                near = self._answers.short(item, entry, place, matches, document)
                if stated := near or self._answers.stated(item, entry, place, document):
                    overlap, answer = 1.0, stated
                elif repeated := self._answers.repeated(item.number, entry, place, document):
                    comparison, answer = repeated
                    overlap = 1.0
                    if comparison.weight_found < comparison.weight:
                        score = min(score, comparison.weight_found / comparison.weight)
                        name = EDITED if name == VERBATIM else name
                elif again := self._answers.behind_last_copy(item, entry, place, matches, document):
                    comparison, answer, overlap = again
            if kind[0] == name == EDITED and score >= _COPY:
                is_answered = (overlap or 0.0) >= LEAST_ANSWER_OVERLAP
                is_copy = self._sentences.are_in(document.text, nomination.question, comparison)
                is_apart = comparison.is_interrupted and not is_answered
                name = EDITED if is_copy and not is_apart else PART
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


def _best_of_places(found: Sequence[tuple[int, Finding]]) -> list[Finding]:
    """Return one finding of each item at each place, the best; an answer may repeat a question."""
    kept: dict[int, list[Finding]] = {}
    for item, finding in sorted(found, key=lambda of: _order(of[1])):
        of_item = kept.setdefault(item, [])
        if not any(_is_again(finding, other) for other in of_item):
            of_item.append(finding)
    is_kept = {id(finding) for of_item in kept.values() for finding in of_item}
    return [finding for _, finding in found if id(finding) in is_kept]


def _order(finding: Finding) -> tuple[bool, bool, int, float]:
    is_copy = finding.kind in (VERBATIM, EDITED)
    is_answered = (finding.answer_overlap or 0.0) >= LEAST_ANSWER_OVERLAP
    return not is_copy, not is_answered, KINDS.index(finding.kind or ""), -finding.score


def _is_again(finding: Finding, other: Finding) -> bool:
    """Return whether two findings have at least half of the shorter one's characters in common."""
    (start, stop), (first, last) = finding.question_place or (0, 0), other.question_place or (0, 0)
    return 2 * (min(stop, last) - max(start, first)) >= min(stop - start, last - first)


def _rivals(order: Integers, first_of_item: Integers, is_wrong: Integers) -> Integers:
    """Return the row of each item's wrong choice with most of its answer; -1 if there is none.

    `first_of_item`: where the rows of each item begin in the order; wrong ones are its last.
    """
    if not order.size:
        return order
    n_wrong = np.add.reduceat(is_wrong[order].astype(np.int64), first_of_item)
    stops = np.append(first_of_item[1:], order.size)
    has_both = (n_wrong > 0) & (n_wrong < stops - first_of_item)
    rivals: Integers = np.where(has_both, order[(stops - n_wrong) % order.size], -1)
    return rivals
