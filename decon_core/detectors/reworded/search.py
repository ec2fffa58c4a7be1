"""The search of `reworded`: windows with two rare words of a text, and how well they agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.corpus.batches import Batch
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import Finding, Nominations, Search
from decon_core.detectors.reworded.evidence import HALF_COUNT, LEAST_COUNT, Evidence, evidence_of
from decon_core.detectors.reworded.items import LEAST_PAIR, numbers_of
from decon_core.kernels import word_windows
from decon_core.kernels.arrays import Integers, Numbers, read_only
from decon_core.text.characters import Form
from decon_core.text.content_words import is_content, stems
from decon_core.text.numbers import NUMBER_WORDS, numeral_of
from decon_core.text.tokenizers import Words

if TYPE_CHECKING:
    from decon_core.text.word_cache import Encoder, Places, Ragged

_LEAST_WORDS = 0.3  # share of the weight of a question's words
_LONGEST_GAP = 8  # words up to a repeated term that still belongs to a window
_MARGIN = 6  # words around a window in which its numbers may stand
_MOST_AT_A_PLACE = 8  # texts of a benchmark that are compared within so many words
_PLACE = 64
_UNEXPLAINED = 0.2  # share of its words that a sibling must have in addition to a better sibling's


class _Stems(Words):
    """Number each word by its stem or numeral; 0 if no question has it."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number_of = {term: number for number, term in enumerate(vocabulary, 1)}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._numbers([word for word in text.split(" ") if word]) for text in texts]

    def _numbers(self, words: Sequence[str]) -> list[int]:
        known = self._number_of
        return [
            # Most new words are none of these, and need no closer look.
            known.get(stem if is_content(word) else numeral_of(word) or "", 0)
            if stem in known or word in NUMBER_WORDS or not "a" <= word[0] <= "z"
            else 0
            for stem, word in zip(stems(words), words, strict=True)
        ]

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        numbers = self._numbers(text.decode()[1:].split(" ")) if text else []
        return np.array(numbers, np.int64), np.ones(edges.size - 1, np.int64)


class RewordedSearch(Search):
    def __init__(self, arrays: Mapping[str, Any], policy: Policy, floor: float) -> None:
        self._arrays, self._policy, self._floor = arrays, policy, floor
        self.terms = _Stems(arrays["vocabulary"].tobytes().decode().split())
        totals, words = arrays["totals"], arrays["word_totals"]
        counts = arrays["most_agreeing"]
        # The least weight whose score can reach the floor, given the count of all words and
        # numbers of a text; rounded down.
        evidence = np.floor(floor * totals * (counts + HALF_COUNT) / counts).astype(np.int64) - 1
        least = np.maximum(
            evidence - (totals - words), np.ceil(_LEAST_WORDS * words).astype(np.int64)
        )
        n_terms, n_triggers = (np.diff(arrays[f"{of}_offsets"]) for of in ("term", "trigger"))
        columns = (
            arrays["term_offsets"][:-1],
            n_terms,
            arrays["lengths"],
            least,
            evidence,
            arrays["is_trigger"],
            np.minimum(arrays["n_own"], word_windows.N_ANCHORS),
        )
        known = {
            name: read_only(arrays[name]) for name in word_windows.Items._fields if name in arrays
        }
        known["triggers"] = known["triggers"].reshape(-1, word_windows.N_TRIGGER)
        self._items = word_windows.Items(
            rows=np.stack(columns, axis=1),
            longest_window=int(arrays["lengths"].max(initial=0)),
            most_terms=int(n_terms.max(initial=0)),
            most_triggers=int(n_triggers.max(initial=0)),
            **known,
        )
        self._limits = word_windows.Limits(
            LEAST_PAIR, self._floor, LEAST_COUNT, HALF_COUNT, _LONGEST_GAP, _MARGIN
        )
        self._found = np.empty((1 << 12, word_windows.N_COLUMNS), np.int64)

    @cached_property
    def _own_encoder(self) -> Encoder:
        # Imported late: detectors are declared before anything is read.
        from decon_core.text.word_cache import Encoder, FixedVocabulary

        no_tokens, policy = FixedVocabulary(np.empty(0, np.int64)), self._policy
        table_mb = policy.word_table_mb
        return Encoder(Words(), no_tokens, form=policy.form, table_mb=table_mb, terms=self.terms)

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return for each document and question the best window, if its score reaches the floor."""
        if texts.encoder is None or texts.encoder.terms is not self.terms:
            return Nominations.of(self.findings(texts.batch))
        return Nominations.of(self._found_by(texts.encoder, texts.batch))

    def findings(self, batch: Batch) -> list[Finding]:
        """Return the same, with a separate encoder."""
        self._own_encoder.encode(batch.text, batch.starts, batch.stops)
        return self._found_by(self._own_encoder, batch)

    def _found_by(self, encoder: Encoder, batch: Batch) -> list[Finding]:
        terms = encoder.terms_of_latest()
        rows = self._windows(terms).tolist()
        findings: list[Finding] = []
        for number, windows in groupby(rows, key=lambda row: row[word_windows.DOCUMENT]):
            text = batch.text_at(number)
            places = encoder.places(number, text, of_terms=True)
            document = _Document(text, self._policy.form, places, terms.row(number))
            findings += self._in_document(number, document, [*windows])
        return findings

    def compile(self, documents: Ragged) -> None:
        self._windows(documents.only(np.zeros(len(documents), np.bool_)))

    def _windows(self, words: Ragged) -> Integers:
        while True:
            n = word_windows.find_windows(
                words.values, words.offsets, self._items, self._limits, self._found
            )
            if n <= self._found.shape[0]:
                return self._found[:n]
            self._found = np.empty((2 * n, word_windows.N_COLUMNS), np.int64)

    def _in_document(
        self, number: int, document: _Document, windows: list[list[int]]
    ) -> list[Finding]:
        best: dict[int, _Match] = {}
        arrays, number_edges = self._arrays, self._arrays["number_offsets"]
        for text, start, stop, weight, n_terms in self._most_likely(windows):
            numbers = arrays["numbers"][number_edges[text] : number_edges[text + 1]].tolist()
            around = document.numbers(start - _MARGIN, stop + _MARGIN) if numbers else []
            words = weight, n_terms, int(arrays["word_totals"][text])
            within = partial(document.numbers, start, stop)
            evidence = evidence_of(numbers, around, within, words)
            if reaches(evidence.score, self._floor) and (
                text not in best or evidence.rank > best[text].evidence.rank
            ):
                own = self._own_terms(text).intersection(document.terms[start:stop].tolist())
                best[text] = _Match(self._part_of(text), text, start, stop, evidence, own)
        of_records: dict[tuple[int, int], Finding] = {}
        for match in _attributed(best.values()):
            for finding in self._findings(number, match, document):
                # The best text of an item comes first.
                of_records.setdefault((finding.part, finding.record), finding)
        return [*of_records.values()]

    def _most_likely(self, windows: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
        """Yield text, start, stop, weight and number of terms of windows.

        Of each benchmark only those of a few texts at a place, by the share of their words.
        """
        # Other pairs of anchors often have the same window.
        distinct = {tuple(row[1:]) for row in windows}
        if len({text for text, *_ in distinct}) <= _MOST_AT_A_PLACE:
            yield from sorted(distinct)
            return
        totals = self._arrays["word_totals"]
        texts_at: dict[tuple[int, int], set[int]] = {}
        for row in sorted(distinct, key=lambda row: (-row[3] / totals[row[0]], row)):
            at = self._part_of(row[0]), (row[1] + row[2]) // 2 // _PLACE
            texts = texts_at.setdefault(at, set())
            if row[0] in texts or len(texts) < _MOST_AT_A_PLACE:
                texts.add(row[0])
                yield row

    def _part_of(self, text: int) -> int:
        return int(self._arrays["use_parts"][self._arrays["use_offsets"][text]])

    def _own_terms(self, text: int) -> frozenset[int]:
        arrays = self._arrays
        first = int(arrays["term_offsets"][text])
        own = arrays["terms"][first : first + int(arrays["n_own"][text])]
        return frozenset(word_windows.terms_in(own).tolist())

    def _findings(self, number: int, match: _Match, document: _Document) -> Iterator[Finding]:
        arrays, text, evidence = self._arrays, match.text, match.evidence
        uses = slice(*arrays["use_offsets"][text : text + 2].tolist())
        first_term, last_term = arrays["term_offsets"][text : text + 2].tolist()
        n_looked_for = last_term - first_term + evidence.n_numbers
        parts, records = arrays["use_parts"][uses].tolist(), arrays["use_records"][uses].tolist()
        characters = document.places.characters(match.start, match.stop)
        for part, record in zip(parts, records, strict=True):
            yield Finding(
                document=number,
                part=part,
                record=record,
                score=evidence.score,
                question_overlap=evidence.words / evidence.all_words,
                n_matched=evidence.n_words + evidence.n_agreeing,
                question_tokens=n_looked_for,
                question_place=characters,
                kind=evidence.kind,
            )


class _Match(NamedTuple):
    """A text in a range of words of a document."""

    part: int
    text: int
    start: int
    stop: int
    evidence: Evidence
    own: frozenset[int]  # distinguishing terms that are there


def _attributed(matches: Iterable[_Match]) -> list[_Match]:
    """Return matches from the best on, without those that a better sibling explains."""
    kept: list[_Match] = []
    kept_at: dict[tuple[int, int], list[_Match]] = {}
    ranked = sorted(
        matches,
        key=lambda match: (not match.evidence.is_same_item, -match.evidence.score, match.text),
    )
    for match in ranked:
        places = range(match.start // _PLACE, (match.stop - 1) // _PLACE + 1)
        near = [by for place in places for by in kept_at.get((match.part, place), ())]
        if not any(_is_explained(match, by) for by in near):
            kept.append(match)
            for place in places:
                kept_at.setdefault((match.part, place), []).append(match)
    return kept


def _is_explained(match: _Match, by: _Match) -> bool:
    """Return whether a text of the same benchmark fits better at the same place, with its words."""
    shared = min(match.stop, by.stop) - max(match.start, by.start)
    shorter = min(match.stop - match.start, by.stop - by.start)
    is_less = match.evidence.score < by.evidence.score
    n_beside = len(match.own - by.own)
    return is_less and 2 * shared >= shorter and n_beside <= _UNEXPLAINED * len(match.own)


@dataclass(frozen=True, eq=False)
class _Document:
    text: str
    form: Form
    places: Places
    terms: Numbers
    # Items of one benchmark that share a scene have windows at the same place.
    _numbers: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def numbers(self, start: int, stop: int) -> list[float]:
        """Return the numbers in a range of words."""
        n_words = self.places.first_word.size
        words = max(start, 0), min(stop, n_words)
        if words not in self._numbers:
            begin, end = self.places.characters(*words)
            self._numbers[words] = numbers_of(self.text[begin:end], self.form)
        return self._numbers[words]
