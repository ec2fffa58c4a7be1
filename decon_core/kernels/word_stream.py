"""Lower-case text and split it into words.

Reference implementation: `clean` in `text/canonical.py`.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Int32s, Integers
from decon_core.kernels.hashing import ONE, ZERO
from decon_core.kernels.instructions import LANES, bytes_between, lowest_bit, n_bits
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.utf8 import character_at, write_character

# Classes of bytes and characters; all others map to their lower case.
SEPARATOR = 0xFE  # entry of the table of bytes
NOT_ASCII = 0xFF
WIDE_SEPARATOR = -1  # entry of the table of characters
WIDE_SPECIAL = -2  # its lower case is longer, or depends on adjacent letters
ALONE = 1 << 30  # added to a character that is a word
VOICING_MARK = 1 << 29  # and to one that belongs to a character before it that is a word

SPARE = 24  # bytes past a word that may be read

_POINT = VOICING_MARK - 1
_MOST_EDGES = 3  # of a character: the end of the word before it, its start and its end
_LANES = np.uint64(LANES)
_LAST = np.uint64(LANES - 1)
_FIRST_NOT_ASCII, _LAST_BYTE = np.uint8(0x80), np.uint8(0xFF)
_MOST_RANGES = 64  # ranges of 128 bytes
_UPPER_A, _UPPER_Z, _LOWER_A, _LOWER_Z, _DIGIT_0, _DIGIT_9 = map(ord, "AZaz09")
_CASE = np.uint8(5)  # the bit that differs between the cases
_PLACES_TOGETHER = np.uint64(8)


@kernel
def cut_words(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    document: int,
    byte_class: Bytes,
    char_class: Int32s,
    lowered: Bytes,
    edges: Integers,
    word_offsets: Integers,
) -> int:
    """Write texts in lower case, and the start and end of each of their words.

    Processes whole documents from `document` on, as many as fit; returns the next one. Returns
    `document` if it has a letter that Python must lower-case. `word_offsets` continues from the
    number of words before the document. `lowered` has `room_for` the first document; `edges` has
    two elements per byte, and one more.
    """
    n_points = char_class.size
    first_word = word_offsets[document]
    lows, highs = _separator_ranges(byte_class)
    # Unsigned: signed indexes cost one more comparison per byte.
    out = edge = ZERO
    while document < starts.size:
        at, stop = np.uint64(starts[document]), np.uint64(stops[document])
        if np.int64(out) + room_for(np.int64(stop - at)) > lowered.size:
            return document
        inside = ZERO
        is_behind_alone = False  # whether the last character is a word
        plain_from = at  # no whole stretch that begins before it is ASCII
        while at < stop:
            if at >= plain_from and at + _LANES <= stop:
                if not bytes_between(text, at, _FIRST_NOT_ASCII, _LAST_BYTE):
                    _write_lower(text, at, lowered, out)
                    letters = ~_separators(text, at, lows, highs)
                    edge = write_places(letters ^ (letters << ONE | inside), out, edges, edge)
                    inside = letters >> _LAST
                    is_behind_alone = False
                    out += _LANES
                    at += _LANES
                    continue
                plain_from = at + _LANES
            kind = byte_class[text[at]]
            if kind != NOT_ASCII:
                # Branch-free, as ends of words are unpredictable: an edge is written for each byte,
                # and overwritten by the next one unless it is an edge.
                is_letter = np.uint64(kind < SEPARATOR)
                lowered[out] = kind
                edges[edge] = out
                edge += is_letter ^ inside
                inside = is_letter
                is_behind_alone = False
                out += ONE
                at += ONE
                continue
            point, size = character_at(text, at)
            at += np.uint64(size)
            if point < n_points:
                point = np.int64(char_class[point])
            if point == WIDE_SPECIAL:
                return document
            if point >= VOICING_MARK:
                if point < ALONE and is_behind_alone:
                    edge -= ONE
                else:
                    edges[edge] = out
                    edge += inside
                    edges[edge] = out
                    edge += ONE
                out += np.uint64(write_character(point & _POINT, lowered, out))
                edges[edge] = out
                edge += ONE
                inside, is_behind_alone = ZERO, True
                continue
            is_behind_alone = False
            is_letter = np.uint64(point != WIDE_SEPARATOR)
            edges[edge] = out
            edge += is_letter ^ inside
            inside = is_letter
            if not is_letter:
                continue
            out += np.uint64(write_character(point, lowered, out))
        edges[edge] = out
        edge += inside
        document += 1
        word_offsets[document] = first_word + np.int64(edge >> ONE)
    return document


@kernel
def _separator_ranges(byte_class: Bytes) -> tuple[Bytes, Bytes]:
    """Return the first and the last byte of each range of ASCII separators."""
    lows, highs = np.empty(_MOST_RANGES, np.uint8), np.empty(_MOST_RANGES, np.uint8)
    n = 0
    was_separator = False
    for byte in range(0x80):
        is_separator = byte_class[byte] == SEPARATOR
        if is_separator:
            n += not was_separator
            lows[n - 1] = lows[n - 1] if was_separator else byte
            highs[n - 1] = byte
        was_separator = is_separator
    return lows[:n], highs[:n]


@inlined
def _separators(text: Bytes, at: np.uint64, lows: Bytes, highs: Bytes) -> np.uint64:
    """Return a bit for each of `LANES` bytes: 1 if it is a separator."""
    bits = ZERO
    for number in range(lows.size):
        bits |= bytes_between(text, at, lows[number], highs[number])
    return bits


@inlined
def _write_lower(text: Bytes, at: np.uint64, lowered: Bytes, out: np.uint64) -> None:
    """Write `LANES` bytes of ASCII in lower case."""
    for lane in range(_LANES):
        byte = text[at + lane]
        lowered[out + lane] = byte | np.uint8((byte >= _UPPER_A) & (byte <= _UPPER_Z)) << _CASE


@inlined
def write_places(bits: np.uint64, first: np.uint64, places: Integers, at: np.uint64) -> np.uint64:
    """Write the positions of bits, eight at a time, as their number is unpredictable."""
    n = n_bits(bits)
    for some in range(ZERO, n, _PLACES_TOGETHER):
        for number in range(_PLACES_TOGETHER):
            places[at + some + number] = first + lowest_bit(bits)
            bits &= bits - ONE
    return at + n


@kernel
def find_beginnings(data: Bytes, start: int, stop: int, places: Integers) -> int:
    """Find the positions in a range where words or characters beyond ASCII begin.

    `places` has room for every byte and eight more, `data` for the last `LANES` bytes. Returns the
    number of positions.
    """
    n = ZERO
    inside = ZERO  # whether the last byte is of a word
    if start:
        inside = _word_bytes(data, start - 1) & ONE
    for at in range(start, stop, LANES):
        words = _word_bytes(data, at)
        begins = words & ~(words << ONE | inside) | bytes_between(data, at, 0xC0, _LAST_BYTE)
        inside = words >> _LAST
        if at + LANES > stop:
            begins &= (ONE << np.uint64(stop - at)) - ONE
        n = write_places(begins, np.uint64(at), places, n)
    return np.int64(n)


@inlined
def _word_bytes(data: Bytes, at: int) -> np.uint64:
    """Return a bit for each of `LANES` bytes: 1 for letters, digits and all beyond ASCII."""
    return (
        bytes_between(data, at, _LOWER_A, _LOWER_Z)
        | bytes_between(data, at, _UPPER_A, _UPPER_Z)
        | bytes_between(data, at, _DIGIT_0, _DIGIT_9)
        | bytes_between(data, at, _FIRST_NOT_ASCII, _LAST_BYTE)
    )


@kernel
def room_for(n_bytes: int) -> int:
    """Return the maximum size of a text in lower case, with the spare bytes.

    Two bytes become at most three.
    """
    return n_bytes + (n_bytes + 1) // 2 + SPARE


@entry(compile_seconds=0.2, steps=lambda text, *_: text.size)
def word_places(text: Bytes, byte_class: Bytes, char_class: Int32s, edges: Integers) -> int:
    """Write at which character each word starts and stops; return how many edges that are.

    `edges` needs room for three more. If it is too small, the last words are left out.
    """
    n = 0
    at = 0
    character = 0
    is_inside = is_behind_alone = False
    while at < text.size and n + _MOST_EDGES <= edges.size:
        kind = byte_class[text[at]]
        is_separator = kind == SEPARATOR
        size = 1
        if kind == NOT_ASCII:
            point, size = character_at(text, at)
            of_point = char_class[point] if point < char_class.size else 0
            if of_point >= VOICING_MARK:
                if of_point < ALONE and is_behind_alone:
                    n -= 1
                else:
                    edges[n] = character
                    n += is_inside
                    edges[n] = character
                    n += 1
                at += size
                character += 1
                edges[n] = character
                n += 1
                is_inside, is_behind_alone = False, True
                continue
            is_separator = of_point == WIDE_SEPARATOR
        is_behind_alone = False
        # Every character is written, and all but edges are overwritten: that takes a third of the
        # time of a branch, which is often mispredicted.
        edges[n] = character
        n += is_separator == is_inside
        is_inside = not is_separator
        at += size
        character += 1
    if is_inside:
        edges[n] = character
        n += 1
    return n
