"""Text to canonical text, and character offsets back.

Canonical text is what is tokenized and compared: lower case, punctuation gone, words separated by
single spaces. A person wants to see the original, so every canonical character knows where it came
from. The plain version of `clean` stands in `reference.py`; a property test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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


# Scripts that do not part words: here every letter is one, to be shown by itself.
_UNPARTED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"


@lru_cache(maxsize=8)
def _shown_pattern(punctuation: str) -> re.Pattern[str]:
    apart = re.escape(WHITE_SPACE + punctuation)
    return re.compile(f"[{_UNPARTED}]|[^{apart}{_UNPARTED}]+")


def words_with_places(text: str, *, punctuation: str) -> list[tuple[str, int, int]]:
    """The words of a text in lower case, and where each stands in it: to show them, not to compare.

    Lower-casing word by word differs from `clean` where a letter's form depends on the next word's.
    """
    found = _shown_pattern(punctuation).finditer(text)
    return [(word.group().lower(), word.start(), word.end()) for word in found]
