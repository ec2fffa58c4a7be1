"""The joined index of several benchmarks, and the table and filters of its question n-grams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    NONE,
    Bytes,
    Flags,
    Floats,
    Int32s,
    Integers,
    Numbers,
    Short,
    Words64,
    n_same,
)
from decon_core.kernels.hashing import (
    NumberTable,
    digest_of,
    enter_number,
    free_slot,
    pair_digest,
    scaled,
    set_bit,
    shift_for,
    slot_of_known,
    table_for,
    two_bits,
)
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.scores import Thresholds


class Index(NamedTuple):
    """The joined index of several benchmarks, with each text once."""

    pairs: Words64  # filter of adjacent token pairs in n-grams: one bit each
    filter: Words64  # Bloom filter of the n-grams: two bits each
    slots: Numbers  # n-gram numbers, from 1
    gram_at: Numbers  # position of each n-gram in the question tokens
    gram_weight: Bytes  # upper bound of its weight in any benchmark
    gram_need: Bytes  # lower bound of the weight that any question with it needs to match
    weight_levels: Floats  # values of these codes
    need_levels: Floats
    posting_offsets: Numbers
    postings: Numbers  # questions with an n-gram, ascending
    part_offsets: Integers  # range of questions of each benchmark
    question_tokens: Short
    question_offsets: Integers
    # Weights of its n-grams, in order of first occurrence: positions in `weights`.
    question_weights: Short
    question_gram_offsets: Integers
    question_total: Floats
    question_need: Floats
    entry_offsets: Integers  # range of entries of each question
    entries: Numbers
    entry_answer: Int32s
    entry_passage: Int32s
    entry_room: Short  # tokens between question and answer for the item's choices; empty: none
    answer_tokens: Short
    answer_offsets: Integers
    answer_weights: Short  # weights of its distinct n-grams; of a short answer, its distinct tokens
    answer_weight_offsets: Integers
    answer_different: Integers  # number of distinct tokens
    passage_tokens: Short
    passage_offsets: Integers
    passage_weights: Short
    passage_weight_offsets: Integers
    weights: Floats
    weights_of_questions: Floats  # weights of question n-grams: those of a template may be 0
    is_hot: Flags  # per weight: whether its n-grams are too common to start a cluster
    policy: Thresholds


@kernel
def fill_table(
    tokens: Numbers,
    gram_at: Integers,
    size: int,
    pairs: Words64,
    in_filter: Words64,
    slots: Numbers,
) -> None:
    """Enter all n-grams into the filters and the table, which must be zeros."""
    shift = shift_for(pairs)
    for number in range(gram_at.size):
        first = gram_at[number]
        for at in range(first, first + size - 1):
            set_bit(pairs, pair_digest(tokens[at], tokens[at + 1]) >> shift)
        digest = digest_of(tokens, first, size)
        in_filter[scaled(digest, in_filter.size)] |= two_bits(digest)
        slots[free_slot(scaled(digest, slots.size), slots)] = np.uint32(number + 1)


@entry(compile_seconds=0.1, steps=lambda grams, *_: grams.size)
def bound_grams(
    question_grams: Numbers,
    question_weights: Numbers,
    offsets: Integers,
    weights: Floats,
    question_need: Floats,
    gram_weight: Floats,
    gram_need: Floats,
) -> None:
    """Compute each n-gram's largest weight and the smallest need of a question with it."""
    for question in range(offsets.size - 1):
        for at in range(offsets[question], offsets[question + 1]):
            gram = np.int64(question_grams[at])
            gram_weight[gram] = max(gram_weight[gram], weights[np.int64(question_weights[at])])
            gram_need[gram] = min(gram_need[gram], question_need[question])


@kernel
def gram_at(tokens: Numbers, at: int, index: Index) -> int:
    """Return the number of the n-gram at a position, or `NONE`."""
    size = index.policy.ngram_size
    digest = digest_of(tokens, at, size)
    if not may_be_gram(digest, index.filter):
        return NONE
    slot = scaled(digest, index.slots.size)
    slot = slot_of_known(tokens, at, size, slot, index.question_tokens, index.gram_at, index.slots)
    return np.int64(index.slots[slot]) - 1


@inlined
def may_be_gram(digest: np.uint64, in_filter: Words64) -> bool:
    """Return whether an n-gram may be in the index, by a filter with two bits for each."""
    bits = two_bits(digest)
    return in_filter[scaled(digest, in_filter.size)] & bits == bits


@kernel
def postings_of(gram: int, index: Index) -> tuple[int, int]:
    """Return the range of an n-gram's postings."""
    return np.int64(index.posting_offsets[gram]), np.int64(index.posting_offsets[gram + 1])


@kernel
def n_question_grams(question: int, index: Index) -> int:
    """Return the number of distinct n-grams of a question."""
    return index.question_gram_offsets[question + 1] - index.question_gram_offsets[question]


@kernel
def weights_of_question(question: int, index: Index) -> Short:
    """Return the positions of the weights of a question's n-grams."""
    first, stop = index.question_gram_offsets[question], index.question_gram_offsets[question + 1]
    return index.question_weights[first:stop]


@kernel
def grams_of_question(question: int, index: Index) -> tuple[Integers, NumberTable]:
    """Return a question's n-grams in order of first occurrence, and a table of their ordinals.

    Stored for every question, they would be a tenth of the index; few questions are ever scored.
    """
    grams = np.empty(n_question_grams(question, index), np.int64)
    ordinals = table_for(grams.size)
    n = 0
    start, stop = index.question_offsets[question], index.question_offsets[question + 1]
    for at in range(start, stop - index.policy.ngram_size + 1):
        gram = gram_at(index.question_tokens, at, index)
        if enter_number(gram, n, ordinals):
            grams[n] = gram
            n += 1
    return grams, ordinals


@entry(compile_seconds=0.3, steps=lambda grams, *_: 80 * grams.size)
def places_in_parts(
    grams: Numbers, index: Index, rows: Integers, parts: Integers, places: Integers
) -> int:
    """Find the first occurrence of n-grams in every benchmark that contains them.

    Writes the row of `grams`, the benchmark, and the position in the tokens of its questions.
    Returns the number of rows.
    """
    n = 0
    tokens, size = index.question_tokens, index.policy.ngram_size
    for row in range(grams.size):
        gram = np.int64(grams[row])
        known = np.int64(index.gram_at[gram])
        part = NONE
        start, stop = postings_of(gram, index)
        for posting in range(start, stop):
            question = np.int64(index.postings[posting])
            if part != NONE and question < index.part_offsets[part + 1]:
                continue
            part = max(part, 0)
            while question >= index.part_offsets[part + 1]:
                part += 1
            at = index.question_offsets[question]
            while n_same(tokens, at, tokens, known, size) < size:
                at += 1
            rows[n], parts[n] = row, part
            places[n] = at - index.question_offsets[index.part_offsets[part]]
            n += 1
    return n
