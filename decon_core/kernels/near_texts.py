"""The answer after a question in a document, and the passage before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Flags, Integers, Numbers, n_same, zeros
from decon_core.kernels.hashing import slot_of_gram
from decon_core.kernels.jit import inlined, kernel
from decon_core.kernels.question_index import Index
from decon_core.kernels.scores import NearMatch, share


class _Grams(NamedTuple):
    """The n-grams of one text, numbered in order of first occurrence, and which were found."""

    text: Numbers
    size: int
    slots: Numbers  # positions in the text, from 1
    ordinals: Integers
    is_found: Flags


@kernel
def _grams_of(text: Numbers, size: int) -> _Grams:
    slots = zeros(2 * text.size + 2)
    ordinals = np.empty(slots.size, np.int64)
    n = 0
    for at in range(text.size - size + 1):
        slot = slot_of_gram(text, at, size, text, slots)
        if not slots[slot]:
            slots[slot] = at + 1
            ordinals[slot] = n
            n += 1
    return _Grams(text, size, slots, ordinals, np.zeros(n, np.uint8))


@kernel
def _mark(tokens: Numbers, at: int, grams: _Grams) -> bool:
    """Mark the n-gram at a position as found, if the text has it; return whether it does."""
    slot = slot_of_gram(tokens, at, grams.size, grams.text, grams.slots)
    is_known = grams.slots[slot] > 0
    if is_known:
        grams.is_found[grams.ordinals[slot]] = 1
    return is_known


@inlined
def find_answer(tokens: Numbers, q_end: int, number: int, index: Index) -> NearMatch:
    """Find an answer after the last token of a question."""
    answer = index.answer_tokens[index.answer_offsets[number] : index.answer_offsets[number + 1]]
    weight_of = index.answer_weights[
        index.answer_weight_offsets[number] : index.answer_weight_offsets[number + 1]
    ]
    if answer.size > index.policy.short_answer:
        return _find_long_answer(tokens, q_end, answer, weight_of, index)
    weight = 0.0
    for at in range(weight_of.size):
        weight += index.weights[np.int64(weight_of[at])]
    last = min(q_end + index.policy.short_answer_window, tokens.size - answer.size)
    if weight > 0:
        for start in range(q_end + 1, last + 1):
            if n_same(tokens, start, answer, 0, answer.size) == answer.size:
                return NearMatch(1.0, start, start + answer.size)
    return NearMatch(0.0, NONE, NONE)


@inlined
def _find_long_answer(
    tokens: Numbers, q_end: int, answer: Numbers, weight_of: Numbers, index: Index
) -> NearMatch:
    size = index.policy.answer_ngram_size
    window = max(2 * answer.size, index.policy.long_answer_window)
    stop = min(q_end + 1 + window, tokens.size)
    grams = _grams_of(answer, size)
    first = last = NONE
    for at in range(q_end + 1, stop - size + 1):
        if _mark(tokens, at, grams):
            last = at
            if first == NONE:
                first = at
    if first == NONE:
        return NearMatch(0.0, NONE, NONE)
    return NearMatch(share(weight_of, index.weights, grams.is_found), first, last + size)


@inlined
def find_passage(tokens: Numbers, start: int, number: int, index: Index) -> NearMatch:
    """Find a passage before the first token of a question, from its end to its beginning."""
    passage = index.passage_tokens[
        index.passage_offsets[number] : index.passage_offsets[number + 1]
    ]
    weight_of = index.passage_weights[
        index.passage_weight_offsets[number] : index.passage_weight_offsets[number + 1]
    ]
    size = index.policy.passage_ngram_size
    window = max(2 * passage.size, index.policy.passage_distance)
    grams = _grams_of(passage, size)
    first = last = NONE
    misses = 0
    at = start - 1 - size
    while at >= max(start - 1 - window, 0):
        if _mark(tokens, at, grams):
            first = at
            if last == NONE:
                last = at
            misses = 0
        elif last != NONE:
            misses += 1
            if misses > index.policy.passage_longest_gap:
                break
        at -= 1
    if last == NONE:
        return NearMatch(0.0, NONE, NONE)
    return NearMatch(share(weight_of, index.weights, grams.is_found), first, last + size)
