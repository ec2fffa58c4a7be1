"""The screen of strings: what is done with each, and which the plain reader has to classify.

`corpus/string_kinds.py` does the same in plain Python, and more.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bools, Bytes, Integers, Table
from decon_core.kernels.hashing import MIX
from decon_core.kernels.instructions import bytes_between, eight_bytes, lowest_bit
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.utf8 import valid_size

# Thresholds of what a string is ------------------------------------------------------------------

# A question has about as many words. Shorter strings match nothing, and are mostly names.
LEAST_WORDS = 8  # words of a text: between white space, with a letter or digit
LEAST_LETTERS = 24  # letters of a text in a script without spaces, at three a word
LEAST_BYTES = 2 * LEAST_WORDS - 1  # words of one letter, and spaces
LEAST_JOINED = 16  # words that are joined as in a URL: more, as file names have some
# Digests in hex have 64 characters. Shorter base64 holds less than eight words.
LEAST_ENCODED = 64
LINE_OF_BASE64 = 60  # letters of a line in a text: `base64` writes 64 or 76; words are shorter
LEAST_BETWEEN = 12  # characters for each `+/_-`: base64 has 32, joined words have about five
LEAST_NUMBERS = 16  # token ids of eight words, if the name of the field says what they are
LEAST_CODES = 64  # numbers that are known by themselves: bytes of eight words, or likely ids
LEAST_LARGE = 256  # half of likely ids are larger; few numbers of grids and scores are
LARGEST_VOCABULARY = 300_000  # the largest published ones have 262,144 tokens
MOST_NESTED = 2  # times that what was decoded is unpacked or decoded again: base64 of gzip of text
LEAST_REPEATED = 32  # bytes of a text that a row repeats; shorter ones are answers
LONGEST_NAME = 64  # bytes of a value that names a data set or a split

# What a source does with a string of a field: reads it; reads it if it is text; counts it if it is
# text; counts it as one text together with the other short strings of its list; ignores it.
READ, READ_IF_TEXT, COUNT, COUNT_TOGETHER, IGNORE = range(5)
# What is done with a string: it is read; it may be JSON that is read as the value that it holds; it
# is base64, and its content is decoded to see if it is text; it is kept, as it may be a name; it is
# counted; its words are counted; it is no string but a list, whose numbers are counted; the plain
# reader classifies it, with its row; nothing.
(
    TO_READ,
    TO_DECODE,
    TO_LOOK_AT,
    TO_NOTE,
    TO_COUNT,
    TO_COUNT_WORDS,
    TO_COUNT_NUMBERS,
    TO_REREAD,
    TO_SKIP,
) = range(9)

_FIRST_BYTES = 96  # bytes that are looked at first
_STRIDE = 32
_STRIDE_U = np.uint64(_STRIDE)
_ONE = np.uint64(1)
_FIRST_FIVE = np.uint64((1 << 40) - 1)
_DATA_URI = np.uint64(int.from_bytes(b"data:", "little"))
_OBJECT, _OBJECT_END, _LIST, _LIST_END, _QUOTE, _BACKSLASH = map(ord, '{}[]"\\')

Place = np.uint64
Byte = np.uint8


@kernel
def _is_letter(byte: np.uint8) -> bool:
    """Return whether a byte is a letter or digit, or of a character beyond ASCII."""
    return bool(
        ((byte >= 0x30) & (byte <= 0x39))
        | ((byte | 0x20) >= 0x61) & ((byte | 0x20) <= 0x7A)
        | (byte >= 0x80)
    )


@kernel
def _n_beginnings(text: Bytes, start: int, stop: int) -> int:
    """Count words that follow a space and begin with a letter: a loop without branches.

    Not those that begin with a byte of which a wide space may begin.
    """
    n = 0
    for at in range(np.uint64(start), np.uint64(stop) - np.uint64(1)):
        byte = text[at + np.uint64(1)]
        is_letter = _is_letter(byte) & (byte != 0xC2) & ((byte < 0xE1) | (byte > 0xE3))
        n += (text[at] == 0x20) & is_letter
    return n


@kernel
def _may_be_text(text: Bytes, start: int, stop: int) -> bool:
    """Return whether there is enough white space, or a wide character: a loop without branches."""
    n, highest = 1, np.uint8(0)
    for at in range(np.uint64(start), np.uint64(stop)):
        byte = text[at]
        n += (byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D)) | (byte == 0xC2)
        highest = max(highest, byte)
    return bool((n >= LEAST_WORDS) | (highest >= 0xE0))


@kernel
def is_text(text: Bytes, start: int, stop: int) -> bool:
    """Return whether a string has some words, or many letters of a script without spaces."""
    if stop - start < LEAST_BYTES:
        return False
    is_short = stop - start <= _FIRST_BYTES
    if is_short and not _may_be_text(text, start, stop):
        return False
    if _n_beginnings(text, start, min(stop, start + _FIRST_BYTES)) >= LEAST_WORDS:
        return True
    if not (is_short or _may_be_text(text, start, stop)):
        return False
    n_words = n_letters = 0
    has_letter = False
    for at in range(start, stop):
        byte = text[at]
        if (byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D)):
            n_words += has_letter
            has_letter = False
            if n_words >= LEAST_WORDS:
                return True
        elif byte < 0x80:
            has_letter |= _is_letter(byte)
        elif byte >= 0xC0:
            if _is_wide_space(byte, text[at + 1], text[at + 2]):
                n_words += has_letter
                has_letter = False
                if n_words >= LEAST_WORDS:
                    return True
                continue
            has_letter = True
            if byte >= 0xE0:
                n_letters += _is_unspaced(byte, text[at + 1])
                if n_letters >= LEAST_LETTERS:
                    return True
    return bool(n_words + has_letter >= LEAST_WORDS)


@kernel
def _is_wide_space(lead: np.uint8, second: np.uint8, third: np.uint8) -> bool:
    if lead == 0xC2:
        return bool(second == 0xA0)
    if lead == 0xE1:
        return bool((second == 0x9A) & (third == 0x80))
    if lead == 0xE3:
        return bool((second == 0x80) & (third == 0x80))
    if lead != 0xE2:
        return False
    if second == 0x81:
        return bool(third == 0x9F)
    is_space = (third <= 0x8A) | (third == 0xA8) | (third == 0xA9) | (third == 0xAF)
    return bool((second == 0x80) & is_space)


@kernel
def _is_unspaced(lead: np.uint8, second: np.uint8) -> bool:
    """Return whether a character is of a script without spaces, by its first two bytes."""
    if (lead >= 0xE3) & (lead <= 0xE9):
        return True
    if lead == 0xE0:
        return bool(second >= 0xB8)
    if lead == 0xE1:
        is_tai = (second >= 0xA5) & (second <= 0xAA) | (second == 0xAC) | (second == 0xAD)
        return bool((second <= 0x82) | (second == 0x9E) | (second == 0x9F) | is_tai)
    if lead == 0xE2:
        return bool(second >= 0xBA)
    if lead == 0xEA:
        return bool((second <= 0x93) | (second == 0xA6) | (second == 0xA7) | (second == 0xA9))
    if lead == 0xEF:
        is_wide = (second >= 0xBC) & (second <= 0xBE)
        return bool((second >= 0xA4) & (second <= 0xAB) | is_wide)
    return bool((lead == 0xF0) & (second >= 0xA0))


@kernel
def is_joined(text: Bytes, start: int, stop: int) -> bool:
    """Return whether words of a text are joined, as in a URL: a loop without branches."""
    if stop - start < 2 * LEAST_JOINED - 1:
        return False
    n_joints = n_quoted = 0
    end = np.uint64(stop)
    for at in range(np.uint64(start), end - _ONE):
        byte, second, third = text[at], text[at + _ONE], text[at + np.uint64(2)]
        is_sign = (byte == 0x2D) | (byte == 0x5F) | (byte == 0x2B)
        n_joints += is_sign & _begins_word(second)
        is_quote = (byte == 0x25) & (at + np.uint64(2) < end)
        is_space = is_quote & (second == 0x32) & (third == 0x30) & (at + np.uint64(3) < end)
        n_joints += is_space & _begins_word(text[at + np.uint64(3)])
        n_quoted += is_quote & ((second | 0x20) == 0x65) & (third >= 0x33) & (third <= 0x39)
    return bool((n_joints + 1 >= LEAST_JOINED) | (n_quoted >= LEAST_LETTERS))


@kernel
def _begins_word(byte: np.uint8) -> bool:
    """Return whether a word may begin with a byte: a letter, or one that a URL quotes."""
    is_letter = ((byte | 0x20) >= 0x61) & ((byte | 0x20) <= 0x7A)
    return bool(is_letter | (byte == 0x25) | (byte >= 0x80))


@kernel
def end_of_base64(text: Bytes, start: int, stop: int) -> int:
    """Return where the letters of base64 from a place on end; reads up to 64 bytes beyond."""
    at = np.uint64(start)
    while True:
        letters = (
            bytes_between(text, at, 0x61, 0x7A)
            | bytes_between(text, at, 0x41, 0x5A)
            | bytes_between(text, at, 0x2F, 0x39)
            | bytes_between(text, at, 0x2B, 0x2B)
            | bytes_between(text, at, 0x5F, 0x5F)
            | bytes_between(text, at, 0x2D, 0x2D)
        )
        n = lowest_bit(~letters)
        at += n
        if (n < np.uint64(64)) | (np.int64(at) >= stop):
            return min(np.int64(at), stop)


@kernel
def is_base64(text: Bytes, start: int, stop: int) -> bool:
    """Return whether a string is base64, in one line or in lines of at least 60 characters."""
    if stop - start < LEAST_ENCODED:
        return False
    at, first = start, start
    while True:
        at = end_of_base64(text, at, stop)
        n = at - first
        if at == stop:
            return bool(n > 0) and _has_few_separators(text, start, stop)
        byte = text[at]
        is_break = (byte == 0x0A) | ((byte == 0x0D) & (at + 1 < stop) and text[at + 1] == 0x0A)
        if not (is_break & (n >= LINE_OF_BASE64)):
            break
        after = at + (2 if byte == 0x0D else 1)
        if end_of_base64(text, after, min(after + 1, stop)) == after:
            break
        at = first = after
    if n == 0:
        return False
    for _ in range(2):
        if (at < stop) and (text[at] == 0x3D):
            at += 1
    while at < stop:
        byte = text[at]
        if not ((byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D))):
            return False
        at += 1
    return _has_few_separators(text, start, stop)


@kernel
def _has_few_separators(text: Bytes, start: int, stop: int) -> bool:
    """Return whether base64 is no words that are joined by its signs that are no letters."""
    n = 0
    for at in range(start, stop):
        byte = text[at]
        n += (byte == 0x2B) | (byte == 0x2F) | (byte == 0x5F) | (byte == 0x2D)
    return bool(LEAST_BETWEEN * n <= stop - start)


@kernel
def _is_space(byte: Byte) -> bool:
    return bool((byte == 0x20) | (byte == 0x0A) | (byte == 0x09) | (byte == 0x0D))


@kernel
def may_be_json(text: Bytes, start: Place, stop: Place) -> bool:
    """Return whether a text begins and ends like an object, a list, or a string with escapes."""
    while (start < stop) and _is_space(text[start]):
        start += _ONE
    if start == stop:
        return False
    first = text[start]
    if (first != _OBJECT) & (first != _LIST) & (first != _QUOTE):
        return False
    while _is_space(text[stop - _ONE]):
        stop -= _ONE
    last = text[stop - _ONE]
    if first != _QUOTE:
        return bool((last == _OBJECT_END) | (last == _LIST_END))
    has_escape = False
    for at in range(start + _ONE, stop if last == _QUOTE else start):
        has_escape |= text[at] == _BACKSLASH
    return has_escape


@kernel
def _may_be_escaped(text: Bytes, start: int, stop: int) -> bool:
    """Return whether there may be as many escapes (`\\u5f20`, `&#24352;`) as a text has letters."""
    if stop - start < 5 * LEAST_LETTERS:
        return False
    n = 0
    for at in range(np.uint64(start), np.uint64(stop) - _ONE):
        second = text[at + _ONE]
        n += (text[at] == _BACKSLASH) & (second == 0x75) | (text[at] == 0x26) & (second == 0x23)
    return bool(n >= LEAST_LETTERS)


@kernel
def action_on(text: Bytes, start: Place, stop: Place, use: int, names: int) -> int:
    """Return what is done with a string, by the use of its field, and what values there name."""
    if eight_bytes(text, start) & _FIRST_FIVE == _DATA_URI:
        return TO_REREAD
    first, end = np.int64(start), np.int64(stop)
    is_encoded = use != IGNORE and is_base64(text, first, end)
    if is_encoded and use != READ_IF_TEXT:
        return TO_LOOK_AT
    is_short = use != READ and not is_text(text, first, end)
    if is_short and ((use == COUNT) | (use == COUNT_TOGETHER)):
        if _may_be_escaped(text, first, end):
            return TO_REREAD
        if use == COUNT_TOGETHER:
            return TO_COUNT_WORDS
    if is_short and use == READ_IF_TEXT:
        is_short = not is_joined(text, first, end)
    if use == IGNORE or is_encoded or is_short:
        return TO_NOTE if (names != 0) & (end - first <= LONGEST_NAME) else TO_SKIP
    return TO_READ if use <= READ_IF_TEXT else TO_COUNT


@kernel
def code_of(text: Bytes, start: Place, stop: Place) -> np.int64:
    """Return the value of a whole number, at most 256; -1 of other JSON."""
    value = np.int64(0)
    for at in range(start, stop):
        byte = text[at]
        if (byte < 0x30) | (byte > 0x39):
            return np.int64(-1)
        value = min(value * 10 + np.int64(byte) - 0x30, np.int64(256))
    return value


# Columns of sums of a list: its whole numbers, and those that are codes of signs of a text, of
# letters and of spaces.
N_NUMBERS, _N_SIGNS, _N_LETTERS, _N_SPACES = range(1, 5)


@kernel
def may_have_loose_ids(has_tokens: int, is_element: bool, is_object: bool, is_row: bool) -> bool:
    """Return whether a container in a field of token ids may have some that no list holds alone."""
    is_loose = is_element | (not is_row) | is_object & (has_tokens == 2)
    return bool((has_tokens > 0) & is_loose)


@kernel
def count_code(code: int, sums: Table, row: int) -> None:
    """Count a number in a list: at most 256; -1 of other values."""
    is_sign = (code >= 0x09) & (code <= 0x0D) | (code >= 0x20) & (code <= 0xFF) & (code != 0x7F)
    is_ascii = ((code | 0x20) >= 0x61) & ((code | 0x20) <= 0x7A)
    sums[row, N_NUMBERS] += code >= 0
    sums[row, _N_SIGNS] += is_sign
    sums[row, _N_LETTERS] += is_ascii | (code >= 0x80) & (code <= 0xFF)
    sums[row, _N_SPACES] += code == 0x20


@kernel
def are_text(is_named: bool, sums: Table, row: int) -> bool:
    """Return whether whole numbers in a list are a text: tokens by their name, or its bytes."""
    n = sums[row, N_NUMBERS]
    is_text = (10 * sums[row, _N_SIGNS] >= 9 * n) & (2 * sums[row, _N_LETTERS] >= n)
    is_text &= 16 * sums[row, _N_SPACES] >= n
    return bool(is_named & (n >= LEAST_NUMBERS) | (n >= LEAST_CODES) & is_text)


@entry(compile_seconds=0.5, steps=lambda numbers, *_: numbers.size)
def count_ids(numbers: Integers, edges: Integers, is_named: bool, found: Integers) -> None:
    """Write for each list how many of its numbers are a text; 0 if they are none.

    `edges`: where the numbers of each list begin. Negative ones do not count.
    """
    sums = np.zeros((1, 1 + _N_SPACES), np.int64)
    for row in range(found.size):
        sums[:] = 0
        for at in range(edges[row], edges[row + 1]):
            count_code(max(min(numbers[at], 256), -1), sums, 0)
        found[row] = sums[0, N_NUMBERS] if are_text(is_named, sums, 0) else 0


@kernel
def _is_of_number(byte: np.uint8) -> bool:
    """Return whether a string of numbers may have a byte: a digit, space or one of `.,;[]()-`."""
    is_sign = (byte >= 0x28) & (byte <= 0x2E) & (byte != 0x2A) & (byte != 0x2B)
    is_sign |= (byte == 0x5B) | (byte == 0x5D) | (byte == 0x3B) | _is_space(byte)
    return bool(is_sign | (byte >= 0x30) & (byte <= 0x39))


@entry(compile_seconds=0.5, steps=lambda _text, starts, *_: 10 * starts.size)
def find_numbers(text: Bytes, starts: Integers, stops: Integers, are_numbers: Bools) -> None:
    """Write which strings consist of numbers, as a list of them does."""
    for string in range(starts.size):
        at, stop = starts[string], stops[string]
        while (at < stop) and _is_of_number(text[at]):
            at += 1
        are_numbers[string] = at == stop


@kernel
def words_in(text: Bytes, start: Place, stop: Place) -> np.int64:
    """Return the words of a string, which is no text, and 256 times its unspaced letters."""
    n_words = n_letters = 0
    has_letter = False
    for at in range(np.int64(start), np.int64(stop)):
        byte = text[at]
        is_space = (byte == 0x20) | ((byte >= 0x09) & (byte <= 0x0D))
        if byte >= 0xC0:
            is_space = _is_wide_space(byte, text[at + 1], text[at + 2])
            n_letters += (not is_space) and byte >= 0xE0 and _is_unspaced(byte, text[at + 1])
            has_letter |= not is_space
        elif byte < 0x80:
            has_letter |= _is_letter(byte)
        if is_space:
            n_words += has_letter
            has_letter = False
    return np.int64(n_words + has_letter + 256 * n_letters)


@kernel
def key_of(text: Bytes, start: Place, stop: Place) -> np.int64:
    """Return a number that is the same for equal texts of some bytes, and little else."""
    size = stop - start
    if size < np.uint64(LEAST_REPEATED):
        return np.int64(0)
    first, last = eight_bytes(text, start), eight_bytes(text, stop - np.uint64(8))
    key = ((first * MIX ^ last) * MIX + size) * MIX
    return np.int64(key >> _ONE)


@kernel
def _n_characters(text: Bytes, start: int, stop: int) -> int:
    """Return the number of characters of a text; -1 if it is not strict UTF-8."""
    at, end = np.uint64(start), np.uint64(stop)
    n_characters = 0
    while at < end:
        limit = min(at + _STRIDE_U, end)
        if limit - at == _STRIDE_U:
            bits = np.uint8(0)
            for step in range(_STRIDE):
                bits |= text[at + np.uint64(step)]
            if bits < 0x80:
                at = limit
                n_characters += _STRIDE
                continue
        while at < limit:
            lead = text[at]
            size = 1
            if lead >= 0x80:
                needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
                if np.int64(end - at) < needed:
                    return -1
                size = valid_size(text, at)
                if size == 0:
                    return -1
            at += np.uint64(size)
            n_characters += 1
    return n_characters


@kernel
def count_characters(text: Bytes, starts: Integers, stops: Integers, counts: Integers) -> None:
    """Count the characters of each text; -1 if it is not strict UTF-8."""
    for number in range(starts.size):
        counts[number] = _n_characters(text, starts[number], stops[number])
