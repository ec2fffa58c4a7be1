"""Find the numbers of texts that are read at sight; `text/numbers.py` defines what a number is.

These are digits with commas and a point, and single number words. Where a number may be more than
that (a fraction, with a scale or a percent sign, next to characters outside ASCII), only its place
is noted: regular expressions read it.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import NONE, Bytes, Floats, Integers, Numbers, Words64
from decon_core.kernels.hashing import BASE, ONE, ZERO, mixed, next_slot, scaled
from decon_core.kernels.jit import inlined, kernel

# What a character outside ASCII is, as bits. None beyond the table of them is any.
IS_SPACE, BEGINS_NUMBER = 1, 2  # a number begins with digits, and with signs such as ½

_FIRST_NOT_ASCII = 0x80
_PERCENT, _COMMA, _HYPHEN, _POINT, _SLASH = 0x25, 0x2C, 0x2D, 0x2E, 0x2F
_ZERO, _NINE, _UNDERSCORE = 0x30, 0x39, 0x5F
_A, _D, _E, _H, _N, _O, _P, _R, _S, _T, _Z = (
    0x61, 0x64, 0x65, 0x68, 0x6E, 0x6F, 0x70, 0x72, 0x73, 0x74, 0x7A
)  # fmt: skip
_TO_LOWER = 0x20
_SPACE, _FIRST_CONTROL, _LAST_CONTROL = 0x20, 0x09, 0x0D  # tab to carriage return
_FIRST_SEPARATOR, _LAST_SEPARATOR = 0x1C, 0x1F
_MOST_DIGITS = 9  # the value of a number is rounded to so many
_IN_GROUP = 3  # digits between commas
_SHORTEST, _LONGEST = 3, 11  # letters of number words
N_PAIRS = 1 << 10


@kernel
def find_numbers(
    characters: Numbers,
    edges: Integers,
    kinds: Bytes,
    keys: Words64,
    values_of: Floats,
    may_be: Bytes,
    values: Floats,
    starts: Integers,
    stops: Integers,
) -> int:
    """Write the numbers of texts in order; one that is not read here stops where it starts.

    A text ends one character before the next one begins. `keys`: a table of the words that a number
    begins or continues with (`key_of_word`), and `values_of` their values; nan if they are none
    alone. `may_be`: whether a number word has this second and third letter (`pair_of`), which most
    words fail. Returns the number of rows.
    """
    n = 0
    for number in range(edges.size - 1):
        line, end = edges[number], edges[number + 1] - 1
        at = line
        while at < end:
            character, first = np.int64(characters[at]), at
            if _is_letter(character):
                at = _letters_end(characters, at, end)
                n_letters = at - first
                if not (_SHORTEST <= n_letters <= _LONGEST and may_be[pair_of(characters, first)]):
                    continue
                value, stop = _word(characters, first, at, line, end, kinds, keys, values_of)
            elif _is_digit(character) or (
                character == _POINT and _is_digit(_at(characters, at + 1, line, end))
            ):
                if character == _POINT and _is_digit(_at(characters, at - 1, line, end)):
                    first = at + 1
                at = _digits_end(characters, at + 1, end)
                value, stop = _digits(characters, first, at, line, end, kinds, keys)
            elif _is(character, BEGINS_NUMBER, kinds) or (
                character == _POINT
                and _is(_at(characters, at + 1, line, end), BEGINS_NUMBER, kinds)
            ):
                at += 1
                value, stop = np.nan, first
            else:
                at += 1
                continue
            if stop != NONE:
                values[n], starts[n], stops[n] = value, first, stop
                n += 1
                at = max(at, stop)
    return n


@kernel
def key_of_word(characters: Numbers, start: int, stop: int) -> np.uint64:
    """Return the key of a word of ASCII letters, whatever their case; it is not 0."""
    digest = ZERO
    for at in range(start, stop):
        digest = digest * BASE + np.uint64(np.int64(characters[at]) | _TO_LOWER)
    return mixed(digest) | ONE


@inlined
def pair_of(characters: Numbers, start: int) -> int:
    """Return a number below `N_PAIRS` for the second and third letter of a word, in any case."""
    return (np.int64(characters[start + 1]) & 31) << 5 | (np.int64(characters[start + 2]) & 31)


@kernel
def slot_of_word(key: np.uint64, keys: Words64) -> int:
    """Return the slot of a word in a table, or a free one for it."""
    slot = scaled(key, keys.size)
    while keys[slot] and keys[slot] != key:
        slot = next_slot(slot, keys.size)
    return slot


@kernel
def _word(
    characters: Numbers,
    start: int,
    stop: int,
    line: int,
    end: int,
    kinds: Bytes,
    keys: Words64,
    values_of: Floats,
) -> tuple[float, int]:
    """Return the value of a word, and where it stops: `NONE` if it is no number."""
    slot = slot_of_word(key_of_word(characters, start, stop), keys)
    if not keys[slot] or np.isnan(values_of[slot]):
        return np.nan, NONE
    before = _at(characters, start - 1, line, end)
    after = _at(characters, stop, line, end)
    if before >= _FIRST_NOT_ASCII or after >= _FIRST_NOT_ASCII:
        return np.nan, start
    if _is_of_word(before) or _is_of_word(after):
        return np.nan, NONE
    if _goes_on(characters, stop, line, end, kinds, keys):
        return np.nan, start
    return values_of[slot], stop


@kernel
def _digits(
    characters: Numbers,
    start: int,
    digits_stop: int,
    line: int,
    end: int,
    kinds: Bytes,
    keys: Words64,
) -> tuple[float, int]:
    """Return the value of a number of digits, and where it stops: `NONE` for an ordinal."""
    stop = digits_stop
    is_fraction = np.int64(characters[start]) == _POINT
    if not is_fraction:
        if stop - start <= _IN_GROUP:
            stop = _groups_end(characters, stop, end)
        after = _at(characters, stop + 1, line, end)
        if _at(characters, stop, line, end) == _POINT and _is_digit(after):
            stop = _digits_end(characters, stop + 1, end)
    # Of digits outside ASCII in a group or after a point, the first is noted as a place, too.
    if (
        _is(_at(characters, start - 1, line, end), BEGINS_NUMBER, kinds)
        or _at(characters, stop, line, end) >= _FIRST_NOT_ASCII
        or _is_cut(characters, stop, line, end, kinds)
    ):
        return np.nan, start
    if _is_ordinal(characters, stop, line, end):
        is_plain = stop == digits_stop and not is_fraction
        is_ascii = _at(characters, stop + 2, line, end) < _FIRST_NOT_ASCII
        return np.nan, NONE if is_plain and is_ascii else start
    if _goes_on(characters, stop, line, end, kinds, keys):
        return np.nan, start
    value, n_digits, scale, is_decimal = 0, 0, 1, False
    for at in range(start, stop):
        character = np.int64(characters[at])
        if _is_digit(character):
            value = 10 * value + character - _ZERO
            n_digits += value > 0
            if n_digits > _MOST_DIGITS or scale > 10**_MOST_DIGITS:
                return np.nan, start
            if is_decimal:
                scale *= 10
        elif character == _POINT:
            is_decimal = True
    return value / scale, stop


@inlined
def _groups_end(characters: Numbers, at: int, end: int) -> int:
    """Return where groups of three digits stop, each with a comma in front of it."""
    while at + _IN_GROUP < end and np.int64(characters[at]) == _COMMA:
        stop = _digits_end(characters, at + 1, end)
        if stop - at - 1 != _IN_GROUP:
            break
        at = stop
    return at


@inlined
def _is_cut(characters: Numbers, at: int, line: int, end: int, kinds: Bytes) -> bool:
    """Return whether digits outside ASCII may follow a comma or a point here."""
    if not (_at(characters, at, line, end) == _COMMA or _at(characters, at, line, end) == _POINT):
        return False
    for after in range(at + 1, min(at + 2 + _IN_GROUP, end)):
        if _is(np.int64(characters[after]), BEGINS_NUMBER, kinds):
            return True
    return False


@inlined
def _is_ordinal(characters: Numbers, at: int, line: int, end: int) -> bool:
    """Return whether the rest of an ordinal, such as "th", may stand here."""
    first = _at(characters, at, line, end) | _TO_LOWER
    second = _at(characters, at + 1, line, end) | _TO_LOWER
    is_ending = (
        (first == _S and second == _T)
        or (first == _N and second == _D)
        or (first == _R and second == _D)
        or (first == _T and second == _H)
    )
    return is_ending and not _is_of_word(_at(characters, at + 2, line, end))


@inlined
def _goes_on(
    characters: Numbers, at: int, line: int, end: int, kinds: Bytes, keys: Words64
) -> bool:
    """Return whether what follows may belong to a number: "%", "million", "/2", "and a half"."""
    stop = _gap_end(characters, at, end)
    after = _at(characters, stop, line, end)
    if after in (_PERCENT, _SLASH) or _is(after, IS_SPACE | BEGINS_NUMBER, kinds):
        return True
    if _is_digit(after):  # "2 1/2"
        after = _at(characters, _digits_end(characters, stop, end), line, end)
        return after == _SLASH or after >= _FIRST_NOT_ASCII
    if not _is_letter(after):
        return False
    letters_end = _letters_end(characters, stop, end)
    if letters_end - stop == len("and") and _has_letters(characters, stop, _A, _N, _D):
        stop = _gap_end(characters, letters_end, end)
        letters_end = _letters_end(characters, stop, end)
        after = _at(characters, stop, line, end)
        if letters_end - stop == 1 and after | _TO_LOWER == _A:
            return True
        if _is(after, IS_SPACE | BEGINS_NUMBER, kinds):
            return True
    is_per = letters_end - stop >= len("per") and _has_letters(characters, stop, _P, _E, _R)
    return is_per or keys[slot_of_word(key_of_word(characters, stop, letters_end), keys)] != ZERO


@inlined
def _has_letters(characters: Numbers, at: int, first: int, second: int, third: int) -> bool:
    """Return whether three letters stand at a place, whatever their case."""
    return (
        np.int64(characters[at]) | _TO_LOWER == first
        and np.int64(characters[at + 1]) | _TO_LOWER == second
        and np.int64(characters[at + 2]) | _TO_LOWER == third
    )


# Characters ---------------------------------------------------------------------------------------


@inlined
def _at(characters: Numbers, at: int, line: int, end: int) -> int:
    """Return a character of a text; 0 outside the text."""
    return np.int64(characters[at]) if line <= at < end else 0


@inlined
def _letters_end(characters: Numbers, at: int, end: int) -> int:
    while at < end and _is_letter(np.int64(characters[at])):
        at += 1
    return at


@inlined
def _digits_end(characters: Numbers, at: int, end: int) -> int:
    while at < end and _is_digit(np.int64(characters[at])):
        at += 1
    return at


@inlined
def _gap_end(characters: Numbers, at: int, end: int) -> int:
    """Return where white space and hyphens of ASCII end."""
    while at < end and _is_gap(np.int64(characters[at])):
        at += 1
    return at


@inlined
def _is_gap(character: int) -> bool:
    return (
        character in (_SPACE, _HYPHEN)
        or _FIRST_CONTROL <= character <= _LAST_CONTROL
        or _FIRST_SEPARATOR <= character <= _LAST_SEPARATOR
    )


@inlined
def _is_letter(character: int) -> bool:
    return _A <= character | _TO_LOWER <= _Z


@inlined
def _is_digit(character: int) -> bool:
    return _ZERO <= character <= _NINE


@inlined
def _is_of_word(character: int) -> bool:
    return _is_letter(character) or _is_digit(character) or character == _UNDERSCORE


@inlined
def _is(character: int, bits: int, kinds: Bytes) -> bool:
    """Return whether a character is one of these kinds, which only those outside ASCII are."""
    return _FIRST_NOT_ASCII <= character < kinds.size and np.int64(kinds[character]) & bits != 0
