"""The `aligned` detector: n-grams nominate an item, an alignment of words says what stands there.

A place is nominated if a small share of a question's n-grams is there. The question is then
aligned with the words around it (`alignment/`), which tells a copy, an edited copy, the same
question with other numbers or names, and a part of it from text that only shares a template. Items
of a benchmark that are nominated at the same place are told apart by the words that only one of
them has. docs/aligned.md has the method, `tests/oracle/alignment.py` a plain twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.alignment.attribution import Claim, attributed
from decon_core.alignment.comparison import Comparison, Question, compare
from decon_core.alignment.kinds import (
    EDITED,
    FEWEST_UNITS,
    LEAST_WEIGHT,
    PART,
    TEMPLATE,
    VARIANT,
    VERBATIM,
    kind_of,
    may_have_kind,
)
from decon_core.alignment.questions import Questions, index_of, size_of
from decon_core.alignment.units import PlacedUnits, units_of
from decon_core.config.detector_registry import Kind, Reads, Threshold, register
from decon_core.config.policy import LEAST_ANSWER_OVERLAP, Policy
from decon_core.detectors.decon import (
    ClusterSearch,
    Decon,
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
    sort_findings,
)
from decon_core.detectors.shared_runs import BatchTexts
from decon_core.detectors.visibility import RecordTexts, Unmet
from decon_core.kernels import clusters
from decon_core.text.canonical import is_plain
from decon_core.text.characters import Form
from decon_core.text.markup import may_have_markup

if TYPE_CHECKING:
    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.index.joined_index import Rows
    from decon_core.storage.tables import Array
    from decon_core.text.word_cache import Encoder, Places, Ragged

Integers = npt.NDArray[np.int64]

_NOMINATED = 0.12  # share of a question's n-grams, by weight
_MOST_AT_A_PLACE = 8  # items of a benchmark that are compared with the same words
_MARGIN = 80  # characters around a nomination, besides those that the question may fill
_PASSAGE_WEIGHT = 20_000  # what a whole passage adds in favour of an item
_TELLING_ANSWER = 20  # tokens of an answer that belongs to one question only
_WHOLE_ANSWER = 0.9  # share of its n-grams


@register
class Aligned(Detector):
    name = "aligned"
    summary = "words in order, with what was changed, of a question that shares n-grams"
    reads = Reads.OWN
    threshold = Threshold(setting="aligned_threshold", of=(EDITED,))
    versions = (("aligned", 3),)
    own_columns = ("question", "passage")
    uses_ngram_index = True
    needed_parts = ("answer",)
    fewest_words = FEWEST_UNITS
    finds_every_place = True
    finds_other_numbers = True
    kinds = (
        Kind(VERBATIM, needs_answer=True),
        Kind(EDITED, needs_answer=True),
        # With other numbers or names the answer is another one.
        Kind(VARIANT, "numbers or names of the question were replaced by others", is_apart=True),
        Kind(PART, "only a part of the question was found", is_apart=True, needs_answer=True),
        Kind(
            TEMPLATE,
            "only what other items share with the question was found",
            is_apart=True,
            needs_answer=True,
        ),
    )
    advice = (
        "**To find edited copies and say what was changed, `aligned`.** It finds questions with "
        "some words replaced, left out or added, tells copies with other numbers or names and "
        "parts of a question apart (they are candidates), and gives a place to the item whose own "
        "words stand there, not to all that share a template."
    )

    def own_index(self, records: Sequence[Rows], policy: Policy) -> Mapping[str, Array]:
        return index_of(records, policy.form)

    def search(self, indexes: Indexes) -> Search:
        return _AlignedSearch(indexes)

    def is_bounded(self, policy: Policy) -> bool:
        del policy
        return True

    def possible_blocks(self, indexes: Indexes, sketch: PackSketch) -> Possible:
        """Only in these can a question be nominated."""
        return possible_blocks(indexes.grams, sketch, indexes.policy, least_overlap=_NOMINATED)

    def record_of(self, indexes: Indexes, text: int) -> tuple[int, int]:
        return Decon().record_of(indexes, text)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        """What the n-gram index lacks is not nominated, and short questions say too little."""
        from decon_core.index.joined_index import most_records_of_own, most_records_of_search

        n_records = texts.part.n_records
        limit = min(most_records_of_search(policy, n_records), most_records_of_own(n_records))
        unmet = index_visibility(texts, policy, limit)
        entries, alike = texts.part.entries, texts.records["fingerprint"].to_pylist()
        answered = entries.records[entries.fields["answer"].of_entry >= 0]
        with_answer = {alike[record] for record in answered.tolist()}
        n_units, weights = (
            np.array(
                [
                    size_of(question, policy.form)
                    for question in texts.records["question"].to_pylist()
                ],
                np.int64,
            )
            .reshape(-1, 2)
            .T
        )
        has_answer = np.array([one in with_answer for one in alike], np.bool_)
        says_little = ((weights < LEAST_WEIGHT) | (n_units < FEWEST_UNITS)) & ~has_answer
        places = np.where(unmet.places > 0, unmet.places + 1, says_little)
        return Unmet((None, "too little evidence", *unmet.reasons[1:]), places, unmet.details)


# Search -------------------------------------------------------------------------------------------


@dataclass
class _Nomination:
    """A question, the tokens of a document where it may be, and the matches of its records."""

    part: int
    question: int
    start: int
    stop: int
    rows: list[int] = field(default_factory=list)
    score: float = 0.0
    passage: float | None = None  # share of it that stands near; None: there is none
    is_answered: bool = False  # an answer of a record stands near

    def order(self) -> tuple[float, int, int, int]:
        """The likeliest of a benchmark come first."""
        return -self.score, self.part, self.question, self.start


class _Near(NamedTuple):
    """A nomination, with its characters in the document and those that the question may reach."""

    nomination: _Nomination
    question: Question
    span: Span
    window: Span


class _Compared(NamedTuple):
    nomination: _Nomination
    claim: Claim


class _AlignedSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._policy, self._form = indexes.policy, indexes.policy.form
        self._grams = indexes.grams
        self._clusters = ClusterSearch(indexes.grams, indexes.policy, least_overlap=_NOMINATED)
        self._questions = Questions(indexes.own[Aligned.name])

    def compile(self, documents: Ragged) -> None:
        self._clusters.compile(documents)

    def compile_judging(self, documents: Ragged) -> None:
        self._clusters.compile_judging(documents)

    @property
    def is_ready_to_judge(self) -> bool:
        return self._clusters.is_ready_to_judge

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return for each document, item and place what the place is to the item."""
        if texts.encoder is None:
            raise ValueError("the encoder is needed to find the words of a match")
        matches = self._clusters.detect(texts.tokens, with_matched=False)
        self._clusters.take_counts()
        documents = matches.whole[:, clusters.DOCUMENT]
        numbers, first = np.unique(documents, return_index=True)
        findings = [
            finding
            for number, (begin, end) in zip(
                numbers.tolist(), pairwise([*first.tolist(), documents.size]), strict=True
            )
            for finding in self._in_document(number, matches, range(begin, end), texts)
        ]
        return Nominations.of(findings, "_characters")

    def _in_document(
        self, number: int, matches: Matches, rows: range, texts: BatchTexts
    ) -> list[Finding]:
        batch, encoder = texts.batch, _encoder_of(texts)
        text = batch.text[batch.starts[number] : batch.stops[number]].tobytes().decode()
        places = encoder.places(number, text)
        findings: list[Finding] = []
        nominations = _most_likely(self._nominations(matches, rows))
        compared = [*self._compared(text, places, nominations)]
        for part in sorted({one.nomination.part for one in compared}):
            of_part = [one for one in compared if one.nomination.part == part]
            claims = attributed([one.claim for one in of_part])
            for one, claim in zip(of_part, claims, strict=True):
                kind = _kind(claim, one.nomination)
                if kind:
                    findings += self._findings(number, one.nomination, claim, kind, matches, places)
        return sort_findings(findings)

    def _nominations(self, matches: Matches, rows: range) -> list[_Nomination]:
        """Return the matches of a document, those of the records of one question together."""
        whole, scores = (of[rows.start : rows.stop] for of in (matches.whole, matches.scores))
        entries = whole[:, clusters.ENTRY]
        parts = self._grams.entry_part[entries]
        columns = (
            rows,
            parts.tolist(),
            self._questions.numbers(parts, self._grams.entry_record[entries]),
            whole[:, clusters.START].tolist(),
            (whole[:, clusters.END] + self._policy.ngram_size).tolist(),
            self._grams.index.entry_passage[entries].tolist(),
            scores[:, [clusters.BASE, clusters.ANSWER, clusters.PASSAGE]].tolist(),
        )
        found: dict[tuple[int, int, int, int], _Nomination] = {}
        for row, part, question, start, stop, passage, shares in zip(*columns, strict=True):
            # Records with another passage are another item.
            key = question, start, stop, passage
            nomination = found.get(key)
            if nomination is None:
                nomination = found[key] = _Nomination(part, question, start, stop)
            score, of_answer, of_passage = shares
            nomination.rows.append(row)
            nomination.score = max(nomination.score, score)
            nomination.is_answered |= of_answer >= LEAST_ANSWER_OVERLAP
            if passage >= 0:
                nomination.passage = max(nomination.passage or 0.0, of_passage)
        return [*found.values()]

    def _compared(
        self, text: str, places: Places, nominations: Sequence[_Nomination]
    ) -> Iterator[_Compared]:
        near: list[_Near] = []
        for nomination in nominations:
            question = self._questions.get(nomination.question)
            span = places.characters(nomination.start, nomination.stop)
            window = _window(text, span, question.n_characters)
            is_supported = nomination.passage is not None or nomination.is_answered
            if is_supported or _may_have_kind(question, text[slice(*window)]):
                near.append(_Near(nomination, question, span, window))
        around = _Around(text, [one.window for one in near], self._form)
        for nomination, question, span, window in near:
            units = around.units(window)
            comparison = compare(question, units, span)
            if comparison:
                support = round(_PASSAGE_WEIGHT * (nomination.passage or 0.0))
                claim = Claim(comparison, _found_units(comparison, question, units), support)
                if _kind(claim, nomination):
                    yield _Compared(nomination, claim)

    def _findings(
        self,
        number: int,
        nomination: _Nomination,
        claim: Claim,
        kind: tuple[str, float],
        matches: Matches,
        places: Places,
    ) -> Iterator[Finding]:
        comparison = claim.comparison
        for row in nomination.rows:
            entry = int(matches.whole[row, clusters.ENTRY])
            start, stop = matches.whole[
                row, clusters.ANSWER_START : clusters.ANSWER_STOP + 1
            ].tolist()
            has_answer = self._grams.index.entry_answer[entry] >= 0
            overlap = float(matches.scores[row, clusters.ANSWER]) if has_answer else None
            yield Finding(
                document=number,
                part=nomination.part,
                record=int(self._grams.entry_record[entry]),
                score=kind[1],
                question_overlap=comparison.weight_found / comparison.weight,
                answer_overlap=overlap,
                n_matched=comparison.n_found,
                question_tokens=comparison.n_units,
                total_tokens=comparison.n_units,
                question=(nomination.start, nomination.stop),
                question_characters=(comparison.start, comparison.stop),
                answer_characters=places.characters(start, stop) if start >= 0 else None,
                looked_for=_with_answer(kind[0], overlap, stop - start),
            )


def _may_have_kind(question: Question, text: str) -> bool:
    return not is_plain(text) or may_have_markup(text) or may_have_kind(question, text.lower())


def _kind(claim: Claim, nomination: _Nomination) -> tuple[str, float] | None:
    return kind_of(
        claim.comparison,
        passage=nomination.passage,
        is_sibling=claim.is_sibling,
        is_answered=nomination.is_answered,
    )


def _with_answer(kind: str, overlap: float | None, n_tokens: int) -> str:
    """Return the kind of a question with an answer: beside its own long one it is no other."""
    is_there = overlap is not None and overlap >= _WHOLE_ANSWER and n_tokens >= _TELLING_ANSWER
    return EDITED if kind == VARIANT and is_there else kind


def _encoder_of(texts: BatchTexts) -> Encoder:
    if texts.encoder is None:
        raise ValueError("the encoder is needed to find the words of a match")
    return texts.encoder


def _most_likely(nominations: Sequence[_Nomination]) -> list[_Nomination]:
    """Return those with the highest scores, of each benchmark a few at each place."""
    if len(nominations) <= _MOST_AT_A_PLACE:
        return [*nominations]
    depth: dict[int, npt.NDArray[np.int64]] = {}
    end = max((nomination.stop for nomination in nominations), default=0)
    kept = []
    for nomination in sorted(nominations, key=_Nomination.order):
        of_part = depth.setdefault(nomination.part, np.zeros(end, np.int64))
        at = of_part[nomination.start : nomination.stop]
        if 2 * np.count_nonzero(at >= _MOST_AT_A_PLACE) < at.size:
            at += 1
            kept.append(nomination)
    return kept


def _window(text: str, span: Span, n_characters: int) -> Span:
    """Return the span and what surrounds it, as far as the question may reach."""
    missing = max(0, n_characters - (span[1] - span[0]))
    margin = missing + n_characters // 4 + _MARGIN
    start, stop = max(0, span[0] - margin), min(len(text), span[1] + margin)
    while start and not text[start - 1].isspace():
        start -= 1
    while stop < len(text) and not text[stop].isspace():
        stop += 1
    return start, stop


class _Around:
    """The units of a document in windows, which may overlap: each is read once."""

    def __init__(self, text: str, windows: Sequence[Span], form: Form) -> None:
        self._read: list[tuple[Span, PlacedUnits]] = []
        merged: list[list[int]] = []
        for start, stop in sorted(windows):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], stop)
            else:
                merged.append([start, stop])
        for start, stop in merged:
            units = units_of(text[start:stop], form, start=start)
            self._read.append(((start, stop), units))

    def units(self, window: Span) -> PlacedUnits:
        units = next(
            units for span, units in self._read if span[0] <= window[0] and window[1] <= span[1]
        )
        return units.within(window)


def _found_units(
    comparison: Comparison, question: Question, units: PlacedUnits
) -> list[tuple[int, int]]:
    """Return where each unit that was found begins, and its weight."""
    weights = question.weights
    return [
        (units.starts[block.document + at], weights[block.item + at])
        for block in comparison.blocks
        for at in range(block.size)
    ]
