"""Find the windows of a document that hold most of a program's fingerprints.

A fingerprint is the digest of consecutive tokens. Every one of a document is looked up; those of a
program that are also in many other programs of its benchmark were left out before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Array, Bytes, Int32s, Integers, Words64
from decon_core.kernels.code.lexer import (
    END,
    has_slash_comments,
    next_token,
    write_tokens,
)
from decon_core.kernels.hashing import BASE, ONE, ZERO, Numbered, mixed, number_of_digest
from decon_core.kernels.jit import kernel

# Columns of events: a fingerprint found in a document.
GRAM, TOKEN, START, STOP = range(4)

# Columns of the windows that were found.
PROGRAM, WEIGHT, N_MATCHED, FIRST, LAST = range(5)


class Index(NamedTuple):
    """Fingerprints of all programs, numbered, and the programs that have each."""

    names: Words64  # table of the names that count as themselves
    numbered: Numbered  # the fingerprints
    posting_offsets: Integers
    posting_programs: Int32s
    posting_weights: Integers  # units of 2^-20, so that sums are exact
    totals: Integers  # weight of all fingerprints of each program
    spans: Integers  # tokens of the longest window to look at


class Scratch(NamedTuple):
    """Arrays for one document, and zero before the next unless stated otherwise."""

    weights: Integers  # per program
    n_events: Integers  # per program
    touched: Integers  # per program; not zero
    offsets: Integers  # per program; not zero
    is_seen: Array  # per fingerprint, 0 or 1
    n_inside: Int32s  # per posting: how often in the current window


@kernel
def grams_of(
    data: Bytes, start: int, stop: int, size: int, names: Words64, grams: Words64
) -> tuple[int, int]:
    """Write the fingerprints of a text in order; return their number and that of the tokens."""
    n_tokens = write_tokens(data, start, stop, names, grams)
    n = max(n_tokens - size + 1, 0)
    for at in range(n):
        digest = ZERO
        for step in range(size):
            digest = digest * BASE + grams[at + step]
        grams[at] = mixed(digest)
    return n, n_tokens


@kernel
def find_events(
    data: Bytes, start: int, stop: int, size: int, index: Index, events: Integers
) -> int:
    """Write the fingerprints of a document that a program has; return their number.

    More than there are rows for: call it again with as many rows.
    """
    has_slashes, numbered = has_slash_comments(data, start, stop), index.numbered
    recent, starts = np.empty(size, np.uint64), np.empty(size, np.int64)
    highest = ONE
    for _ in range(size):
        highest = highest * BASE
    n = token = 0
    at = start
    rolling = ZERO
    while at < stop:
        digest, first, at = next_token(data, at, start, stop, has_slashes, index.names)
        if digest == END:
            break
        place = token % size
        rolling = rolling * BASE + digest
        if token >= size:
            rolling = rolling - highest * recent[place]
        recent[place], starts[place] = digest, first
        token += 1
        if token < size:
            continue
        number = number_of_digest(mixed(rolling), numbered)
        if number != NONE:
            if n < events.shape[0]:
                events[n, GRAM], events[n, TOKEN] = number, token - size
                events[n, START], events[n, STOP] = starts[token % size], at
            n += 1
    return n


@kernel
def find_windows(
    events: Integers, n: int, floor: float, index: Index, scratch: Scratch, windows: Integers
) -> int:
    """Write the best window of each program with at least a share `floor` in it, by program;
    return their number.

    The best is the heaviest, and of equally heavy ones that which ends first, without what it has
    twice at its start. There must be as many rows as programs; places are bytes.
    """
    touched, offsets = scratch.touched, scratch.offsets
    n_kept = n_postings = 0
    for at in range(_add_up(events, n, index, scratch)):
        program = touched[at]
        is_enough = scratch.weights[program] >= floor * index.totals[program]
        scratch.weights[program] = 0
        if is_enough:
            touched[n_kept], offsets[n_kept] = program, n_postings
            n_postings += scratch.n_events[program]
            n_kept += 1
        scratch.n_events[program] = -n_kept if is_enough else 0
    places, postings = np.empty(n_postings, np.int64), np.empty(n_postings, np.int64)
    _sort_by_program(events, n if n_kept else 0, index, scratch, places, postings)
    n_found = 0
    for kept in range(n_kept):
        program = touched[kept]
        scratch.n_events[program] = 0
        begin = offsets[kept - 1] if kept else 0  # `_sort_by_program` moved them to the ends
        window = windows[n_found]
        _best_window(
            events, places, postings, begin, offsets[kept], program, index, scratch, window
        )
        n_found += window[WEIGHT] >= floor * index.totals[program]
    return n_found


@kernel
def _add_up(events: Integers, n: int, index: Index, scratch: Scratch) -> int:
    """Sum the weights of the fingerprints in a whole document; return the number of programs."""
    n_touched = 0
    for event in range(n):
        gram = events[event, GRAM]
        for posting in range(index.posting_offsets[gram], index.posting_offsets[gram + 1]):
            program = index.posting_programs[posting]
            if scratch.n_events[program] == 0:
                scratch.touched[n_touched] = program
                n_touched += 1
            scratch.n_events[program] += 1
            if not scratch.is_seen[gram]:
                scratch.weights[program] += index.posting_weights[posting]
        scratch.is_seen[gram] = 1
    for event in range(n):
        scratch.is_seen[events[event, GRAM]] = 0
    scratch.touched[:n_touched].sort()
    return n_touched


@kernel
def _sort_by_program(
    events: Integers,
    n: int,
    index: Index,
    scratch: Scratch,
    places: Integers,
    postings: Integers,
) -> None:
    """Write event and posting numbers by kept program, in order; move offsets to the ends."""
    for event in range(n):
        gram = events[event, GRAM]
        for posting in range(index.posting_offsets[gram], index.posting_offsets[gram + 1]):
            kept = -1 - scratch.n_events[index.posting_programs[posting]]
            if kept >= 0:
                at = scratch.offsets[kept]
                places[at], postings[at] = event, posting
                scratch.offsets[kept] += 1


@kernel
def _best_window(
    events: Integers,
    places: Integers,
    postings: Integers,
    begin: int,
    end: int,
    program: int,
    index: Index,
    scratch: Scratch,
    window: Integers,
) -> None:
    """Write the best window of one program."""
    total, n_distinct, left = 0, 0, begin
    window[PROGRAM], window[WEIGHT] = program, -1
    for right in range(begin, end):
        posting = postings[right]
        scratch.n_inside[posting] += 1
        if scratch.n_inside[posting] == 1:
            total += index.posting_weights[posting]
            n_distinct += 1
        # Leave what is too far away, and what is in the window again.
        while (
            scratch.n_inside[postings[left]] > 1
            or events[places[right], TOKEN] - events[places[left], TOKEN] >= index.spans[program]
        ):
            scratch.n_inside[postings[left]] -= 1
            if scratch.n_inside[postings[left]] == 0:
                total -= index.posting_weights[postings[left]]
                n_distinct -= 1
            left += 1
        if total > window[WEIGHT]:
            window[WEIGHT], window[N_MATCHED] = total, n_distinct
            window[FIRST], window[LAST] = events[places[left], START], events[places[right], STOP]
    for at in range(left, end):
        scratch.n_inside[postings[at]] = 0
