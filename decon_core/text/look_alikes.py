"""Apply `normalized_words` of `canonical.py` to the new words of a batch.

In most words, each character is normalized the same, whatever its neighbours: those are looked up,
many words together. Of the others, a table finds those that may change, by Unicode's rule for text
that is normalized already (UAX #15, "Detecting Normalization Forms").
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, decomposition, is_normalized, normalize

import numpy as np

from decon_core.kernels.arrays import Bools, Bytes, Integers, Numbers
from decon_core.text.canonical import WHITE_SPACE, normalized_words
from decon_core.text.characters import (
    ACCENTS,
    CONTROLS,
    IGNORABLE,
    LOOK_ALIKES,
    PLAIN_LETTERS,
    SIGNS,
    UNSPACED,
)

_SPACE = ord(" ")
_N_PLAIN = 0x7F - _SPACE  # printable ASCII
_CODE_POINTS = f"utf-32-{sys.byteorder[0]}e"
_TABLED = 0x30000  # above, characters do not change, only ignorable ones are dropped
_PAGE = 256
_SURROGATES = range(0xD800, 0xE000)
_IGNORED = frozenset(map(chr, IGNORABLE))
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
    lengths = np.diff(edges)
    is_in_odd = np.repeat(is_odd, lengths)
    odd = by_character(data[is_in_odd].tobytes(), punctuation=punctuation)
    n_words[is_odd], lengths[is_odd] = odd.n_words, odd.lengths
    edges = np.append(0, np.cumsum(lengths))
    data = _merged(data[~is_in_odd], np.frombuffer(odd.text, np.uint8), np.repeat(is_odd, lengths))
    text = data.tobytes()
    pieces: list[bytes] = []
    done = 0
    for number in np.flatnonzero(is_odd)[odd.may_change].tolist():
        start, stop = int(edges[number]), int(edges[number + 1])
        words = normalized_words(text[start + 1 : stop].decode(), punctuation=punctuation)
        n_words[number] = len(words)
        pieces += [text[done:start], *(f" {word}".encode() for word in words)]
        done = stop
    normalized = b"".join([*pieces, text[done:]])
    starts = np.flatnonzero(np.frombuffer(normalized, np.uint8) == _SPACE)
    return normalized, np.append(starts, len(normalized)), n_words


def _merged(others: Bytes, odd: Bytes, is_in_odd: Bools) -> Bytes:
    data = np.empty(is_in_odd.size, np.uint8)
    data[is_in_odd], data[~is_in_odd] = odd, others
    return data


class _Normalized(NamedTuple):
    """Words that were normalized by character, and those that may still change otherwise."""

    text: bytes
    n_words: Integers  # number of words that each word became
    lengths: Integers  # bytes of each word, or of all that it became
    may_change: Bools


def by_character(text: bytes, *, punctuation: str) -> _Normalized:
    """Normalize the words in which each character is normalized whatever its neighbours.

    Separators split them; a word of separators alone is dropped. All others stay as they are.
    """
    points = _points(text)
    alone = _alone(punctuation)[np.minimum(points, _TABLED)]
    words = np.flatnonzero(points == _SPACE)
    n_points = np.diff(words, append=points.size)
    is_done = np.logical_and.reduceat(alone > 0, words) & ~_is_mixed(alone, words)
    is_in_done = np.repeat(is_done, n_points)
    may_still_change = ~is_done
    if not is_done.all():
        may_still_change[~is_done] = may_change(points[~is_in_done])
    points = np.where(is_in_done, alone, points)
    is_separator = points == _SPACE
    # Only the last of several separators in a row begins a word.
    is_kept = ~(is_separator & np.append(is_separator[1:], True))
    n_bytes = 1 + sum((points >= first).astype(np.int64) for first in (0x80, 0x800, 0x10000))
    return _Normalized(
        points[is_kept].tobytes().decode(_CODE_POINTS).encode(),
        np.add.reduceat(is_separator & is_kept, words, dtype=np.int64),
        np.add.reduceat(n_bytes * is_kept, words),
        may_still_change,
    )


def _is_mixed(points: Numbers, words: Integers) -> Bools:
    """Return which words have a letter from a to z and one that looks like such a letter."""
    is_latin = (points >= ord("a")) & (points <= ord("z"))
    looks_latin = _characters().looks_latin[points]
    of_words = (np.logical_or.reduceat(flags, words) for flags in (is_latin, looks_latin))
    return np.logical_and(*of_words)


def may_change(points: Numbers) -> Bools:
    """Return which of these lower-case words (space before each) `normalized_words` may change."""
    table = _characters()
    points = np.minimum(points, table.is_changed.size - 1)
    order, is_changed = table.order[points], table.is_changed[points]
    is_mark = order > 0
    may_join = table.is_second[points[1:]] & (table.is_first[points[:-1]] | is_mark[:-1])
    is_changed[1:] |= may_join | (is_mark[1:] & (order[:-1] > order[1:]))
    words = np.flatnonzero(points == _SPACE)
    return np.logical_or.reduceat(is_changed, words) | _is_mixed(points, words)


def _points(text: bytes) -> Numbers:
    return np.frombuffer(text.decode().encode(_CODE_POINTS), np.uint32)


class _Characters(NamedTuple):
    """Properties of each code point. The last row is for all code points above."""

    is_changed: Bools  # changes on its own
    is_first: Bools  # may compose with the next character
    is_second: Bools  # may compose with the previous character
    order: Bytes  # canonical combining class
    looks_latin: Bools
    # What NFKC and the folding of signs make of it, whatever its neighbours: itself or another
    # character; 0 if that depends on them, or it becomes several characters or none.
    alone: Numbers
    bare: Numbers  # its plain letter, or itself; 0 if that depends on its neighbours
    several: dict[str, str]  # those that become several


@lru_cache(maxsize=1)
def _characters() -> _Characters:
    size = max(_TABLED, *IGNORABLE, *SIGNS, *LOOK_ALIKES) + 2
    is_changed, is_first, is_second, looks_latin = np.zeros((4, size), np.bool_)
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
    pairs = zip(chars, _pieces(normalize("NFKC", joined).lower()), strict=True)
    changed = {char: made for char, made in pairs if made != char}
    is_changed[[*map(ord, changed)]] = True
    is_changed[ord("\n")] = False
    changed_always = [*CONTROLS, *IGNORABLE, *SIGNS, *PLAIN_LETTERS]
    is_changed[[*changed_always, *_MEDIAL_AND_FINAL_JAMO]] = True
    composed: dict[int, int] = {}  # code points with the first of their parts
    second: set[str] = set()
    for char, parts in zip(chars, map(decomposition, chars), strict=True):
        if parts and not parts.startswith("<"):
            first, *others = parts.split()
            composed[ord(char)] = int(first, 16)
            second.update(others)
    is_first[[*composed, *composed.values()]] = True
    is_second[[int(part, 16) for part in second]] = True
    looks_latin[[*LOOK_ALIKES]] = True
    alone, several = _normalized_alone(changed)
    bare = np.arange(alone.size, dtype=np.uint32)
    for char, parts in zip(chars, _pieces(normalize("NFD", joined)), strict=True):
        if len(parts) < 2:
            continue
        if "a" <= parts[0] <= "z":
            marks = {*map(ord, parts[1:])}
            is_only_accented = not is_changed[ord(char)] and ACCENTS.keys() >= marks
            bare[ord(char)] = ord(parts[0]) if is_only_accented else 0
            is_changed[ord(char)] = True
        if ord(parts[0]) in LOOK_ALIKES:
            looks_latin[ord(char)] = True
    letters = {point: letter for point, letter in PLAIN_LETTERS.items() if letter}
    bare[[*letters]] = [*map(ord, letters.values())]
    # Marks, and what composes with the character before.
    joins = ((order > 0) | is_second)[: alone.size]
    joins[[*_MEDIAL_AND_FINAL_JAMO, *(PLAIN_LETTERS.keys() - letters.keys())]] = True
    joins[[*composed]] |= joins[[*composed.values()]]
    alone[joins | joins[alone]] = 0
    is_unspaced = np.zeros(alone.size, np.bool_)
    for start, stop in UNSPACED:
        is_unspaced[start : stop + 1] = True
    # What becomes a character that is a word of its own splits its word.
    alone[is_unspaced[alone] & ~is_unspaced] = 0
    return _Characters(is_changed, is_first, is_second, order, looks_latin, alone, bare, several)


def _normalized_alone(changed: Mapping[str, str]) -> tuple[Numbers, dict[str, str]]:
    """Return what characters become by themselves, if that is one, and those that become several.

    `changed` has the lower case of NFKC, for characters that this changes.
    """
    alone = np.arange(_TABLED + 1, dtype=np.uint32)
    alone[-1] = alone[_SURROGATES.start : _SURROGATES.stop] = 0
    several = {}
    stable = normalize("NFKC", "\n".join(changed.values())).split("\n")
    for (char, made), again in zip(changed.items(), stable, strict=True):
        # The lower case of a capital sigma depends on what follows.
        is_alone = made == again and "σ" not in made and _IGNORED.isdisjoint(made)
        is_one = is_alone and len(made) == 1
        alone[ord(char)] = ord(SIGNS.get(ord(made), made)) if is_one else 0
        if is_alone and not is_one:
            several[char] = made
    for point, sign in SIGNS.items():
        alone[point] = ord(sign)
        several.pop(chr(point), None)
    never = np.array([*CONTROLS, *IGNORABLE])
    alone[np.minimum(never, _TABLED)] = 0
    return alone, several


@lru_cache(maxsize=8)
def _alone(punctuation: str) -> Numbers:
    """Return what each character becomes whatever its neighbours, or 0; separators are spaces."""
    table = _characters()
    separators = frozenset(WHITE_SPACE + punctuation)
    splits = np.isin(table.alone, [*map(ord, separators)])
    splits[[ord(char) for char, made in table.several.items() if separators.issuperset(made)]] = (
        True
    )
    return np.where(splits, np.uint32(_SPACE), table.bare[table.alone])


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
