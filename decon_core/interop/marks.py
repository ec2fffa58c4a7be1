"""Parse the marks of the reference implementation in a text: ⟨passage⟩ 【question】 ⟦answer⟧.

A document may contain such brackets itself. The program writes each kind at most once, so a kind
that is repeated or not closed is ambiguous: its brackets stay in the text and mark nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decon_core.interop.decon_jsonl import MARKS


@dataclass(frozen=True)
class Mark:
    """A marked part of a text, as a range of characters."""

    start: int
    stop: int
    part: str


@dataclass(frozen=True)
class Marked:
    """A text without its marks, the marks, and the kinds of marks that are ambiguous."""

    text: str
    marks: tuple[Mark, ...]
    unclear: tuple[str, ...]


def parse_marks(text: str) -> Marked:
    """Remove and return the marks; the program's dots at both ends of the text are kept."""
    edges: dict[int, tuple[str, bool]] = {}
    unclear = []
    for part, (opening, closing) in MARKS.items():
        n_open, n_close = text.count(opening), text.count(closing)
        if not n_open and not n_close:
            continue
        start, stop = text.find(opening), text.find(closing)
        if (n_open, n_close) == (1, 1) and start < stop:
            edges |= {start: (part, True), stop: (part, False)}
        else:
            unclear.append(part)
    return _without(text, edges, tuple(unclear))


def _without(text: str, edges: dict[int, tuple[str, bool]], unclear: Sequence[str]) -> Marked:
    pieces, marks, starts = [], [], {}
    last = length = 0
    for at, (part, is_opening) in sorted(edges.items()):
        pieces.append(text[last:at])
        length += at - last
        last = at + 1
        if is_opening:
            starts[part] = length
        else:
            marks.append(Mark(starts[part], length, part))
    plain = "".join([*pieces, text[last:]])
    return Marked(plain, tuple(sorted(marks, key=lambda mark: mark.start)), tuple(unclear))
