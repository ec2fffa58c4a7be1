"""The form in which `ratcliff`, `longest_match` and `exact` compare text, and offsets back."""

from __future__ import annotations

import re
from bisect import bisect_right

from decon_core.text.canonical import WHITE_SPACE, canonical, canonical_with_offsets
from decon_core.text.characters import Form

# The same white space as in canonical text: otherwise the two forms would differ in their words.
_WORD = re.compile(f"[^{re.escape(WHITE_SPACE)}]+")


def formed(text: str, normalize: str, form: Form) -> str:
    """Return the text unchanged, with normalized white space, or canonical with a leading space."""
    if normalize == "none":
        return text
    if normalize == "whitespace":
        return " ".join(_WORD.findall(text))
    words = canonical(text, form)
    return f" {words}" if words else ""


def original_places(
    text: str, places: list[tuple[int, int]], normalize: str, form: Form
) -> list[tuple[int, int]]:
    """Map character ranges of the form to character ranges of the text."""
    if normalize == "none":
        return places
    if normalize == "whitespace":
        words = [word.span() for word in _WORD.finditer(text)]
        starts, at = [], 0
        for start, stop in words:
            starts.append(at)
            at += stop - start + 1
        return [_in_words(words, starts, start, stop) for start, stop in places]
    words_of = canonical_with_offsets(text, form)
    return [
        words_of.original(max(start - 1, 0), max(stop - 1, 1)) if words_of.text else (0, 0)
        for start, stop in places
    ]


def _in_words(
    words: list[tuple[int, int]], starts: list[int], start: int, stop: int
) -> tuple[int, int]:
    """Map a range of joined words to the text; a space maps to all white space between words."""
    first = bisect_right(starts, start) - 1
    begin = min(words[first][0] + start - starts[first], words[first][1])
    last = bisect_right(starts, stop - 1) - 1
    end = words[last][0] + stop - starts[last]
    return begin, end if end <= words[last][1] else words[last + 1][0]
