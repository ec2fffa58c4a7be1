"""A piece of a document beside the record that was found there, and what both of them share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from decon_core.text.canonical import words_with_places
from decon_core.text.characters import Form

PARTS = ("question", "answer", "passage")

# Shared words are those in a run of so many: single ones stand in any two texts.
_RUN = 3

# Of one part no more than this is shown: a passage may have the length of a book.
MOST_OF_PART = 4_000
_LEFT_OUT = " […] "

_WORD_BEGINS = re.compile(r"\s\S")
_LONGEST_WORD = 40


@dataclass(frozen=True)
class Mark:
    """Characters that both sides share."""

    start: int
    stop: int
    part: str

    def moved(self, by: int) -> Mark:
        return Mark(self.start + by, self.stop + by, self.part)


@dataclass(frozen=True)
class Shown:
    """A piece of a document, and what of it stands in the record as well."""

    text: str
    start: int  # character of the document at which it begins
    text_marks: list[Mark]
    record_marks: dict[str, list[Mark]]  # by part of the record


Spans = Mapping[str, tuple[int, int]]  # characters of the document, by part


def shown(
    text: str, spans: Spans, record: Mapping[str, str | None], *, context: int, form: Form
) -> Shown:
    """What to show of a document beside a record."""
    in_document: list[Mark] = []
    in_record: dict[str, list[Mark]] = {part: [] for part in PARTS}
    for part, (start, stop) in spans.items():
        there = text[start:stop][:MOST_OF_PART]
        here = record[part] or ""
        marks, own = shared(there, here, part, form=form)
        in_document += [mark.moved(start) for mark in marks]
        in_record[part] = own
    pieces = _pieces(text, spans, context)
    return Shown(*_cut(text, pieces, in_document), in_record)


def shared(first: str, second: str, part: str, *, form: Form) -> tuple[list[Mark], list[Mark]]:
    """What two texts share, in the characters of each: words in runs that stand in both."""
    a = words_with_places(first, form)
    b = words_with_places(second, form)
    size = min(_RUN, len(a), len(b))
    if not size:
        return [], []
    runs = [_runs([word for word, _, _ in words], size) for words in (a, b)]
    common = runs[0].keys() & runs[1].keys()
    return _marks(a, runs[0], common, size, part), _marks(b, runs[1], common, size, part)


def _runs(words: Sequence[str], size: int) -> dict[tuple[str, ...], list[int]]:
    """Where each run of so many words begins."""
    found: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(words) - size + 1):
        found.setdefault(tuple(words[at : at + size]), []).append(at)
    return found


def _marks(
    words: Sequence[tuple[str, int, int]],
    runs: Mapping[tuple[str, ...], list[int]],
    common: set[tuple[str, ...]],
    size: int,
    part: str,
) -> list[Mark]:
    is_shared = [False] * len(words)
    for run in common:
        for at in runs[run]:
            is_shared[at : at + size] = [True] * size
    edges = [0, *(n for n in range(1, len(words)) if is_shared[n] != is_shared[n - 1]), len(words)]
    return [
        Mark(words[first][1], words[last - 1][2], part)
        for first, last in pairwise(edges)
        if is_shared[first]
    ]


def _pieces(text: str, spans: Spans, context: int) -> list[tuple[int, int]]:
    """What is shown: each part with so many characters around it; what touches is one piece."""
    pieces: list[tuple[int, int]] = []
    for start, stop in sorted(spans.values()):
        first = _at_word(text, max(0, start - context))
        last = min(len(text), min(stop, start + MOST_OF_PART) + context)
        if pieces and first <= pieces[-1][1]:
            pieces[-1] = pieces[-1][0], max(last, pieces[-1][1])
        else:
            pieces.append((first, last))
    return pieces


def _at_word(text: str, at: int) -> int:
    """The next place at which a word begins, if there is one near."""
    if not at:
        return at
    found = _WORD_BEGINS.search(text, at - 1, at + _LONGEST_WORD)
    return found.start() + 1 if found else at


def _cut(
    text: str, pieces: Sequence[tuple[int, int]], marks: Sequence[Mark]
) -> tuple[str, int, list[Mark]]:
    joined, moved = "", []
    for start, stop in pieces:
        if joined:
            joined += _LEFT_OUT
        by = len(joined) - start
        moved += [
            Mark(max(mark.start, start), min(mark.stop, stop), mark.part).moved(by)
            for mark in marks
            if mark.start < stop and mark.stop > start
        ]
        joined += text[start:stop]
    in_order = sorted(moved, key=lambda mark: (mark.start, mark.stop, mark.part))
    return joined, pieces[0][0] if pieces else 0, in_order
