"""Find the few documents that may share a token run with a text, or contain a whole text.

A document that shares eight tokens shares their bytes. For every such n-gram one window of its
bytes (20 or 12) is kept that begins at the start of a word. A document without such a window,
surrounded by the bytes of its n-gram, shares none and need not be tokenized. Reference
implementation: `str.find`, in the tests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    NONE,
    Bytes,
    Flags,
    Integers,
    Numbers,
    Table,
    Words64,
    first_at_least,
    n_same,
)
from decon_core.kernels.hashing import (
    BASE,
    HALF,
    LOW,
    MIX,
    ONE,
    SIX,
    SIX_BITS,
    ZERO,
    enter_digest,
    free_slot,
    may_hold,
    mixed,
    next_slot,
    scaled,
    scaled_low,
    shift_for,
    slot_of_known,
)
from decon_core.kernels.instructions import eight_bytes
from decon_core.kernels.jit import inlined, kernel

NEVER = 0xFFFFFFFF
# Window sizes. The longer one is more selective, and fits most n-grams.
LONG, SHORT = 20, 12
SPARE = 32  # bytes past the end that may be read
STRETCH = 1 << 18  # bytes processed at once when searching for windows


class Windows(NamedTuple):
    """Windows of one size, and the n-grams and texts that each represents."""

    filter: Words64  # four bits for every window
    slots: Words64  # half of a window's digest, and its number, from 1
    first: Integers  # position of each window's first occurrence
    gram_offsets: Integers  # per window: range in the next four arrays
    grams: Integers  # positions at which it represents n-grams
    gram_texts: Numbers  # the text of each position
    gram_before: Numbers  # minimum of the n-grams' bytes before the position
    gram_after: Numbers  # and from the position on
    whole_offsets: Integers
    wholes: Integers  # the same for whole texts
    whole_texts: Numbers


class Texts(NamedTuple):
    """Texts as bytes, with spare bytes at the end, and the byte ranges of their tokens."""

    data: Bytes
    offsets: Integers
    token_offsets: Integers
    token_starts: Integers
    token_stops: Integers


class Documents(NamedTuple):
    """Documents as ranges of bytes, in any order, with spare bytes at the end."""

    data: Bytes
    starts: Integers
    stops: Integers


class Hits(NamedTuple):
    """The windows of one size in documents."""

    size: int
    places: Integers  # ascending
    numbers: Integers  # number of each window
    firsts: Integers  # the first one of each document


class Ranges(NamedTuple):
    """Ranges of bytes for which windows are chosen, where wanted."""

    starts: Integers
    stops: Integers
    is_wanted: Flags  # 0 once there is a window
    is_open: Flags  # whether there is one


# Columns of `found`: a document, a text that it contains in full, and the byte offset.
DOCUMENT, TEXT, PLACE = 0, 1, 2

_HIGH = LOW << HALF
_WIDE = np.uint8(0xC0)  # the first byte of a character beyond ASCII, at least
_MOST_RATE = 1024.0  # exceeds the rate of seventeen bytes that each occur once in all texts
_RING = 16  # at least SHORT - 3

_BIT_1, _BIT_2 = np.uint64(34), np.uint64(28)  # bits of a quick digest


@kernel
def enter_beginnings(data: Bytes, places: Integers, in_filter: Words64) -> None:
    """Enter the first bytes of windows into a zeroed filter; its size is a power of two."""
    shift = shift_for(in_filter) + SIX
    for number in range(places.size):
        digest = _quick_digest(data, places[number])
        bits = ONE << ((digest >> _BIT_1) & SIX_BITS) | ONE << ((digest >> _BIT_2) & SIX_BITS)
        in_filter[np.int64(digest >> shift)] |= bits


@kernel
def _quick_digest(data: Bytes, at: int) -> np.uint64:
    """Return a cheap digest of twelve bytes, for every word; its upper bits are better mixed."""
    first, second = eight_bytes(data, at), eight_bytes(data, at + 8)
    return (first ^ (second & LOW) * MIX) * BASE


@kernel
def enter(digests: Words64, in_filter: Words64, slots: Words64) -> None:
    """Enter distinct windows, by number, into a filter and a table, which are zeros."""
    for number in range(digests.size):
        digest = digests[number]
        enter_digest(digest, in_filter)
        slot = free_slot(scaled_low(digest, slots.size), slots)
        slots[slot] = digest & _HIGH | np.uint64(number + 1)


@kernel
def _digest(data: Bytes, at: int, size: int) -> np.uint64:
    """Return the digest of a window."""
    first, second = eight_bytes(data, at), eight_bytes(data, at + 8)
    digest = first * BASE
    if size == LONG:
        return mixed((digest ^ second) * MIX + (eight_bytes(data, at + 16) & LOW) * BASE)
    return mixed(digest + (second & LOW) * MIX)


@kernel
def _few_bytes(data: Bytes, at: int, size: int, n: int) -> int:
    """Hash a few consecutive bytes to n slots."""
    number = ZERO
    for step in range(size):
        number = number << np.uint64(8) | np.uint64(data[at + step])
    return scaled(number * MIX, n)


@kernel
def count_bytes(data: Bytes, n: int, threes: Numbers, fours: Numbers) -> None:
    """Count three- and four-byte sequences, approximately: the tables are small."""
    for at in range(n - 3):
        threes[_few_bytes(data, at, 3, threes.size)] += np.uint32(1)
        fours[_few_bytes(data, at, 4, fours.size)] += np.uint32(1)


@kernel
def rate_beginnings(data: Bytes, places: Integers, threes: Numbers, fours: Numbers) -> Numbers:
    """Return how likely the first bytes of a window at each place are in unrelated text, in levels.

    These are the bytes in the filter of beginnings; their likelihood is that of each given the
    three before it, over all texts. `places` ascend: each byte is rated once, for all of them.
    """
    levels = np.empty(places.size, np.uint32)
    rates, n_rated = np.empty(_RING), ZERO  # of the latest bytes
    for number in range(places.size):
        start, stop = places[number], places[number] + SHORT - 3
        for at in range(max(start, n_rated), stop):
            of_four = np.float64(fours[_few_bytes(data, at, 4, fours.size)]) + 1.0
            of_three = np.float64(threes[_few_bytes(data, at, 3, threes.size)]) + 1.0
            rates[at % _RING] = np.log(of_four / of_three)
        n_rated = stop
        rate = rates[start % _RING]
        rate += np.log(np.float64(threes[_few_bytes(data, start, 3, threes.size)]) + 1.0)
        for at in range(start + 1, stop):
            rate += rates[at % _RING]
        levels[number] = np.uint32((rate + _MOST_RATE) * 0.5)
    return levels


@kernel
def rank_windows(data: Bytes, places: Integers, size: int, levels: Numbers, ranks: Words64) -> None:
    """Rank windows by how likely they are in unrelated text; higher is more likely.

    Windows of similar likelihood have a fixed order by digest, so that the same ones are chosen
    everywhere and fewer are kept.
    """
    for number in range(places.size):
        digest = _digest(data, places[number], size)
        ranks[number] = np.uint64(levels[number]) << np.uint64(40) | digest >> np.uint64(24)


@kernel
def choose(
    data: Bytes,
    places: Integers,
    ranks: Words64,
    size: int,
    ranges: Ranges,
    before: Numbers,
    after: Numbers,
) -> None:
    """Choose the window of lowest rank in each wanted byte range.

    For each window, `before` and `after` (initially `NEVER`) get the minimum number of bytes before
    and from its position on in the ranges that chose it. A word at the start of a range does not
    count, because the text before it may be part of the word.
    """
    starts, stops = ranges.starts, ranges.stops
    for number in range(starts.size):
        if not ranges.is_wanted[number]:
            continue
        start, last = starts[number], stops[number] - size
        best = NONE
        at = first_at_least(places, 0, places.size, start)
        while at < places.size and places[at] <= last:
            is_behind = places[at] > start or data[places[at]] >= _WIDE
            if is_behind and (best == NONE or ranks[at] < ranks[best]):
                best = at
            at += 1
        if best != NONE:
            ranges.is_wanted[number], ranges.is_open[number] = 0, 1
            before[best] = min(before[best], np.uint32(places[best] - start))
            after[best] = min(after[best], np.uint32(stops[number] - places[best]))


@kernel
def number_windows(
    data: Bytes,
    places: Integers,
    size: int,
    digests: Words64,
    slots: Numbers,
    first: Integers,
    numbers: Numbers,
) -> int:
    """Number the distinct windows at these positions; return how many. `slots`: zeros."""
    n = 0
    for at in range(places.size):
        digest = _digest(data, places[at], size)
        slot = scaled_low(digest, slots.size)
        slot = slot_of_known(data, places[at], size, slot, data, first, slots)
        if not slots[slot]:
            first[n], digests[n] = places[at], digest
            n += 1
            slots[slot] = np.uint32(n)
        numbers[at] = slots[slot] - np.uint32(1)
    return n


@inlined
def _n_before(data: Bytes, at: int, others: Bytes, other: int, most: int) -> int:
    """Count the equal bytes before two positions, up to `most`."""
    n = 0
    while n < most and data[at - n - 1] == others[other - n - 1]:
        n += 1
    return n


@inlined
def _has_gram(
    documents: Documents,
    document: int,
    at: int,
    number: int,
    windows: Windows,
    texts: Texts,
    n_tokens: int,
) -> bool:
    """Return whether a document has so many tokens of a text around a window."""
    data, start, stop = documents.data, documents.starts[document], documents.stops[document]
    for use in range(windows.gram_offsets[number], windows.gram_offsets[number + 1]):
        place, text = windows.grams[use], np.int64(windows.gram_texts[use])
        most = min(stop - at, texts.offsets[text + 1] - place)
        n_after = n_same(data, at, texts.data, place, most)
        if n_after < np.int64(windows.gram_after[use]):
            continue
        most = min(at - start, place - texts.offsets[text])
        n_before = _n_before(data, at, texts.data, place, most)
        if n_before < np.int64(windows.gram_before[use]):
            continue
        end = texts.token_offsets[text + 1]
        token = first_at_least(texts.token_starts, texts.token_offsets[text], end, place - n_before)
        token += n_tokens - 1
        if token < end and texts.token_stops[token] <= place + n_after:
            return True
    return False


@inlined
def _find_wholes(
    documents: Documents,
    document: int,
    at: int,
    number: int,
    windows: Windows,
    texts: Texts,
    found: Table,
    n_found: int,
) -> int:
    """Write the texts that a document has in full around a window; return how many so far."""
    data, start, stop = documents.data, documents.starts[document], documents.stops[document]
    for use in range(windows.whole_offsets[number], windows.whole_offsets[number + 1]):
        place, text = windows.wholes[use], np.int64(windows.whole_texts[use])
        begin = at - (place - texts.offsets[text])
        length = texts.offsets[text + 1] - texts.offsets[text]
        if begin < start or begin + length > stop:
            continue
        if n_same(data, begin, texts.data, texts.offsets[text], length) == length:
            if n_found < found.shape[0]:
                found[n_found, DOCUMENT], found[n_found, TEXT] = document, text
                found[n_found, PLACE] = begin - start
            n_found += 1
    return n_found


@kernel
def sift(data: Bytes, places: Integers, beginnings: Words64, left: Integers) -> int:
    """Keep the positions that pass the filter of beginnings; return how many.

    `left` has room for all and one more. A separate kernel keeps this hot loop short.
    """
    shift = shift_for(beginnings) + SIX
    n = ZERO
    for number in range(places.size):
        digest = _quick_digest(data, places[number])
        bits = beginnings[digest >> shift]
        left[n] = places[number]
        n += (
            (bits >> ((digest >> _BIT_1) & SIX_BITS))
            & (bits >> ((digest >> _BIT_2) & SIX_BITS))
            & ONE
        )
    return np.int64(n)


@kernel
def find_windows(
    data: Bytes,
    places: Integers,
    size: int,
    windows: Windows,
    texts: Bytes,
    left: Integers,
    numbers: Integers,
) -> int:
    """Find which positions have a window, and its number; return how many.

    The outputs have room for all and one more. Several short loops, each over the results of the
    one before: the tables are far larger than the CPU cache, so cache misses overlap.
    """
    in_filter, slots, firsts = windows.filter, windows.slots, windows.first
    n_held = 0
    for at in places:
        digest = _digest(data, at, size)
        left[n_held], numbers[n_held] = at, scaled_low(digest, slots.size)
        n_held += np.int64(may_hold(in_filter, digest))
    n_likely = 0
    for place in range(n_held):
        digest = _digest(data, left[place], size)
        slot = _likely_slot(digest, numbers[place], slots)
        left[n_likely], numbers[n_likely] = left[place], slot
        n_likely += np.int64(slot != NONE)
    first = np.empty(n_likely, np.int64)
    for place in range(n_likely):
        first[place] = firsts[np.int64(slots[numbers[place]] & LOW) - 1]
    n = 0
    for place in range(n_likely):
        at, slot = left[place], numbers[place]
        digest = _digest(data, at, size)
        is_same = _are_same(data, at, texts, first[place], size)
        while not is_same and slot != NONE:  # two windows with one digest: very rare
            slot = _likely_slot(digest, next_slot(slot, slots.size), slots)
            if slot != NONE:
                other = firsts[np.int64(slots[slot] & LOW) - 1]
                is_same = _are_same(data, at, texts, other, size)
        if is_same:
            left[n], numbers[n] = at, np.int64(slots[slot] & LOW) - 1
            n += 1
    return n


@kernel
def _likely_slot(digest: np.uint64, slot: int, slots: Words64) -> int:
    """Return the next slot with the upper half of a digest, or `NONE` at a free slot."""
    while slots[slot]:
        if slots[slot] & _HIGH == digest & _HIGH:
            return slot
        slot = next_slot(slot, slots.size)
    return NONE


@kernel
def _are_same(data: Bytes, at: int, others: Bytes, other_at: int, size: int) -> bool:
    """Return whether two windows have the same bytes."""
    first, second = eight_bytes(data, at), eight_bytes(data, at + 8)
    other_first, other_second = eight_bytes(others, other_at), eight_bytes(others, other_at + 8)
    first ^= other_first
    second ^= other_second
    if size == LONG:
        third = eight_bytes(data, at + 16) ^ eight_bytes(others, other_at + 16)
        return first | second | (third & LOW) == ZERO
    return first | (second & LOW) == ZERO


@kernel
def fetch(numbers: Integers, windows: Windows, texts: Texts) -> int:
    """Load what `screen` reads of these windows into the CPU cache, many at once.

    The returned sum is meaningless, but prevents the reads from being optimized away.
    """
    n = 0
    for number in numbers:
        n += windows.gram_offsets[number] + windows.whole_offsets[number]
    for number in numbers:
        first = windows.gram_offsets[number]
        if first < windows.gram_offsets[number + 1]:
            n += np.int64(windows.gram_texts[first]) + np.int64(windows.gram_after[first])
            n += np.int64(windows.gram_before[first]) + windows.grams[first]
    for number in numbers:
        first = windows.gram_offsets[number]
        if first < windows.gram_offsets[number + 1]:
            n += np.int64(texts.data[windows.grams[first]])
            n += texts.offsets[np.int64(windows.gram_texts[first])]
    return n


@kernel
def screen(
    documents: Documents,
    hits: Hits,
    first_document: int,
    windows: Windows,
    texts: Texts,
    n_tokens: int,
    shares: Flags,
    found: Table,
) -> tuple[int, int]:
    """Mark documents that share the bytes of `n_tokens` tokens, and find whole texts in them.

    With `n_tokens` 0, only whole texts are searched. Returns the rows of `found`, and the document
    to continue with if it is full.
    """
    n_found = 0
    for document in range(first_document, documents.starts.size):
        stop = documents.stops[document]
        n_before = n_found
        for hit in range(hits.firsts[document], hits.places.size):
            at, number = hits.places[hit], hits.numbers[hit]
            if at + hits.size > stop:
                break
            if n_tokens and not shares[document]:
                shares[document] = _has_gram(
                    documents, document, at, number, windows, texts, n_tokens
                )
            n_found = _find_wholes(documents, document, at, number, windows, texts, found, n_found)
        if n_found > found.shape[0]:
            return n_before, document
    return n_found, documents.starts.size
