"""Cut a document into paragraphs of a least and a greatest number of tokens.

A paragraph ends at a blank line. Short ones are joined with the next; long ones are divided at the
end of a line or sentence, else at a space, else after the greatest number of tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

# Ends of a part of a text, the best first.
_ENDS = tuple(
    map(re.compile, (r"\n[ \t\r]*\n\s*", r"\n\s*|(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])", r"\s+"))
)


class Paragraph(NamedTuple):
    """A range of characters of a document."""

    start: int
    stop: int
    n_tokens: int


def paragraphs(text: str, token_starts: Sequence[int], *, least: int, most: int) -> list[Paragraph]:
    """Return the paragraphs of a text.

    `token_starts`: the character at which each token begins, ascending. The last part of a document
    is joined with the paragraph before if it is too short; without room there, it is left out.
    """

    def n_tokens(start: int, stop: int) -> int:
        return bisect_left(token_starts, stop) - bisect_left(token_starts, start)

    parts: list[Paragraph] = []
    for start, stop in _cuts(text, token_starts, n_tokens, least, most):
        n = n_tokens(start, stop)
        if n >= least:
            parts.append(Paragraph(start, stop, n))
        elif parts and parts[-1].stop == start and parts[-1].n_tokens + n <= most:
            parts[-1] = Paragraph(parts[-1].start, stop, parts[-1].n_tokens + n)
    return [_stripped(text, part) for part in parts]


def _cuts(
    text: str,
    token_starts: Sequence[int],
    n_tokens: Callable[[int, int], int],
    least: int,
    most: int,
) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of at most `most` tokens; all but the last have at least `least`."""
    ends = [[found.end() for found in pattern.finditer(text)] for pattern in _ENDS]
    start = 0
    while start < len(text):
        first_token = bisect_left(token_starts, start)
        shortest = _start_of(token_starts, first_token + least, text)
        longest = _start_of(token_starts, first_token + most, text)
        blank = ends[0][at] if (at := bisect_left(ends[0], shortest)) < len(ends[0]) else len(text)
        stop = min(blank, len(text))
        if n_tokens(start, stop) > most:
            stop = _last_end(ends[1:], shortest, longest) or max(longest, start + 1)
        yield start, stop
        start = stop


def _start_of(token_starts: Sequence[int], token: int, text: str) -> int:
    return token_starts[token] if token < len(token_starts) else len(text)


def _last_end(ends: Sequence[Sequence[int]], shortest: int, longest: int) -> int | None:
    """Return the last end in a range, of the best kind that has one there."""
    for kind in ends:
        at = bisect_left(kind, longest + 1) - 1
        if at >= 0 and kind[at] >= shortest:
            return kind[at]
    return None


def _stripped(text: str, part: Paragraph) -> Paragraph:
    content = text[part.start : part.stop]
    start = part.start + len(content) - len(content.lstrip())
    return Paragraph(start, start + len(content.strip()), part.n_tokens)
