"""The `reworded` detector: an item in other words, found by its content words and numbers.

An item is searched for as its question, as question and choices, and, if the question is long, as
its end and choices. A window of a document is compared with such a text if it holds two of the
text's four rarest content words; words that many items of the benchmark have do not count as rare.
What counts is how much of the text's words and numbers is there, by weight and by number, in any
order. A question whose numbers were replaced by others is the same template, not the same item.
`tests/oracle/reworded.py` has the arithmetic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

_ITEM = ("split", "instance_index", "sub_index")

_LEAST_PAIR = 5 * SCALE  # weight of two anchors together
# A number weighs as much as a rare word; one that many texts hold, as half of them do, less.
_NUMBER_WEIGHT = round(6.2 * SCALE)
_SMALL_NUMBER_WEIGHT = 3 * SCALE
_LARGEST_SMALL_NUMBER = 12
_LEAST_WORDS = 0.3  # of the weight of a question's words
# A word that agrees counts as one, a number as two, however often it occurs. Below the least count
# unrelated texts agree with short questions by chance; the other count halves the score.
_NUMBER_COUNT = word_windows.NUMBER_COUNT
_LEAST_COUNT, _HALF_COUNT = 7, 10
_LONGEST_GAP = 8  # words up to a repeated term that still belongs to a window
_ANY_SCORE = 1e-6
_MARGIN = 6  # words around a window in which its numbers may stand
# Numbers of the same item: at least half agree, and few are replaced by others; none if nearly all
# words agree, for then the numbers are what differs.
_LEAST_AGREEING = 0.5
_MOST_REPLACED = 0.25
_NEARLY_ALL_WORDS = 0.85
# Words in more items than these, and than one in so many, are of a template.
_FEWEST_OF_TEMPLATE, _SHARE_OF_TEMPLATE = 10, 50
_MOST_AT_A_PLACE = 8  # texts of a benchmark that are compared within so many words
_PLACE = 64
_UNEXPLAINED = 0.2  # share of its own words that a sibling must have beside those of a better one
_LONG_QUESTION, _LONG_END = 80, 40  # words; the end is whole sentences
_LONGEST_ANSWER = 40  # words of an answer that counts as a choice
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")


@dataclass(frozen=True, eq=False)
class _Text:
    """What is compared of a text of an item."""

    terms: dict[str, int]  # with their weights
    numbers: list[float]
    numerals: Counter[str]
    n_words: int

    @classmethod
    def of(cls, text: str, form: Form) -> _Text:
        words = canonical(text, form).split()
        numerals = Counter(filter(None, map(numeral_of, words)))
        return cls(terms_of(words), _numbers_of(text, form), numerals, len(words))

    @property
    def most_agreeing(self) -> int:
        """The count of all its words and numbers."""
        n_numbers = max(len({*self.numbers}), len(self.numerals))
        return len(self.terms) + _NUMBER_COUNT * n_numbers

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


@dataclass(frozen=True, eq=False)
class _Sought(_Text):
    """A text of an item beside the other items of its benchmark."""

    own: frozenset[str]  # terms that are not of a template
    uses: tuple[tuple[int, int], ...]  # number of the benchmark, and record

    @cached_property
    def by_weight(self) -> list[str]:
        """Its terms, those of its own before those of a template; the first ones are anchors."""
        return sorted(self.terms, key=lambda term: (term not in self.own, -self.terms[term], term))

    @property
    def anchors(self) -> list[str]:
        return self.by_weight[: min(len(self.own), word_windows.N_ANCHORS)]

    @property
    def triggers(self) -> Iterator[tuple[str, list[str]]]:
        """The anchors that are searched for, each with those that can be paired with it."""
        for rank, term in enumerate(self.anchors):
            if self.is_trigger >> rank & 1:
                others = [other for other in self.anchors if other != term]
                partners = [one if self._can_pair(term, one) else "" for one in others]
                yield term, partners + [""] * (word_windows.N_ANCHORS - 1 - len(partners))

    @cached_property
    def is_trigger(self) -> int:
        """A bit for each anchor: one of each pair is a trigger, and few frequent words are."""
        anchors = self.anchors
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
    n_distinct: int  # of the agreeing ones
    is_same_item: bool

    @property
    def agreement(self) -> int:
        return self.n_words + _NUMBER_COUNT * self.n_distinct

    @property
    def score(self) -> float:
        if self.agreement < _LEAST_COUNT:
            return 0.0
        share = (self.words + self.numbers) / (self.all_words + self.all_numbers)
        return share * (self.agreement / (self.agreement + _HALF_COUNT))

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
        n_distinct=len({*agreeing}),
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
    versions = (("reworded", 3),)
    own_columns = ("question", "answer", *_ITEM, "choice_index")
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
        rows = texts.stored.table(self.own_columns).to_pylist()
        sought = _sought(rows, 0, policy.form)
        search = _RewordedSearch(_arrays_of(sought), policy, _ANY_SCORE)
        answered = [" ".join(filter(None, (row["question"], row["answer"]))) for row in rows]
        records = _scores_of_copies(search, answered)
        whole = [*_with_choices(rows)]
        with_choices = _scores_of_copies(search, whole)
        counts = np.array([_Text.of(text, policy.form).most_agreeing for text in whole], np.int64)
        threshold = policy.reworded_threshold
        reasons = {
            (few := "too few words and numbers"): counts >= _LEAST_COUNT,
            "only words that many items have": with_choices > 0,
            "too little evidence": self.reaches_threshold(with_choices, threshold),
            "only together with its choices": self.reaches_threshold(records, threshold),
        }
        unmet = first_unmet(reasons)
        for at in np.flatnonzero(unmet.places == unmet.reasons.index(few)).tolist():
            unmet.details[at] = f"{counts[at]} of {_LEAST_COUNT}"
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


def _scores_of_copies(search: _RewordedSearch, copies: Sequence[str]) -> Floats:
    """Return for each record the score of a document with this copy of it; 0: not found."""
    distinct = {text: number for number, text in enumerate(dict.fromkeys(copies))}
    found = search.find_in(Batch.of_texts([*distinct]))
    scores = {(one.document, one.record): one.score for one in found}
    return np.array(
        [scores.get((distinct[text], record), 0.0) for record, text in enumerate(copies)]
    )


def _is_same_item(matches: pa.Table) -> npt.NDArray[np.bool_]:
    return np.array([kind == SAME_ITEM for kind in matches["looked_for"].to_pylist()], np.bool_)


# Index --------------------------------------------------------------------------------------------


def _index_of(records: Sequence[Rows], form: Form) -> dict[str, Array]:
    """Return the texts of all benchmarks as arrays, each distinct one of a benchmark once."""
    return _arrays_of(
        [one for part, rows in enumerate(records) for one in _sought(rows, part, form)]
    )


def _sought(rows: Rows, part: int, form: Form) -> list[_Sought]:
    """Return the texts of a benchmark that can be found."""
    uses: dict[str, list[int]] = {}
    n_items_with: Counter[str] = Counter()
    known: dict[str, _Text] = {}
    items = _items_of(rows)
    for item in items:
        texts = _texts_of([rows[at] for at in item])
        for text in texts:
            uses.setdefault(text, []).extend(item)
            known.setdefault(text, _Text.of(text, form))
        n_items_with.update({term for text in texts for term in known[text].terms})
    most = max(_FEWEST_OF_TEMPLATE, len(items) // _SHARE_OF_TEMPLATE)
    sought = []
    for text, one in known.items():
        own = frozenset(term for term in one.terms if n_items_with[term] <= most)
        if one.most_agreeing >= _LEAST_COUNT and len(own) > 1:
            of_text = tuple((part, record) for record in uses[text])
            sought.append(_Sought(**vars(one), own=own, uses=of_text))
    return sought


def _items_of(rows: Rows) -> list[list[int]]:
    """Return the records of each item."""
    items: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        items.setdefault((row["question"], *(row[name] for name in _ITEM)), []).append(at)
    return [*items.values()]


def _with_choices(rows: Rows) -> Iterator[str]:
    """Yield for each record its question with all choices of the item."""
    texts = {
        record: _joined(item[0]["question"], item)
        for records in _items_of(rows)
        if (item := [rows[at] for at in records])
        for record in records
    }
    yield from (texts[record] for record in range(len(rows)))


def _texts_of(item: Rows) -> list[str]:
    """Return the texts that are searched for: a rewording may drop the choices or a passage."""
    question = item[0]["question"]
    texts = [question, _joined(question, item)]
    if texts[1] != question and len(question.split()) > _LONG_QUESTION:
        texts.append(_joined(_end_of(question), item))
    return [*dict.fromkeys(texts)]


def _joined(question: str, item: Rows) -> str:
    """Return a question with its choices, or with its answer if that is short."""
    answers = [
        row["answer"]
        for row in item
        if row["answer"]
        and (row["choice_index"] is not None or len(row["answer"].split()) <= _LONGEST_ANSWER)
    ]
    return "\n".join([question, *dict.fromkeys(answers)])


def _end_of(question: str) -> str:
    """Return the last sentences of a question, as many as are not long, and at least one."""
    sentences = _SENTENCE_END.split(question.strip())
    first = len(sentences) - 1
    while first and sum(len(one.split()) for one in sentences[first - 1 :]) <= _LONG_END:
        first -= 1
    return " ".join(sentences[first:])


def _arrays_of(texts: Sequence[_Sought]) -> dict[str, Array]:
    # Stems begin with a letter and numerals with a digit.
    vocabulary = sorted({term for one in texts for term in (*one.terms, *one.numerals)})
    number_of = {term: number for number, term in enumerate(vocabulary, 1)}
    triggers = sorted(
        (number_of[term], at, one.window, *(number_of.get(other, 0) for other in partners))
        for at, one in enumerate(texts)
        for term, partners in one.triggers
    )
    of_triggers = np.array(triggers, np.uint32).reshape(-1, 1 + word_windows.N_TRIGGER)
    per_term = np.bincount(of_triggers[:, 0], minlength=len(vocabulary) + 1)
    terms = [number_of[term] for one in texts for term in one.by_weight]
    weights = [one.terms[term] for one in texts for term in one.by_weight]
    numerals = [pair for one in texts for pair in sorted(one.numerals.items())]
    used = [use for one in texts for use in one.uses]
    return {
        "vocabulary": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        "trigger_offsets": _edges(per_term).astype(np.uint32),
        "triggers": of_triggers[:, 1:].ravel(),
        "is_trigger": np.array([one.is_trigger for one in texts], np.int64),
        "n_own": np.array([len(one.own) for one in texts], np.int64),
        "term_offsets": _edges([len(one.terms) for one in texts]),
        "terms": word_windows.pack_terms(np.array(terms), np.array(weights)),
        "lengths": np.array([one.window for one in texts], np.int64),
        "numeral_offsets": _edges([len(one.numerals) for one in texts]),
        "numerals": np.array([number_of[numeral] for numeral, _ in numerals], np.uint32),
        "numeral_counts": np.array([n for _, n in numerals], np.int64),
        "numeral_weights": np.array([_number_weight(float(one)) for one, _ in numerals], np.int64),
        "most_agreeing": np.array([one.most_agreeing for one in texts], np.int64),
        "word_totals": np.array([one.word_weight for one in texts], np.int64),
        "totals": np.array([one.weight for one in texts], np.int64),
        "number_offsets": _edges([len(one.numbers) for one in texts]),
        "numbers": np.array([n for one in texts for n in one.numbers], np.float64),
        "use_offsets": _edges([len(one.uses) for one in texts]),
        "use_parts": np.array([part for part, _ in used], np.int64),
        "use_records": np.array([record for _, record in used], np.int64),
    }


def _edges(lengths: Sequence[int] | Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _least_evidence(totals: Integers, counts: Integers, floor: float) -> Integers:
    """Return the least weight of evidence whose score can reach the floor, rounded down.

    With the count of all words and numbers of a text.
    """
    return np.floor(floor * totals * (counts + _HALF_COUNT) / counts).astype(np.int64) - 1


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
        evidence = _least_evidence(totals, arrays["most_agreeing"], floor)
        least = np.maximum(
            evidence - (totals - words), np.ceil(_LEAST_WORDS * words).astype(np.int64)
        )
        edges = arrays["term_offsets"]
        of_terms = edges[:-1], np.diff(edges), arrays["lengths"]
        n_anchors = np.minimum(arrays["n_own"], word_windows.N_ANCHORS)
        columns = *of_terms, least, evidence, arrays["is_trigger"], n_anchors
        known = {name: arrays[name] for name in word_windows.Items._fields if name in arrays}
        known["triggers"] = known["triggers"].reshape(-1, word_windows.N_TRIGGER)
        self._items = word_windows.Items(rows=np.stack(columns, axis=1), **known)
        self._limits = word_windows.Limits(
            _LEAST_PAIR, self._floor, _LEAST_COUNT, _HALF_COUNT, _LONGEST_GAP, _MARGIN
        )
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
        terms = encoder.terms_of_latest()
        rows = self._windows(terms).tolist()
        findings: list[Finding] = []
        for number, windows in groupby(rows, key=lambda row: row[word_windows.DOCUMENT]):
            text = batch.text[batch.starts[number] : batch.stops[number]].tobytes().decode()
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
        for text, *span, weight, n_terms in self._most_likely(windows):
            evidence = self._evidence_of(text, document, (span[0], span[1]), (weight, n_terms))
            if reaches(evidence.score, self._floor) and (
                text not in best or evidence.rank > best[text].evidence.rank
            ):
                own = self._own_terms(text).intersection(document.terms[span[0] : span[1]].tolist())
                best[text] = _Match(self._part_of(text), text, span[0], span[1], evidence, own)
        of_records: dict[tuple[int, int], Finding] = {}
        for match in _attributed(best.values()):
            characters = document.places.characters(match.start, match.stop)
            for finding in self._findings(number, match, characters):
                # Of the texts of an item the best comes first.
                of_records.setdefault((finding.part, finding.record), finding)
        return sort_findings(of_records.values())

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

    def _evidence_of(
        self, text: int, document: _Document, window: tuple[int, int], words: tuple[int, int]
    ) -> Evidence:
        edges, arrays = self._arrays["number_offsets"], self._arrays
        numbers = arrays["numbers"][edges[text] : edges[text + 1]].tolist()
        all_words = int(arrays["word_totals"][text])
        margin = window[0] - _MARGIN, window[1] + _MARGIN
        around = document.numbers(*margin) if numbers else []
        within = partial(document.numbers, *window)
        return _evidence(numbers, around, within, (*words, all_words))

    def _findings(
        self, number: int, match: _Match, characters: tuple[int, int]
    ) -> Iterator[Finding]:
        arrays, text, evidence = self._arrays, match.text, match.evidence
        uses = slice(*arrays["use_offsets"][text : text + 2].tolist())
        first_term, last_term = arrays["term_offsets"][text : text + 2].tolist()
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


class _Match(NamedTuple):
    """A text in a range of words of a document."""

    part: int
    text: int
    start: int
    stop: int
    evidence: Evidence
    own: frozenset[int]  # terms of its own that are there


def _attributed(matches: Iterable[_Match]) -> list[_Match]:
    """Return matches from the best on, without those that a better sibling explains."""
    kept: list[_Match] = []
    kept_at: dict[tuple[int, int], list[_Match]] = {}
    for match in sorted(matches, key=lambda one: (not one[4].is_same_item, -one[4].score, one[1])):
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
    terms: npt.NDArray[np.uint32]
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
