"""New words of a batch in one spelling, where a text has several that look alike.

`normalized_words` in `canonical.py` says what becomes of a word. Most words beyond ASCII it leaves
as they are, and of those Python need not look at each: a table of characters tells them apart, by
Unicode's rule for what is normalized already (UAX #15, "Detecting Normalization Forms").
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, decomposition, normalize

import numpy as np
import numpy.typing as npt

from decon_core.text.canonical import normalized_words
from decon_core.text.characters import IGNORABLE, LOOK_ALIKES, SIGNS

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_SPACE = ord(" ")
_TABLED = 0x30000  # above, nothing changes but what is left out
_SURROGATES = range(0xD800, 0xE000)
_MEDIAL_AND_FINAL_JAMO = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))


def normalize_batch(
    text: bytes, edges: Integers, *, punctuation: str
) -> tuple[bytes, Integers, Integers]:
    """Words behind spaces, normalized; where each begins; how many words each one has become."""
    n_words = np.ones(edges.size - 1, np.int64)
    pieces: list[bytes] = []
    done = 0
    for number in np.flatnonzero(may_change(text)).tolist():
        start, stop = int(edges[number]), int(edges[number + 1])
        words = normalized_words(text[start + 1 : stop].decode(), punctuation=punctuation)
        n_words[number] = len(words)
        pieces += [text[done:start], *(f" {word}".encode() for word in words)]
        done = stop
    if not pieces:
        return text, edges, n_words
    made = b"".join([*pieces, text[done:]])
    starts = np.flatnonzero(np.frombuffer(made, np.uint8) == _SPACE)
    return made, np.append(starts, len(made)), n_words


def may_change(text: bytes) -> Flags:
    """Of lower-case words, a space before each: which ones `normalized_words` may change."""
    points = np.frombuffer(text.decode().encode(f"utf-32-{sys.byteorder[0]}e"), np.uint32)
    table = _characters()
    points = np.minimum(points, table.is_changed.size - 1)
    order, is_changed = table.order[points], table.is_changed[points]
    is_mark = order > 0
    may_join = table.is_second[points[1:]] & (table.is_first[points[:-1]] | is_mark[:-1])
    is_changed[1:] |= may_join | (is_mark[1:] & (order[:-1] > order[1:]))
    words = np.flatnonzero(points == _SPACE)
    is_latin = (points >= ord("a")) & (points <= ord("z"))
    is_mixed = np.logical_or.reduceat(is_latin, words)
    is_mixed &= np.logical_or.reduceat(table.looks_latin[points], words)
    return np.logical_or.reduceat(is_changed, words) | is_mixed


class _Characters(NamedTuple):
    """What is known of each code point. The last one stands for all above."""

    is_changed: Flags  # by itself
    is_first: Flags  # may be one with the mark behind it
    is_second: Flags  # may be one with what is before it
    order: npt.NDArray[np.uint8]  # in which marks stand behind a letter
    looks_latin: Flags


@lru_cache(maxsize=1)
def _characters() -> _Characters:
    size = max(_TABLED, *IGNORABLE, *SIGNS, *LOOK_ALIKES) + 2
    is_changed, is_first, is_second, looks_latin = np.zeros((4, size), np.bool_)
    order = np.zeros(size, np.uint8)
    chars = ["\ufffd" if point in _SURROGATES else chr(point) for point in range(_TABLED)]
    order[:_TABLED] = [*map(combining, chars)]
    # All at once, and a line feed between any two, which keeps them apart.
    alone = normalize("NFKC", "\n".join(chars)).lower().split("\n")
    del alone[ord("\n")]  # it has become two empty pieces
    is_changed[:_TABLED] = [one != char for one, char in zip(alone, chars, strict=True)]
    is_changed[[ord("\n"), *_SURROGATES]] = False
    is_changed[[*IGNORABLE, *SIGNS, *_MEDIAL_AND_FINAL_JAMO]] = True
    for char, parts in zip(chars, map(decomposition, chars), strict=True):
        if parts and not parts.startswith("<"):
            first, *second = [int(part, 16) for part in parts.split()]
            is_first[[ord(char), first]] = True
            is_second[second] = True
    looks_latin[[*LOOK_ALIKES]] = True
    return _Characters(is_changed, is_first, is_second, order, looks_latin)
