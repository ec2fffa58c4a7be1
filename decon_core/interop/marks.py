"""The marks of the reference implementation in a text: ⟨passage⟩ 【question】 ⟦answer⟧.

A document may hold such brackets itself. The program writes each kind once at most, so of a kind
that is there more often, or opens and does not close, nobody can tell which are marks: those stay
in the text as they are, and mark nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decon_core.interop.decon_jsonl import MARKS


@dataclass(frozen=True)
class Mark:
    """A part of a text, in characters."""

    start: int
    stop: int
    part: str


@dataclass(frozen=True)
class Marked:
    """A text without its marks, what they said, and the kinds that could not be read."""

    text: str
    marks: tuple[Mark, ...]
    unclear: tuple[str, ...]


def parse_marks(text: str) -> Marked:
    """Take the marks out. The program's dots in front and behind are left: text goes on there."""
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
