"""Token runs that a document shares with texts: the longest, and those of an alignment.

All results are exact. The common case (few shared n-grams) follows each hit. In repetitive text the
number of hits grows with the product of the lengths; there a suffix automaton of one side is used,
with work that grows with the sum. Reference implementations: `tests/oracle/other_detectors.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    NONE,
    Flags,
    Integers,
    Numbers,
    Table,
    Words64,
    first_at_least,
    n_same,
    zeros,
)
from decon_core.kernels.automaton import END, ZERO, automaton_of, step
from decon_core.kernels.hashing import (
    LOW,
    digest_of,
    has_bit,
    next_slot,
    pair_digest,
    scaled,
    set_bit,
    slot_of_gram,
)
from decon_core.kernels.jit import inlined, kernel

GAP = np.uint32(0xFFFFFFFF)  # a token that neither documents nor texts have

# Columns of runs and of blocks: where it begins in the document and in the text, its tokens.
DOCUMENT, TEXT, LENGTH = 0, 1, 2


class Texts(NamedTuple):
    """The texts to search for, with an inverted index of their n-grams."""

    tokens: Numbers
    offsets: Integers
    pairs: Words64  # filter of adjacent token pairs: one bit each
    slots: Numbers  # two each: an n-gram's number, from 1, and half its digest
    gram_at: Numbers  # position of each n-gram's first occurrence
    posting_offsets: Integers
    postings: Numbers  # positions in the tokens, ascending
    posting_texts: Numbers  # the text of each posting


class Longest(NamedTuple):
    """The longest run that a document shares with each text; of equal ones the first."""

    runs: Table  # a row for each text; length 0: none
    touched: Integers  # texts with a run, in any order
    are_opened: Flags  # per text: whether a shared n-gram opens a comparison


def longest_of(n_texts: int) -> Longest:
    """Return room for the longest run of each text."""
    runs, touched = np.zeros((n_texts, 3), np.int64), np.empty(n_texts, np.int64)
    return Longest(runs, touched, np.zeros(n_texts, np.uint8))


class Run(NamedTuple):
    """A run of tokens that occurs on both sides."""

    document: int
    text: int
    length: int


# Maximum document tokens in one automaton: about 6 MB.
_WINDOW = 1 << 15

# Cost of entering a token, and of a step through the automaton, in units of one hit.
_WORK_TO_ENTER = 64
_WORK_TO_STEP = 8

# n-grams ------------------------------------------------------------------------------------------


@kernel
def _pair_bit(tokens: Numbers, at: int, pairs: Words64) -> np.uint64:
    return np.uint64(scaled(pair_digest(tokens[at], tokens[at + 1]), 64 * pairs.size))


@kernel
def enter_pairs(tokens: Numbers, offsets: Integers, pairs: Words64) -> None:
    """Enter the adjacent token pairs of texts into a filter."""
    for text in range(offsets.size - 1):
        for at in range(offsets[text], offsets[text + 1] - 1):
            set_bit(pairs, _pair_bit(tokens, at, pairs))


@kernel
def fill_slots(tokens: Numbers, gram_at: Numbers, size: int, slots: Numbers) -> None:
    """Enter distinct n-grams: number and half a digest. `slots`: zeros, more than needed.

    The half digest avoids all but one in 2^32 token comparisons, which would be cache misses.
    """
    n_slots = slots.size // 2
    for number in range(gram_at.size):
        digest = digest_of(tokens, np.int64(gram_at[number]), size)
        slot = scaled(digest, n_slots)
        while slots[2 * slot]:
            slot = next_slot(slot, n_slots)
        slots[2 * slot] = np.uint32(number + 1)
        slots[2 * slot + 1] = np.uint32(digest & LOW)


@kernel
def _number_of(
    tokens: Numbers, at: int, size: int, known: Numbers, gram_at: Numbers, slots: Numbers
) -> int:
    """Return the number of the n-gram at a position, or `NONE`."""
    n_slots = slots.size // 2
    digest = digest_of(tokens, at, size)
    slot = scaled(digest, n_slots)
    while slots[2 * slot]:
        if slots[2 * slot + 1] == digest & LOW:
            number = np.int64(slots[2 * slot]) - 1
            if n_same(tokens, at, known, np.int64(gram_at[number]), size) == size:
                return number
        slot = next_slot(slot, n_slots)
    return NONE


@kernel
def enter_grams(tokens: Numbers, start: int, stop: int, size: int, slots: Numbers) -> None:
    """Enter the n-grams of a range of tokens. `slots`: zeros, more than n-grams."""
    for at in range(start, stop - size + 1):
        slot = slot_of_gram(tokens, at, size, tokens, slots)
        if not slots[slot]:
            slots[slot] = np.uint32(at + 1)


@kernel
def _has_gram(tokens: Numbers, slots: Numbers, text: Numbers, at: int, size: int) -> bool:
    return slots[slot_of_gram(text, at, size, tokens, slots)] > 0


@kernel
def covered(
    tokens: Numbers,
    size: int,
    known: Texts,
    texts: Integers,
    kept: Numbers,
    kept_offsets: Integers,
) -> None:
    """Copy the tokens of texts that are in an n-gram of `tokens`, with `GAP` between.

    Blocks of at least `size` tokens consist of such n-grams. So these tokens, without the gaps, are
    an upper bound of any alignment, and texts with equal ones have the same blocks. `kept` needs
    room for all tokens of the texts; `kept_offsets` gets the range of each.
    """
    n, known_tokens = ZERO, known.tokens
    slots = zeros(2 * tokens.size + 1)
    enter_grams(tokens, 0, tokens.size, size, slots)
    for number in range(texts.size):
        kept_offsets[number] = n
        start, stop = known.offsets[texts[number]], known.offsets[texts[number] + 1]
        # `document` is where the last n-gram ends in the document, if it was found.
        reached, document = start, ZERO
        for at in range(start, stop - size + 1):
            last = known_tokens[at + size - 1]
            if document and document < tokens.size and tokens[document] == last:
                document += 1
            else:
                document = np.int64(slots[slot_of_gram(known_tokens, at, size, tokens, slots)])
                document += (size - 1) * (document > 0)  # numbered from 1
            if document:
                if at > reached and n > kept_offsets[number]:
                    kept[n] = GAP
                    n += 1
                for place in range(max(reached, at), at + size):
                    kept[n] = known_tokens[place]
                    n += 1
                reached = at + size
    kept_offsets[texts.size] = n


# The longest run of each text ---------------------------------------------------------------------


@kernel
def runs_of_documents(
    tokens: Numbers,
    offsets: Integers,
    documents: Integers,
    first: int,
    texts: Texts,
    opens: Flags,
    size: int,
    longest: Longest,
    found: Table,
) -> tuple[int, int]:
    """Find the longest runs of documents, from `first` on, with texts that they open.

    `found` gets a row for each: document, text, where the run begins in the document, its tokens.
    Returns the number of rows, and the document to continue with if `found` is full.
    """
    runs, touched, are_opened = longest
    n = 0
    for number in range(first, documents.size):
        n_before, document = n, documents[number]
        start, stop = offsets[document], offsets[document + 1]
        n_touched = longest_runs(tokens, start, stop, texts, opens, size, longest)
        for at in range(n_touched):
            text = touched[at]
            if are_opened[text]:
                if n < found.shape[0]:
                    found[n, 0], found[n, 1] = document, text
                    found[n, 2], found[n, 3] = runs[text, DOCUMENT] - start, runs[text, LENGTH]
                n += 1
            runs[text, LENGTH] = 0
            are_opened[text] = 0
        if n > found.shape[0]:
            return n_before, number
    return n, documents.size


@kernel
def longest_runs(
    tokens: Numbers,
    start: int,
    stop: int,
    texts: Texts,
    opens: Flags,
    size: int,
    longest: Longest,
) -> int:
    """Find the longest run, of at least `size` tokens, that a document shares with each text.

    `opens`: for each token of the texts, whether the n-gram from there opens a comparison. Returns
    the number of texts that have a run, which are in `touched`. The caller must reset their lengths
    and `are_opened` to 0.
    """
    n_touched = ZERO
    for first in range(start, stop - size + 1, _WINDOW):
        last = min(first + _WINDOW, stop - size + 1)
        n_touched, is_done = _follow_hits(
            tokens, start, stop, first, last, texts, opens, size, longest, n_touched
        )
        if not is_done:
            n_touched = _follow_texts(
                tokens, stop, first, last, texts, opens, size, longest, n_touched
            )
    return n_touched


@kernel
def _follow_hits(
    tokens: Numbers,
    start: int,
    stop: int,
    first: int,
    last: int,
    texts: Texts,
    opens: Flags,
    size: int,
    longest: Longest,
    n_touched: int,
) -> tuple[int, bool]:
    """Follow every run that begins in [first, last), up to a limit of work.

    Returns the number of touched texts, and whether all runs were followed.
    """
    known_tokens, offsets, pairs, slots, gram_at, posting_offsets, postings, posting_texts = texts
    runs, touched, are_opened = longest
    most_work = _WORK_TO_ENTER * (last - first)
    for at in range(n_touched):
        text = touched[at]
        most_work += _WORK_TO_STEP * (offsets[text + 1] - offsets[text])
    work = 0
    # Most n-grams contain a pair of tokens that is adjacent in no text.
    n_pairs = 0
    for at in range(first, first + size - 2):
        n_pairs = (n_pairs + 1) * has_bit(pairs, _pair_bit(tokens, at, pairs))
    for at in range(first, last):
        n_pairs = (n_pairs + 1) * has_bit(pairs, _pair_bit(tokens, at + size - 2, pairs))
        if n_pairs < size - 1:
            continue
        number = _number_of(tokens, at, size, known_tokens, gram_at, slots)
        if number == NONE:
            continue
        posting_stop = posting_offsets[number + 1]
        for posting in range(posting_offsets[number], posting_stop):
            known = np.int64(postings[posting])
            text = np.int64(posting_texts[posting])
            text_start, text_stop = offsets[text], offsets[text + 1]
            are_opened[text] |= opens[known]
            work += 1
            if at > start and known > text_start and tokens[at - 1] == known_tokens[known - 1]:
                continue  # inside a run that began earlier
            most = min(text_stop - known, stop - at)
            if most <= runs[text, LENGTH]:
                continue  # not longer than an earlier one
            length = size + n_same(tokens, at + size, known_tokens, known + size, most - size)
            work += length
            if runs[text, LENGTH] == 0:
                touched[n_touched] = text
                n_touched += 1
                most_work += _WORK_TO_STEP * (text_stop - text_start)
            _keep_better(Run(at, known - text_start, length), runs[text])
            if work > most_work:
                return n_touched, False
        if work > most_work:
            return n_touched, False
    return n_touched, True


@inlined
def _keep_better(run: Run, best: Integers) -> None:
    """Keep the longer run; of equal ones the first in the document, then in the text."""
    if run.length < best[LENGTH]:
        return
    if run.length == best[LENGTH]:
        if run.document > best[DOCUMENT]:
            return
        if run.document == best[DOCUMENT] and run.text >= best[TEXT]:
            return
    best[DOCUMENT], best[TEXT], best[LENGTH] = run


@kernel
def _follow_texts(
    tokens: Numbers,
    stop: int,
    first: int,
    last: int,
    texts: Texts,
    opens: Flags,
    size: int,
    longest: Longest,
    n_touched: int,
) -> int:
    """Find the same runs by stepping the touched texts through an automaton of the range."""
    known_tokens, offsets, _, slots, gram_at, posting_offsets, postings, posting_texts = texts
    runs, touched, are_opened = longest
    is_seen = zeros(gram_at.size)
    for at in range(first, last):
        number = _number_of(tokens, at, size, known_tokens, gram_at, slots)
        if number == NONE or is_seen[number]:
            continue
        is_seen[number] = 1
        for posting in range(posting_offsets[number], posting_offsets[number + 1]):
            text, known = np.int64(posting_texts[posting]), np.int64(postings[posting])
            are_opened[text] |= opens[known]
            if runs[text, LENGTH] == 0:
                _keep_better(Run(at, known - offsets[text], size), runs[text])
                touched[n_touched] = text
                n_touched += 1
    most = 0
    for at in range(n_touched):
        most = max(most, offsets[touched[at] + 1] - offsets[touched[at]])
    automaton = automaton_of(tokens, first, min(last - 1 + most, stop))
    for at in range(n_touched):
        text = touched[at]
        text_start = offsets[text]
        state, length = ZERO, ZERO
        for known in range(text_start, offsets[text + 1]):
            state, length = step(automaton, state, length, np.int64(known_tokens[known]))
            if length >= size:
                document = automaton.states[state, END] - length
                run = Run(document, known + 1 - length - text_start, length)
                _keep_better(run, runs[text])
    return n_touched


# Blocks -------------------------------------------------------------------------------------------


@kernel
def matching_blocks(a: Numbers, b: Numbers, least: int, blocks: Integers) -> int:
    """Find the Ratcliff-Obershelp blocks of at least `least` tokens, in order; return how many.

    The longest common run (of equal ones the first in `a`, then in `b`) is a block; then the same
    to its left and right. If the longest is too short, so are all others. `blocks` needs room for
    `min(a.size, b.size) // least`, as blocks share no tokens. Two blocks are never adjacent on both
    sides: they would have been found as one.
    """
    slots = zeros(2 * b.size + 2)
    enter_grams(b, 0, b.size, least, slots)
    ranges = np.empty((a.size // 2 + 1, 2), np.int64)
    ranges = ranges[: _shared_ranges(a, b, least, slots, ranges)]
    # A stack of ranges of both sides still to search, and of blocks (length instead of 0), which
    # follow the range to their left. Each block pushes at most two ranges.
    stack = np.empty((2 * (min(a.size, b.size) // least) + 3, 5), np.int64)
    n_stack = _push(stack, ZERO, 0, a.size, 0, b.size, 0)
    n_blocks = 0
    while n_stack:
        n_stack -= 1
        a_start, a_stop = stack[n_stack, 0], stack[n_stack, 1]
        b_start, b_stop = stack[n_stack, 2], stack[n_stack, 3]
        if stack[n_stack, 4]:
            blocks[n_blocks, DOCUMENT] = a_start
            blocks[n_blocks, TEXT] = b_start
            blocks[n_blocks, LENGTH] = stack[n_stack, 4]
            n_blocks += 1
            continue
        run = _longest_run(a, a_start, a_stop, b, b_start, b_stop, least, ranges)
        if run.length == 0:
            continue
        a_end, b_end = run.document + run.length, run.text + run.length
        if min(a_stop - a_end, b_stop - b_end) >= least:
            n_stack = _push(stack, n_stack, a_end, a_stop, b_end, b_stop, 0)
        n_stack = _push(stack, n_stack, run.document, a_end, run.text, b_end, run.length)
        if min(run.document - a_start, run.text - b_start) >= least:
            n_stack = _push(stack, n_stack, a_start, run.document, b_start, run.text, 0)
    return n_blocks


@inlined
def _push(
    stack: Integers, n: int, a_start: int, a_stop: int, b_start: int, b_stop: int, length: int
) -> int:
    stack[n, 0] = a_start
    stack[n, 1] = a_stop
    stack[n, 2] = b_start
    stack[n, 3] = b_stop
    stack[n, 4] = length
    return n + 1


@inlined
def _shared_ranges(a: Numbers, b: Numbers, size: int, slots: Numbers, ranges: Integers) -> int:
    """Find the maximal ranges of `a` whose n-grams are all in `b`; every run is within one."""
    n = 0
    was_hit = False
    for at in range(a.size - size + 1):
        is_hit = _has_gram(b, slots, a, at, size)
        if is_hit:
            if not was_hit:
                ranges[n, 0] = at
                n += 1
            ranges[n - 1, 1] = at + size
        was_hit = is_hit
    return n


@kernel
def _longest_run(
    a: Numbers,
    a_start: int,
    a_stop: int,
    b: Numbers,
    b_start: int,
    b_stop: int,
    least: int,
    ranges: Integers,
) -> Run:
    """Return the longest run in these ranges, first in `a`, then in `b`; empty if too short."""
    best = Run(0, 0, 0)
    number = first_at_least(ranges[:, 1], 0, ranges.shape[0], a_start + 1)
    while number < ranges.shape[0] and ranges[number, 1] - a_start < least:
        number += 1
    if number == ranges.shape[0] or a_stop - ranges[number, 0] < least:
        return best
    automaton = automaton_of(b, b_start, b_stop)
    while number < ranges.shape[0] and ranges[number, 0] < a_stop:
        first, last = max(ranges[number, 0], a_start), min(ranges[number, 1], a_stop)
        number += 1
        if last - first < least or last - first <= best.length:
            continue
        state, length = ZERO, ZERO
        for at in range(first, last):
            state, length = step(automaton, state, length, np.int64(a[at]))
            if length >= least and length > best.length:
                text = automaton.states[state, END] - length
                best = Run(at + 1 - length, text, length)
        if best.length == b_stop - b_start:
            break
    return best
