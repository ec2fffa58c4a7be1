"""Filters of the n-grams in blocks of documents: filled, cut into rows, and probed.

A filter is a blocked Bloom filter: lines of 512 bits, of which an n-gram sets three in one line.
The filters of many blocks are stored as rows: row i has bit i of every block. A question then
reads the three rows of each of its n-grams, for all blocks at once.

Rows are stored in units of one or a few rows. A unit ends with 16 bits of a hash of its content
and its number, so that damage is noticed before it is believed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Flags, Floats, Integers, Numbers, Words64
from decon_core.kernels.gram_runs import LENIENT
from decon_core.kernels.hashing import BASE, MIX, ONE, SIX, SIX_BITS, ZERO, digest_of, mixed
from decon_core.kernels.instructions import eight_bytes
from decon_core.kernels.jit import kernel
from decon_core.kernels.question_index import (
    Index,
    grams_of_question,
    n_question_grams,
    weights_of_question,
)
from decon_core.kernels.scores import passes

PROBES = 3
LOG2_LINE = 9
WORDS_PER_LINE = (1 << LOG2_LINE) // 64
CHECK_BYTES = 2

_NINE = np.uint64(LOG2_LINE)
_IN_LINE = np.uint64((1 << LOG2_LINE) - 1)
_THIRTY_TWO = np.uint64(32)
_CHECK_SHIFT = np.uint64(48)
_CHECK_BITS = np.uint64(0xFFFF)
_TOUCHED = 1e-9
_STEPS_BETWEEN_CHECKS = 4
# The upper six bits of the product with a power of two are different for each of the 64 powers.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_FIFTY_EIGHT = np.uint64(58)
_PLACE_OF_BIT = np.argsort([(0x03F79D71B4CB0A89 << n) % (1 << 64) >> 58 for n in range(64)])


@kernel
def renumber(tokens: Numbers, number_of: Numbers, numbers: Numbers) -> None:
    """Write the numbers of tokens; 0 for a token without a number."""
    for at in range(tokens.size):
        token = np.int64(tokens[at])
        numbers[at] = number_of[token] if token < number_of.size else 0


# Filling ------------------------------------------------------------------------------------------


@kernel
def enter_ngrams(
    tokens: Numbers, offsets: Integers, size: int, log2_bits: int, words: Words64
) -> None:
    """Enter all n-grams of documents."""
    shift = np.uint64(64 - (log2_bits - LOG2_LINE))
    before = np.uint64(size - 1)
    first_factor = MIX  # factor of the first token of an n-gram in `digest_of`
    for _ in range(size - 1):
        first_factor *= BASE
    for document in range(offsets.size - 1):
        start, stop = np.uint64(offsets[document]), np.uint64(offsets[document + 1])
        if stop - start < size:
            continue
        # `digest_of` of each n-gram, from that of the n-gram before.
        rolled = ZERO
        for at in range(start, start + before):
            rolled = rolled * BASE + np.uint64(tokens[at]) * MIX
        for at in range(start + before, stop):
            rolled = rolled * BASE + np.uint64(tokens[at]) * MIX
            digest = mixed(rolled)
            rolled -= np.uint64(tokens[at - before]) * first_factor
            line = (digest >> shift) * np.uint64(WORDS_PER_LINE)
            for _ in range(PROBES):
                bit = digest & _IN_LINE
                words[line + (bit >> SIX)] |= ONE << (bit & SIX_BITS)
                digest >>= _NINE


# Rows ---------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """The filters of `n_blocks` blocks of equal size, stored as rows."""

    eights: Words64  # the units, one after the other; 16 spare bytes at the end
    log2_bits: int
    n_blocks: int
    rows_per_unit: int
    unit_bytes: int  # bytes of a unit with its check


@kernel
def _unit_check(eights: Words64, start: int, n_bytes: int, number: int) -> int:
    """Return 16 bits of a hash of a unit's content and its number."""
    digest = np.uint64(number) * MIX + np.uint64(n_bytes)
    at = 0
    while at < n_bytes:
        word = eight_bytes(eights, start + at)
        if n_bytes - at < 8:
            word &= (ONE << np.uint64(8 * (n_bytes - at))) - ONE
        digest = (digest ^ word) * MIX
        digest ^= digest >> _THIRTY_TWO
        at += 8
    return np.int64((digest * MIX) >> _CHECK_SHIFT)


@kernel
def _transpose(square: Words64) -> None:
    """Transpose 64 words of 64 bits in place."""
    mask = np.uint64(0x00000000FFFFFFFF)
    width = np.uint64(32)
    while width:
        step = np.int64(width)
        at = 0
        while at < 64:
            swapped = ((square[at] >> width) ^ square[at + step]) & mask
            square[at + step] ^= swapped
            square[at] ^= swapped << width
            at = (at + step + 1) & ~step
        width >>= ONE
        mask ^= mask << width


@kernel
def write_rows(filters: Words64, rows: Rows, first_unit: int) -> None:
    """Store a range of the words of all filters as rows.

    `filters` has these words of each block, block after block. `rows.eights` are zeros; the first
    unit has the number `first_unit`.
    """
    n_words = filters.size // rows.n_blocks
    square = np.empty(64, np.uint64)
    for word in range(n_words):
        for first in range(0, rows.n_blocks, 64):
            n = min(64, rows.n_blocks - first)
            for block in range(64):
                square[block] = filters[(first + block) * n_words + word] if block < n else ZERO
            _transpose(square)
            for bit in range(64):
                unit, row = divmod(64 * word + bit, rows.rows_per_unit)
                at = np.uint64(8 * unit * rows.unit_bytes + row * rows.n_blocks + first)
                shift, value = at & SIX_BITS, square[bit]
                rows.eights[at >> SIX] |= value << shift
                rows.eights[(at >> SIX) + ONE] |= (value >> ONE) >> (SIX_BITS - shift)
    n_bytes = rows.unit_bytes - CHECK_BYTES
    for unit in range(64 * n_words // rows.rows_per_unit):
        start = unit * rows.unit_bytes
        check = np.uint64(_unit_check(rows.eights, start, n_bytes, first_unit + unit))
        at = np.uint64(8 * (start + n_bytes))
        shift = at & SIX_BITS
        rows.eights[at >> SIX] |= check << shift
        rows.eights[(at >> SIX) + ONE] |= (check >> ONE) >> (SIX_BITS - shift)


@kernel
def _read_row(row: int, rows: Rows, is_read: Flags, present: Words64) -> bool:
    """Keep only blocks that have a bit; return False if the unit of the row is damaged."""
    n_bytes = rows.unit_bytes - CHECK_BYTES
    unit = row // rows.rows_per_unit
    start = unit * rows.unit_bytes
    if not is_read[unit]:
        check = _unit_check(rows.eights, start, n_bytes, unit)
        if np.int64(eight_bytes(rows.eights, start + n_bytes) & _CHECK_BITS) != check:
            return False
        is_read[unit] = 1
    at = np.uint64(8 * start + (row - unit * rows.rows_per_unit) * rows.n_blocks)
    shift = at & SIX_BITS
    for word in range(present.size):
        group = (at >> SIX) + np.uint64(word)
        value = rows.eights[group] >> shift
        value |= (rows.eights[group + ONE] << ONE) << (SIX_BITS - shift)
        present[word] &= value
    return True


@kernel
def find_ngram(digest: np.uint64, rows: Rows, is_read: Flags, present: Words64) -> bool:
    """Find the blocks that may contain an n-gram, one bit each; return False at damage.

    `is_read` has a flag for every unit.
    """
    for word in range(present.size):
        left = rows.n_blocks - 64 * word
        present[word] = ~ZERO if left >= 64 else (ONE << np.uint64(left)) - ONE
    line = np.int64(digest >> np.uint64(64 - (rows.log2_bits - LOG2_LINE))) << LOG2_LINE
    for _ in range(PROBES):
        if not _read_row(line + np.int64(digest & _IN_LINE), rows, is_read, present):
            return False
        digest >>= _NINE
    return True


# Proofs -------------------------------------------------------------------------------------------


@kernel
def bound_weights(
    tokens: Numbers, index: Index, rows: Rows, is_read: Flags, possible: Words64
) -> bool:
    """Find the blocks in which enough weight of a question may occur for a match.

    The n-grams that a block may contain weigh at least as much as those of any cluster in it.
    `tokens` are the question tokens of the index, numbered as in the filters. Sets a bit of
    `possible` for each question and block. Returns False at damage.
    """
    sums = np.empty(rows.n_blocks)
    present = np.empty(possible.shape[1], np.uint64)
    for question in range(possible.shape[0]):
        n = n_question_grams(question, index)
        n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
        if index.question_total[question] == 0.0 and not passes(0.0, n_tokens, index.policy):
            continue
        need = index.question_need[question] * LENIENT
        grams, _ = grams_of_question(question, index)
        weight_of = weights_of_question(question, index)
        weights = np.empty(n)
        left = 0.0
        for at in range(n):
            weights[at] = index.weights_of_questions[np.int64(weight_of[at])]
            left += weights[at]
        for block in range(rows.n_blocks):
            sums[block] = 0.0
        is_excluded = False
        for step, at in enumerate(np.argsort(-weights)):
            place = np.int64(index.gram_at[grams[at]])
            digest = digest_of(tokens, place, index.policy.ngram_size)
            if not find_ngram(digest, rows, is_read, present):
                return False
            _add(max(weights[at], _TOUCHED), present, sums)
            left -= weights[at]
            # The rest is only read if some block is not excluded yet.
            if step % _STEPS_BETWEEN_CHECKS == 0 and sums.max() + left < need * LENIENT:
                is_excluded = True
                break
        for block in range(0 if is_excluded else rows.n_blocks):
            if sums[block] >= need and sums[block] > 0.0:
                possible[question, block >> 6] |= ONE << np.uint64(block & 63)
    return True


@kernel
def _add(weight: float, present: Words64, sums: Floats) -> None:
    """Add a weight to the sums of the blocks that are present."""
    for word in range(present.size):
        bits = present[word]
        while bits:
            lowest = bits & (~bits + ONE)
            sums[64 * word + _PLACE_OF_BIT[(lowest * _DE_BRUIJN) >> _FIFTY_EIGHT]] += weight
            bits ^= lowest


@kernel
def bound_runs(
    tokens: Numbers,
    numbers: Numbers,
    offsets: Integers,
    run: int,
    size: int,
    rows: Rows,
    is_read: Flags,
    possible: Words64,
) -> bool:
    """Find the blocks in which a run of that many tokens of a text may occur.

    All n-grams of such a run are present. `numbers` are the same tokens as in the index, where 0
    is any other token, which may be in every block. Otherwise like `bound_weights`, for texts.
    """
    n_grams = run - size + 1
    present = np.empty(possible.shape[1], np.uint64)
    lengths = np.empty(rows.n_blocks, np.int64)
    longest = np.empty(rows.n_blocks, np.int64)
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        if stop - start < run:
            continue
        for block in range(rows.n_blocks):
            lengths[block] = longest[block] = 0
        for at in range(start, stop - size + 1):
            is_any = False
            for step in range(size):
                is_any = is_any or numbers[at + step] == 0
            if not find_ngram(digest_of(tokens, at, size), rows, is_read, present):
                return False
            for block in range(rows.n_blocks):
                is_present = is_any or (present[block >> 6] >> np.uint64(block & 63)) & ONE
                lengths[block] = lengths[block] + 1 if is_present else 0
                longest[block] = max(longest[block], lengths[block])
        for block in range(rows.n_blocks):
            if longest[block] >= n_grams:
                possible[text, block >> 6] |= ONE << np.uint64(block & 63)
    return True
