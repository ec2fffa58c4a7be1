"""Texts with plain letters: no invisible characters, accents, styled or look-alike letters.

Words become those of canonical text (`normalized_words`), but case, signs, superscripts and white
space stay, because short answers are compared with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import category, normalize

from decon_core.text.canonical import is_plain, parted
from decon_core.text.characters import (
    ACCENTS,
    CONTROLS,
    HIDDEN,
    IGNORABLE,
    LOOK_ALIKES,
    MARKS,
    PLAIN_LETTERS,
    SIGNS,
)

_INVISIBLE = {point: None for point, of in (CONTROLS | IGNORABLE).items() if of is None}
_HIDDEN = HIDDEN + "".join(chr(point) for point in CONTROLS if point in _INVISIBLE)
_JOINED = "".join(map(chr, (*ACCENTS, 0x3099, 0x309A, 0xFF9E, 0xFF9F))) + MARKS + _HIDDEN
_WORD = re.compile(rf"[\w{_JOINED}]+")
# What becomes letters together: a letter with its marks, a syllable of Korean.
_LETTER = re.compile(rf"[{_HIDDEN}]+|(?:[\u1100-\u115e][{_HIDDEN}]*)?.[{_JOINED}\u1161-\u11ff]*")
_LATIN = re.compile("[a-z]")
_ACCENTED = re.compile(f"([A-Za-z])[{''.join(map(chr, ACCENTS))}]+")


def _in_both_cases(letters: Mapping[int, str | None]) -> dict[int, str | None]:
    upper = {
        ord(upper): plain.upper()
        for point, plain in letters.items()
        if plain and len(upper := chr(point).upper()) == 1
    }
    return upper | {**letters}


_LOOK_ALIKES = _in_both_cases(LOOK_ALIKES)
_PLAIN_LETTERS = _in_both_cases(
    PLAIN_LETTERS | {point: sign for point, sign in SIGNS.items() if sign.isalpha()}
)
_KEPT = re.compile("[\u3131-\u318e]")  # Korean letters alone, which NFKC makes others


class PlainText(NamedTuple):
    """A text with plain letters, and for each character its original range."""

    text: str
    starts: Sequence[int]
    stops: Sequence[int]

    def original(self, start: int, stop: int) -> tuple[int, int]:
        return self.starts[start], self.stops[stop - 1]


def with_plain_letters(text: str) -> PlainText:
    if is_plain(text):
        return PlainText(text, range(len(text)), range(1, len(text) + 1))
    letters: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    done = 0
    for word in _WORD.finditer(text):
        made = _letters_of(word[0])
        if made is None:
            continue
        letters.append(text[done : word.start()])
        starts += range(done, word.start())
        stops += range(done + 1, word.start() + 1)
        for letter, start, stop in made:
            letters.append(letter)
            starts += [word.start() + start] * len(letter)
            stops += [word.start() + stop] * len(letter)
        done = word.end()
    starts += range(done, len(text))
    stops += range(done + 1, len(text) + 1)
    return PlainText("".join([*letters, text[done:]]), starts, stops)


@lru_cache(maxsize=1 << 14)
def _letters_of(word: str) -> tuple[tuple[str, int, int], ...] | None:
    """Return the letters of a word and where each was; None if they are plain."""
    if is_plain(word):
        return None
    word = parted(word) if "\0" in word else word
    has_latin = _LATIN.search(_plain_letters("NFKD", word.lower())) is not None
    return tuple(
        (_plain(letter[0].translate(_INVISIBLE), has_latin), *letter.span())
        for letter in _LETTER.finditer(word)
    )


def _plain_letters(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    return normalize(form, text).translate(_PLAIN_LETTERS)


def _plain(letter: str, has_latin: bool) -> str:
    if not letter or letter.isascii():
        return letter
    is_other = category(letter[0]) not in ("Lu", "Ll", "Lt", "Lo", "Nd", "Mn", "Mc")
    letter = _plain_letters("NFC" if is_other or _KEPT.match(letter) else "NFKC", letter)
    if not has_latin:
        return letter
    parts = normalize("NFD", letter).translate(_LOOK_ALIKES)
    return normalize("NFC", _ACCENTED.sub(r"\1", parts))
