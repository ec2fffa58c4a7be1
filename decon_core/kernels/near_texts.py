"""The answer after or before a question in a document, and the passage before it."""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import NONE, Array, Integers, Numbers, Table, Words64, n_same, zeros
from decon_core.kernels.hashing import ZERO, digest_of, enter_digest, may_hold, slot_of_gram
from decon_core.kernels.jit import inlined, kernel
from decon_core.kernels.question_index import Index
from decon_core.kernels.scores import NearMatch, share


@kernel
def _numbered_grams(text: Numbers, size: int) -> tuple[Numbers, Integers]:
    """Return a table of the positions of a text's n-grams, from 1, and their ordinals.

    An n-gram is entered where it first occurs; ordinals are in this order.
    """
    slots = zeros(2 * text.size + 2)
    ordinals = np.empty(slots.size, np.int64)
    n = 0
    for at in range(text.size - size + 1):
        slot = slot_of_gram(text, at, size, text, slots)
        if not slots[slot]:
            slots[slot] = at + 1
            ordinals[slot] = n
            n += 1
    return slots, ordinals


@kernel
def grams_beside(tokens: Numbers, edges: Table, longest: int, room: int, index: Index) -> Words64:
    """Return a filter of the n-grams beside a question, for answers of at most `longest` tokens.

    Every n-gram of an answer that may be found is in it. `edges`: the question's first and last
    token at each place where it may begin and end. `room`: see `find_answer`.
    """
    size, window = index.policy.answer_ngram_size, _window_of(longest, index)
    # Numba's `min` and `max` of an array import SciPy: 0.15 s in each process with this kernel.
    lowest, highest = edges[0].copy(), edges[0].copy()
    for number in range(1, edges.shape[0]):
        for side in range(2):
            lowest[side] = min(lowest[side], edges[number, side])
            highest[side] = max(highest[side], edges[number, side])
    last = min(highest[1] + window + room, tokens.size - 1)
    first, stop = lowest[1] + 1, last + 2 - size
    n_after = max(stop - first, 0)
    is_before = 0 < index.policy.least_before <= longest
    first_before = max(lowest[0] - window, 0)
    n_before = max(highest[0] - size + 1 - first_before, 0) if is_before else 0
    in_filter = np.empty((n_after + n_before) // 2 + 1, np.uint64)
    for word in range(in_filter.size):
        in_filter[word] = ZERO
    for at in range(first, first + n_after):
        enter_digest(digest_of(tokens, at, size), in_filter)
    for at in range(first_before, first_before + n_before):
        enter_digest(digest_of(tokens, at, size), in_filter)
    return in_filter


@inlined
def _may_share(answer: Array, size: int, in_filter: Words64) -> bool:
    """Return whether an n-gram of an answer may be among those of a filter."""
    for at in range(answer.size - size + 1):
        if may_hold(in_filter, digest_of(answer, at, size)):
            return True
    return False


@inlined
def _window_of(n_answer: int, index: Index) -> int:
    """Return the number of tokens beside a question in which a long answer is searched for."""
    return max(2 * n_answer, index.policy.long_answer_window)


@inlined
def find_answer(
    tokens: Numbers, q_end: int, number: int, room: int, beside: Words64, index: Index
) -> NearMatch:
    """Find an answer after the last token of a question; `beside`: see `grams_beside`.

    `room`: tokens that the other choices may take up between them.
    """
    answer = index.answer_tokens[index.answer_offsets[number] : index.answer_offsets[number + 1]]
    weight_of = index.answer_weights[
        index.answer_weight_offsets[number] : index.answer_weight_offsets[number + 1]
    ]
    if answer.size > index.policy.short_answer:
        stop = min(q_end + 1 + _window_of(answer.size, index) + room, tokens.size)
        return _find_long_answer(tokens, q_end + 1, stop, number, beside, index)
    weight = 0.0
    for at in range(weight_of.size):
        weight += index.weights[np.int64(weight_of[at])]
    last = min(q_end + index.policy.short_answer_window + room, tokens.size - answer.size)
    if weight > 0:
        for start in range(q_end + 1, last + 1):
            if n_same(tokens, start, answer, 0, answer.size) == answer.size:
                return NearMatch(1.0, start, start + answer.size)
    return NearMatch(0.0, NONE, NONE)


@inlined
def find_answer_before(
    tokens: Numbers, q_start: int, number: int, beside: Words64, index: Index
) -> NearMatch:
    """Find an answer of `least_before` tokens or more before the first token of a question."""
    n_answer = index.answer_offsets[number + 1] - index.answer_offsets[number]
    if not 0 < index.policy.least_before <= n_answer:
        return NearMatch(0.0, NONE, NONE)
    start = max(q_start - _window_of(n_answer, index), 0)
    return _find_long_answer(tokens, start, q_start, number, beside, index)


@kernel
def _find_long_answer(
    tokens: Numbers, start: int, stop: int, number: int, beside: Words64, index: Index
) -> NearMatch:
    """Find the share of an answer's n-grams in a range of tokens."""
    answer = index.answer_tokens[index.answer_offsets[number] : index.answer_offsets[number + 1]]
    weight_of = index.answer_weights[
        index.answer_weight_offsets[number] : index.answer_weight_offsets[number + 1]
    ]
    size = index.policy.answer_ngram_size
    if not _may_share(answer, size, beside):
        return NearMatch(0.0, NONE, NONE)
    slots, ordinals = _numbered_grams(answer, size)
    is_found = np.zeros(weight_of.size, np.uint8)
    first = last = NONE
    for at in range(start, stop - size + 1):
        slot = slot_of_gram(tokens, at, size, answer, slots)
        if slots[slot]:
            is_found[ordinals[slot]] = 1
            last = at
            if first == NONE:
                first = at
    if first == NONE:
        return NearMatch(0.0, NONE, NONE)
    return NearMatch(share(weight_of, index.weights, is_found), first, last + size)


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
    slots, ordinals = _numbered_grams(passage, size)
    is_found = np.zeros(weight_of.size, np.uint8)
    first = last = NONE
    misses = 0
    at = start - 1 - size
    while at >= max(start - 1 - window, 0):
        slot = slot_of_gram(tokens, at, size, passage, slots)
        if slots[slot]:
            is_found[ordinals[slot]] = 1
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
    return NearMatch(share(weight_of, index.weights, is_found), first, last + size)
