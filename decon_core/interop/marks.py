"""Parse the marks of the reference implementation in a text: ⟨passage⟩ 【question】 ⟦answer⟧.

A document may contain such brackets itself. The program writes each kind at most once, so a kind
that is repeated or not closed is ambiguous: its brackets stay in the text and mark nothing.
"""

from __future__ import annotations

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
        start, stop = text.find(opening), text.find(closing)
        if (n_open, n_close) == (1, 1) and start < stop:
            edges |= {start: (part, True), stop: (part, False)}
        elif n_open or n_close:
            unclear.append(part)
    marks, starts, plain, last = [], {}, "", 0
    for at, (part, is_opening) in sorted(edges.items()):
        plain += text[last:at]
        last = at + 1
        if is_opening:
            starts[part] = len(plain)
        else:
            marks.append(Mark(starts[part], len(plain), part))
    marks.sort(key=lambda mark: mark.start)
    return Marked(plain + text[last:], tuple(marks), tuple(unclear))
