"""Text to words, and words to what a growing table knows about them. Twin: `text.clean` and a dict.

A word of up to 15 bytes is its own key; a longer one is found by hash and compared byte by byte. So
two words are never taken for one another.

The table is one array with four numbers for a slot, so that a word costs one miss of the
processor's cache:

    low, high   up to 15 bytes: the bytes, with their number on top; longer: a hash with `LONG` and
                the number on top. `high` is 0 in a free slot.
    value       its tokens, or where they are, or `PENDING` and a number in this round
    origin      of a longer word: where in `kept` its bytes stand
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import inlined, kernel, prefetch

Bytes = npt.NDArray[np.uint8]
Words64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
CodePoints = npt.NDArray[np.int32]
Tokens = npt.NDArray[np.uint32]

# Classes of bytes and characters; everything else is what it becomes in lower case.
SEPARATOR = 0xFE  # in the table of bytes
NOT_ASCII = 0xFF
WIDE_SEPARATOR = -1  # in the table of characters
WIDE_SPECIAL = -2  # its lower case is longer, or depends on the letters around it

SPARE = 24  # bytes that are loaded with the last ones of a word

# A longer "word" (text of a script without spaces) hardly ever comes twice: it is not remembered.
LONGEST_KEPT = 64
_LONGEST = np.uint64(LONGEST_KEPT)
_LONGEST_KEY = np.uint64(15)
NUMBERS = 4  # for a slot
_SLOT = np.uint64(NUMBERS)
_GROUP = 64

PENDING = 0xFF  # in the top byte of a value
NOT_KEPT = -1  # in the place of a pending word's slot
_SPACE = 0x20
FAR = 0xFE  # top byte: the value says where the tokens are
MOST_NEAR = 3

_TOP = np.uint64(56)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_EIGHT = np.uint64(8)
_SEVEN = np.uint64(7)
_SIXTY_THREE = np.uint64(63)
_CHUNK_BITS = np.uint64(64)

# Of the first eight bytes of a word and of the next ones, those that belong to it, by its length.
_LOW_BITS = np.array([min(1 << 8 * n, 1 << 64) - 1 for n in range(16)], np.uint64)
_HIGH_BITS = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], np.uint64)

_LONG = np.uint64(0x80) << _TOP
_NEVER = np.uint64(0xFF) << _TOP  # of a word that is not kept
_PENDING_VALUE = np.uint64(PENDING) << _TOP
_HASH_BITS = (np.uint64(1) << _TOP) - np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads by multiplication
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_PASSING = np.uint64(1) << np.uint64(55)
_PLACE = _PASSING - np.uint64(1)
_NEAR_BITS = 18  # more than any vocabulary of an index needs, but that of hashed words
_NEAR = (np.uint64(1) << np.uint64(_NEAR_BITS)) - np.uint64(1)


@kernel
def _character(text: Bytes, at: int) -> tuple[int, int]:
    """The code point at a byte that is not ASCII, and how many bytes it takes."""
    lead = np.int64(text[at])
    second = np.int64(text[at + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(text[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(text[at + 3]) & 0x3F, 4


@kernel
def _packed(point: int) -> tuple[int, int]:
    """The UTF-8 bytes of a code point, the first one lowest, and how many they are."""
    if point < 0x80:
        return point, 1
    last = 0x80 | point & 0x3F
    if point < 0x800:
        return 0xC0 | point >> 6 | last << 8, 2
    middle = 0x80 | point >> 6 & 0x3F
    if point < 0x10000:
        return 0xE0 | point >> 12 | middle << 8 | last << 16, 3
    return 0xF0 | point >> 18 | (0x80 | point >> 12 & 0x3F) << 8 | middle << 16 | last << 24, 4


@kernel
def cut_words(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    document: int,
    byte_class: Bytes,
    char_class: CodePoints,
    lowered: Bytes,
    edges: Integers,
    word_offsets: Integers,
) -> int:
    """Write texts in lower case, and where each of their words begins and ends there.

    From a document on, as many whole ones as there is room for; which one comes next. It is the
    same when that one holds a letter that Python has to lower. `word_offsets` goes on from the
    number of words before the document. `lowered` has `room_for` the first one; `edges` has two for
    each of its bytes, and one more.
    """
    n_points = char_class.size
    first_word = word_offsets[document]
    # Unsigned: an index that may be negative costs a comparison more for every byte.
    out = edge = _ZERO
    while document < starts.size:
        at, stop = np.uint64(starts[document]), np.uint64(stops[document])
        if np.int64(out) + room_for(np.int64(stop - at)) > lowered.size:
            return document
        inside = _ZERO
        while at < stop:
            kind = byte_class[text[at]]
            if kind != NOT_ASCII:
                # Without a branch: no processor can guess where a word ends. An edge is written
                # for each byte, and the next one over it unless it was one.
                is_letter = np.uint64(kind < SEPARATOR)
                lowered[out] = kind
                edges[edge] = out
                edge += is_letter ^ inside
                inside = is_letter
                out += _ONE
                at += _ONE
                continue
            point, size = _character(text, np.int64(at))
            at += np.uint64(size)
            if point < n_points:
                point = np.int64(char_class[point])
            if point == WIDE_SPECIAL:
                return document
            is_letter = np.uint64(point != WIDE_SEPARATOR)
            edges[edge] = out
            edge += is_letter ^ inside
            inside = is_letter
            if not is_letter:
                continue
            packed, size = _packed(point)
            for _ in range(size):
                lowered[out] = packed & 0xFF
                packed >>= 8
                out += _ONE
        edges[edge] = out
        edge += inside
        document += 1
        word_offsets[document] = first_word + np.int64(edge >> _ONE)
    return document


@kernel
def room_for(n_bytes: int) -> int:
    """The bytes that a text may have in lower case, and those that are loaded with the last.

    Where the original takes two, lower case takes three at most.
    """
    return n_bytes + (n_bytes + 1) // 2 + SPARE


@kernel
def look_up(
    lowered: Bytes,
    eights: Words64,
    edges: Integers,
    word: int,
    n_words: int,
    first_value: int,
    counts: Integers,
    table: Words64,
    kept: Bytes,
    values: Words64,
    pending_slots: Integers,
    pending_offsets: Integers,
    pending_bytes: Bytes,
    patches: Integers,
) -> int:
    """Look up words, from one on until all are done or an array is full; which comes next.

    `eights` is `lowered` in numbers of eight bytes. `counts` holds how many there are so far:
    pending words, their bytes, patches, bytes in `kept`, words in the table. A word that the table
    lacks is put there as pending; its bytes go to `pending_bytes` behind a space, and the places in
    `values` that wait for it to `patches`.
    """
    mask = np.uint64(table.size // NUMBERS - 1)
    # In groups: the table does not fit the processor's caches, and look-ups that do not wait for
    # each other are under way at the same time.
    lows = np.zeros(_GROUP, np.uint64)
    highs = np.zeros(_GROUP, np.uint64)
    slots = np.zeros(_GROUP, np.uint64)
    others = np.zeros(_GROUP, np.uint64)
    n_pending, n_bytes, n_patches, n_kept, n_known = counts
    # Three quarters full: a smaller table is worth more than a shorter search, for the table does
    # not fit the processor's caches.
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
            length = np.uint64(edges[first_edge + _TWO * cut + _ONE]) - at
            # Two aligned loads make an unaligned one.
            eighth = at >> _THREE
            offset = (at & _SEVEN) << _THREE
            rest = _SIXTY_THREE - offset
            middle = eights[eighth + _ONE]
            low = eights[eighth] >> offset | (middle << _ONE) << rest
            high = middle >> offset | (eights[eighth + _TWO] << _ONE) << rest
            if length <= _LONGEST_KEY:
                low &= _LOW_BITS[length]
                high = high & _HIGH_BITS[length] | length << _TOP
            elif length <= _LONGEST:
                low = _digest(lowered, at, length)
                high = (low * _MIX_2) >> _EIGHT | _LONG | length << _TOP
            else:
                high = _NEVER
            slot = _place(low, high) & mask
            # The table does not fit the processor's caches; what is asked for now is there soon.
            prefetch(table, slot << _TWO)
            lows[cut], highs[cut], slots[cut] = low, high, slot
        n_others = _ZERO
        for cut in range(np.uint64(n_cut)):
            slot, high = slots[cut] << _TWO, highs[cut]
            value = table[slot + _TWO]
            values[first + cut] = value
            # Without a branch, and nearly never: what is elsewhere, new, waiting or long.
            is_there = (table[slot] == lows[cut]) & (table[slot + _ONE] == high) & (high < _LONG)
            others[n_others] = cut
            n_others += _ONE - np.uint64(is_there & (value < _PENDING_VALUE))
        for cut in others[:n_others]:
            start = np.uint64(edges[first_edge + _TWO * cut])
            stop = np.uint64(edges[first_edge + _TWO * cut + _ONE])
            high, slot, is_new = highs[cut], _ZERO, True
            if high != _NEVER:
                slot, is_new = _found(
                    lowered, start, stop, lows[cut], high, slots[cut], table, kept
                )
            value = table[_SLOT * slot + _TWO]
            if is_new:
                value = _PENDING_VALUE | np.uint64(n_pending)
                pending_slots[n_pending] = NOT_KEPT if high == _NEVER else np.int64(slot)
                pending_bytes[n_bytes] = _SPACE
                n_bytes += 1
                for at in range(start, stop):
                    pending_bytes[n_bytes] = lowered[at]
                    n_bytes += 1
                if high != _NEVER:
                    table[_SLOT * slot] = lows[cut]
                    table[_SLOT * slot + _ONE] = high
                    table[_SLOT * slot + _TWO] = value
                    table[_SLOT * slot + _THREE] = n_kept
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
        word += n_cut
    counts[0], counts[1], counts[2], counts[3], counts[4] = (
        n_pending,
        n_bytes,
        n_patches,
        n_kept,
        n_known,
    )
    return word


@inlined
def _place(low: np.uint64, high: np.uint64) -> np.uint64:
    """Where in a table a key is, before its size is known."""
    mixed = (low ^ low >> _HALF) * _MIX ^ (high ^ high >> _HALF) * _MIX_2
    return mixed ^ mixed >> _HALF


@inlined
def _digest(lowered: Bytes, start: np.uint64, length: np.uint64) -> np.uint64:
    """A hash of the bytes of a long word."""
    digest = length
    for at in range(start, start + length):
        digest = (digest ^ np.uint64(lowered[at])) * _MIX
        digest ^= digest >> _HALF
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
    """The slot of a word, from where it should be on, or a free one for it; which of the two."""
    mask = np.uint64(table.size // NUMBERS - 1)
    while True:
        high_there = table[_SLOT * slot + _ONE]
        if high_there == _ZERO:
            return slot, True
        if high_there == high and table[_SLOT * slot] == low:
            if high < _LONG:
                return slot, False
            origin = table[_SLOT * slot + _THREE]
            is_same = True
            for at in range(start, stop):
                is_same = is_same and kept[origin + (at - start)] == lowered[at]
            if is_same:
                return slot, False
        slot = (slot + _ONE) & mask


@kernel
def rehash(table: Words64, larger: Words64) -> None:
    """Move all words to a larger table."""
    mask = np.uint64(larger.size // NUMBERS - 1)
    for slot in range(table.size // NUMBERS):
        low, high = table[NUMBERS * slot], table[NUMBERS * slot + 1]
        if high == _ZERO:
            continue
        new = np.int64(_place(low, high) & mask)
        while larger[NUMBERS * new + 1] != _ZERO:
            new = np.int64(np.uint64(new + 1) & mask)
        for number in range(NUMBERS):
            larger[NUMBERS * new + number] = table[NUMBERS * slot + number]


@kernel
def _append(tokens: Tokens, start: int, stop: int, target: Tokens, end: int) -> int:
    """Copy a word's tokens behind their number; where they end."""
    target[end] = stop - start
    end += 1
    for at in range(start, stop):
        target[end] = tokens[at]
        end += 1
    return end


@kernel
def settle(
    tokens: Tokens,
    offsets: Integers,
    pending_slots: Integers,
    table: Words64,
    values: Words64,
    patches: Integers,
    arena: Tokens,
    n_arena: int,
    passing: Tokens,
    n_passing: int,
    settled: Words64,
) -> tuple[int, int]:
    """Give the pending words their tokens, in the table and in all places that wait for them.

    A value holds up to three tokens itself. More of them stand in `arena`, from the place that it
    names; those of a word that is not kept stand in `passing`. `settled` is scratch of a value per
    pending word. The new ends of the two.
    """
    for number in range(pending_slots.size):
        start, stop = offsets[number], offsets[number + 1]
        slot = pending_slots[number]
        n = stop - start
        value = np.uint64(n) << _TOP
        is_near = n <= MOST_NEAR
        if is_near:
            for at in range(n):
                token = np.uint64(tokens[start + at])
                is_near = is_near and token <= _NEAR
                value |= token << np.uint64(_NEAR_BITS * at)
        if not is_near:
            value = np.uint64(FAR) << _TOP
            if slot != NOT_KEPT:
                value |= np.uint64(n_arena)
                n_arena = _append(tokens, start, stop, arena, n_arena)
            else:
                value |= np.uint64(n_passing) | _PASSING
                n_passing = _append(tokens, start, stop, passing, n_passing)
        settled[number] = value
        if slot != NOT_KEPT:
            table[NUMBERS * slot + 2] = value
    for at in patches:
        values[at] = settled[np.int64(values[at] & _HASH_BITS)]
    return n_arena, n_passing


@kernel
def _far_size(value: np.uint64, arena: Tokens, passing: Tokens) -> int:
    """How many tokens a word has whose value names their place.

    Called for such words only: numba counts references to arrays at every call.
    """
    at = np.int64(value & _PLACE)
    return np.int64(passing[at]) if value & _PASSING else np.int64(arena[at])


@kernel
def expand(
    values: Words64,
    value_offsets: Integers,
    arena: Tokens,
    passing: Tokens,
    out: Tokens,
    token_offsets: Integers,
) -> bool:
    """The tokens of all words, one after the other, and where those of each document begin.

    False when there is not room for them: `MOST_NEAR` for every word, and all of a longer one.
    """
    n = np.uint64(0)
    for document in range(value_offsets.size - 1):
        for word in range(value_offsets[document], value_offsets[document + 1]):
            value = values[word]
            size = value >> _TOP
            if size != np.uint64(FAR):
                # Three are written, whatever the number: a guess at it would often be wrong.
                out[n] = np.uint32(value & _NEAR)
                out[n + _ONE] = np.uint32((value >> np.uint64(_NEAR_BITS)) & _NEAR)
                out[n + _TWO] = np.uint32((value >> np.uint64(2 * _NEAR_BITS)) & _NEAR)
                n += size
                continue
            start = np.int64(value & _PLACE) + 1
            stop = start + _far_size(value, arena, passing)
            if np.int64(n) + stop - start + MOST_NEAR * (values.size - word) > out.size:
                return False
            if value & _PASSING:
                for at in range(start, stop):
                    out[n] = passing[at]
                    n += _ONE
            else:
                for at in range(start, stop):
                    out[n] = arena[at]
                    n += _ONE
        token_offsets[document + 1] = np.int64(n)
    return True


@kernel
def tokens_of_words(values: Words64, arena: Tokens, passing: Tokens, counts: Integers) -> None:
    """How many tokens each word has."""
    for at in range(values.size):
        size = np.int64(values[at] >> _TOP)
        counts[at] = size if size != FAR else _far_size(values[at], arena, passing)


@kernel
def word_places(
    text: Bytes, byte_class: Bytes, char_class: CodePoints, starts: Integers, stops: Integers
) -> int:
    """Where each word begins and ends, in characters of the text; how many there are.

    At most one more than there is room for.
    """
    n = 0
    at = 0
    character = 0
    is_inside = False
    while at < text.size:
        kind = byte_class[text[at]]
        is_separator = kind == SEPARATOR
        size = 1
        if kind == NOT_ASCII:
            point, size = _character(text, at)
            is_separator = point < char_class.size and char_class[point] == WIDE_SEPARATOR
        if is_separator == is_inside:
            if is_inside:
                stops[n] = character
                n += 1
            elif n < starts.size:
                starts[n] = character
            else:
                return n + 1
            is_inside = not is_inside
        at += size
        character += 1
    if is_inside:
        stops[n] = character
        n += 1
    return n
