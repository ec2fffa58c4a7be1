"""The units in which an item and a document are compared: words, and numbers by their value.

Words are those of canonical text. Scripts without spaces have single characters instead. "3,000",
"3000" and "three thousand" are one unit, `3000`. A unit is compared by a hash of 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from decon_core.kernels import word_alignment
from decon_core.kernels.arrays import Bools, Bytes, Flags, Floats, Integers, Words64
from decon_core.text.canonical import (
    WHITE_SPACE,
    normalized_words,
    signs_between_words,
    with_parted_words,
)
from decon_core.text.characters import HIDDEN, UNSPACED, VOICING_MARKS, Form
from decon_core.text.markup import Stripped, stripped_texts
from decon_core.text.numbers import numbers_of_texts
from decon_core.text.segments import OPENS_SENTENCE, begins_sentence

_LINE_MARK = re.compile(r"\n[^\S\n]*(?:[>#*;|%]+|//+|--)(?=[^\S\n])")
_HIDDEN = re.compile(f"[{HIDDEN}]")
_HIDDEN_IN_NUMBER = re.compile(rf"\d+(?:{_HIDDEN.pattern}+\d+)+")
_MOST_CHARACTERS = 1 << 20  # characters of texts that are read together

Spelled = dict[int, str | float]  # some units: words, and values of numbers


@dataclass(frozen=True, eq=False)
class Units:
    """The units of several texts in order, with the characters where each begins and ends."""

    keys: Words64
    is_number: Flags
    is_name: Flags  # a capital within a sentence
    starts: Integers  # characters of the unit's text
    stops: Integers
    lengths: Integers  # units of each text

    def __len__(self) -> int:
        return self.keys.size

    @property
    def edges(self) -> Integers:
        """The first unit of each text, and the end of the last."""
        return np.append(0, np.cumsum(self.lengths))


def units_of(texts: Sequence[str], form: Form) -> Units:
    stripped, plain = without_markup(texts, form)
    units, _ = _read(plain, form)
    for left, (first, last) in zip(stripped, pairwise(units.edges.tolist()), strict=True):
        if left is not None and last > first:
            units.starts[first:last] = left.starts[units.starts[first:last]]
            units.stops[first:last] = left.stops[units.stops[first:last] - 1]
    return units


def spelled_units(
    texts: Sequence[str], form: Form
) -> tuple[Units, Callable[[Integers], list[str]]]:
    """Return the units of texts, and a function that returns how some of them are spelled.

    The units have places in the texts without mark-up.
    """
    _, plain = without_markup(texts, form)
    units, other = _read(plain, form)

    def spelled(numbers: Integers) -> list[str]:
        text_of = np.searchsorted(units.edges, numbers, side="right") - 1
        places = text_of, units.starts[numbers], units.stops[numbers]
        return [
            _spelling(other[at]) if at in other else plain[text][start:stop].lower()
            for at, text, start, stop in zip(
                *map(np.ndarray.tolist, (numbers, *places)), strict=True
            )
        ]

    return units, spelled


def _spelling(unit: str | float) -> str:
    return unit if isinstance(unit, str) else f"{unit:.9g}"


def without_markup(
    texts: Sequence[str], form: Form
) -> tuple[Sequence[Stripped | None], Sequence[str]]:
    """Return what was stripped, None of texts without mark-up, and all texts without mark-up."""
    if not form.strip_markup:
        return [None] * len(texts), texts
    stripped = stripped_texts(texts)
    plain = [left.text if left else text for left, text in zip(stripped, texts, strict=True)]
    return stripped, plain


def _without_line_marks(text: str) -> str:
    """Return a text with spaces for the signs of quoted, commented and listed lines.

    A number may go on behind them.
    """
    return _LINE_MARK.sub(lambda mark: "\n" + " " * (len(mark[0]) - 1), text)


def _with_whole_numbers(text: str) -> str:
    """Return a text in which the invisible characters of each number are behind its digits."""
    if text.isascii() or not _HIDDEN.search(text):
        return text
    return _HIDDEN_IN_NUMBER.sub(
        lambda number: _HIDDEN.sub("", number[0]) + "".join(_HIDDEN.findall(number[0])), text
    )


def _read(texts: Sequence[str], form: Form) -> tuple[Units, Spelled]:
    """Return the units of texts without mark-up, and those that are not spelled as in the text."""
    texts = [with_parted_words(_without_line_marks(text), form) for text in texts]
    texts = [_with_whole_numbers(text) for text in texts] if form.normalize_unicode else texts
    pieces: list[Units] = []
    spelled: Spelled = {}
    n_units = first = 0
    sizes = np.cumsum([0, *map(len, texts)])
    while first < len(texts) or not pieces:
        # Take as many texts as fit, and at least one.
        stop = int(np.searchsorted(sizes, sizes[first] + _MOST_CHARACTERS, side="right")) - 1
        stop = max(stop, first + 1)
        units, other = _read_together(texts[first:stop], form)
        pieces.append(units)
        spelled |= {n_units + at: word for at, word in other.items()}
        n_units, first = n_units + len(units), stop
    arrays = [vars(piece).values() for piece in pieces]
    columns = zip(*arrays, strict=True)
    return Units(*map(np.concatenate, columns)), spelled


def _read_together(texts: Sequence[str], form: Form) -> tuple[Units, Spelled]:
    """Do this for texts that are read as one, in lines of their own."""
    lines = "\n".join(texts)
    characters = np.frombuffer(lines.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts, stops = np.empty((2, characters.size), np.int64)
    keys, kinds = np.empty(starts.size, np.uint64), np.empty(starts.size, np.uint8)
    classes = _classes(signs_between_words(form))
    n = word_alignment.cut_words(characters, classes, starts, stops, keys, kinds)
    starts, stops, keys, kinds = starts[:n], stops[:n], keys[:n], kinds[:n]
    is_name = kinds & np.uint8(word_alignment.IS_NAME)
    other: dict[int, str] = {}
    for at in np.flatnonzero(kinds & word_alignment.IS_OTHER).tolist():
        first = int(starts[at])
        word = _spelled(lines[first : int(stops[at])].lower(), form)
        other[at], keys[at] = word, _key_of(word)
        is_name[at] = lines[first].isupper() and len(word) > 1 and not begins_sentence(lines, first)
    line_edges = np.cumsum([0, *(len(text) + 1 for text in texts)])
    lengths = np.diff(np.searchsorted(starts, line_edges))
    units = Units(keys, np.zeros(n, np.uint8), is_name, starts, stops, lengths)
    is_kept = np.ones(n, np.bool_)
    is_kept[[at for at, word in other.items() if not word]] = False
    found = numbers_of_texts(characters, line_edges, texts)
    numbers = _read_numbers(units, found, is_kept)
    line_of = np.repeat(np.arange(len(texts)), lengths)
    starts -= line_edges[line_of]
    stops -= line_edges[line_of]
    if is_kept.all():
        return units, other | numbers
    place = (np.cumsum(is_kept) - 1).tolist()
    left = Units(
        keys[is_kept],
        units.is_number[is_kept],
        is_name[is_kept],
        starts[is_kept],
        stops[is_kept],
        np.bincount(line_of[is_kept], minlength=len(texts)),
    )
    spelled = {place[at]: word for at, word in (other | numbers).items() if is_kept[at]}
    return left, spelled


def _read_numbers(
    units: Units, numbers: tuple[Floats, Integers, Integers], is_kept: Bools
) -> dict[int, float]:
    """Make one unit of the words of each number, at the first of them; return their values."""
    values, starts, stops = numbers
    kept = np.flatnonzero(is_kept)
    first, end = (np.searchsorted(units.starts[kept], edges) for edges in (starts, stops))
    has_words = first < end
    first, end, values = first[has_words], end[has_words], values[has_words]
    is_more = np.zeros(kept.size + 1, np.int64)
    is_more[first + 1] += 1
    is_more[end] -= 1
    is_kept[kept[np.cumsum(is_more[:-1]) > 0]] = False
    at = kept[first]
    units.keys[at] = [*map(_key_of_number, values.tolist())]
    units.is_number[at], units.is_name[at] = 1, 0
    units.stops[at] = np.maximum(units.stops[at], stops[has_words])
    units.starts[at] = starts[has_words]
    return dict(zip(at.tolist(), values.tolist(), strict=True))


@lru_cache(maxsize=1 << 16)
def _key_of_number(value: float) -> np.uint64:
    return _key_of(_spelling(value))


@lru_cache(maxsize=1 << 16)
def _spelled(word: str, form: Form) -> str:
    """Return a word in lower case as it is in canonical text, where it may be several."""
    if not form.normalize_unicode:
        return word
    return " ".join(normalized_words(word, punctuation=form.punctuation))


@lru_cache(maxsize=1 << 16)
def _key_of(word: str) -> np.uint64:
    return word_alignment.key_of(
        np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32)
    )


@lru_cache(maxsize=8)
def _classes(punctuation: str) -> Bytes:
    """Return what each character is; those that are too high for the table are letters."""
    classes = np.zeros(max(UNSPACED[-1][1], *map(ord, punctuation + OPENS_SENTENCE)) + 1, np.uint8)
    for first, last in UNSPACED:
        classes[first : last + 1] |= word_alignment.ALONE
    spaces = filter(str.isspace, map(chr, range(classes.size)))
    for characters, kind in (
        (WHITE_SPACE + punctuation, word_alignment.SEPARATOR),
        (spaces, word_alignment.SPACE),
        ("\n", word_alignment.NEW_LINE),
        (OPENS_SENTENCE, word_alignment.OPENS_SENTENCE),
        (VOICING_MARKS, word_alignment.VOICING_MARK),
    ):
        classes[[*map(ord, characters)]] |= kind
    return classes
