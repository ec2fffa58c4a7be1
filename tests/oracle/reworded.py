"""The oracle of `reworded`, slow and simple: one document, one text of an item, words in lists.

What a word and a number are is defined by `decon_core.text`; which windows are looked at, and their
scores, are defined here. No code is shared with the stages: where the two differ, this one is
right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from decon_core.text.canonical import canonical
from decon_core.text.characters import Form
from decon_core.text.content_words import is_content, stems, weight_of
from decon_core.text.markup import stripped
from decon_core.text.numbers import numbers_in, numeral_of

N_ANCHORS = 6
LEAST_PAIR = 5_000
LEAST_WORDS = 0.3
NUMBER_WEIGHT, SMALL_NUMBER_WEIGHT = 6_200, 3_000
NUMBER_COUNT = 2
LEAST_COUNT, HALF_COUNT = 7, 10
UNEXPLAINED = 0.2
NEAR = 8
MARGIN = 6


@dataclass(frozen=True)
class Window:
    """The best window of a document for a text, in words."""

    start: int
    stop: int
    score: float
    is_same_item: bool
    own: frozenset[str]  # stems there that few items of the benchmark have


def stem_or_numeral(word: str) -> str | None:
    return stems([word])[0] if is_content(word) else numeral_of(word)


def number_weight(value: float) -> int:
    return SMALL_NUMBER_WEIGHT if value <= 12 and value in (0.5, *range(13)) else NUMBER_WEIGHT


def score_of(found: int, every: int, count: int) -> float:
    return found / every * (count / (count + HALF_COUNT)) if count >= LEAST_COUNT else 0.0


def template_of(items: Sequence[Sequence[str]], form: Form) -> set[str]:
    """Return the stems of many items of a benchmark; an item is the texts that stand for it."""
    stems_of = [
        {stem for text in item for stem in Question(text, form, set()).weights} for item in items
    ]
    n_items = Counter(stem for each in stems_of for stem in each)
    return {stem for stem, n in n_items.items() if n > max(10, 0.02 * len(items))}


def numbers_of(text: str, form: Form) -> list[float]:
    return [number.value for number in numbers_in(stripped(text) if form.strip_markup else text)]


class Question:
    """What is searched for."""

    def __init__(self, text: str, form: Form, template: set[str]) -> None:
        words = canonical(text, form).split()
        forms: dict[str, set[str]] = {}
        for word in filter(is_content, words):
            forms.setdefault(stems([word])[0], set()).add(word)
        self.weights = {stem: weight_of(forms[stem]) for stem in forms}
        self.numerals = Counter(numeral for word in words if (numeral := numeral_of(word)))
        self.numbers = numbers_of(text, form)
        self.length = max(5 * len(words) // 4 + 8, 24)
        self.own = self.weights.keys() - template
        self.anchors = sorted(self.own, key=lambda term: (-self.weights[term], term))[:N_ANCHORS]

    @property
    def all_words(self) -> int:
        return sum(self.weights.values())

    def weight(self, terms: Sequence[str | None]) -> int:
        return sum(self.weights[term] for term in {*terms} & {*self.weights})


def best_window(
    document: str,
    places: Sequence[tuple[int, int]],
    question: str,
    form: Form,
    floor: float,
    template: set[str],
) -> Window | None:
    """Return the best window of a document; None if none reaches the floor.

    `places`: the characters of each word of the document's canonical text.
    """
    sought = Question(question, form, template)
    terms = [stem_or_numeral(word) for word in canonical(document, form).split()]
    best = None
    for first, second in _pairs(terms, sought):
        start, stop = _with_near_terms(*_window(terms, first, second, sought), terms, sought)
        words = {*_within(terms, first, second, sought)} & sought.weights.keys()
        if not _needs_review(terms, start, stop, words, sought, floor):
            continue
        within = _numbers_between(document, places, start, stop, form)
        around = _numbers_between(document, places, start - MARGIN, stop + MARGIN, form)
        own = frozenset(sought.own.intersection(terms[start:stop]))
        found = _scored(start, stop, words, within, around, sought, own)
        if best is None or (found.is_same_item, found.score) > (best.is_same_item, best.score):
            best = found
    return best if best and best.score >= floor - 1e-9 else None


def _pairs(terms: Sequence[str | None], sought: Question) -> list[tuple[int, int]]:
    """Return the positions of different anchors that follow each other, close and rare enough."""
    hits = [at for at, term in enumerate(terms) if term in sought.anchors]
    return [
        (first, second)
        for first, second in pairwise(hits)
        if terms[first] != terms[second]
        and second - first < sought.length
        and sought.weights[str(terms[first])] + sought.weights[str(terms[second])] >= LEAST_PAIR
    ]


def _window(
    terms: Sequence[str | None], first: int, second: int, sought: Question
) -> tuple[int, int]:
    """Return the window around two positions whose terms weigh most.

    Of several the one that ends first, and of those the one that begins last.
    """
    candidates = [
        (sought.weight(terms[start : stop + 1]), -stop, start)
        for stop in range(second, min(first + sought.length, len(terms)))
        for start in range(max(stop - sought.length + 1, 0), first + 1)
        if terms[start] in sought.weights and terms[stop] in sought.weights
    ]
    _, stop, start = max(candidates)
    return start, -stop + 1


def _within(
    terms: Sequence[str | None], first: int, second: int, sought: Question
) -> Sequence[str | None]:
    start, stop = _window(terms, first, second, sought)
    return terms[start:stop]


def _with_near_terms(
    start: int, stop: int, terms: Sequence[str | None], sought: Question
) -> tuple[int, int]:
    """Extend a window to terms of the question that are at most `NEAR` words away, and so on."""
    while near := [at for at in range(max(start - NEAR, 0), start) if terms[at] in sought.weights]:
        start = near[0]
    while near := [
        at for at in range(stop, min(stop + NEAR, len(terms))) if terms[at] in sought.weights
    ]:
        stop = near[-1] + 1
    return start, stop


def _needs_review(
    terms: Sequence[str | None],
    start: int,
    stop: int,
    words: set[str],
    sought: Question,
    floor: float,
) -> bool:
    """Return whether enough words, and words and numerals together, are there."""
    weight = sought.weight([*words])
    if weight < LEAST_WORDS * sought.all_words:
        return False
    there = Counter(terms[max(start - MARGIN, 0) : stop + MARGIN])
    agreeing = sought.numerals & Counter({str(term): n for term, n in there.items()})
    found = weight + sum(number_weight(float(one)) * n for one, n in agreeing.items())
    every = sought.all_words + sum(
        number_weight(float(one)) * n for one, n in sought.numerals.items()
    )
    return score_of(found, every, len(words) + NUMBER_COUNT * len(agreeing)) >= floor


def _numbers_between(
    document: str, places: Sequence[tuple[int, int]], start: int, stop: int, form: Form
) -> list[float]:
    covered = places[max(start, 0) : stop]
    return numbers_of(document[covered[0][0] : covered[-1][1]], form)


def _scored(
    start: int,
    stop: int,
    words: set[str],
    within: Sequence[float],
    around: Sequence[float],
    sought: Question,
    own: frozenset[str],
) -> Window:
    needed = Counter(sought.numbers)
    agreeing = needed & Counter(around)
    weight = sought.weight([*words])
    found = weight + sum(map(number_weight, agreeing.elements()))
    every = sought.all_words + sum(map(number_weight, sought.numbers))
    n_needed, n_agreeing = needed.total(), agreeing.total()
    n_other = len(within) - (needed & Counter(within)).total()
    n_replaced = min(n_needed - n_agreeing, n_other)
    most_replaced = 0 if weight >= 0.85 * sought.all_words else 0.25 * n_needed
    is_same = n_agreeing >= 0.5 * n_needed and n_replaced <= most_replaced
    score = score_of(found, every, len(words) + NUMBER_COUNT * len(agreeing))
    return Window(start, stop, score, is_same, own)


def attributed(windows: dict[str, Window]) -> dict[str, Window]:
    """Leave out texts of whose own words a better one at the same place has nearly all."""
    kept: dict[str, Window] = {}
    ranked = sorted(windows.items(), key=lambda one: (not one[1].is_same_item, -one[1].score))
    for text, one in ranked:
        if not any(
            one.score < better.score
            and len(one.own - better.own) <= UNEXPLAINED * len(one.own)
            and 2 * (min(one.stop, better.stop) - max(one.start, better.start))
            >= min(one.stop - one.start, better.stop - better.start)
            for better in kept.values()
        ):
            kept[text] = one
    return kept
