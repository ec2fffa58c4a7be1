"""A short answer that a text states some way behind the question, as after a worked solution.

There, a number may stand by chance. It counts if the text says that it is the answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from decon_core.kernels.arrays import Array, Numbers

if TYPE_CHECKING:
    from decon_core.text.word_cache import Places

_FARTHEST = 600  # tokens behind the question
_MOST_BEFORE = 60  # characters that are read before the answer
_BEFORE = re.compile(
    r"(####|\\f?box(ed)?\s*\{|\b(answer|antwort|réponse|respuesta)\b((?!\bnot\b)[^.\n]){0,30}?)"
    r"[\s$*_`:'\"(\[{\\]*$"
    r"|(?<![!<>=≠~])[=≈][\s$*_({\\]*$",
    re.IGNORECASE,
)
# What makes it a part of another number, or of a calculation.
_AFTER = re.compile(r"[.,/:]?\d|\s*[+*/^×÷]|\s*[-−]\s*\d")


def stated_answer(
    answer: Array, of_question: tuple[int, int], tokens: Numbers, text: str, places: Places
) -> tuple[int, int] | None:
    """Return the characters at which a text states an answer behind a question; None if nowhere.

    `of_question`: a token of the text and a character, behind which the answer is. `places`: where
    the tokens are in the text.
    """
    after, first = of_question
    within = tokens[after : after + _FARTHEST]
    if not 0 < answer.size <= within.size:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(within, answer.size)
    for at in np.flatnonzero((windows == answer).all(axis=-1)).tolist():
        edges = after + at, after + at + answer.size
        start, stop = places.characters(*edges)
        if (
            start >= first
            and places.are_words(*edges)
            and _BEFORE.search(text, max(0, start - _MOST_BEFORE), start)
            and not _AFTER.match(text, stop)
        ):
            return start, stop
    return None
