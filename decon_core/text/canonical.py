"""Text to canonical text, and character offsets back.

Canonical text is what is tokenized and compared: lower case, punctuation gone, words separated by
single spaces; and, where a `Form` asks for it, each word normalized. A person wants to see the
original, so every canonical character knows where it came from. The plain versions of `clean` and
`canonical` are in `tests/oracle/text.py` and `decon.py` there; property tests compare them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from unicodedata import normalize

from decon_core.text.characters import IGNORABLE, LOOK_ALIKES, SIGNS, Form
from decon_core.text.markup import stripped, stripped_with_offsets

# The Unicode property White_Space. Python's own idea of white space (str.split, \s) adds the four
# information separators U+001C..U+001F, which the reference implementation keeps.
WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@lru_cache(maxsize=8)
def _word_pattern(punctuation: str) -> re.Pattern[str]:
    return re.compile(f"[^{re.escape(WHITE_SPACE + punctuation)}]+")


def clean(text: str, *, punctuation: str) -> str:
    """Canonical form of a text."""
    return " ".join(_word_pattern(punctuation).findall(text.lower()))


def normalized_words(word: str, *, punctuation: str) -> list[str]:
    """What becomes of a lower-case word when look-alike spellings are made one; maybe nothing.

    NFKC without default-ignorable characters, signs that look like ASCII ones folded, cut again at
    what has become white space or punctuation; then letters that look Latin, in words that have an
    ASCII letter. It depends on the word alone, so it is worked out once for each different word.
    """
    if word.isascii():
        return [word]
    plain = _without(_FOLDED, word)
    composed = normalize("NFKC", plain)
    shown = composed.lower()
    if composed != plain or shown != plain:
        shown = _without(_SIGNS, normalize("NFKC", _without(_IGNORABLE, shown)))
    return [_with_latin(piece) for piece in _word_pattern(punctuation).findall(shown)]


_Folding = tuple[frozenset[str], Mapping[int, str | None]]


def _folding(table: Mapping[int, str | None]) -> _Folding:
    """A table with the set of its characters: faster than the table where none is there."""
    return frozenset(map(chr, table)), table


_SIGNS = _folding(SIGNS)
_IGNORABLE = _folding(IGNORABLE)
_FOLDED = _folding({**SIGNS, **IGNORABLE})


def _without(folding: _Folding, word: str) -> str:
    characters, table = folding
    return word if characters.isdisjoint(word) else word.translate(table)


_LATIN_LETTER = re.compile("[a-z]")


def _with_latin(word: str) -> str:
    if word.isascii() or not _LATIN_LETTER.search(word):
        return word
    return normalize("NFKC", word.translate(LOOK_ALIKES))


def canonical(text: str, form: Form) -> str:
    """Canonical form of a text."""
    if form.strip_markup:
        text = stripped(text)
    words = _word_pattern(form.punctuation).findall(text.lower())
    if form.normalize_unicode and not text.isascii():
        punctuation = form.punctuation
        words = [one for word in words for one in normalized_words(word, punctuation=punctuation)]
    return " ".join(words)


@dataclass(frozen=True)
class Canonical:
    """Canonical text, and for each of its characters the original characters it stands for."""

    text: str
    starts: Sequence[int]
    stops: Sequence[int]

    def original(self, start: int, stop: int) -> tuple[int, int]:
        """The range of original characters behind a range of canonical ones."""
        return self.starts[start], self.stops[stop - 1]


def clean_with_offsets(text: str, *, punctuation: str) -> Canonical:
    """`clean`, remembering where every character came from."""
    lowered = text.lower()
    # Lower-casing may lengthen a character (İ becomes i and a combining dot), never merge two.
    source = [at for at, char in enumerate(text) for _ in char.lower()]
    pieces: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    for word in _word_pattern(punctuation).finditer(lowered):
        if pieces:
            pieces.append(" ")
            starts.append(stops[-1])
            stops.append(source[word.start()])
        pieces.append(word.group())
        origins = source[word.start() : word.end()]
        starts.extend(origins)
        stops.extend(at + 1 for at in origins)
    return Canonical("".join(pieces), starts, stops)


def canonical_with_offsets(text: str, form: Form) -> Canonical:
    """`canonical`, with the place of every character: of a changed word, that of all of it."""
    if form.strip_markup:
        left = stripped_with_offsets(text)
        found = canonical_with_offsets(left.text, replace(form, strip_markup=False))
        starts = [int(left.starts[at]) for at in found.starts]
        return Canonical(found.text, starts, [int(left.stops[at - 1]) for at in found.stops])
    plain = clean_with_offsets(text, punctuation=form.punctuation)
    if form.normalize_unicode and not text.isascii():
        plain = _normalized(plain, form.punctuation)
    return plain


def _normalized(plain: Canonical, punctuation: str) -> Canonical:
    pieces: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    at = 0
    for word in plain.text.split(" ") if plain.text else ():
        inside = range(at, at + len(word))
        at += len(word) + 1
        words = normalized_words(word, punctuation=punctuation)
        if not words:
            continue
        start, stop = plain.original(inside.start, inside.stop)
        if pieces:
            pieces.append(" ")
            starts.append(stops[-1])
            stops.append(start)
        joined = " ".join(words)
        pieces.append(joined)
        if joined == word:
            starts.extend(plain.starts[inside.start : inside.stop])
            stops.extend(plain.stops[inside.start : inside.stop])
        else:
            starts.extend([start] * len(joined))
            stops.extend([stop] * len(joined))
    return Canonical("".join(pieces), starts, stops)


# Scripts that do not part words: here every letter is one, to be shown by itself.
_UNPARTED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"


@lru_cache(maxsize=8)
def _shown_pattern(punctuation: str) -> re.Pattern[str]:
    apart = re.escape(WHITE_SPACE + punctuation)
    return re.compile(f"[{_UNPARTED}]|[^{apart}{_UNPARTED}]+")


def words_with_places(text: str, form: Form) -> list[tuple[str, int, int]]:
    """The words of a text in lower case, and where each stands in it: to show them, not to compare.

    Lower-casing word by word differs from `clean` where a letter's form depends on the next word's.
    """
    if form.strip_markup:
        left = stripped_with_offsets(text)
        return [
            (word, int(left.starts[start]), int(left.stops[stop - 1]))
            for word, start, stop in words_with_places(left.text, replace(form, strip_markup=False))
        ]
    found = _shown_pattern(form.punctuation).finditer(text)
    words = [(word.group().lower(), word.start(), word.end()) for word in found]
    if not form.normalize_unicode:
        return words
    normalized = [(_in_one(word, form.punctuation), start, stop) for word, start, stop in words]
    return [(word, start, stop) for word, start, stop in normalized if word]


def _in_one(word: str, punctuation: str) -> str:
    return " ".join(normalized_words(word, punctuation=punctuation))
