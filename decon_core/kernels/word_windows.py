"""Windows of a document that hold many content words of an item, whatever their order.

Reference implementation: `tests/oracle/reworded.py`. An item has a few anchors, its rarest content
words. Only windows with two different anchors are looked at, so most words of a document cost one
lookup. All weights are whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Array, Integers, Numbers, Shorts, Words64
from decon_core.kernels.jit import inlined, kernel

# Columns of what is found.
DOCUMENT, ITEM, START, STOP, WEIGHT, N_TERMS, N_COLUMNS = range(7)

# Packed numbers, so that a lookup costs one cache miss. An anchor: the item, the length of its
# window, the anchor's weight and rank. The last anchor of an item: position from 1, weight, rank.
# Two anchors: the item, their distance, position of the second in this round.
_ITEM_SHIFT, _LENGTH_SHIFT, _WEIGHT_SHIFT = np.uint64(32), np.uint64(16), np.uint64(3)
_LENGTH, _WEIGHT, _RANK, _TAG = (np.uint64((1 << bits) - 1) for bits in (16, 13, 3, 16))
_PAIR_SHIFT, _DISTANCE_SHIFT = np.uint64(40), np.uint64(24)
_PLACE = np.uint64((1 << 24) - 1)
_LOW = np.uint64((1 << 32) - 1)
_ROUND = 1 << 7  # pairs that are looked at together: their items fit the CPU cache
LONGEST_WINDOW = 1 << 16
MOST_ANCHORS = 1 << 3
MOST_ITEMS = 1 << 24

# Columns of an item's row.
FIRST_TERM, N_ITEM_TERMS, LENGTH, LEAST, N_ROW = range(5)


class Items(NamedTuple):
    """What is searched for. Terms and numerals are numbered from 1; 0 is any other word."""

    anchor_offsets: Integers  # per term: range of its anchors
    anchors: Words64  # packed: items that have the term as an anchor
    rows: (
        Integers  # per item: where its terms begin, how many, words of a window, least weight kept
    )
    terms: Words64  # packed: term and weight
    numeral_offsets: Integers  # per item: range of its different numerals
    numerals: Numbers
    numeral_counts: Integers  # how often the item has it
    numeral_weights: Integers
    totals: Integers  # per item: weight of its terms and numerals


class _Scratch(NamedTuple):
    marks: Shorts  # per term: its number in the item, from 1
    places: Integers  # of the hits
    terms: Shorts  # of the hits, by their marks
    counts: Integers  # per mark


def pack_terms(terms: Array, weights: Array) -> Words64:
    return terms.astype(np.uint64) << _ITEM_SHIFT | weights.astype(np.uint64)


def pack_anchors(items: Array, lengths: Array, weights: Array, ranks: Array) -> Words64:
    """Pack anchors into one number each; ranks begin at 1."""
    of_item = items.astype(np.uint64) << _ITEM_SHIFT | lengths.astype(np.uint64) << _LENGTH_SHIFT
    return of_item | weights.astype(np.uint64) << _WEIGHT_SHIFT | ranks.astype(np.uint64)


class Limits(NamedTuple):
    """Settings of the detector."""

    least_pair: int  # weight of two anchors that are worth a look
    floor: float  # windows of a lower score are not kept
    little: int  # evidence of this weight halves the score
    longest_gap: int  # words up to a repeated term that still belongs to the window
    margin: int  # words around a window in which its numerals may stand


@kernel
def find_windows(
    words: Numbers, offsets: Integers, items: Items, limits: Limits, found: Integers
) -> int:
    """Write the best window around each two anchors that follow each other, if it is kept.

    Returns how many there are, more than `found` has rows if it is too small. A window has at most
    the item's number of words, and then those terms of the item that are close to it.
    """
    last = np.zeros(items.totals.size, np.uint64)  # per item: its last anchor, packed
    longest = 2 * _largest(items.rows[:, LENGTH]) + 1
    scratch = _Scratch(
        np.zeros(items.anchor_offsets.size, np.int16),
        np.empty(longest, np.int64),
        np.empty(longest, np.int16),
        np.zeros(_largest(items.rows[:, N_ITEM_TERMS]) + 1, np.int64),
    )
    pairs = np.empty(_ROUND + _largest(np.diff(items.anchor_offsets)) + 1, np.uint64)
    window = np.zeros(N_COLUMNS, np.int64)
    n_found = 0
    for document in range(offsets.size - 1):
        window[DOCUMENT] = document
        at, end = offsets[document], offsets[document + 1]
        while at < end:
            begin = at
            at, n_pairs = _find_pairs(words, offsets[document], at, end, items, limits, last, pairs)
            window[WEIGHT] = _touch(items, pairs, n_pairs)
            for pair in range(n_pairs):
                window[ITEM] = pairs[pair] >> _PAIR_SHIFT
                second = begin + np.int64(pairs[pair] & _PLACE)
                first = second - np.int64(pairs[pair] >> _DISTANCE_SHIFT & _LENGTH)
                edges = (offsets[document], end, first, second)
                if _is_kept(words, edges, items, limits, scratch, window):
                    if n_found < found.shape[0]:
                        for column in range(N_COLUMNS):
                            found[n_found, column] = window[column]
                        found[n_found, START] -= offsets[document]
                        found[n_found, STOP] -= offsets[document]
                    n_found += 1
    return n_found


@inlined
def _touch(items: Items, pairs: Words64, n_pairs: int) -> int:
    """Read the beginning of the terms of all items, so that their cache misses overlap."""
    touched = 0
    for pair in pairs[:n_pairs]:
        touched += np.int64(items.terms[items.rows[pair >> _PAIR_SHIFT, FIRST_TERM]] & _LOW)
    return touched


@inlined
def _find_pairs(
    words: Numbers,
    begin: int,
    at: int,
    end: int,
    items: Items,
    limits: Limits,
    last: Words64,
    pairs: Integers,
) -> tuple[int, int]:
    """Write items with the positions of two anchors; return the next word, and how many they are.

    Most anchors are alone. That is decided without a branch, so that cache misses overlap.
    """
    least_pair, n = np.uint64(limits.least_pair), np.uint64(0)
    start, end = at, min(end, at + np.int64(_PLACE))
    edges, anchors = items.anchor_offsets, items.anchors  # numba counts references in a loop
    while at < end and n < np.uint64(_ROUND):
        word, place = words[at], np.uint64(at + 1)
        if word != 0:
            first, stop = edges[word], edges[word + 1]
            for posting in range(np.uint64(first), np.uint64(stop)):
                anchor = anchors[posting]
                item = anchor >> _ITEM_SHIFT
                before, now = last[item], place << _LENGTH_SHIFT | anchor & _TAG
                last[item] = now
                previous = before >> _LENGTH_SHIFT
                weights = (before >> _WEIGHT_SHIFT & _WEIGHT) + (now >> _WEIGHT_SHIFT & _WEIGHT)
                distance = place - previous
                pairs[n] = (
                    item << _PAIR_SHIFT
                    | (distance & _LENGTH) << _DISTANCE_SHIFT
                    | np.uint64(at - start)
                )
                n += np.uint64(
                    (previous > np.uint64(begin))
                    & (distance < (anchor >> _LENGTH_SHIFT & _LENGTH))
                    & ((before ^ now) & _RANK != np.uint64(0))
                    & (weights >= least_pair)
                )
        at += 1
    return at, np.int64(n)


@inlined
def _largest(numbers: Integers) -> int:
    largest = 0
    for number in numbers:
        largest = max(largest, number)
    return largest


@inlined
def _is_kept(
    words: Numbers,
    edges: tuple[int, int, int, int],
    items: Items,
    limits: Limits,
    scratch: _Scratch,
    window: Integers,
) -> bool:
    """Write the best window around two anchors to `window`; return whether its score suffices."""
    item, marks, counts, terms = window[ITEM], scratch.marks, scratch.counts, items.terms
    base, n_terms, least = items.rows[item, 0], items.rows[item, 1], items.rows[item, LEAST]
    for term in range(n_terms):
        marks[terms[base + term] >> _ITEM_SHIFT] = term + 1
    n_hits = _find_hits(words, edges, items, item, scratch)
    is_kept = _weight_of_hits(n_hits, items, item, scratch) >= least
    if is_kept:
        _find_best(n_hits, edges, items, scratch, window)
        is_kept = window[WEIGHT] >= least
    if is_kept:
        _add_near_terms(words, edges, limits.longest_gap, marks, window)
        evidence = window[WEIGHT] + _weight_of_numerals(words, edges, items, limits, marks, window)
        share = evidence / items.totals[item]
        is_kept = share * (evidence / (evidence + limits.little)) >= limits.floor
    for term in range(n_terms):
        marks[terms[base + term] >> _ITEM_SHIFT] = 0
        counts[term + 1] = 0
    return is_kept


@inlined
def _find_hits(
    words: Numbers,
    edges: tuple[int, int, int, int],
    items: Items,
    item: int,
    scratch: _Scratch,
) -> int:
    """Collect the terms of an item that stand in a window with both anchors; return how many."""
    begin, end, first, second = edges
    length = items.rows[item, LENGTH]
    marks, places, terms = scratch.marks, scratch.places, scratch.terms
    n = np.uint64(0)
    start, stop = max(begin, second - length + 1), min(end, first + length)
    for at in range(np.uint64(start), np.uint64(stop)):
        term = marks[words[at]]
        places[n] = at
        terms[n] = term
        n += np.uint64(term != 0)  # branch-free
    return np.int64(n)


@inlined
def _weight_of_hits(n_hits: int, items: Items, item: int, scratch: _Scratch) -> int:
    """Return the weight of all different terms that were hit: no window of them has more."""
    weight, base = 0, items.rows[item, FIRST_TERM] - 1
    terms, counts, weights = scratch.terms, scratch.counts, items.terms
    for hit in range(n_hits):
        term = terms[hit]
        if counts[term] == 0:
            counts[term] = 1
            weight += np.int64(weights[base + term] & _LOW)
    for hit in range(n_hits):
        counts[terms[hit]] = 0
    return weight


@inlined
def _find_best(
    n_hits: int,
    edges: tuple[int, int, int, int],
    items: Items,
    scratch: _Scratch,
    window: Integers,
) -> None:
    """Write the window with the largest weight of terms that holds both anchors.

    Of windows of the same weight the one that ends first; it begins as late as its terms allow.
    """
    first, second = edges[2:]
    places, terms, counts, weights = scratch.places, scratch.terms, scratch.counts, items.terms
    item = window[ITEM]
    base, length = items.rows[item, FIRST_TERM] - 1, items.rows[item, LENGTH]
    window[WEIGHT] = weight = n_terms = tail = 0
    for hit in range(n_hits):
        term, at = terms[hit], places[hit]
        if counts[term] == 0:
            weight += np.int64(weights[base + term] & _LOW)
            n_terms += 1
        counts[term] += 1
        # Drop terms that are too far, and at the beginning those that occur again.
        while at - places[tail] >= length or (counts[terms[tail]] > 1 and places[tail] < first):
            other = terms[tail]
            counts[other] -= 1
            if counts[other] == 0:
                weight -= np.int64(weights[base + other] & _LOW)
                n_terms -= 1
            tail += 1
        if at >= second and weight > window[WEIGHT]:
            window[WEIGHT], window[N_TERMS] = weight, n_terms
            window[START], window[STOP] = places[tail], at + 1


@inlined
def _add_near_terms(
    words: Numbers,
    edges: tuple[int, int, int, int],
    longest_gap: int,
    marks: Shorts,
    window: Integers,
) -> None:
    """Extend the window by terms that are repeated close before or behind it."""
    begin, end = edges[:2]
    at = window[START] - 1
    while at >= begin and window[START] - at <= longest_gap:
        if marks[words[at]] != 0:
            window[START] = at
        at -= 1
    at = window[STOP]
    while at < end and at - window[STOP] < longest_gap:
        if marks[words[at]] != 0:
            window[STOP] = at + 1
        at += 1


@inlined
def _weight_of_numerals(
    words: Numbers,
    edges: tuple[int, int, int, int],
    items: Items,
    limits: Limits,
    marks: Shorts,
    window: Integers,
) -> int:
    """Return the weight of the item's numerals that stand in or near the window."""
    begin, end = edges[:2]
    item, weight = window[ITEM], 0
    first, last = items.numeral_offsets[item], items.numeral_offsets[item + 1]
    # The mark of a numeral is how many of it are not found yet, below zero.
    for numeral in range(first, last):
        marks[items.numerals[numeral]] = -items.numeral_counts[numeral]
    for at in range(
        max(begin, window[START] - limits.margin), min(end, window[STOP] + limits.margin)
    ):
        if marks[words[at]] < 0:
            marks[words[at]] += 1
    for numeral in range(first, last):
        n_found = items.numeral_counts[numeral] + marks[items.numerals[numeral]]
        weight += n_found * items.numeral_weights[numeral]
        marks[items.numerals[numeral]] = 0
    return weight
