"""The texts of an item that are searched for, and the index of them.

An item is searched for as its question, as question and choices, and, if the question is long, as
its end and choices.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.detectors.reworded.evidence import LEAST_COUNT, NUMBER_COUNT, number_weight
from decon_core.kernels import word_windows
from decon_core.text.canonical import canonical
from decon_core.text.characters import Form
from decon_core.text.content_words import SCALE, terms_of
from decon_core.text.markup import stripped
from decon_core.text.numbers import numbers_in, numeral_of
from decon_core.text.word_cache import edges_of

if TYPE_CHECKING:
    from decon_core.storage.tables import Array

Rows = list[dict[str, Any]]  # rows of a table of records

ITEM = ("split", "instance_index", "sub_index")

LEAST_PAIR = 5 * SCALE  # weight of two anchors together
# Words in more items than these, and than one in so many, are of a template.
_FEWEST_OF_TEMPLATE, _SHARE_OF_TEMPLATE = 10, 50
_LONG_QUESTION, _LONG_END = 80, 40  # words; the end is whole sentences
_LONGEST_ANSWER = 40  # words of an answer that counts as a choice
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")


@dataclass(frozen=True, eq=False)
class Text:
    """What is compared of a text of an item."""

    terms: dict[str, int]  # terms with their weights
    numbers: list[float]
    numerals: Counter[str]
    n_words: int

    @classmethod
    def of(cls, text: str, form: Form) -> Text:
        words = canonical(text, form).split()
        numerals = Counter(filter(None, map(numeral_of, words)))
        return cls(terms_of(words), numbers_of(text, form), numerals, len(words))

    @property
    def most_agreeing(self) -> int:
        """The count of all its words and numbers."""
        n_numbers = max(len({*self.numbers}), len(self.numerals))
        return len(self.terms) + NUMBER_COUNT * n_numbers

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
        numerals = (number_weight(float(numeral)) * n for numeral, n in self.numerals.items())
        return self.word_weight + sum(numerals)


@dataclass(frozen=True, eq=False)
class Sought(Text):
    """A text of an item beside the other items of its benchmark."""

    own: frozenset[str]  # terms that are not of a template
    uses: tuple[tuple[int, int], ...]  # number of the benchmark, and record

    @cached_property
    def by_weight(self) -> list[str]:
        """Its terms, distinguishing ones before those of a template; the first are anchors."""
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
                partners = [partner if self._can_pair(term, partner) else "" for partner in others]
                yield term, partners + [""] * (word_windows.N_ANCHORS - 1 - len(partners))

    @cached_property
    def is_trigger(self) -> int:
        """A bit for each anchor: one of each pair is a trigger, and few frequent words are."""
        anchors = self.anchors
        pairs = [
            1 << first | 1 << second
            for first, second in combinations(range(len(anchors)), 2)
            if self._can_pair(anchors[first], anchors[second])
        ]
        # A weight is the logarithm of how rare a word is.
        frequency = [math.exp(-self.terms[term] / SCALE) for term in anchors]
        return min(
            (bits for bits in range(1 << len(anchors)) if all(bits & pair for pair in pairs)),
            key=lambda bits: sum(count for at, count in enumerate(frequency) if bits >> at & 1),
        )

    def _can_pair(self, first: str, second: str) -> bool:
        return self.terms[first] + self.terms[second] >= LEAST_PAIR


def numbers_of(text: str, form: Form) -> list[float]:
    found = numbers_in(stripped(text) if form.strip_markup else text)
    return [number.value for number in found]


def index_of(records: Iterable[Rows], form: Form) -> dict[str, Array]:
    """Return the texts of all benchmarks as arrays, each distinct one of a benchmark once."""
    return arrays_of(
        [text for part, rows in enumerate(records) for text in texts_sought(rows, part, form)]
    )


def texts_sought(rows: Rows, part: int, form: Form) -> list[Sought]:
    """Return the texts of a benchmark that can be found."""
    uses: dict[str, list[int]] = {}
    n_items_with: Counter[str] = Counter()
    known: dict[str, Text] = {}
    items = _items_of(rows)
    for item in items:
        texts = _texts_of([rows[at] for at in item])
        for text in texts:
            uses.setdefault(text, []).extend(item)
            known.setdefault(text, Text.of(text, form))
        n_items_with.update({term for text in texts for term in known[text].terms})
    most = max(_FEWEST_OF_TEMPLATE, len(items) // _SHARE_OF_TEMPLATE)
    sought = []
    for text, known_text in known.items():
        own = frozenset(term for term in known_text.terms if n_items_with[term] <= most)
        if known_text.most_agreeing >= LEAST_COUNT and len(own) > 1:
            of_text = tuple((part, record) for record in uses[text])
            sought.append(Sought(**vars(known_text), own=own, uses=of_text))
    return sought


def _items_of(rows: Rows) -> list[list[int]]:
    """Return the records of each item."""
    items: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        items.setdefault((row["question"], *(row[name] for name in ITEM)), []).append(at)
    return [*items.values()]


def questions_with_choices(rows: Rows) -> list[str]:
    """Return for each record its question with all choices of the item."""
    texts = [""] * len(rows)
    for records in _items_of(rows):
        text = _joined(rows[records[0]]["question"], [rows[record] for record in records])
        for record in records:
            texts[record] = text
    return texts


def _texts_of(item: Rows) -> list[str]:
    """Return the texts that are searched for: a rewording may drop the choices or a passage."""
    question = item[0]["question"]
    texts = [question, _joined(question, item)]
    if texts[1] != question and len(question.split()) > _LONG_QUESTION:
        # The last sentences, as many as are not long, and at least one.
        sentences = _SENTENCE_END.split(question.strip())
        lengths = [len(sentence.split()) for sentence in sentences]
        first = len(sentences) - 1
        while first and sum(lengths[first - 1 :]) <= _LONG_END:
            first -= 1
        texts.append(_joined(" ".join(sentences[first:]), item))
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


def arrays_of(texts: Sequence[Sought]) -> dict[str, Array]:
    # Stems begin with a letter and numerals with a digit.
    vocabulary = sorted({term for text in texts for term in (*text.terms, *text.numerals)})
    number_of = {term: number for number, term in enumerate(vocabulary, 1)}
    triggers = sorted(
        (number_of[term], at, text.window, *(number_of.get(other, 0) for other in partners))
        for at, text in enumerate(texts)
        for term, partners in text.triggers
    )
    of_triggers = np.array(triggers, np.uint32).reshape(-1, 1 + word_windows.N_TRIGGER)
    per_term = np.bincount(of_triggers[:, 0], minlength=len(vocabulary) + 1)
    terms = [number_of[term] for text in texts for term in text.by_weight]
    weights = [text.terms[term] for text in texts for term in text.by_weight]
    numerals = [pair for text in texts for pair in sorted(text.numerals.items())]
    used = [use for text in texts for use in text.uses]
    return {
        "vocabulary": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        "trigger_offsets": edges_of(per_term).astype(np.uint32),
        "triggers": of_triggers[:, 1:].ravel(),
        "is_trigger": np.array([text.is_trigger for text in texts], np.int64),
        "n_own": np.array([len(text.own) for text in texts], np.int64),
        "term_offsets": edges_of([len(text.terms) for text in texts]),
        "terms": word_windows.pack_terms(np.array(terms), np.array(weights)),
        "lengths": np.array([text.window for text in texts], np.int64),
        "numeral_offsets": edges_of([len(text.numerals) for text in texts]),
        "numerals": np.array([number_of[numeral] for numeral, _ in numerals], np.uint32),
        "numeral_counts": np.array([n for _, n in numerals], np.int64),
        "numeral_weights": np.array(
            [number_weight(float(numeral)) for numeral, _ in numerals], np.int64
        ),
        "most_agreeing": np.array([text.most_agreeing for text in texts], np.int64),
        "word_totals": np.array([text.word_weight for text in texts], np.int64),
        "totals": np.array([text.weight for text in texts], np.int64),
        "number_offsets": edges_of([len(text.numbers) for text in texts]),
        "numbers": np.array([n for text in texts for n in text.numbers], np.float64),
        "use_offsets": edges_of([len(text.uses) for text in texts]),
        "use_parts": np.array([part for part, _ in used], np.int64),
        "use_records": np.array([record for _, record in used], np.int64),
    }
