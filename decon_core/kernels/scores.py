"""Scores of the `decon` detector: shares of weight, their weighted sum, penalties for length.

Everything is summed in the same order as in `tests/oracle/decon.py`, so that scores agree to the
last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Flags, Floats, Integers, Numbers
from decon_core.kernels.jit import kernel


class Thresholds(NamedTuple):
    """The numeric settings of a policy."""

    ngram_size: int
    answer_ngram_size: int
    passage_ngram_size: int
    sample_every: int
    longest_gap: int
    short_answer: int
    short_answer_window: int
    long_answer_window: int
    least_before: int  # tokens of an answer that also counts before its question; 0: none does
    passage_distance: int
    passage_longest_gap: int
    decay_start: int
    decay_end: int
    threshold: float
    least_overlap: float
    keep_no_answer: bool
    least_tokens: int  # minimum for a record to be indexed
    tolerance: float  # values closer than this are equal


class NearMatch(NamedTuple):
    """An answer or a passage near a question."""

    overlap: float
    start: int
    stop: int


@kernel
def share(weight_of: Numbers, weights: Floats, is_found: Flags) -> float:
    """Return the weight of the found n-grams over the weight of all, both summed in order."""
    part = 0.0
    whole = 0.0
    for ordinal in range(weight_of.size):
        weight = weights[np.int64(weight_of[ordinal])]
        whole += weight
        if is_found[ordinal]:
            part += weight
    return part / whole if whole > 0 else 0.0


@kernel
def reaches(value: float, threshold: float, policy: Thresholds) -> bool:
    return value >= threshold - policy.tolerance


@kernel
def _decay(length: int, target: float, policy: Thresholds) -> float:
    if length <= policy.decay_start:
        return 1.0
    if length >= policy.decay_end:
        return target
    return 1.0 - (1.0 - target) * (length - policy.decay_start) / (
        policy.decay_end - policy.decay_start
    )


@kernel
def passes(overlap: float, n_tokens: int, policy: Thresholds) -> bool:
    """Return whether enough of a question of that length was found to look for its answer."""
    required = max(policy.least_overlap, _decay(n_tokens, policy.least_overlap, policy))
    return reaches(overlap, required, policy)


@kernel
def base_score(
    n_grams: int,
    n_answer_tokens: int,
    has_passage: bool,
    question: float,
    answer: float,
    passage: float,
) -> float:
    """Return the weighted sum of the overlaps. 0 answer tokens: no answer."""
    has_answer = n_answer_tokens > 0
    is_answer_whole = not has_answer or answer == 1.0
    if question == 1.0 and is_answer_whole and (not has_passage or passage == 1.0):
        return 1.0
    c_q = 0.5 + 0.5 * n_grams / 20 if n_grams < 20 else 1.0
    w_q = 1.0
    w_a = 0.0
    w_p = 0.0
    if has_answer and has_passage:
        lost = 0.7 * (1 - c_q)
        of_answer = 0.2 + lost / 2
        of_passage = 0.1 + lost / 2
        c_a = 0.5 + 0.5 * n_answer_tokens / 4 if n_answer_tokens < 4 else 1.0
        w_q = 0.7 * c_q
        w_a = of_answer * c_a
        w_p = of_passage + of_answer * (1 - c_a)
    elif has_answer:
        w_q = 0.75 * c_q
        w_a = 0.25 + 0.75 * (1 - c_q)
    elif has_passage:
        w_q = 0.85 * c_q
        w_p = 0.15 + 0.85 * (1 - c_q)
    return min(1.0, w_q * question + w_a * answer + w_p * passage)


@kernel
def base_scores(
    n_grams: Integers,
    n_answer_tokens: Integers,
    has_passage: Flags,
    overlaps: Floats,
    scores: Floats,
) -> None:
    """Compute weighted sums of overlaps; columns of `overlaps`: question, answer, passage."""
    for row in range(scores.size):
        scores[row] = base_score(
            n_grams[row],
            n_answer_tokens[row],
            has_passage[row] != 0,
            overlaps[row, 0],
            overlaps[row, 1],
            overlaps[row, 2],
        )


@kernel
def penalized(base: float, length: int, policy: Thresholds) -> float:
    """Reduce a base score by how much more a short record needs; 1 stays 1."""
    required = _decay(length, policy.threshold, policy)
    if base == 1.0 or required <= policy.threshold:
        return base
    return base * policy.threshold / required


@kernel
def is_no_answer(
    n_grams: int,
    n_tokens: int,
    n_answer_tokens: int,
    has_passage: bool,
    overlap: float,
    passage: NearMatch,
    policy: Thresholds,
) -> bool:
    """Return whether a record whose question passed would be a leak without its answer."""
    if n_answer_tokens == 0 and not has_passage:
        return False
    if _is_leak_of_length(overlap, n_tokens, policy):
        return True
    if n_answer_tokens == 0 or passage.start == NONE:
        return False
    base = base_score(n_grams, 0, True, overlap, 0.0, passage.overlap)
    return _is_leak_of_length(base, n_tokens + passage.stop - passage.start, policy)


@kernel
def _is_leak_of_length(base: float, length: int, policy: Thresholds) -> bool:
    """Return whether a record of that length would be indexed and reach the threshold."""
    score = penalized(base, length, policy)
    return length >= policy.least_tokens and reaches(score, policy.threshold, policy)
