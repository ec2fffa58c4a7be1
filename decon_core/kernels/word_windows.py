"""Windows of a document that hold many content words of an item, whatever their order.

Reference implementation: `tests/oracle/reworded.py`. An item has a few anchors, its rarest content
words. Only windows with two different anchors are looked at. Some of the anchors are triggers: of
each two anchors that are heavy enough together at least one is. The frequent ones mostly are not,
so most words of a document cost one lookup. A trigger is followed only if another anchor, and then
enough weight of terms, is in the blocks of words around it. All weights are whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Array, Integers, Numbers, Shorts, Words64
from decon_core.kernels.hashing import ONE, ZERO
from decon_core.kernels.jit import inlined, kernel

# Columns of what is found.
DOCUMENT, ITEM, START, STOP, WEIGHT, N_TERMS, N_COLUMNS = range(7)

N_ANCHORS = 6
# Columns of a trigger: its item, the words of a window, and the anchors that can be paired with it.
OF_ITEM, OF_WINDOW, PARTNERS, N_TRIGGER = 0, 1, 2, 1 + N_ANCHORS
NUMBER_COUNT = 2  # a number that agrees counts as so many words
# Columns of an item's row. Its first terms are its anchors, with a bit for each that is a trigger.
# The least weight of its terms, and of terms and numerals, in a window that is kept.
FIRST_TERM, N_ITEM_TERMS, LENGTH, LEAST, LEAST_EVIDENCE, IS_TRIGGER, N_ITEM_ANCHORS = range(7)

_TERM_SHIFT, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_ROUND = 1 << 7  # triggers that are looked at together: their items fit the CPU cache
_STRETCH = 1 << 10  # words of a document whose blocks are marked together
_BLOCKS = 64
_ALL, _LAST_BLOCK = np.uint64((1 << 64) - 1), np.uint64(_BLOCKS - 1)
LONGEST_WINDOW = 1 << 16


class Items(NamedTuple):
    """What is searched for. Terms and numerals are numbered from 1; 0 is any other word."""

    trigger_offsets: Numbers  # per term: range of its triggers
    triggers: Numbers  # rows: items that have the term as a trigger
    rows: Integers  # per item
    terms: Words64  # packed: term and weight; per item the heaviest first
    numeral_offsets: Integers  # per item: range of its different numerals
    numerals: Numbers
    numeral_counts: Integers  # how often the item has it
    numeral_weights: Integers
    totals: Integers  # per item: weight of its terms and numerals
    longest_window: int
    most_terms: int  # of an item
    most_triggers: int  # of a term


class _Scratch(NamedTuple):
    marks: Shorts  # per term: its number in the item, from 1
    places: Integers  # places of the hits
    terms: Shorts  # terms of the hits, by their marks
    counts: Integers  # per mark


class _Stretch(NamedTuple):
    """Words whose triggers are looked at, with all words that their windows reach, in blocks."""

    begin: int  # words of the document
    end: int
    first: int  # word of the first block
    last: int  # word behind the last block
    block_shift: int


def pack_terms(terms: Array, weights: Array) -> Words64:
    return terms.astype(np.uint64) << _TERM_SHIFT | weights.astype(np.uint64)


def terms_in(packed: Words64) -> Array:
    return packed >> _TERM_SHIFT


class Limits(NamedTuple):
    """Settings of the detector."""

    least_pair: int  # weight of two anchors that are worth a look
    floor: float  # windows of a lower score are not kept
    least_count: int  # fewest terms and numerals
    half_count: int  # count of terms and numerals that halves the score
    longest_gap: int  # words up to a repeated term that still belongs to the window
    margin: int  # words around a window in which its numerals may stand


@kernel
def find_windows(
    words: Numbers, offsets: Integers, items: Items, limits: Limits, found: Integers
) -> int:
    """Write the best window around each two anchors that follow each other, if it is kept.

    Returns how many there are, more than `found` has rows if it is too small. A window has at most
    the item's number of words, and then those terms of the item that are close to it. The windows
    of an item are in order of the second anchor.
    """
    longest = items.longest_window
    scratch = _Scratch(
        np.zeros(items.trigger_offsets.size, np.int16),
        np.empty(2 * longest + 1, np.int64),
        np.empty(2 * longest + 1, np.int16),
        np.zeros(items.most_terms + 1, np.int64),
    )
    n_words = max(_STRETCH, longest)  # words of a stretch
    blocks = np.zeros(items.trigger_offsets.size, np.uint64)  # per term: in which it is
    places = np.empty(n_words + 2 * longest + 1, np.int64)
    near = np.empty((_ROUND + items.most_triggers + 1, 2), np.int64)
    window = np.zeros(N_COLUMNS, np.int64)
    n_found = 0
    for document in range(offsets.size - 1):
        window[DOCUMENT] = document
        begin, end = offsets[document], offsets[document + 1]
        for start in range(begin, end, n_words):
            stop = min(start + n_words, end)
            first, last = max(begin, start - longest), min(end, stop + longest)
            stretch = _Stretch(begin, end, first, last, _block_shift(last - first, limits))
            n_places = _mark_blocks(words, stretch, blocks, places)
            n_triggers = _keep_triggers(words, start, stop, items, places, n_places)
            trigger = 0
            while trigger < n_triggers:
                trigger, n_near = _find_near(
                    words, stretch, items, blocks, places, trigger, n_triggers, near
                )
                window[WEIGHT] = _touch(items, near, n_near)
                for at in range(_keep_heavy(stretch, items, blocks, near, n_near)):
                    row, place = near[at]
                    window[ITEM] = items.triggers[row, OF_ITEM]
                    n_found = _look_at(
                        words, place, stretch, items, limits, scratch, window, found, n_found
                    )
            for at in range(first, last):
                blocks[words[at]] = ZERO
    return n_found


@inlined
def _block_shift(n_words: int, limits: Limits) -> int:
    """Return the logarithm of the smallest size of blocks that so many words need.

    A window extends to terms, and then to numerals, of an adjacent block at most.
    """
    shift = 0
    while n_words >> shift >= _BLOCKS or 1 << shift < max(limits.longest_gap, limits.margin):
        shift += 1
    return shift


@inlined
def _mark_blocks(words: Numbers, stretch: _Stretch, blocks: Words64, places: Integers) -> int:
    """Set in which blocks each term is, and list the places of all terms; return how many."""
    first, shift = stretch.first, stretch.block_shift
    n = np.uint64(0)
    for at in range(np.uint64(first), np.uint64(stretch.last)):
        places[n] = at
        n += np.uint64(words[at] != 0)  # branch-free
    for number in range(n):
        at = places[number]
        blocks[words[at]] |= ONE << np.uint64((at - first) >> shift)
    return np.int64(n)


@inlined
def _keep_triggers(
    words: Numbers, start: int, stop: int, items: Items, places: Integers, n_places: int
) -> int:
    """Keep the places of a range whose terms are triggers; return how many."""
    offsets = items.trigger_offsets  # numba counts references in a loop
    n = np.uint64(0)
    for number in range(np.uint64(n_places)):
        at = places[number]
        term = words[at]
        is_trigger = offsets[term] != offsets[term + np.uint32(1)]
        places[n] = at
        n += np.uint64((at >= start) & (at < stop) & is_trigger)
    return np.int64(n)


@inlined
def _around(place: int, length: int, stretch: _Stretch) -> np.uint64:
    """Return the bits of the blocks in which a window with a word at this place may be."""
    first = np.uint64(max(place - length + 1 - stretch.first, 0) >> stretch.block_shift)
    last = np.uint64((place + length - 1 - stretch.first) >> stretch.block_shift)
    return (_ALL << first) & (_ALL >> (_LAST_BLOCK - min(last, _LAST_BLOCK)))


@inlined
def _find_near(
    words: Numbers,
    stretch: _Stretch,
    items: Items,
    blocks: Words64,
    places: Integers,
    trigger: int,
    n_triggers: int,
    near: Integers,
) -> tuple[int, int]:
    """Write the rows and places of triggers that have a partner around them.

    Returns the next trigger, and how many they are. Most triggers have none. That is decided
    without a branch, so that cache misses overlap.
    """
    offsets, triggers = items.trigger_offsets, items.triggers  # numba counts references in a loop
    n = np.uint64(0)
    while trigger < n_triggers and n < np.uint64(_ROUND):
        place = places[trigger]
        term = words[place]
        for row in range(np.uint64(offsets[term]), np.uint64(offsets[term + np.uint32(1)])):
            partners = ZERO
            for column in range(PARTNERS, N_TRIGGER):
                partners |= blocks[triggers[row, column]]
            near[n, 0], near[n, 1] = row, place
            around = _around(place, np.int64(triggers[row, OF_WINDOW]), stretch)
            n += np.uint64(partners & around != ZERO)
        trigger += 1
    return trigger, np.int64(n)


@inlined
def _touch(items: Items, near: Integers, n_near: int) -> int:
    """Read the beginning of the terms of all items, so that their cache misses overlap."""
    touched = 0
    triggers, rows, terms = items.triggers, items.rows, items.terms
    for at in range(n_near):
        item = triggers[near[at, 0], OF_ITEM]
        touched += np.int64(terms[rows[item, FIRST_TERM]] & _LOW)
    return touched


@inlined
def _keep_heavy(
    stretch: _Stretch, items: Items, blocks: Words64, near: Integers, n_near: int
) -> int:
    """Keep triggers with terms and numerals in the blocks around them that are heavy enough."""
    triggers, rows, terms = items.triggers, items.rows, items.terms
    offsets, numerals = items.numeral_offsets, items.numerals
    counts, weights = items.numeral_counts, items.numeral_weights
    n = 0
    for number in range(n_near):
        row, place = near[number]
        item = triggers[row, OF_ITEM]
        around = _around(place, np.int64(triggers[row, OF_WINDOW]), stretch)
        base, n_terms = rows[item, FIRST_TERM], rows[item, N_ITEM_TERMS]
        weight = with_terms = ZERO
        for at in range(np.uint64(base), np.uint64(base + n_terms)):
            in_blocks = blocks[terms[at] >> _TERM_SHIFT]
            with_terms |= in_blocks
            weight += (terms[at] & _LOW) * np.uint64(in_blocks & around != ZERO)
        if np.int64(weight) < rows[item, LEAST]:
            continue
        around, is_cut_off = _extended(around, with_terms, stretch)
        evidence = np.int64(weight)
        for at in range(offsets[item], offsets[item + 1]):
            if blocks[numerals[at]] & around != ZERO:
                evidence += counts[at] * weights[at]
        if is_cut_off or evidence >= rows[item, LEAST_EVIDENCE]:
            near[n, 0], near[n, 1] = row, place
            n += 1
    return n


@inlined
def _extended(
    around: np.uint64, with_terms: np.uint64, stretch: _Stretch
) -> tuple[np.uint64, bool]:
    """Add the blocks with terms to which a window may extend, and those next to it.

    Also returns whether it may extend to words behind the blocks.
    """
    before = ZERO
    while around != before:
        before = around
        around |= (around << ONE | around >> ONE) & with_terms
    around |= around << ONE | around >> ONE
    last = np.uint64((stretch.last - 1 - stretch.first) >> stretch.block_shift)
    is_cut_off = (stretch.first > stretch.begin and around & ONE != ZERO) or (
        stretch.last < stretch.end and around >> last & ONE != ZERO
    )
    return around, is_cut_off


@inlined
def _look_at(
    words: Numbers,
    place: int,
    stretch: _Stretch,
    items: Items,
    limits: Limits,
    scratch: _Scratch,
    window: Integers,
    found: Integers,
    n_found: int,
) -> int:
    """Write the best windows around a trigger with the anchors before and after it, if kept."""
    item, marks, terms = window[ITEM], scratch.marks, items.terms
    base, n_terms = items.rows[item, FIRST_TERM], items.rows[item, N_ITEM_TERMS]
    for term in range(n_terms):
        marks[terms[base + term] >> _TERM_SHIFT] = term + 1
    hit, n_hits = _find_hits(words, place, stretch, items.rows[item, LENGTH], scratch)
    before, after = _neighbours(hit, n_hits, scratch.terms, items.rows[item, N_ITEM_ANCHORS])
    for first, second in ((before, hit), (hit, after)):
        # A trigger behind looks back itself.
        is_seen = second == hit or (
            second < n_hits and items.rows[item, IS_TRIGGER] >> (scratch.terms[second] - 1) & 1 == 0
        )
        if first < 0 or not is_seen or not _is_pair(first, second, items, limits, scratch, window):
            continue
        if _is_kept(words, (first, second, n_hits), stretch, items, limits, scratch, window):
            if n_found < found.shape[0]:
                for column in range(N_COLUMNS):
                    found[n_found, column] = window[column]
                found[n_found, START] -= stretch.begin
                found[n_found, STOP] -= stretch.begin
            n_found += 1
    for term in range(n_terms):
        marks[terms[base + term] >> _TERM_SHIFT] = 0
    return n_found


@inlined
def _find_hits(
    words: Numbers, place: int, stretch: _Stretch, length: int, scratch: _Scratch
) -> tuple[int, int]:
    """Collect the terms of an item in the windows with a place; return its number, and how many."""
    marks, places, terms = scratch.marks, scratch.places, scratch.terms
    n = hit = np.uint64(0)
    start, stop = max(stretch.begin, place - length + 1), min(stretch.end, place + length)
    for at in range(np.uint64(start), np.uint64(stop)):
        term = marks[words[at]]
        places[n] = at
        terms[n] = term
        n += np.uint64(term != 0)  # branch-free
        hit += np.uint64((term != 0) & (np.int64(at) < place))
    return np.int64(hit), np.int64(n)


@inlined
def _neighbours(hit: int, n_hits: int, terms: Shorts, n_anchors: int) -> tuple[int, int]:
    """Return the hits of anchors before and after a hit; -1 and `n_hits` if there are none."""
    before, after = hit - 1, hit + 1
    while before >= 0 and terms[before] > n_anchors:
        before -= 1
    while after < n_hits and terms[after] > n_anchors:
        after += 1
    return before, after


@inlined
def _is_pair(
    first: int, second: int, items: Items, limits: Limits, scratch: _Scratch, window: Integers
) -> bool:
    """Return whether two hits are different anchors that are heavy enough together."""
    first_term, second_term = scratch.terms[first], scratch.terms[second]
    base, terms = items.rows[window[ITEM], FIRST_TERM] - 1, items.terms
    weight = (terms[base + first_term] & _LOW) + (terms[base + second_term] & _LOW)
    return first_term != second_term and np.int64(weight) >= limits.least_pair


@inlined
def _is_kept(
    words: Numbers,
    hits: tuple[int, int, int],
    stretch: _Stretch,
    items: Items,
    limits: Limits,
    scratch: _Scratch,
    window: Integers,
) -> bool:
    """Write the best window around two anchors to `window`; return whether its score suffices."""
    first, second, n_hits = hits
    item, places = window[ITEM], scratch.places
    length, least = items.rows[item, LENGTH], items.rows[item, LEAST]
    start, stop = 0, n_hits
    while places[second] - places[start] >= length:
        start += 1
    while places[stop - 1] - places[first] >= length:
        stop -= 1
    if _weight_of_hits(start, stop, items, scratch, window) < least:
        return False
    _find_best((start, stop, first, second), items, scratch, window)
    if window[WEIGHT] < least:
        return False
    _add_near_terms(words, stretch, limits.longest_gap, scratch.marks, window)
    weight, n_numerals = _weight_of_numerals(words, stretch, items, limits, scratch.marks, window)
    share = (window[WEIGHT] + weight) / items.totals[item]
    count = window[N_TERMS] + NUMBER_COUNT * n_numerals
    is_enough = count >= limits.least_count
    return is_enough and share * (count / (count + limits.half_count)) >= limits.floor


@inlined
def _weight_of_hits(
    start: int, stop: int, items: Items, scratch: _Scratch, window: Integers
) -> int:
    """Return the weight of all different terms among hits: no window of them has more."""
    weight, base = 0, items.rows[window[ITEM], FIRST_TERM] - 1
    terms, counts, weights = scratch.terms, scratch.counts, items.terms
    for hit in range(start, stop):
        term = terms[hit]
        if counts[term] == 0:
            counts[term] = 1
            weight += np.int64(weights[base + term] & _LOW)
    for hit in range(start, stop):
        counts[terms[hit]] = 0
    return weight


@inlined
def _find_best(
    hits: tuple[int, int, int, int], items: Items, scratch: _Scratch, window: Integers
) -> None:
    """Write the window with the largest weight of terms that holds both anchors.

    Of windows of the same weight the one that ends first; it begins as late as its terms allow.
    """
    start, stop, first, second = hits
    places, terms, counts, weights = scratch.places, scratch.terms, scratch.counts, items.terms
    item = window[ITEM]
    base, length = items.rows[item, FIRST_TERM] - 1, items.rows[item, LENGTH]
    weight = n_terms = 0
    tail, window[WEIGHT] = start, 0
    for hit in range(start, stop):
        term, at = terms[hit], places[hit]
        if counts[term] == 0:
            weight += np.int64(weights[base + term] & _LOW)
            n_terms += 1
        counts[term] += 1
        # Drop terms that are too far, and at the beginning those that occur again.
        while at - places[tail] >= length or (counts[terms[tail]] > 1 and tail < first):
            other = terms[tail]
            counts[other] -= 1
            if counts[other] == 0:
                weight -= np.int64(weights[base + other] & _LOW)
                n_terms -= 1
            tail += 1
        if hit >= second and weight > window[WEIGHT]:
            window[WEIGHT], window[N_TERMS] = weight, n_terms
            window[START], window[STOP] = places[tail], at + 1
    for hit in range(tail, stop):
        counts[terms[hit]] = 0


@inlined
def _add_near_terms(
    words: Numbers,
    stretch: _Stretch,
    longest_gap: int,
    marks: Shorts,
    window: Integers,
) -> None:
    """Extend the window by terms that are repeated close before or behind it."""
    begin, end = stretch.begin, stretch.end
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
    stretch: _Stretch,
    items: Items,
    limits: Limits,
    marks: Shorts,
    window: Integers,
) -> tuple[int, int]:
    """Return weight of the item's numerals in or near the window, and how many different ones."""
    begin, end = stretch.begin, stretch.end
    item, weight, n_numerals = window[ITEM], 0, 0
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
        n_numerals += n_found > 0
        marks[items.numerals[numeral]] = 0
    return weight, n_numerals
