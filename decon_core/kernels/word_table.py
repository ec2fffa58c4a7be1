"""A growing table of words and their tokens.

Reference implementation: a dict. A word of up to 15 bytes is its own key; a longer one is found by
hash and compared byte by byte, so words are never confused.

The table is one array with four numbers per slot, so that a lookup costs one CPU cache miss:

    low, high   up to 15 bytes: the bytes, with their number on top; longer: a hash with `LONG` and
                the number on top. `high` is 0 in a free slot.
    value       the number of its tokens, and the tokens or their position; or `PENDING` and a
                number in this round
    origin      in the lower half, of a longer word: position of its bytes in `kept`; in the upper
                half its term, if words are also numbered by terms, or `SEVERAL` and a position
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers, Numbers, Words64
from decon_core.kernels.hashing import BASE, HALF, LOW, MIX, ONE, ZERO
from decon_core.kernels.instructions import eight_bytes, n_bits, prefetch
from decon_core.kernels.jit import entry, inlined, kernel

# A longer "word" (in a script without spaces) rarely occurs twice: it is not stored.
LONGEST_KEPT = 64
_LONGEST = np.uint64(LONGEST_KEPT)
_LONGEST_KEY = np.uint64(15)
NUMBERS = 4  # per slot
_NUMBERS = np.uint64(NUMBERS)
_GROUP = 128  # words that are looked up or expanded together

# Numbers in `Words.counts`: words that wait for their tokens, their bytes, and values that wait for
# them; bytes of long words, and words in the table.
OF_PENDING = slice(3)
KEPT_BYTES, KNOWN_WORDS, N_COUNTS = 3, 4, 5

# The top byte of a value is the number of tokens; with `FAR` added, the rest is their position.
# `MANY` is a larger number. Stored tokens follow their number.
FAR = 0x80
MANY = 0xFE
PENDING = 0xFF
MOST_NEAR = 3  # tokens in a value
_MOST_FAR = MANY - FAR - 1
SPARE = _GROUP * _MOST_FAR + MOST_NEAR  # tokens past the last one that must have room
NOT_KEPT = -1  # instead of a pending word's slot
_SPACE = 0x20

_TOP = np.uint64(56)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_EIGHT = np.uint64(8)

# Masks of the bytes of a word among its first eight bytes and the next eight, by its length.
_LOW_BITS = np.array([min(1 << 8 * n, 1 << 64) - 1 for n in range(16)], np.uint64)
_HIGH_BITS = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], np.uint64)

_LONG = np.uint64(0x80) << _TOP
_NEVER = np.uint64(0xFF) << _TOP  # key of a word that is not stored
_MANY = np.uint64(MANY)
_SIZE_BITS = np.uint64(FAR - 1)
_FAR_SHIFT = np.uint64(7)
_PENDING_VALUE = np.uint64(PENDING) << _TOP
_HASH_BITS = (np.uint64(1) << _TOP) - np.uint64(1)
_PASSING = np.uint64(1) << np.uint64(55)
_PLACE = _PASSING - np.uint64(1)
_NEAR_BITS = 18  # enough for the vocabulary of any index, except of hashed words
_NEAR = (np.uint64(1) << np.uint64(_NEAR_BITS)) - np.uint64(1)

# A word that is normalized to no word or to several has as many terms. Their position is then in
# the lower bits; with `_PASSING_TERMS` those of a word that is not stored.
SEVERAL = np.uint32(1 << 31)
_PASSING_TERMS = np.uint32(1 << 30)
_TERMS_PLACE = np.uint32((1 << 30) - 1)


class Words(NamedTuple):
    """The words seen so far, and those that wait for their tokens."""

    counts: Integers  # how much of each array is used
    table: Words64
    kept: Bytes  # bytes of long words
    pending_slots: Integers
    pending_offsets: Integers
    pending_bytes: Bytes  # with a space before each word
    patches: Integers  # positions of the values that wait


class Arena(NamedTuple):
    """The tokens of words that do not fit in a value, after their number."""

    kept: Numbers  # of words in the table
    passing: Numbers  # of all others; dropped after the batch
    ends: Integers  # how much of both is used


@kernel
def look_up(
    lowered: Bytes,
    edges: Integers,
    word: int,
    n_words: int,
    first_value: int,
    words: Words,
    values: Words64,
    terms: Numbers,
) -> int:
    """Look up words from `word` on until all are done or an array is full; return the next.

    An unknown word is entered as pending.
    """
    counts, table, kept, pending_slots, pending_offsets, pending_bytes, patches = words
    shift = _shift_for(table)
    # Look up in groups: the table exceeds the CPU caches, and the cache misses of a group overlap.
    lows = np.zeros(_GROUP, np.uint64)
    highs = np.zeros(_GROUP, np.uint64)
    slots = np.zeros(_GROUP, np.uint64)
    others = np.zeros(_GROUP, np.uint64)
    n_pending, n_bytes, n_patches, n_kept, n_known = counts
    # Up to three quarters full: with cache misses, a smaller table saves more than shorter probing.
    most_known = table.size // NUMBERS * 3 // 4
    while word < n_words:
        n_cut = min(
            _GROUP,
            n_words - word,
            pending_slots.size - n_pending,
            patches.size - n_patches,
            most_known - n_known,
            (kept.size - n_kept) // LONGEST_KEPT,
        )
        while n_cut > 0 and (
            edges[2 * (word + n_cut) - 1] - edges[2 * word] + n_cut > pending_bytes.size - n_bytes
        ):
            n_cut //= 2
        if n_cut <= 0:
            break
        first_edge, first = np.uint64(2 * word), np.uint64(first_value + word)
        for cut in range(np.uint64(n_cut)):
            at = np.uint64(edges[first_edge + _TWO * cut])
            length = np.uint64(edges[first_edge + _TWO * cut + ONE]) - at
            low, high = eight_bytes(lowered, at), eight_bytes(lowered, at + _EIGHT)
            if length <= _LONGEST_KEY:
                low &= _LOW_BITS[length]
                high = high & _HIGH_BITS[length] | length << _TOP
            elif length <= _LONGEST:
                low = _digest(lowered, at, length)
                high = (low * BASE) >> _EIGHT | _LONG | length << _TOP
            else:
                high = _NEVER
            slot = _place(low, high, shift)
            prefetch(table, slot << _TWO)
            lows[cut], highs[cut], slots[cut] = low, high, slot
        n_others = ZERO
        for cut in range(np.uint64(n_cut)):
            slot, high = slots[cut] << _TWO, highs[cut]
            value = table[slot + _TWO]
            values[first + cut] = value
            terms[first + cut] = table[slot + _THREE] >> HALF
            # Branch-free. Rare: words in another slot, new, pending or long.
            is_there = (table[slot] == lows[cut]) & (table[slot + ONE] == high) & (high < _LONG)
            others[n_others] = cut
            n_others += ONE - np.uint64(is_there & (value < _PENDING_VALUE))
        for cut in others[:n_others]:
            start = np.uint64(edges[first_edge + _TWO * cut])
            stop = np.uint64(edges[first_edge + _TWO * cut + ONE])
            high, slot, is_new = highs[cut], ZERO, True
            if high != _NEVER:
                slot, is_new = _found(
                    lowered, start, stop, lows[cut], high, slots[cut], table, kept
                )
            value = table[_NUMBERS * slot + _TWO]
            if is_new:
                value = _PENDING_VALUE | np.uint64(n_pending)
                pending_slots[n_pending] = NOT_KEPT if high == _NEVER else np.int64(slot)
                pending_bytes[n_bytes] = _SPACE
                n_bytes += 1
                for at in range(start, stop):
                    pending_bytes[n_bytes] = lowered[at]
                    n_bytes += 1
                if high != _NEVER:
                    table[_NUMBERS * slot] = lows[cut]
                    table[_NUMBERS * slot + ONE] = high
                    table[_NUMBERS * slot + _TWO] = value
                    table[_NUMBERS * slot + _THREE] = n_kept
                    n_known += 1
                    for at in range(start, stop if high >= _LONG else start):
                        kept[n_kept] = lowered[at]
                        n_kept += 1
                n_pending += 1
                pending_offsets[n_pending] = n_bytes
            if value >= _PENDING_VALUE:
                patches[n_patches] = np.int64(first + cut)
                n_patches += 1
            values[first + cut] = value
            terms[first + cut] = table[_NUMBERS * slot + _THREE] >> HALF
        word += n_cut
    counts[0], counts[1], counts[2] = n_pending, n_bytes, n_patches
    counts[KEPT_BYTES], counts[KNOWN_WORDS] = n_kept, n_known
    return word


@inlined
def _place(low: np.uint64, high: np.uint64, shift: np.uint64) -> np.uint64:
    """Return the first slot of a key: the top bits of a hash, which depend on all bits of it."""
    return (low * MIX ^ high * BASE) >> shift


@kernel
def _shift_for(table: Words64) -> np.uint64:
    """Return how far a hash is shifted to leave as many bits as number the slots."""
    return np.uint64(64) - n_bits(np.uint64(table.size // NUMBERS - 1))


@inlined
def _digest(lowered: Bytes, start: np.uint64, length: np.uint64) -> np.uint64:
    """Hash the bytes of a long word."""
    digest = length
    for at in range(start, start + length):
        digest = (digest ^ np.uint64(lowered[at])) * MIX
        digest ^= digest >> HALF
    return digest


@inlined
def _found(
    lowered: Bytes,
    start: np.uint64,
    stop: np.uint64,
    low: np.uint64,
    high: np.uint64,
    slot: np.uint64,
    table: Words64,
    kept: Bytes,
) -> tuple[np.uint64, bool]:
    """Return the slot of a word or a free one for it, and whether the word is new."""
    mask = np.uint64(table.size // NUMBERS - 1)
    while True:
        high_there = table[_NUMBERS * slot + ONE]
        if high_there == ZERO:
            return slot, True
        if high_there == high and table[_NUMBERS * slot] == low:
            if high < _LONG:
                return slot, False
            origin = table[_NUMBERS * slot + _THREE] & LOW
            is_same = True
            for at in range(start, stop):
                is_same = is_same and kept[origin + (at - start)] == lowered[at]
            if is_same:
                return slot, False
        slot = (slot + ONE) & mask


@kernel
def rehash(table: Words64, larger: Words64) -> None:
    """Move all words to a larger table."""
    mask, shift = np.uint64(larger.size // NUMBERS - 1), _shift_for(larger)
    for slot in range(table.size // NUMBERS):
        low, high = table[NUMBERS * slot], table[NUMBERS * slot + 1]
        if high == ZERO:
            continue
        new = np.int64(_place(low, high, shift))
        while larger[NUMBERS * new + 1] != ZERO:
            new = np.int64(np.uint64(new + 1) & mask)
        for number in range(NUMBERS):
            larger[NUMBERS * new + number] = table[NUMBERS * slot + number]


@kernel
def _append(tokens: Numbers, start: int, stop: int, is_kept: bool, arena: Arena) -> int:
    """Append the number of a word's tokens, then the tokens; return where."""
    target = arena.kept if is_kept else arena.passing
    first = arena.ends[int(not is_kept)]
    target[first] = stop - start
    for at in range(start, stop):
        target[first + 1 + at - start] = tokens[at]
    arena.ends[int(not is_kept)] = first + 1 + stop - start
    return first


@kernel
def settle(
    tokens: Numbers,
    offsets: Integers,
    words: Words,
    values: Words64,
    arena: Arena,
    settled: Words64,
) -> None:
    """Store the tokens of the pending words, in the table and in all values that wait.

    A value contains up to three tokens. More are stored in `arena`, at the position in the value.
    `settled` is scratch, one value per pending word.
    """
    table = words.table
    for number in range(words.counts[0]):
        start, stop = offsets[number], offsets[number + 1]
        slot = words.pending_slots[number]
        n = stop - start
        value = np.uint64(n) << _TOP
        is_near = n <= MOST_NEAR
        if is_near:
            for at in range(n):
                token = np.uint64(tokens[start + at])
                is_near = is_near and token <= _NEAR
                value |= token << np.uint64(_NEAR_BITS * at)
        if not is_near:
            value = np.uint64(FAR + n if n <= _MOST_FAR else MANY) << _TOP
            value |= np.uint64(_append(tokens, start, stop, slot != NOT_KEPT, arena))
            if slot == NOT_KEPT:
                value |= _PASSING
        settled[number] = value
        if slot != NOT_KEPT:
            table[NUMBERS * slot + 2] = value
    for at in words.patches[: words.counts[2]]:
        values[at] = settled[np.int64(values[at] & _HASH_BITS)]


@kernel
def settle_terms(
    tokens: Numbers,
    offsets: Integers,
    words: Words,
    values: Words64,
    terms: Numbers,
    arena: Arena,
    settled: Numbers,
) -> None:
    """Store the terms of the pending words, in the table and in `terms`, before `settle`."""
    for number in range(words.counts[0]):
        start, stop = offsets[number], offsets[number + 1]
        slot = words.pending_slots[number]
        if stop - start == 1:
            term = tokens[start]
        else:
            term = SEVERAL | np.uint32(_append(tokens, start, stop, slot != NOT_KEPT, arena))
            if slot == NOT_KEPT:
                term |= _PASSING_TERMS
        settled[number] = term
        if slot != NOT_KEPT:
            words.table[NUMBERS * slot + 3] |= np.uint64(term) << HALF
    for at in words.patches[: words.counts[2]]:
        terms[at] = settled[np.int64(values[at] & _HASH_BITS)]


@kernel
def expand_terms(
    terms: Numbers, word_offsets: Integers, arena: Arena, out: Numbers, term_offsets: Integers
) -> bool:
    """Write the terms of all words, and the offsets of the documents.

    Returns False if `out` is too small. It needs one for every word, and the others of a word that
    has several.
    """
    n = ZERO
    n_left = word_offsets[word_offsets.size - 1] - word_offsets[0]
    for document in range(word_offsets.size - 1):
        for word in range(word_offsets[document], word_offsets[document + 1]):
            term = terms[word]
            out[n] = term
            n += ONE
            if term >= SEVERAL:
                n -= ONE
                source = arena.passing if term & _PASSING_TERMS else arena.kept
                start = np.uint64(term & _TERMS_PLACE)
                size = np.uint64(source[start])
                if np.int64(n + size) + n_left > out.size:
                    return False
                _copy(source, start, out, n)
                n += size
        term_offsets[document + 1] = np.int64(n)
    return True


@kernel
def terms_of_words(terms: Numbers, arena: Arena, counts: Integers) -> None:
    """Count the terms of each word."""
    for at in range(terms.size):
        counts[at] = 1
        if terms[at] >= SEVERAL:
            source = arena.passing if terms[at] & _PASSING_TERMS else arena.kept
            counts[at] = source[np.int64(terms[at] & _TERMS_PLACE)]


@kernel
def _n_tokens(value: np.uint64, arena: Arena) -> int:
    """Return the number of tokens of a word."""
    size = value >> _TOP
    if size == _MANY:
        source = arena.passing if value & _PASSING else arena.kept
        return np.int64(source[np.int64(value & _PLACE)])
    return np.int64(size & _SIZE_BITS)


@kernel
def _copy(source: Numbers, at: np.uint64, out: Numbers, n: np.uint64) -> None:
    """Write the tokens at a position, whose number is in front of them, to `out` from `n` on."""
    for number in range(np.uint64(source[at])):
        out[n + number] = source[at + ONE + number]


@kernel
def expand(
    values: Words64, value_offsets: Integers, arena: Arena, out: Numbers, token_offsets: Integers
) -> bool:
    """Write the tokens of all words, and the offsets of the documents.

    Returns False if `out` is too small. It needs all tokens, and `SPARE` more.
    """
    n = ZERO
    kept, passing = arena.kept, arena.passing
    far_words, far_places = np.empty(_GROUP, np.uint64), np.empty(_GROUP, np.uint64)
    for document in range(value_offsets.size - 1):
        stop = np.uint64(value_offsets[document + 1])
        for first in range(np.uint64(value_offsets[document]), stop, np.uint64(_GROUP)):
            if np.int64(n) + SPARE > out.size:
                return False
            n_far = ZERO
            for word in range(first, min(first + np.uint64(_GROUP), stop)):
                value = values[word]
                size = value >> _TOP
                # Without a branch, which would often be mispredicted: three are always written. The
                # tokens of a far word come later, and overwrite these.
                out[n] = np.uint32(value & _NEAR)
                out[n + ONE] = np.uint32((value >> np.uint64(_NEAR_BITS)) & _NEAR)
                out[n + _TWO] = np.uint32((value >> np.uint64(2 * _NEAR_BITS)) & _NEAR)
                far_words[n_far], far_places[n_far] = value, n
                n_far += size >> _FAR_SHIFT
                n += size & _SIZE_BITS
                if size == _MANY:
                    n += np.uint64(_n_tokens(value, arena)) - (_MANY & _SIZE_BITS)
                    if np.int64(n) + SPARE > out.size:
                        return False
            for number in range(n_far):
                value, place = far_words[number], far_places[number]
                at = value & _PLACE
                if value & _PASSING:
                    _copy(passing, at, out, place)
                else:
                    _copy(kept, at, out, place)
        token_offsets[document + 1] = np.int64(n)
    return True


@entry(compile_seconds=0.1, steps=lambda values, *_: values.size)
def tokens_of_words(values: Words64, arena: Arena, counts: Integers) -> None:
    """Count the tokens of each word."""
    for at in range(values.size):
        counts[at] = _n_tokens(values[at], arena)
