"""Convert text to canonical text, and map character offsets back to the original.

Canonical text is what is tokenized and compared: lower case, without punctuation, words separated
by single spaces and, if the `Form` asks for it, each word normalized. Property tests compare this
module with the simple versions in `tests/oracle/text.py` and `tests/oracle/decon.py`. Detectors
that compare the original texts may ask for other forms of them (`formed`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from unicodedata import normalize

from decon_core.text.characters import (
    ACCENTS,
    CONTROLS,
    IGNORABLE,
    LOOK_ALIKES,
    PLAIN_LETTERS,
    SIGNS,
    UNSPACED,
    VOICING_MARKS,
    Form,
)
from decon_core.text.markup import may_have_markup, stripped, stripped_with_offsets

# The Unicode property White_Space. Python's white space (str.split, \s) also contains the four
# information separators U+001C..U+001F, which the reference implementation keeps.
WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)


@lru_cache(maxsize=8)
def _word_pattern(punctuation: str, *, is_split: bool) -> re.Pattern[str]:
    """Match a word. With `is_split`, characters of scripts without spaces are words."""
    separators = re.escape(WHITE_SPACE + punctuation)
    if not is_split:
        return re.compile(f"[^{separators}]+")
    return re.compile(f"[{_UNSPACED}][{VOICING_MARKS}]*|[^{separators}{_UNSPACED}]+")


def _words(form: Form) -> re.Pattern[str]:
    return _word_pattern(form.punctuation, is_split=form.normalize_unicode)


def clean(text: str, *, punctuation: str) -> str:
    """Return the text in lower case, without punctuation, words separated by single spaces."""
    return " ".join(_word_pattern(punctuation, is_split=False).findall(text.lower()))


def normalized_words(word: str, *, punctuation: str) -> list[str]:
    """Return the words that a lower-case word becomes when look-alike spellings are folded.

    Applies NFKC, drops control and default-ignorable characters (NULs may part words),
    folds signs that look like ASCII ones, splits again at new white space and punctuation, drops
    accents and vowel signs, folds variants of letters, and in words with a letter from a to z folds
    Latin look-alikes and drops their accents. The result may be empty. It depends only on the word,
    so callers can cache it per word.
    """
    if word.isascii() and word.isprintable():
        return [word]
    if "\0" in word:
        word = parted(word)
    plain = _without(_FOLDED, _without(_CONTROLS, word))
    composed = normalize("NFKC", plain)
    shown = composed.lower()
    if composed != plain or shown != plain:
        shown = _without(_SIGNS, normalize("NFKC", _without(_IGNORABLE, shown)))
    pieces = _word_pattern(punctuation, is_split=True).findall(shown)
    return [plain for piece in pieces if (plain := _with_latin(_with_plain_letters(piece)))]


# Texts that are compared with each other have the same words.
_words_of_known = lru_cache(maxsize=1 << 16)(normalized_words)

_Folding = tuple[frozenset[str], Mapping[int, str | None]]


def _folding(table: Mapping[int, str | None]) -> _Folding:
    """Return a translation table with the set of its characters, for a fast membership test."""
    return frozenset(map(chr, table)), table


_CONTROLS = _folding(CONTROLS)
_SIGNS = _folding(SIGNS)
_IGNORABLE = _folding(IGNORABLE)
_FOLDED = _folding({**SIGNS, **IGNORABLE})
_LETTERS = _folding(PLAIN_LETTERS)


def _without(folding: _Folding, word: str) -> str:
    characters, table = folding
    return word if characters.isdisjoint(word) else word.translate(table)


def parted(word: str) -> str:
    """Part words at NUL, as white space does; not letters, which a wide encoding parts."""
    words = [*filter(None, word.split("\0"))]
    n_longer = sum(len(piece) > 1 for piece in words)
    return word.replace("\0", " ") if 2 * n_longer >= len(words) else word


def with_parted_words(text: str, form: Form) -> str:
    """Return a text with a space in place of each NUL that parts words."""
    if "\0" not in text or not form.normalize_unicode:
        return text
    return _word_pattern(form.punctuation, is_split=True).sub(lambda word: parted(word[0]), text)


_LATIN_LETTER = re.compile("[a-z]")
_ACCENTED = re.compile(f"([a-z])[{re.escape(''.join(map(chr, ACCENTS)))}]+")


def _with_latin(word: str) -> str:
    if word.isascii():
        return word
    parts = normalize("NFD", word)
    if not _LATIN_LETTER.search(parts):
        return word
    return normalize("NFKC", _ACCENTED.sub(r"\1", parts.translate(LOOK_ALIKES)))


def _with_plain_letters(word: str) -> str:
    plain = _without(_LETTERS, word)
    return word if plain == word else normalize("NFKC", plain)


_NOT_PLAIN = re.compile(r"[^\t-\r -~]")


def is_plain(text: str) -> bool:
    """Return whether a text has only printable ASCII and white space: no word of it changes."""
    return text.isascii() and not _NOT_PLAIN.search(text)


def canonical(text: str, form: Form) -> str:
    if form.strip_markup:
        text = stripped(text)
    words = _words(form).findall(text.lower())
    if form.normalize_unicode and not is_plain(text):
        words = [
            normalized
            for word in words
            for normalized in _words_of_known(word, punctuation=form.punctuation)
        ]
    return " ".join(words)


@dataclass(frozen=True)
class Canonical:
    """Canonical text, and for each of its characters the original range."""

    text: str
    starts: Sequence[int]
    stops: Sequence[int]

    def original(self, start: int, stop: int) -> tuple[int, int]:
        """Map a range of canonical characters to original characters."""
        return self.starts[start], self.stops[stop - 1]


def _sources(text: str) -> list[int]:
    """Return the original character of each character of the text in lower case."""
    # Lower-casing may lengthen a character (İ becomes i and a combining dot), never merge two.
    return [at for at, char in enumerate(text) for _ in char.lower()]


def word_spans(text: str, form: Form) -> list[tuple[int, int]]:
    """Return where the words of a text without mark-up are, before they are normalized."""
    source = _sources(text)
    words = _words(form).finditer(text.lower())
    return [(source[word.start()], source[word.end() - 1] + 1) for word in words]


def canonical_with_offsets(text: str, form: Form) -> Canonical:
    """Return the same text as `canonical`, with the original offsets of every character.

    A word that is normalized maps as a whole. A space covers all that is between two words.
    """
    if form.strip_markup:
        without_markup = stripped_with_offsets(text)
        inner = canonical_with_offsets(without_markup.text, replace(form, strip_markup=False))
        places = [*map(without_markup.original, inner.starts, inner.stops)]
        return Canonical(inner.text, [start for start, _ in places], [stop for _, stop in places])
    may_change = form.normalize_unicode and not is_plain(text)
    source = _sources(text)
    words: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    for match in _words(form).finditer(text.lower()):
        first = source[match.start() : match.end()]
        behind = [at + 1 for at in first]
        word = _joined_normalized(match[0], form.punctuation) if may_change else match[0]
        if word != match[0]:
            first, behind = [first[0]] * len(word), [behind[-1]] * len(word)
        if word and words:
            starts.append(stops[-1])
            stops.append(first[0])
        if word:
            words.append(word)
            starts += first
            stops += behind
    return Canonical(" ".join(words), starts, stops)


# Forms of compared text ---------------------------------------------------------------------------

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


# Words for display --------------------------------------------------------------------------------


def count_different_words(text: str, form: Form) -> int:
    """Return how many different words a canonical text has.

    In scripts without spaces, as many different characters as a word typically has count as a word.
    The published method, which does not normalize Unicode, counts only words between spaces.
    """
    words = {*text.split(" ")}
    if not form.normalize_unicode or text.isascii():
        return len(words)
    return ceil(sum(1 / characters_per_word(word) for word in words))


def characters_per_word(word: str) -> int:
    """Return how many characters make a word in the script of a character; 1 for longer words.

    Two in Chinese and Japanese; four in Thai, Lao, Burmese and Khmer, where vowels and tone marks
    are characters, too.
    """
    if not is_unspaced(word):
        return 1
    return 2 if word >= "\u3040" else 4


def is_unspaced(word: str) -> bool:
    """Return whether a word is a single character of a script without spaces."""
    return len(word) == 1 and any(first <= ord(word) <= last for first, last in UNSPACED)


_TO_FULL_WIDTH = ord("\uff01") - ord("!")


@lru_cache(maxsize=8)
def signs_between_words(form: Form) -> str:
    """Return the signs that part words in canonical text: full-width ones do if they are folded."""
    wide = (chr(ord(sign) + _TO_FULL_WIDTH) for sign in form.punctuation if "!" <= sign <= "~")
    return form.punctuation + "".join(wide) * form.normalize_unicode


def words_with_places(text: str, form: Form) -> list[tuple[str, int, int]]:
    """Return the lower-case words of a text with their offsets, for display, not for comparison.

    Lower-casing word by word differs from `clean` where a letter's form depends on the next word.
    """
    if form.strip_markup and may_have_markup(text):
        without_markup = stripped_with_offsets(text)
        words = words_with_places(without_markup.text, replace(form, strip_markup=False))
        return [(word, *without_markup.original(start, stop)) for word, start, stop in words]
    pattern = _word_pattern(signs_between_words(form), is_split=True)
    if text.isascii():
        words = [(word.group(), *word.span()) for word in pattern.finditer(text.lower())]
    else:
        words = [(word.group().lower(), *word.span()) for word in pattern.finditer(text)]
    if not form.normalize_unicode or is_plain(text):
        return words
    return [
        (normalized, start, stop)
        for word, start, stop in words
        if (normalized := _joined_normalized(word, form.punctuation))
    ]


def _joined_normalized(word: str, punctuation: str) -> str:
    return " ".join(normalized_words(word, punctuation=punctuation))
