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
_STATED = re.compile(
    r"(####|[=≈]|\\boxed\s*\{|\\fbox\s*\{|答案|\b(answer|antwort|réponse|respuesta)\b[^.\n]{0,30}?)"
    r"[\s$*_`:'\"(\[{\\：]*$",
    re.IGNORECASE,
)


def stated_answer(
    answer: Array, after: int, tokens: Numbers, text: str, places: Places
) -> tuple[int, int] | None:
    """Return the characters at which a text states an answer after a token; None if nowhere.

    `tokens`: those of the text; `places`: where they are in it.
    """
    within = tokens[after : after + _FARTHEST]
    if not 0 < answer.size <= within.size:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(within, answer.size)
    for at in np.flatnonzero((windows == answer).all(axis=-1)).tolist():
        edges = after + at, after + at + answer.size
        start, stop = places.characters(*edges)
        is_stated = _STATED.search(text, max(0, start - _MOST_BEFORE), start)
        if is_stated and places.are_words(*edges):
            return start, stop
    return None
