"""Apply `normalized_words` of `canonical.py` to the new words of a batch.

Most non-ASCII words do not change. A table finds those that may, by Unicode's rule for text that is
normalized already (UAX #15, "Detecting Normalization Forms").
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, decomposition, is_normalized, normalize

import numpy as np

from decon_core.kernels.arrays import Bools, Bytes, Integers, Numbers
from decon_core.text.canonical import normalized_words
from decon_core.text.characters import ACCENTS, CONTROLS, IGNORABLE, LOOK_ALIKES, SIGNS

_SPACE = ord(" ")
_N_PLAIN = 0x7F - _SPACE  # printable ASCII
_CODE_POINTS = f"utf-32-{sys.byteorder[0]}e"
_TABLED = 0x30000  # above, characters do not change, only ignorable ones are dropped
_PAGE = 256
_SURROGATES = range(0xD800, 0xE000)
_MEDIAL_AND_FINAL_JAMO = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))


def normalize_batch(
    text: bytes, edges: Integers, *, punctuation: str
) -> tuple[bytes, Integers, Integers]:
    """Normalize words, each with a leading space; return text, edges, new words per word."""
    n_words = np.ones(edges.size - 1, np.int64)
    data = np.frombuffer(text, np.uint8)
    is_odd = np.logical_or.reduceat(data - np.uint8(_SPACE) >= _N_PLAIN, edges[:-1])
    if not is_odd.any():
        return text, edges, n_words
    in_odd = np.repeat(is_odd, np.diff(edges))
    odd = without_accents(data[in_odd].tobytes())
    text, edges = _replaced(data[~in_odd], is_odd, np.diff(edges), odd)
    pieces: list[bytes] = []
    done = 0
    for number in np.flatnonzero(is_odd)[may_change(odd)].tolist():
        start, stop = int(edges[number]), int(edges[number + 1])
        words = normalized_words(text[start + 1 : stop].decode(), punctuation=punctuation)
        n_words[number] = len(words)
        pieces += [text[done:start], *(f" {word}".encode() for word in words)]
        done = stop
    if not pieces:
        return text, edges, n_words
    normalized = b"".join([*pieces, text[done:]])
    starts = np.flatnonzero(np.frombuffer(normalized, np.uint8) == _SPACE)
    return normalized, np.append(starts, len(normalized)), n_words


def _replaced(
    others: Bytes, is_odd: Bools, lengths: Integers, odd: bytes
) -> tuple[bytes, Integers]:
    """Put the odd words between the others; return text and edges."""
    data = np.frombuffer(odd, np.uint8)
    lengths[is_odd] = np.diff(np.append(np.flatnonzero(data == _SPACE), data.size))
    in_odd = np.repeat(is_odd, lengths)
    made = np.empty(in_odd.size, np.uint8)
    made[in_odd], made[~in_odd] = data, others
    return made.tobytes(), np.append(0, np.cumsum(lengths))


def without_accents(text: bytes) -> bytes:
    """Normalize the words of ASCII and accented letters alone: most of those that change.

    They are looked up, many together, in place of being normalized one by one in Python.
    """
    points = _points(text)
    plain = _characters().plain[np.minimum(points, _TABLED)]
    words = np.flatnonzero(points == _SPACE)
    is_whole = np.logical_and.reduceat(plain > 0, words)
    if not is_whole.any():
        return text
    is_taken = np.repeat(is_whole, np.diff(words, append=points.size))
    return np.where(is_taken, plain, points).tobytes().decode(_CODE_POINTS).encode()


def may_change(text: bytes) -> Bools:
    """Return which of these lower-case words (space before each) `normalized_words` may change."""
    table = _characters()
    points = np.minimum(_points(text), table.is_changed.size - 1)
    order, is_changed = table.order[points], table.is_changed[points]
    is_mark = order > 0
    is_latin = (points >= ord("a")) & (points <= ord("z"))
    may_join = table.is_second[points[1:]] & (table.is_first[points[:-1]] | is_mark[:-1])
    is_changed[1:] |= may_join | (is_mark[1:] & (order[:-1] > order[1:]))
    is_changed[1:] |= table.is_accent[points[1:]] & (is_latin[:-1] | is_mark[:-1])
    words = np.flatnonzero(points == _SPACE)
    is_mixed = np.logical_or.reduceat(is_latin, words)
    is_mixed &= np.logical_or.reduceat(table.looks_latin[points], words)
    return np.logical_or.reduceat(is_changed, words) | is_mixed


def _points(text: bytes) -> Numbers:
    return np.frombuffer(text.decode().encode(_CODE_POINTS), np.uint32)


class _Characters(NamedTuple):
    """Properties of each code point. The last row is for all code points above."""

    is_changed: Bools  # changes on its own
    is_first: Bools  # may compose with the next character
    is_second: Bools  # may compose with the previous character
    order: Bytes  # canonical combining class
    looks_latin: Bools
    is_accent: Bools
    plain: Numbers  # itself or the letter under its accents; 0 if neither is ASCII


@lru_cache(maxsize=1)
def _characters() -> _Characters:
    size = max(_TABLED, *IGNORABLE, *SIGNS, *LOOK_ALIKES) + 2
    is_changed, is_first, is_second, looks_latin, is_accent = np.zeros((5, size), np.bool_)
    order = np.zeros(size, np.uint8)
    everything = _all_characters()
    order[:_TABLED] = np.fromiter(map(combining, everything), np.uint8, _TABLED)
    chars = [
        char
        for start in range(0, _TABLED, _PAGE)
        if _may_change_alone(page := everything[start : start + _PAGE])
        for char in page
    ]
    # All in one call, separated by line feeds so that they do not compose.
    joined = "\n".join(chars)
    pairs = zip(_pieces(normalize("NFKC", joined).lower()), chars, strict=True)
    is_changed[[ord(char) for normalized, char in pairs if normalized != char]] = True
    is_changed[ord("\n")] = False
    is_changed[[*CONTROLS, *IGNORABLE, *SIGNS, *_MEDIAL_AND_FINAL_JAMO]] = True
    for char, parts in zip(chars, map(decomposition, chars), strict=True):
        if parts and not parts.startswith("<"):
            first, *second = [int(part, 16) for part in parts.split()]
            is_first[[ord(char), first]] = True
            is_second[second] = True
    is_accent[[*ACCENTS]] = True
    looks_latin[[*LOOK_ALIKES]] = True
    plain = np.zeros(size, np.uint32)
    plain[_SPACE : _SPACE + _N_PLAIN] = np.arange(_SPACE, _SPACE + _N_PLAIN)
    for char, parts in zip(chars, _pieces(normalize("NFD", joined)), strict=True):
        if len(parts) > 1:
            letter, *marks = map(ord, parts)
            if "a" <= parts[0] <= "z":
                if not is_changed[ord(char)] and ACCENTS.keys() >= {*marks}:
                    plain[ord(char)] = letter
                is_changed[ord(char)] = True
            looks_latin[ord(char)] |= letter in LOOK_ALIKES
    return _Characters(is_changed, is_first, is_second, order, looks_latin, is_accent, plain)


def _pieces(joined: str) -> list[str]:
    """Return what became of each character; the text has a character in each line."""
    pieces = joined.split("\n")
    del pieces[ord("\n")]  # the line feed itself became two empty pieces
    return pieces


def _all_characters() -> str:
    """Return the characters of the table in order, with U+FFFD in place of surrogates."""
    points = np.arange(_TABLED, dtype="<u4")
    points[_SURROGATES.start : _SURROGATES.stop] = 0xFFFD
    return points.tobytes().decode("utf-32-le")


def _may_change_alone(text: str) -> bool:
    """Return whether any of these characters may change or has a decomposition.

    Every part of a normalized text is normalized. Most pages have ideographs or no characters.
    """
    is_stable = is_normalized("NFKC", text) and is_normalized("NFD", text)
    return not is_stable or text != text.lower()
