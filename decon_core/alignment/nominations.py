"""Items that are nominated at a place of a document, and those of them that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decon_core.alignment.attribution import Claim
from decon_core.alignment.comparison import Comparison
from decon_core.alignment.kinds import has_passage, kind_of
from decon_core.alignment.passages import Found
from decon_core.kernels.arrays import Array, Integers

if TYPE_CHECKING:
    from decon_core.kernels.question_index import Index

_MOST_AT_A_PLACE = 8  # items of a benchmark that are compared with the same words
_LIKELY = 0.85  # score of a question that is compared even if its passage is not there
_FAR = 2_000  # tokens: a question farther from a passage needs its answer, too
_SUPPORT = 20_000  # what a whole passage adds in favour of an item, or answers about it alone

Span = tuple[int, int]


class Item(NamedTuple):
    """The best of an item's matches at one place: of its right choice, with its answer."""

    number: int
    is_wrong: bool
    is_not_telling: bool  # its answer is short, or not there as a whole
    missing: float  # minus the share of the answer that is near
    row: int  # row of the match
    rival: int = -1  # row of the match of its wrong choice of which most was found; -1: none


class Nomination(NamedTuple):
    """A question, the tokens of a document where it may be, and the matches of its items."""

    document: int
    part: int
    question: int
    passage_number: int  # -1: the item has no passage
    start: int
    stop: int
    items: list[Item]
    score: float
    passage: float | None  # share of it that is near; None: the item has none
    passage_tokens: Span
    is_answered: bool  # an answer of a record is near
    told: float = 0.0  # how much is near of answers about its passage alone; 1: enough

    def order(self) -> tuple[bool, bool, float, int, int, int]:
        """Put the likeliest of a benchmark first. Other benchmarks do not change the order."""
        is_without = self.passage is not None and not self._is_of_item
        is_less_likely = self.score < _LIKELY
        number = self.items[0].number
        return is_less_likely, is_without, -self.score, self.question, self.start, number

    @property
    def _is_of_item(self) -> bool:
        return self.told >= 1 or has_passage(self.passage)

    def with_passage(self, found: Found | None) -> Nomination:
        """Return it with a passage found elsewhere in the document, unless that is too far away."""
        if found is None:
            return self
        distance = max(self.start - found.stop, found.start - self.stop)
        if distance > _FAR and not self.is_answered:
            return self
        return self._replace(passage=found.share, passage_tokens=(found.start, found.stop))

    @property
    def support(self) -> int:
        """What its passage or its answers add in favour of the item."""
        return round(_SUPPORT * max(self.passage or 0.0, float(self.told >= 1)))

    def distance(self) -> tuple[bool, int]:
        """Return how far its passage is; any behind the question is farther than any before it."""
        start, stop = self.passage_tokens
        is_behind = start >= self.start
        return is_behind, start - self.stop if is_behind else self.start - stop

    def is_about_same(self, other: Nomination) -> bool:
        """Whether the passages of both are the same words of the document."""
        (start, stop), (other_start, other_stop) = self.passage_tokens, other.passage_tokens
        return start < other_stop and other_start < stop

    def joined(self, other: Nomination) -> Nomination:
        """Join both, since an edit splits n-grams, and the answer may be near only one of them."""
        best: dict[int, Item] = {}
        for item in sorted((*self.items, *other.items)):
            best.setdefault(item.number, item)
        is_answered = self.is_answered or other.is_answered
        with_most = max(self, other, key=lambda of: of.passage or 0.0)
        return self._replace(
            items=[*best.values()],
            is_answered=is_answered,
            told=max(self.told, other.told),
            passage=with_most.passage,
            passage_tokens=with_most.passage_tokens,
        )


class Compared(NamedTuple):
    nomination: Nomination
    claim: Claim

    def order(self) -> tuple[int, int, int, int]:
        """Order by item, then by place."""
        nomination = self.nomination
        return (
            nomination.question,
            nomination.passage_number,
            self.claim.comparison.start,
            nomination.start,
        )

    def joined(self, other: Compared) -> Compared:
        """Return the one that found most of the item, with the best answers of both."""
        is_less = self.claim.comparison.weight_found < other.claim.comparison.weight_found
        best, second = (other, self) if is_less else (self, other)
        return Compared(best.nomination.joined(second.nomination), best.claim)

    def is_again(self, other: Compared) -> bool:
        """Whether both are the same item at about the same words."""
        if self.order()[:2] != other.order()[:2]:
            return False
        this, that = self.claim.comparison, other.claim.comparison
        shared = min(this.stop, that.stop) - max(this.start, that.start)
        return 2 * shared >= min(this.stop - this.start, that.stop - that.start)


def sizes_of_own_answers(index: Index, part_of: Array, sizes: Integers) -> Integers:
    """Return the tokens of each entry's answer, 0 if an entry about another passage has it, too.

    `part_of`: the benchmark of each entry, in order. `sizes`: the tokens of each answer.
    """
    answers, passages = index.entry_answer, index.entry_passage.astype(np.int64)
    own, passage_of = sizes[answers], np.zeros(sizes.size, np.int64)
    is_shared = np.zeros(sizes.size, np.bool_)
    for part in pairwise([0, *(np.flatnonzero(np.diff(part_of)) + 1).tolist(), part_of.size]):
        of_part, about = answers[slice(*part)], passages[slice(*part)]
        passage_of[of_part] = about
        is_shared[of_part] = False
        is_shared[of_part[passage_of[of_part] != about]] = True
        own[slice(*part)][is_shared[of_part]] = 0
    return own


def kind_at(claim: Claim, nomination: Nomination) -> tuple[str, float] | None:
    return kind_of(
        claim.comparison,
        passage=nomination.passage,
        is_sibling=claim.is_sibling,
        is_answered=nomination.is_answered,
        told=nomination.told,
    )


def of_a_kind(compared: Iterable[tuple[Nomination, Comparison | None]]) -> Iterator[Compared]:
    for nomination, comparison in compared:
        if comparison:
            claim = Claim(comparison, nomination.support)
            if kind_at(claim, nomination):
                yield Compared(nomination, claim)


def most_likely(nominations: Sequence[Nomination]) -> list[Nomination]:
    """Return those with the highest scores: a few of each benchmark at each place."""
    if len(nominations) <= _MOST_AT_A_PLACE:
        return [*nominations]
    depth: dict[int, Integers] = {}
    end = max((nomination.stop for nomination in nominations), default=0)
    kept = []
    for nomination in sorted(nominations, key=Nomination.order):
        of_part = depth.setdefault(nomination.part, np.zeros(end, np.int64))
        at = of_part[nomination.start : nomination.stop]
        if 2 * np.count_nonzero(at >= _MOST_AT_A_PLACE) < at.size:
            at += 1
            kept.append(nomination)
    return kept


def one_of_a_place(compared: Sequence[Compared]) -> list[Compared]:
    """Return one comparison of each item at each place: the one that found most of it."""
    kept: list[Compared] = []
    for place in sorted(compared, key=Compared.order):
        if kept and place.is_again(kept[-1]):
            kept[-1] = kept[-1].joined(place)
        else:
            kept.append(place)
    return sorted(kept, key=lambda of: of.nomination.order()[3:])


def about_nearest(compared: Sequence[Compared]) -> list[Compared]:
    """Of a question about several passages that are there, keep that about the nearest one."""
    rivals: dict[tuple[int, int, int], list[Nomination]] = {}
    for nomination, claim in compared:
        if has_passage(nomination.passage):
            place = nomination.question, claim.comparison.start, claim.comparison.stop
            rivals.setdefault(place, []).append(nomination)
    farther = set()
    for nominations in rivals.values():
        nearest = min(nominations, key=Nomination.distance)
        farther |= {id(of) for of in nominations if not of.is_about_same(nearest)}
    return [place for place in compared if id(place.nomination) not in farther]
