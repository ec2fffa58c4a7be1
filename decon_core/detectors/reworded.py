"""The `reworded` detector: an item in other words, found by its content words and numbers.

A window of a document is compared with a question if it holds two of the question's four rarest
content words. What counts is how much of the question's words and numbers is there, by weight, in
any order. A question whose numbers were replaced by others is the same template, not the same
item. `tests/oracle/reworded.py` has the arithmetic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.corpus.batches import Batch
from decon_core.detectors.detector import (
    Detector,
    Finding,
    Floats,
    Indexes,
    Judged,
    Search,
    sort_findings,
)
from decon_core.detectors.shared_runs import BatchTexts
from decon_core.detectors.visibility import Integers, RecordTexts, Unmet, first_unmet
from decon_core.kernels import word_windows
from decon_core.text.canonical import canonical
from decon_core.text.characters import Form
from decon_core.text.content_words import SCALE, is_content, stems, terms_of
from decon_core.text.markup import stripped
from decon_core.text.numbers import NUMBER_WORDS, numbers_in, numeral_of
from decon_core.text.tokenizers import Words

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.index.joined_index import Rows
    from decon_core.storage.tables import Array
    from decon_core.text.word_cache import Encoder, Places, Ragged

SAME_ITEM, OTHER_NUMBERS = "same item", "other numbers"

_FEWEST_TERMS = 4
_LEAST_PAIR = round(7.5 * SCALE)  # weight of two anchors together
# A number weighs as much as a rare word; one that many texts hold, as half of them do, less.
_NUMBER_WEIGHT = round(6.2 * SCALE)
_SMALL_NUMBER_WEIGHT = 3 * SCALE
_LARGEST_SMALL_NUMBER = 12
_LEAST_WORDS = 0.3  # of the weight of a question's words
_LITTLE = 24 * SCALE  # evidence of this weight halves the score
_LONGEST_GAP = 8  # words up to a repeated term that still belongs to a window
_ANY_SCORE = 1e-6
_MARGIN = 6  # words around a window in which its numbers may stand
# Numbers of the same item: at least half agree, and few are replaced by others; none if nearly all
# words agree, for then the numbers are what differs.
_LEAST_AGREEING = 0.5
_MOST_REPLACED = 0.25
_NEARLY_ALL_WORDS = 0.85


@dataclass(frozen=True, eq=False)
class _Item:
    """What is compared of a question."""

    terms: dict[str, int]  # with their weights
    numbers: list[float]
    numerals: Counter[str]
    n_words: int

    @classmethod
    def of(cls, question: str, form: Form) -> _Item:
        words = canonical(question, form).split()
        numerals = Counter(filter(None, map(numeral_of, words)))
        return cls(terms_of(words), _numbers_of(question, form), numerals, len(words))

    @cached_property
    def by_weight(self) -> list[str]:
        """Its terms, the heaviest first; the first ones are its anchors."""
        return sorted(self.terms, key=lambda term: (-self.terms[term], term))

    @property
    def triggers(self) -> Iterator[tuple[str, list[str]]]:
        """The anchors that are searched for, each with those that can be paired with it."""
        anchors = self.by_weight[: word_windows.N_ANCHORS]
        for rank, term in enumerate(anchors):
            if self.is_trigger >> rank & 1:
                others = [other for other in anchors if other != term]
                yield term, [one if self._can_pair(term, one) else "" for one in others]

    @cached_property
    def is_trigger(self) -> int:
        """A bit for each anchor: one of each pair is a trigger, and few frequent words are."""
        anchors = self.by_weight[: word_windows.N_ANCHORS]
        pairs = [
            1 << one | 1 << other
            for one, other in combinations(range(len(anchors)), 2)
            if self._can_pair(anchors[one], anchors[other])
        ]
        # A weight is the logarithm of how rare a word is.
        frequency = [math.exp(-self.terms[term] / SCALE) for term in anchors]
        return min(
            (bits for bits in range(1 << len(anchors)) if all(bits & pair for pair in pairs)),
            key=lambda bits: sum(one for at, one in enumerate(frequency) if bits >> at & 1),
        )

    def _can_pair(self, one: str, other: str) -> bool:
        return self.terms[one] + self.terms[other] >= _LEAST_PAIR

    @property
    def window(self) -> int:
        """The number of words in which a rewording must fit."""
        return min(max(5 * self.n_words // 4 + 8, 24), word_windows.LONGEST_WINDOW - 1)

    @property
    def word_weight(self) -> int:
        return sum(self.terms.values())

    @property
    def weight(self) -> int:
        """The weight of its words and numerals."""
        numerals = (_number_weight(float(one)) * n for one, n in self.numerals.items())
        return self.word_weight + sum(numerals)


@lru_cache(maxsize=1 << 12)
def _number_weight(value: float) -> int:
    is_small = value <= _LARGEST_SMALL_NUMBER and (value == int(value) or value == 0.5)
    return _SMALL_NUMBER_WEIGHT if is_small else _NUMBER_WEIGHT


def _numbers_of(text: str, form: Form) -> list[float]:
    found = numbers_in(stripped(text) if form.strip_markup else text)
    return [number.value for number in found]


class Evidence(NamedTuple):
    """How a window agrees with an item."""

    words: int  # weight of the words in both
    n_words: int  # how many
    all_words: int  # weight of the item's words
    numbers: int  # weight of the agreeing numbers
    all_numbers: int  # weight of the item's numbers
    n_numbers: int  # of the item
    n_agreeing: int
    is_same_item: bool

    @property
    def score(self) -> float:
        found = self.words + self.numbers
        every = self.all_words + self.all_numbers
        return found / every * (found / (found + _LITTLE))

    @property
    def kind(self) -> str:
        return SAME_ITEM if self.is_same_item else OTHER_NUMBERS

    @property
    def rank(self) -> tuple[bool, float]:
        return self.is_same_item, self.score


def _evidence(
    item_numbers: Sequence[float],
    around: Sequence[float],
    within: Callable[[], Sequence[float]],
    words: tuple[int, int, int],
) -> Evidence:
    """Compare the numbers of an item with those around a window, and within it if need be."""
    weight, n_words, all_words = words
    agreeing = _in_both(item_numbers, around)
    n_absent = len(item_numbers) - len(agreeing)
    is_verbatim = weight >= _NEARLY_ALL_WORDS * all_words
    most_replaced = 0 if is_verbatim else _MOST_REPLACED * len(item_numbers)
    is_same_item = n_absent <= most_replaced or (
        len(agreeing) >= _LEAST_AGREEING * len(item_numbers)
        and len(there := within()) - len(_in_both(item_numbers, there)) <= most_replaced
    )
    return Evidence(
        words=weight,
        n_words=n_words,
        all_words=all_words,
        numbers=sum(map(_number_weight, agreeing)),
        all_numbers=sum(map(_number_weight, item_numbers)),
        n_numbers=len(item_numbers),
        n_agreeing=len(agreeing),
        is_same_item=is_same_item,
    )


def _in_both(numbers: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the numbers that are in both, each as often as in both."""
    left, common = [*others], []
    for number in numbers:
        if number in left:
            left.remove(number)
            common.append(number)
    return common


@register
class Reworded(Detector):
    name = "reworded"
    summary = "content words and numbers of the question, in any order"
    reads = Reads.OWN
    threshold = Threshold(setting="reworded_threshold", floor="reworded_floor")
    scan_settings = ("reworded_floor",)
    versions = (("reworded", 2),)
    acts_on_score = False
    near_kinds = (OTHER_NUMBERS,)
    compares_any_order = True
    advice = (
        "**To find items in other words, `reworded`.** It finds questions that a person or a model "
        "reworded, as long as the numbers and some of the rarer words are kept, and tells copies "
        "with other numbers apart. It also flags items that share their setting with another, and "
        "passages without their question. Its matches are candidates: a score removes nothing."
    )

    def own_index(self, records: Sequence[Rows], policy: Policy) -> Mapping[str, Array]:
        return _index_of(records, policy.form)

    def search(self, indexes: Indexes) -> Search:
        policy = indexes.policy
        return _RewordedSearch(indexes.own[self.name], policy, policy.reworded_floor)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        rows = texts.records.select(["question"]).to_pylist()
        scores = _scores_of_copies([row["question"] for row in rows], policy)
        n_terms, score = np.array([scores[row["question"]] for row in rows]).reshape(-1, 2).T
        unmet = first_unmet(
            {
                "too few content words": n_terms >= _FEWEST_TERMS,
                "only frequent words": score > 0,
                "too little evidence": self.reaches_threshold(score, policy.reworded_threshold),
            }
        )
        for at in np.flatnonzero(n_terms < _FEWEST_TERMS).tolist():
            unmet.details[at] = f"{n_terms[at]:.0f} of {_FEWEST_TERMS} different content words"
        return unmet

    def judge(self, matches: pa.Table, policy: Policy) -> Judged:
        judged = super().judge(matches, policy)
        return judged._replace(is_leak=judged.is_leak & _is_same_item(matches))

    def highest_thresholds(self, matches: pa.Table, policy: Policy) -> Floats:
        highest = super().highest_thresholds(matches, policy)
        return np.where(_is_same_item(matches), highest, np.nan)

    def missing(
        self, entry: Mapping[str, Any], policy: Policy, record: Mapping[str, Any]
    ) -> Iterator[str]:
        if entry["looked_for"] == OTHER_NUMBERS:
            yield "the same template with other numbers, not the same item"
        if not reaches(entry["score"], policy.reworded_threshold):
            yield from super().missing(entry, policy, record)


def _scores_of_copies(questions: Sequence[str], policy: Policy) -> dict[str, tuple[int, float]]:
    """Return for each question its number of terms, and the score of an exact copy; 0: none."""
    distinct = [*dict.fromkeys(questions)]
    index = _index_of([[{"question": question} for question in distinct]], policy.form)
    found = _RewordedSearch(index, policy, _ANY_SCORE).find_in(Batch.of_texts(distinct))
    scores = {one.record: one.score for one in found if one.record == one.document}
    return {
        question: (len(_Item.of(question, policy.form).terms), scores.get(number, 0.0))
        for number, question in enumerate(distinct)
    }


def _is_same_item(matches: pa.Table) -> npt.NDArray[np.bool_]:
    return np.array([kind == SAME_ITEM for kind in matches["looked_for"].to_pylist()], np.bool_)


# Index --------------------------------------------------------------------------------------------


def _index_of(records: Sequence[Rows], form: Form) -> dict[str, Array]:
    """Return the visible questions of all benchmarks as arrays, each distinct one once."""
    uses: dict[str, list[tuple[int, int]]] = {}
    for part, rows in enumerate(records):
        for record, row in enumerate(rows):
            uses.setdefault(row["question"], []).append((part, record))
    known = {question: _Item.of(question, form) for question in uses}
    items = {one: item for one, item in known.items() if len(item.terms) >= _FEWEST_TERMS}
    # Stems begin with a letter and numerals with a digit.
    vocabulary = sorted({term for one in items.values() for term in (*one.terms, *one.numerals)})
    number_of = {term: number for number, term in enumerate(vocabulary, 1)}
    triggers = sorted(
        (number_of[term], at, item.window, *(number_of.get(one, 0) for one in partners))
        for at, item in enumerate(items.values())
        for term, partners in item.triggers
    )
    of_triggers = np.array(triggers, np.uint32).reshape(-1, 1 + word_windows.N_TRIGGER)
    per_term = np.bincount(of_triggers[:, 0], minlength=len(vocabulary) + 1)
    terms = [number_of[term] for item in items.values() for term in item.by_weight]
    weights = [item.terms[term] for item in items.values() for term in item.by_weight]
    numerals = [pair for item in items.values() for pair in sorted(item.numerals.items())]
    used = [use for question in items for use in uses[question]]
    return {
        "vocabulary": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        "trigger_offsets": _edges(per_term).astype(np.uint32),
        "triggers": of_triggers[:, 1:].ravel(),
        "is_trigger": np.array([item.is_trigger for item in items.values()], np.int64),
        "term_offsets": _edges([len(item.terms) for item in items.values()]),
        "terms": word_windows.pack_terms(np.array(terms), np.array(weights)),
        "lengths": np.array([item.window for item in items.values()], np.int64),
        "numeral_offsets": _edges([len(item.numerals) for item in items.values()]),
        "numerals": np.array([number_of[numeral] for numeral, _ in numerals], np.uint32),
        "numeral_counts": np.array([n for _, n in numerals], np.int64),
        "numeral_weights": np.array([_number_weight(float(one)) for one, _ in numerals], np.int64),
        "word_totals": np.array([item.word_weight for item in items.values()], np.int64),
        "totals": np.array([item.weight for item in items.values()], np.int64),
        "number_offsets": _edges([len(item.numbers) for item in items.values()]),
        "numbers": np.array([n for item in items.values() for n in item.numbers], np.float64),
        "use_offsets": _edges([len(uses[question]) for question in items]),
        "use_parts": np.array([part for part, _ in used], np.int64),
        "use_records": np.array([record for _, record in used], np.int64),
    }


def _edges(lengths: Sequence[int] | Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _least_evidence(totals: Integers, floor: float) -> Integers:
    """Return the least weight of evidence whose score reaches the floor, rounded down."""
    needed = floor * totals
    return np.floor((needed + np.sqrt(needed**2 + 4 * needed * _LITTLE)) / 2).astype(np.int64) - 1


# Search -------------------------------------------------------------------------------------------


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
            self._number(word, stem)
            if stem in known or word in NUMBER_WORDS or not "a" <= word[0] <= "z"
            else 0
            for stem, word in zip(stems(words), words, strict=True)
        ]

    def _number(self, word: str, stem: str) -> int:
        return self._number_of.get(stem if is_content(word) else numeral_of(word) or "", 0)

    def encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        numbers = self._numbers(text.decode()[1:].split(" ")) if text else []
        return np.array(numbers, np.int64), np.ones(edges.size - 1, np.int64)


class _RewordedSearch(Search):
    def __init__(self, arrays: Mapping[str, Any], policy: Policy, floor: float) -> None:
        self._arrays, self._policy, self._floor = arrays, policy, floor
        self.terms = _Stems(arrays["vocabulary"].tobytes().decode().split())
        totals, words = arrays["totals"], arrays["word_totals"]
        evidence = _least_evidence(totals, self._floor)
        least = np.maximum(
            evidence - (totals - words), np.ceil(_LEAST_WORDS * words).astype(np.int64)
        )
        edges = arrays["term_offsets"]
        of_terms = edges[:-1], np.diff(edges), arrays["lengths"]
        columns = *of_terms, least, evidence, arrays["is_trigger"]
        known = {name: arrays[name] for name in word_windows.Items._fields if name in arrays}
        known["triggers"] = known["triggers"].reshape(-1, word_windows.N_TRIGGER)
        self._items = word_windows.Items(rows=np.stack(columns, axis=1), **known)
        self._limits = word_windows.Limits(_LEAST_PAIR, self._floor, _LITTLE, _LONGEST_GAP, _MARGIN)
        self._found = np.empty((1 << 12, word_windows.N_COLUMNS), np.int64)

    @cached_property
    def _own_encoder(self) -> Encoder:
        # Imported late: detectors are declared before anything is read.
        from decon_core.text.word_cache import Encoder, FixedVocabulary

        no_tokens, policy = FixedVocabulary(np.empty(0, np.int64)), self._policy
        table_mb = policy.word_table_mb
        return Encoder(Words(), no_tokens, form=policy.form, table_mb=table_mb, terms=self.terms)

    def find(self, texts: BatchTexts) -> list[Finding]:
        """Return for each document and question the best window, if its score reaches the floor."""
        if texts.encoder is None or texts.encoder.terms is not self.terms:
            return self.find_in(texts.batch)
        return self._found_by(texts.encoder, texts.batch)

    def find_in(self, batch: Batch) -> list[Finding]:
        """Do the same with an encoder of its own."""
        self._own_encoder.encode(batch.text, batch.starts, batch.stops)
        return self._found_by(self._own_encoder, batch)

    def _found_by(self, encoder: Encoder, batch: Batch) -> list[Finding]:
        rows = self._windows(encoder.terms_of_latest()).tolist()
        findings: list[Finding] = []
        for number, windows in groupby(rows, key=lambda row: row[word_windows.DOCUMENT]):
            text = batch.text[batch.starts[number] : batch.stops[number]].tobytes().decode()
            places = encoder.places(number, text, of_terms=True)
            document = _Document(text, self._policy.form, places)
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
        best: dict[int, tuple[Evidence, int, int]] = {}
        # Other pairs of anchors often have the same window.
        for _, item, start, stop, weight, n_terms in dict.fromkeys(map(tuple, windows)):
            evidence = self._evidence_of(item, document, (start, stop), (weight, n_terms))
            if item not in best or evidence.rank > best[item][0].rank:
                best[item] = evidence, start, stop
        return sort_findings(
            finding
            for item, (evidence, start, stop) in best.items()
            if reaches(evidence.score, self._floor)
            for finding in self._findings(
                number, item, evidence, document.places.characters(start, stop)
            )
        )

    def _evidence_of(
        self, item: int, document: _Document, window: tuple[int, int], words: tuple[int, int]
    ) -> Evidence:
        edges, arrays = self._arrays["number_offsets"], self._arrays
        numbers = arrays["numbers"][edges[item] : edges[item + 1]].tolist()
        all_words = int(arrays["word_totals"][item])
        margin = window[0] - _MARGIN, window[1] + _MARGIN
        around = document.numbers(*margin) if numbers else []
        within = partial(document.numbers, *window)
        return _evidence(numbers, around, within, (*words, all_words))

    def _findings(
        self, number: int, item: int, evidence: Evidence, characters: tuple[int, int]
    ) -> Iterator[Finding]:
        arrays = self._arrays
        uses = slice(*arrays["use_offsets"][item : item + 2].tolist())
        first_term, last_term = arrays["term_offsets"][item : item + 2].tolist()
        n_looked_for = last_term - first_term + evidence.n_numbers
        users = arrays["use_parts"][uses].tolist(), arrays["use_records"][uses].tolist()
        for part, record in zip(*users, strict=True):
            yield Finding(
                document=number,
                part=part,
                record=record,
                score=evidence.score,
                question_overlap=evidence.words / evidence.all_words,
                n_matched=evidence.n_words + evidence.n_agreeing,
                question_tokens=n_looked_for,
                total_tokens=n_looked_for,
                question_characters=characters,
                looked_for=evidence.kind,
            )


@dataclass(frozen=True, eq=False)
class _Document:
    text: str
    form: Form
    places: Places
    # Items of one benchmark that share a scene have windows at the same place.
    _numbers: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def numbers(self, start: int, stop: int) -> list[float]:
        """Return the numbers in a range of words."""
        n_words = self.places.first_word.size
        words = max(start, 0), min(stop, n_words)
        if words not in self._numbers:
            begin, end = self.places.characters(*words)
            self._numbers[words] = _numbers_of(self.text[begin:end], self.form)
        return self._numbers[words]
