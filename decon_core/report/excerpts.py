"""Excerpts of a document around a match, with the words it shares with the record marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from decon_core.config import detector_registry as registry
from decon_core.text.canonical import words_with_places
from decon_core.text.characters import Form

if TYPE_CHECKING:
    from decon_core.text.shared_words import Agreement

PARTS = ("question", "answer", "passage")

# Words count as shared in runs of this length: any two texts share single words.
_RUN = 3

# Characters shown of one part: a passage may have the length of a book.
MOST_OF_PART = 4_000
_LEFT_OUT = " […] "

_WORD_BEGINS = re.compile(r"\s\S")
_LONGEST_WORD = 40


class Mark(NamedTuple):
    """A span of characters that both texts share."""

    start: int
    stop: int
    part: str


@dataclass(frozen=True)
class Excerpt:
    """An excerpt of a document, and the marks of what it shares with the record."""

    text: str
    start: int  # character of the document at which the excerpt begins
    text_marks: list[Mark]
    record_marks: dict[str, list[Mark]]  # marks of each part of the record
    agreement: str | None  # a description, where runs of equal words do not show it


# Finds what two texts share.
Agree = Callable[[str, str, Form], "Agreement"]

_Words = Sequence[tuple[str, int, int]]  # words with the characters where each begins and ends
Spans = Mapping[str, tuple[int, int]]  # characters of the document, by part


def agree_of(name: str) -> Agree | None:
    """Return how a detector shows what two texts share, if words of any order agree."""
    found = registry.find(name)
    if not (found and found.compares_any_order):
        return None
    from decon_core.text.shared_words import agreement_of

    return agreement_of


def spans_of(match: Mapping[str, Any]) -> Spans:
    """Return the spans of the parts that a match found, from its columns."""
    return {
        part: (match[f"{part}_char_start"], match[f"{part}_char_stop"])
        for part in PARTS
        if match[f"{part}_char_start"] is not None
    }


def make_excerpt(
    text: str,
    spans: Spans,
    record: Mapping[str, str | None],
    *,
    context: int,
    form: Form,
    agree: Agree | None = None,
) -> Excerpt:
    """Return the excerpt around `spans` with `context` characters before and after each.

    `agree` finds what the question shares; without it, runs of equal words are marked.
    """
    in_document: list[Mark] = []
    in_record: dict[str, list[Mark]] = {part: [] for part in PARTS}
    summary = None
    for part, (start, stop) in spans.items():
        matched, whole = text[start:stop][:MOST_OF_PART], record[part] or ""
        if agree and part == "question":
            agreement = agree(matched, whole, form)
            marks = [Mark(*span, part) for span in agreement.in_document]
            in_record[part] = [Mark(*span, part) for span in agreement.in_item]
            summary = agreement.summary
        else:
            marks, in_record[part] = mark_shared(matched, whole, part, form=form)
        in_document += [Mark(mark.start + start, mark.stop + start, part) for mark in marks]
    joined, first, moved = _cut(text, _pieces(text, spans, context), in_document)
    return Excerpt(joined, first, moved, in_record, summary)


def mark_shared(first: str, second: str, part: str, *, form: Form) -> tuple[list[Mark], list[Mark]]:
    """Return marks, in each of two texts, of the runs of words that both contain."""
    a = words_with_places(first, form)
    b = words_with_places(second, form)
    size = min(_RUN, len(a), len(b))
    if not size:
        return [], []
    runs_a, runs_b = _runs(a, size), _runs(b, size)
    return _marks(a, runs_a, {*runs_b}, part), _marks(b, runs_b, {*runs_a}, part)


def _runs(words: _Words, size: int) -> list[tuple[str, ...]]:
    """Return the run of `size` words at each position."""
    plain = [word for word, _, _ in words]
    return [tuple(plain[at : at + size]) for at in range(len(plain) - size + 1)]


def _marks(
    words: _Words, runs: Sequence[tuple[str, ...]], others: set[tuple[str, ...]], part: str
) -> list[Mark]:
    is_shared = [False] * len(words)
    for at, run in enumerate(runs):
        if run in others:
            is_shared[at : at + len(run)] = [True] * len(run)
    edges = [0, *(n for n in range(1, len(words)) if is_shared[n] != is_shared[n - 1]), len(words)]
    return [
        Mark(words[first][1], words[last - 1][2], part)
        for first, last in pairwise(edges)
        if is_shared[first]
    ]


def _pieces(text: str, spans: Spans, context: int) -> list[tuple[int, int]]:
    """Return the ranges to show: each span with its context; touching ranges are merged."""
    pieces: list[tuple[int, int]] = []
    for start, stop in sorted(spans.values()):
        first = max(0, start - context)
        # Begin at the next word, if one begins nearby.
        if first and (word := _WORD_BEGINS.search(text, first - 1, first + _LONGEST_WORD)):
            first = word.start() + 1
        last = min(len(text), min(stop, start + MOST_OF_PART) + context)
        if pieces and first <= pieces[-1][1]:
            pieces[-1] = pieces[-1][0], max(last, pieces[-1][1])
        else:
            pieces.append((first, last))
    return pieces


def _cut(
    text: str, pieces: Sequence[tuple[int, int]], marks: Sequence[Mark]
) -> tuple[str, int, list[Mark]]:
    """Join the pieces; return the text, the start of the first piece, and the moved marks."""
    joined, moved = "", []
    for start, stop in pieces:
        if joined:
            joined += _LEFT_OUT
        by = len(joined) - start
        moved += [
            Mark(max(mark.start, start) + by, min(mark.stop, stop) + by, mark.part)
            for mark in marks
            if mark.start < stop and mark.stop > start
        ]
        joined += text[start:stop]
    return joined, pieces[0][0] if pieces else 0, sorted(moved)
