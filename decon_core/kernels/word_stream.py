"""Text to words, and words to what a growing table knows about them. Twin: `text.clean` and a dict.

A word of up to seven bytes is its own key; a longer one is found by hash and compared byte by byte.
So two words are never taken for one another.

The table is one array of pairs (key, value), for one miss of the processor's cache per word:

    key     0: free; up to 7 bytes: length and the bytes; longer: 0xFF and 56 bits of a hash
    value   up to 7 bytes: its tokens, or where they are, or `PENDING` and a number in this round;
            longer: where in `kept` its length, that value and its bytes stand
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import kernel

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

# Why the loop stopped.
DONE, SPECIAL, FULL = 0, 1, 2

# A longer "word" (text of a script without spaces) hardly ever comes twice: it is not remembered.
LONGEST_KEPT = 64
_KEPT_CHUNKS = LONGEST_KEPT // 8
_GROUP = 64

PENDING = 0xFF  # in the top byte of a value
NOT_KEPT = -1  # in the place of a pending word's slot; below: -2 and its place in `kept`
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

# Eight bytes in one number: a byte plus one of these has its high bit set from that character on.
_ONES = np.uint64(0x0101010101010101)
_LOW_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH_BITS = np.uint64(0x8080808080808080)
_FROM_UPPER_A = np.uint64((0x80 - ord("A")) * 0x0101010101010101)
_ABOVE_UPPER_Z = np.uint64((0x7F - ord("Z")) * 0x0101010101010101)
_FROM_A = np.uint64((0x80 - ord("a")) * 0x0101010101010101)
_ABOVE_Z = np.uint64((0x7F - ord("z")) * 0x0101010101010101)
_FROM_0 = np.uint64((0x80 - ord("0")) * 0x0101010101010101)
_ABOVE_9 = np.uint64((0x7F - ord("9")) * 0x0101010101010101)
_LONG_KEY = np.uint64(0xFF) << _TOP
_PENDING_VALUE = np.uint64(PENDING) << _TOP
_HASH_BITS = (np.uint64(1) << _TOP) - np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads by multiplication
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_LOW_BYTE = np.uint64(0xFF)
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
def _copy_lower(
    text: Bytes,
    start: int,
    stop: int,
    byte_class: Bytes,
    char_class: CodePoints,
    out: Bytes,
    at: int,
) -> int:
    """Write a word of any length in lower case; where it ends in `out`."""
    while start < stop:
        kind = byte_class[text[start]]
        if kind != NOT_ASCII:
            out[at] = kind
            at += 1
            start += 1
            continue
        point, size = _character(text, start)
        start += size
        packed, size = _packed(char_class[point] if point < char_class.size else point)
        for _ in range(size):
            out[at] = packed & 0xFF
            packed >>= 8
            at += 1
    return at


@kernel
def stream_words(
    text: Bytes,
    eights: Words64,
    starts: Integers,
    stops: Integers,
    resume: Integers,
    byte_class: Bytes,
    char_class: CodePoints,
    table: Words64,
    kept: Words64,
    values: Words64,
    value_offsets: Integers,
    pending_slots: Integers,
    pending_offsets: Integers,
    pending_bytes: Bytes,
    patches: Integers,
) -> int:
    """Look up the words of all documents, from where `resume` says until one of the arrays is full.

    `eights` is the text in numbers of eight bytes, or empty where letters and digits are not all
    parts of words. `resume` holds: document, byte, values, pending words, their bytes, patches,
    kept chunks, words in the table. A word that the table lacks is put there as pending; its bytes
    go to `pending_bytes` behind a space, and the places in `values` that wait for it to `patches`.
    """
    mask = np.uint64(table.size // 2 - 1)
    # Words are cut in groups, then looked up: the table does not fit the processor's caches, and
    # look-ups that do not wait for each other's text are under way at the same time.
    chunks = np.zeros(_GROUP * _KEPT_CHUNKS, np.uint64)
    keys = np.zeros(_GROUP, np.uint64)
    slots = np.zeros(_GROUP, np.uint64)
    keys_there = np.zeros(_GROUP, np.uint64)
    firsts = np.zeros(_GROUP, np.uint64)
    ends = np.zeros(_GROUP, np.uint64)
    lengths = np.zeros(_GROUP, np.int64)
    n_points = char_class.size
    document, n_values, n_pending = resume[0], resume[2], resume[3]
    n_bytes, n_patches, n_kept, n_words = resume[4], resume[5], resume[6], resume[7]
    # Unsigned: an index that may be negative costs a comparison more for every byte.
    at = np.uint64(resume[1])
    # Where eight bytes, and those that are loaded with them, end within the text.
    last_eight = np.uint64(max(8 * eights.size - 15, 0))
    # Three quarters full: a smaller table is worth more than a shorter search, for the table does
    # not fit the processor's caches.
    most_words = table.size * 3 // 8
    status = DONE
    while document < starts.size:
        stop = np.uint64(stops[document])
        is_through = False
        while status == DONE and not is_through:
            n_cut = 0
            while n_cut < _GROUP:
                # To the first character of a word.
                while at < stop:
                    kind = byte_class[text[at]]
                    if kind == SEPARATOR:
                        at += _ONE
                        continue
                    if kind != NOT_ASCII:
                        break
                    point, size = _character(text, np.int64(at))
                    if point >= n_points or char_class[point] != WIDE_SEPARATOR:
                        break
                    at += np.uint64(size)
                if at >= stop:
                    is_through = True
                    break

                # The word, in chunks of eight bytes.
                first = at
                base = n_cut * _KEPT_CHUNKS
                n_full = 0
                chunk = _ZERO
                bits = _ZERO  # of the chunk that are taken
                digest = _ZERO
                is_special = False
                while at < stop:
                    if bits == _ZERO and at < last_eight:
                        # Eight bytes at once, without a branch for each: no processor can guess how
                        # long a word is. Two aligned loads make an unaligned one.
                        eighth = at >> _THREE
                        offset = (at & _SEVEN) << _THREE
                        chunk = eights[eighth] >> offset
                        chunk |= (eights[eighth + _ONE] << _ONE) << (_SIXTY_THREE - offset)
                        low = chunk & _LOW_SEVENS
                        is_upper = (
                            (low + _FROM_UPPER_A) & ~(low + _ABOVE_UPPER_Z) & _HIGH_BITS & ~chunk
                        )
                        chunk |= is_upper >> np.uint64(2)
                        low |= is_upper >> np.uint64(2)
                        is_plain = (low + _FROM_A) & ~(low + _ABOVE_Z)
                        is_plain |= (low + _FROM_0) & ~(low + _ABOVE_9)
                        others = ~(is_plain & ~chunk) & _HIGH_BITS
                        if others:
                            # How many bytes stand before the first other one.
                            below = (others & (~others + _ONE)) - _ONE
                            n_here = ((below & _ONES) * _ONES >> _TOP) - _ONE
                        else:
                            n_here = _EIGHT
                        n_here = min(n_here, stop - at)
                        at += n_here
                        if n_here == _EIGHT:
                            chunks[base + (n_full & (_KEPT_CHUNKS - 1))] = chunk
                            n_full += 1
                            digest = (digest ^ chunk) * _MIX
                            digest ^= digest >> _HALF
                            chunk = _ZERO
                            continue
                        bits = n_here << _THREE
                        chunk &= (_ONE << bits) - _ONE
                        if at >= stop:
                            break
                    kind = byte_class[text[at]]
                    if kind < SEPARATOR:
                        chunk |= np.uint64(kind) << bits
                        bits += _EIGHT
                        at += _ONE
                        if bits == _CHUNK_BITS:
                            chunks[base + (n_full & (_KEPT_CHUNKS - 1))] = chunk
                            n_full += 1
                            digest = (digest ^ chunk) * _MIX
                            digest ^= digest >> _HALF
                            chunk = _ZERO
                            bits = _ZERO
                        continue
                    if kind == SEPARATOR:
                        break
                    point, size = _character(text, np.int64(at))
                    if point < n_points:
                        point = np.int64(char_class[point])
                        if point < 0:
                            is_special = point == WIDE_SPECIAL
                            break
                    at += np.uint64(size)
                    packed, size = _packed(point)
                    for _ in range(size):
                        chunk |= np.uint64(packed & 0xFF) << bits
                        packed >>= 8
                        bits += _EIGHT
                        if bits == _CHUNK_BITS:
                            chunks[base + (n_full & (_KEPT_CHUNKS - 1))] = chunk
                            n_full += 1
                            digest = (digest ^ chunk) * _MIX
                            digest ^= digest >> _HALF
                            chunk = _ZERO
                            bits = _ZERO
                length = 8 * n_full + np.int64(bits >> _THREE)
                if is_special:
                    status = SPECIAL
                    break

                if length < 8:
                    key = chunk | np.uint64(length) << _TOP
                    place = (key ^ (key >> _HALF)) * _MIX
                    place = (place ^ (place >> _HALF)) * _MIX_2
                    place ^= place >> _HALF
                    chunks[base] = chunk
                else:
                    if bits:
                        chunks[base + (n_full & (_KEPT_CHUNKS - 1))] = chunk
                    digest = (digest ^ chunk ^ (np.uint64(length) << _TOP)) * _MIX
                    digest ^= digest >> _HALF
                    place = (digest * _MIX_2) & _HASH_BITS
                    place ^= place >> _HALF
                    key = _LONG_KEY | place
                keys[n_cut], slots[n_cut] = key, place & mask
                firsts[n_cut], ends[n_cut], lengths[n_cut] = first, at, length
                n_cut += 1
            if status == SPECIAL:
                break
            for cut in range(n_cut):
                keys_there[cut] = table[slots[cut] << _ONE]
            for cut in range(n_cut):
                if n_values == values.size or n_patches == patches.size:
                    at = firsts[cut]
                    status = FULL
                    break
                key, length = keys[cut], lengths[cut]
                base = cut * _KEPT_CHUNKS
                value = _ZERO
                slot = np.int64(slots[cut])
                is_new = True
                if keys_there[cut] == key and length < 8:
                    value = table[2 * slot + 1]
                    is_new = False
                elif length > LONGEST_KEPT:
                    slot = np.int64(NOT_KEPT)
                else:
                    while True:
                        there = table[2 * slot]
                        if there == key:
                            is_same = True
                            value = table[2 * slot + 1]
                            if length > 7:
                                origin = np.int64(value)
                                value = kept[origin + 1]
                                is_same = kept[origin] == np.uint64(length)
                                for number in range((length + 7) >> 3):
                                    if not is_same:
                                        break
                                    is_same = kept[origin + 2 + number] == chunks[base + number]
                            if is_same:
                                is_new = False
                                break
                        elif there == _ZERO:
                            break
                        slot = np.int64(np.uint64(slot + 1) & mask)
                if is_new:
                    # Lower case takes three bytes at most where the original takes two.
                    room = (
                        length if length <= LONGEST_KEPT else 2 * np.int64(ends[cut] - firsts[cut])
                    )
                    if (
                        n_pending == pending_slots.size
                        or n_bytes + 1 + room > pending_bytes.size
                        or n_words >= most_words
                        or n_kept + _KEPT_CHUNKS + 2 > kept.size
                    ):
                        at = firsts[cut]
                        status = FULL
                        break
                    value = _PENDING_VALUE | np.uint64(n_pending)
                    pending_slots[n_pending] = slot
                    pending_bytes[n_bytes] = _SPACE
                    n_bytes += 1
                    if length > LONGEST_KEPT:
                        n_bytes = _copy_lower(
                            text,
                            np.int64(firsts[cut]),
                            np.int64(ends[cut]),
                            byte_class,
                            char_class,
                            pending_bytes,
                            n_bytes,
                        )
                    else:
                        table[2 * slot] = key
                        table[2 * slot + 1] = value if length < 8 else np.uint64(n_kept)
                        n_words += 1
                        for number in range(length):
                            chunk = chunks[base + (number >> 3)]
                            chunk >>= np.uint64((number & 7) << 3)
                            pending_bytes[n_bytes + number] = np.uint8(chunk & _LOW_BYTE)
                        n_bytes += length
                        if length > 7:
                            pending_slots[n_pending] = -2 - n_kept
                            kept[n_kept] = np.uint64(length)
                            kept[n_kept + 1] = value
                            n_kept += 2
                            for number in range((length + 7) >> 3):
                                kept[n_kept] = chunks[base + number]
                                n_kept += 1
                    n_pending += 1
                    pending_offsets[n_pending] = n_bytes
                if value >= _PENDING_VALUE:
                    patches[n_patches] = n_values
                    n_patches += 1
                values[n_values] = value
                n_values += 1
        if status != DONE:
            break
        document += 1
        value_offsets[document] = n_values
        if document < starts.size:
            at = np.uint64(starts[document])
    resume[0], resume[1], resume[2], resume[3] = document, np.int64(at), n_values, n_pending
    resume[4], resume[5], resume[6], resume[7] = n_bytes, n_patches, n_kept, n_words
    return status


@kernel
def rehash(table: Words64, larger: Words64) -> None:
    """Move all words to a larger table."""
    mask = np.uint64(larger.size // 2 - 1)
    for slot in range(table.size // 2):
        key = table[2 * slot]
        if key == _ZERO:
            continue
        if key >> _TOP == np.uint64(0xFF):
            place = key & _HASH_BITS
        else:
            place = (key ^ (key >> _HALF)) * _MIX
            place = (place ^ (place >> _HALF)) * _MIX_2
            place ^= place >> _HALF
        new = np.int64(place & mask)
        while larger[2 * new] != _ZERO:
            new = np.int64(np.uint64(new + 1) & mask)
        larger[2 * new] = key
        larger[2 * new + 1] = table[2 * slot + 1]


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
    kept: Words64,
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
        if slot >= 0:
            table[2 * slot + 1] = value
        elif slot != NOT_KEPT:
            kept[-2 - slot + 1] = value
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
def count_tokens(
    values: Words64,
    value_offsets: Integers,
    arena: Tokens,
    passing: Tokens,
    token_offsets: Integers,
) -> None:
    """How many tokens come before each document."""
    n = 0
    for document in range(value_offsets.size - 1):
        for at in range(value_offsets[document], value_offsets[document + 1]):
            size = np.int64(values[at] >> _TOP)
            n += size if size != FAR else _far_size(values[at], arena, passing)
        token_offsets[document + 1] = n


@kernel
def expand(values: Words64, arena: Tokens, passing: Tokens, out: Tokens) -> None:
    """The tokens of all words, one after the other, and room for `MOST_NEAR` more behind them."""
    n = np.uint64(0)
    for value in values:
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
        if value & _PASSING:
            for at in range(start, stop):
                out[n] = passing[at]
                n += _ONE
        else:
            for at in range(start, stop):
                out[n] = arena[at]
                n += _ONE


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
