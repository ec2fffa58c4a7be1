"""Find the answer of a question among all text near the question that has words of the answer."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np

from decon_core.kernels.arrays import Array, Numbers

# The value of an n-gram of the answer, and the cost of any other token.
_FOUND, _OTHER = 9, 2
FEWEST_TOKENS = 4  # of an answer that is hardly ever there by chance
_MOST_STEPS = 100_000  # n-grams that are looked at, from all first ones together


def place_of_answer(answer: Array, tokens: Numbers, size: int, room: int = 0) -> tuple[int, int]:
    """Return the tokens of an answer, up to its last copy behind the choices of its item.

    `room`: the number of tokens that these choices take up.
    """
    first, last = _best_place(answer, tokens, size)
    if answer.size >= FEWEST_TOKENS and room:
        ends = (at + answer.size for at in places_of(answer, tokens) if at <= last + room)
        last = max(last, *ends, 0)
    return first, last


def places_of(run: Array, tokens: Array | Numbers) -> list[int]:
    """Return the places among other tokens where a run of tokens begins."""
    places = np.arange(tokens.size - run.size + 1)
    for at, token in enumerate(run.tolist()):
        places = places[tokens[places + at] == token]
        if not places.size:
            break
    return places.tolist()


def _best_place(answer: Array, tokens: Numbers, size: int) -> tuple[int, int]:
    """Return the range of tokens with the most n-grams of an answer and the least other text.

    An n-gram counts only as often as the answer has it. A whole copy is therefore a range of its
    own, even if many numbers of the answer also occur elsewhere. Of a long answer in many pieces,
    only ranges from the first pieces are compared.
    """
    wanted = Counter(grams(answer, size))
    hits = [(at, gram) for at, gram in enumerate(grams(tokens, size)) if gram in wanted]
    best, place = 0, (0, len(tokens))
    n_steps = 0
    for number, (start, _) in enumerate(hits):
        if number and hits[number - 1][0] == start - 1:
            continue  # the range from the first of adjacent n-grams has more of the answer
        if n_steps > _MOST_STEPS or best == _FOUND * wanted.total():
            break
        left, value, before = wanted.copy(), 0, start - 1
        for at, gram in islice(hits, number, None):
            n_steps += 1
            value -= _OTHER * (at - before - 1)
            value += _FOUND if left[gram] > 0 else -_OTHER
            left[gram] -= 1
            if value > best:
                best, place = value, (start, at + size)
            if value <= 0:
                break  # a range from a later n-gram is better
            before = at
    return place


def grams(tokens: Array | Numbers, size: int) -> list[tuple[int, ...]]:
    """Return the runs of so many tokens."""
    values = tokens.tolist()
    return [tuple(values[at : at + size]) for at in range(len(values) - size + 1)]
