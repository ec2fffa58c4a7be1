"""The content words of a text: without stop words, stemmed, weighted by how rare a word is.

The vocabulary of the cl100k tokenizer shows how rare a word is, as its ids are in the order in
which its training merged them: a frequent word is one token with a low id, a rare one is several
tokens. So a weight depends on the word alone, and not on other items or on the corpus. The stemmer
is Snowball's English one; it leaves most words of other languages as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from decon_core.text.canonical import characters_per_word
from decon_core.text.numbers import NUMBER_WORDS
from decon_core.text.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import Stemmer

_STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being between both
    but by can could did do does doing done don down during each every few for from had has have
    having he her here hers herself him himself his how i if in into is isn it its itself just ll
    may me might more most must my no nor not of off on once only or other our ours out over own per
    re same shall she should so some such than that the their theirs them themselves then there
    these they this those through to too until up upon us ve very was we were what when where
    whether which while who whom whose why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Ids below this are bytes and parts of words; all tokens that are whole words have higher ones.
_MOST_FREQUENT = 200
_LEAST_RANK = 300
_SEVERAL_TOKENS = 100_000
SCALE = 1000  # weights are whole numbers, so that their sums do not depend on the order


@lru_cache(maxsize=1 << 17)
def is_content(word: str) -> bool:
    """Return whether a lower-case word tells what a text is about."""
    return (
        len(word) > 1
        and not word[0].isdigit()
        and word not in STOP_WORDS
        and word not in NUMBER_WORDS
    )


def terms_of(words: Sequence[str]) -> dict[str, int]:
    """Return the stems of the content words in order of first occurrence, with their weights."""
    content = [*filter(is_content, words)]
    forms: dict[str, list[str]] = {}
    for stem, word in zip(stems(content), content, strict=True):
        forms.setdefault(stem, []).append(word)
    return {stem: weight_of(forms[stem]) for stem in forms}


def stems(words: Sequence[str]) -> list[str]:
    """Return the stem of each lower-case word."""
    stemmed: list[str] = _stemmer().stemWords(words)
    return stemmed


def weight_of(words: Iterable[str]) -> int:
    """Return the weight of a term that these words were stemmed to: that of its most frequent."""
    return min(map(weight_of_word, words))


@lru_cache(maxsize=1 << 17)
def weight_of_word(word: str) -> int:
    """Return the logarithm of a word's rank by frequency, roughly; rare words share the last.

    A character of a script without spaces between words is a part of a word, and has a part of its
    weight.
    """
    n_of_word = characters_per_word(word)
    ids = load_tokenizer("cl100k").encode([word if n_of_word > 1 else f" {word}"])[0]
    rank = ids[0] if len(ids) == 1 else _SEVERAL_TOKENS
    weight = SCALE * math.log(min(max(rank, _LEAST_RANK), _SEVERAL_TOKENS) / _MOST_FREQUENT)
    return round(weight / n_of_word)


@cache
def _stemmer() -> Stemmer.Stemmer:
    # Imported late: most commands need no stems.
    import Stemmer

    return Stemmer.Stemmer("english", maxCacheSize=0)
