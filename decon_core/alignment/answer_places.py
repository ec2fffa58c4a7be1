"""Where the answer of a question is, of all text beside the question that has words of it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from decon_core.kernels.arrays import Array, Numbers

# The value of an n-gram of the answer, and the cost of any other token.
_FOUND, _OTHER = 9, 2
FEWEST_TOKENS = 4  # of an answer that is hardly there by chance


def place_of_answer(answer: Array, tokens: Numbers, size: int, room: int = 0) -> tuple[int, int]:
    """Return the range of tokens of an answer, to its last copy behind the choices of its item.

    `room`: the tokens that these choices take.
    """
    first, last = _best_place(answer, tokens, size)
    if answer.size >= FEWEST_TOKENS and room:
        ends = (at + answer.size for at in places_of(answer, tokens) if at <= last + room)
        last = max(last, *ends, 0)
    return first, last


def places_of(run: Array, tokens: Array | Numbers) -> list[int]:
    """Return where a run of tokens begins among others."""
    if run.size > tokens.size:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(tokens, run.size)
    return np.flatnonzero((windows == run).all(axis=-1)).tolist()


def _best_place(answer: Array, tokens: Numbers, size: int) -> tuple[int, int]:
    """Return the range of tokens with most n-grams of an answer and least other text.

    Each n-gram counts as often as the answer has it, so a whole copy is a place of its own, however
    many numbers of the answer also occur elsewhere.
    """
    wanted = Counter(_grams(answer, size))
    hits = [(at, gram) for at, gram in enumerate(_grams(tokens, size)) if gram in wanted]
    best, place = 0, (0, len(tokens))
    for number, (start, _) in enumerate(hits):
        if number and hits[number - 1][0] == start - 1:
            continue  # the range from the first of adjacent n-grams has more of the answer
        left, value, before = wanted.copy(), 0, start - 1
        for at, gram in hits[number:]:
            value -= _OTHER * (at - before - 1)
            value += _FOUND if left[gram] > 0 else -_OTHER
            left[gram] -= 1
            if value > best:
                best, place = value, (start, at + size)
            if value <= 0:
                break  # a range from a later n-gram is better
            before = at
    return place


def _grams(tokens: Array | Numbers, size: int) -> list[tuple[int, ...]]:
    values = tokens.tolist()
    return [tuple(values[at : at + size]) for at in range(len(values) - size + 1)]
