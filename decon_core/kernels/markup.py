"""Remove tags, links, commands, entities, escapes, colors and hyphens at line ends.

Reference implementation: `tests/oracle/text.py`. Few bytes can begin mark-up, so these are found
first, many bytes at a time; the rest is copied. No change adds bytes, so a text never grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Bools, Bytes, Integers
from decon_core.kernels.backslashes import backslash, beginning
from decon_core.kernels.html_tags import (
    AMPERSAND,
    EXCLAMATION,
    HASH,
    HYPHEN,
    LESS,
    NOTHING,
    POINT_BITS,
    SLASH,
    Names,
    holds_text,
    reference,
    tag,
)
from decon_core.kernels.instructions import LANES, bytes_between, lowest_bit
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.terminal_codes import ESCAPE, terminal_code
from decon_core.kernels.utf8 import (
    character_at,
    hex_value,
    is_character,
    is_letter,
    is_space,
    write_character,
)

EDIT_NUMBERS = 3  # per edit: start and stop in the text, number of bytes left

_POINT = (1 << POINT_BITS) - 1
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64((1 << LANES) - 1)
_PERCENT, _SPACE, _TAB, _LINE_FEED, _RETURN = map(ord, "% \t\n\r")
_BACKSLASH, _BRACKET, _OPEN, _CLOSE, _OPEN_BRACKET, _QUOTE, _APOSTROPHE = map(ord, "\\]()[\"'")
_COLON, _DOT, _MORE, _CARET, _DIGIT_ZERO = map(ord, ":.>^0")
_SOFT = 0xAD  # last byte of a soft hyphen, after 0xC2
_UNICODE = 0x90  # last byte of U+2010, after 0xE2 0x80


@entry(compile_seconds=0.6, steps=lambda _text, start, stop, _found: stop - start)
def find_signs(text: Bytes, start: int, stop: int, found: Integers) -> tuple[int, int]:
    """Find bytes that can begin mark-up, and line breaks after a hyphen.

    Returns the number of positions, and where the search stopped for lack of room.
    """
    n = 0
    at = start
    while at < stop and n + LANES <= found.size:
        last = min(at + LANES, stop)
        if at + LANES <= text.size:
            bits = bytes_between(text, at, LESS, LESS)
            bits |= bytes_between(text, at, AMPERSAND, AMPERSAND)
            bits |= bytes_between(text, at, _PERCENT, _PERCENT)
            bits |= bytes_between(text, at, _LINE_FEED, ESCAPE)  # between them: rare ones
            bits |= bytes_between(text, at, _BACKSLASH, _CARET)
        else:
            bits = _ALL  # the last ones are tried one by one
        while bits:
            place = at + np.int64(lowest_bit(bits))
            bits &= bits - _ONE
            if place < last and begins(text, place, stop):
                found[n] = place
                n += 1
        at = last
    return n, at


@inlined
def begins(text: Bytes, at: int, stop: int) -> bool:
    """Return whether mark-up may begin at a position."""
    byte = text[at]
    is_beginning = False
    if byte == _LINE_FEED:
        last = _line_end(text, at, 0)
        before = text[last] if last >= 0 else np.uint8(0)
        is_beginning = before & 0x7F == HYPHEN or before == _UNICODE
    elif at + 1 < stop and byte == _BACKSLASH:
        is_beginning = is_letter(text[at + 1]) or text[at + 1] == _DIGIT_ZERO
    elif at + 1 < stop and byte == _BRACKET:
        is_beginning = text[at + 1] == _OPEN
    elif at + 1 < stop and byte == ESCAPE:
        is_beginning = text[at + 1] in (_OPEN_BRACKET, _BRACKET, _OPEN, _CLOSE)
    elif at + 2 < stop and byte == _CARET:
        is_beginning = text[at + 1] == text[at + 2] == _OPEN_BRACKET
    elif at + 2 < stop and byte in (LESS, AMPERSAND, _PERCENT):
        following = text[at + 1]
        if byte == LESS:
            is_beginning = is_letter(following) or following in (SLASH, EXCLAMATION)
        elif byte == AMPERSAND:
            is_beginning = is_letter(following) or following == HASH
        else:
            is_beginning = hex_value(following) >= 0 and hex_value(text[at + 2]) >= 0
    return is_beginning


class Tables(NamedTuple):
    """What mark-up is made of, by name, and facts about characters."""

    tags: Names
    entities: Names
    commands: Names
    like_escapes: Names
    windows_1252: Integers
    is_lower: Bools


@entry(
    compile_seconds=2.5,
    steps=lambda text, _starts, _stops, signs, *_: text.size // 4 + 400 * signs.size,
)
def strip(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    signs: Integers,
    firsts: Integers,
    tables: Tables,
    out: Bytes,
    out_offsets: Integers,
    edits: Integers,
) -> int:
    """Write texts without mark-up, concatenated, and their offsets; return the number of edits.

    `signs` are the positions from `find_signs`; those of a text begin at its number in `firsts`.
    Edits are written to `edits` as far as there is room.
    """
    tags, entities, commands, like_escapes, windows_1252, is_lower = tables
    n_edits = 0
    end = 0
    for number in range(starts.size):
        start, stop = starts[number], stops[number]
        at = start
        dense_stop = start
        is_dense = False
        sign = firsts[number]
        while sign < signs.size and signs[sign] < stop:
            place = signs[sign]
            sign += 1
            if place < at:
                continue
            byte = text[place]
            begin, value = place, NOTHING
            if byte == LESS:
                following, value = tag(text, place, stop, tags)
            elif byte == AMPERSAND:
                following, value = reference(text, place, stop, entities, windows_1252)
            elif byte == _PERCENT:
                if place >= dense_stop:
                    dense_stop, is_dense = _stretch(text, place, start, stop)
                following, value = _decoded(text, place, stop) if is_dense else (-1, NOTHING)
            elif byte == _BRACKET:
                following = _link(text, place, stop)
            elif byte in (_BACKSLASH, ESCAPE, _CARET):
                following, value = terminal_code(text, place, stop)
                if following < 0 and byte == _BACKSLASH:
                    following, value = backslash(text, place, stop, commands, like_escapes)
                if following >= 0 and byte == _BACKSLASH:
                    begin = beginning(text, at, place, stop)
            else:
                begin, following = _hyphen(text, place, start, stop, is_lower)
            if following < 0 or begin < at:
                continue
            end = before = _copy(text, at, begin, out, end)
            while value != NOTHING:
                end += write_character(value & _POINT, out, end)
                value >>= POINT_BITS
            if n_edits < edits.shape[0]:
                edits[n_edits, 0] = begin
                edits[n_edits, 1] = following
                edits[n_edits, 2] = end - before
            n_edits += 1
            at = following
        end = _copy(text, at, stop, out, end)
        out_offsets[number + 1] = end
    return n_edits


@inlined
def _copy(text: Bytes, start: int, stop: int, out: Bytes, end: int) -> int:
    """Append a range of the text to the output; return its end."""
    first, target = np.uint64(start), np.uint64(end)
    for step in range(np.uint64(stop - start)):
        out[target + step] = text[first + step]
    return end + stop - start


# URL-encoding -------------------------------------------------------------------------------------


@kernel
def _stretch(text: Bytes, at: int, start: int, stop: int) -> tuple[int, bool]:
    """Return the end of the word at a position, and whether it has two escapes or more."""
    first = at
    while first > start and not is_space(text[first - 1]):
        first -= 1
    n_escapes = 0
    place = first
    while place < stop and not is_space(text[place]):
        if _escaped(text, place, stop) >= 0:
            n_escapes += 1
            place += 2
        place += 1
    return place, n_escapes > 1


@kernel
def _escaped(text: Bytes, at: int, stop: int) -> int:
    """Return the byte that three bytes such as `%20` encode; -1 if none."""
    if at + 2 >= stop or text[at] != _PERCENT:
        return -1
    high, low = hex_value(text[at + 1]), hex_value(text[at + 2])
    return -1 if high < 0 or low < 0 else 16 * high + low


@kernel
def _decoded(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the end of a character's escapes, and its code point; -1 if not printable."""
    lead = _escaped(text, at, stop)
    if 0x20 <= lead < 0x7F or lead in (_TAB, _LINE_FEED, _RETURN):
        return at + 3, lead
    if lead < 0xC2 or lead > 0xF4:
        return -1, NOTHING
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    point = lead & (0x7F >> size)
    for number in range(1, size):
        byte = _escaped(text, at + 3 * number, stop)
        if byte & 0xC0 != 0x80 or byte < 0:
            return -1, NOTHING
        point = point << 6 | byte & 0x3F
    return (at + 3 * size, point) if is_character(point, size) else (-1, NOTHING)


# Links --------------------------------------------------------------------------------------------


@kernel
def _link(text: Bytes, at: int, stop: int) -> int:
    """Return the end of a link's target and title, behind `]`; -1: none, or too much text in it.

    Parsing stops at a second `]` outside the title, so the time is linear in the text.
    """
    place = _target_end(text, _target_start(text, at + 2, stop), stop)
    while 0 <= place < stop and text[place] == _OPEN:
        place = _target_end(text, place + 1, stop)
        if place >= stop or text[place] != _CLOSE:
            return -1
        place = _target_end(text, place + 1, stop)
    if place < 0:
        return -1
    gap = place
    while place < stop and text[place] == _SPACE:
        place += 1
    if place > gap and place < stop and text[place] in (_QUOTE, _APOSTROPHE):
        quote = text[place]
        place += 1
        first = place
        while place < stop and text[place] != quote:
            place += 1
        if place >= stop or holds_text(text, first, place):
            return -1
        place += 1
    elif place > gap:
        return -1
    return place + 1 if place < stop and text[place] == _CLOSE else -1


@kernel
def _target_start(text: Bytes, place: int, stop: int) -> int:
    """Return the end of `#`, `/`, `./`, `../` or a scheme with its colon; -1 if there is none."""
    first = place
    if place < stop and text[place] == HASH:
        return place + 1
    while place < stop and is_letter(text[place]):
        place += 1
    if place > first:
        return place + 1 if place < stop and text[place] == _COLON else -1
    while place < stop and place < first + 2 and text[place] == _DOT:
        place += 1
    return place + 1 if place < stop and text[place] == SLASH else -1


@kernel
def _target_end(text: Bytes, place: int, stop: int) -> int:
    """Return the next white space, parenthesis, bracket or tag; -1 if `place` is -1."""
    while 0 <= place < stop and not is_space(text[place]):
        byte = text[place]
        if byte in (_OPEN, _CLOSE, _OPEN_BRACKET, _BRACKET, LESS, _MORE):
            break
        place += 1
    return place


# Hyphens ------------------------------------------------------------------------------------------


@kernel
def _line_end(text: Bytes, at: int, start: int) -> int:
    """Return the last position before a line break that is no space; below `start` if none."""
    last = at - 1
    if last >= start and text[last] == _RETURN:
        last -= 1
    while last >= start and text[last] in (_SPACE, _TAB):
        last -= 1
    return last


@kernel
def _hyphen(text: Bytes, at: int, start: int, stop: int, is_lower: Bools) -> tuple[int, int]:
    """Return the second half of a word hyphenated at a line break; -1 if there is none."""
    last = _line_end(text, at, start)
    if last <= start:
        return at, -1
    begin = last
    if text[last] == _SOFT and text[last - 1] == 0xC2:
        begin = last - 1
    elif (
        text[last] == _UNICODE
        and last - 2 >= start
        and text[last - 1] == 0x80
        and text[last - 2] == 0xE2
    ):
        begin = last - 2
    elif text[last] != HYPHEN:
        return at, -1
    if begin <= start:
        return at, -1
    before = begin - 1
    while before > start and text[before] & 0xC0 == 0x80:
        before -= 1
    following = at + 1
    while following < stop and text[following] in (_SPACE, _TAB):
        following += 1
    if following >= stop:
        return at, -1
    is_word = _is_lower(text, before, is_lower) and _is_lower(text, following, is_lower)
    return begin, following if is_word else -1


@kernel
def _is_lower(text: Bytes, at: int, is_lower: Bools) -> bool:
    """Return whether the character at a position is a lower-case letter."""
    point = np.int64(text[at])
    if point >= 0x80:
        point, _ = character_at(text, at)
    return point < is_lower.size and is_lower[point]


@entry(compile_seconds=0.2, steps=lambda text, *_: text.size)
def original_characters(
    text: Bytes, edits: Integers, left: Bytes, starts: Integers, stops: Integers
) -> int:
    """Write the range of original characters of each character of `left`; return their number.

    `left` is a text without mark-up, and `edits` are those that `strip` wrote for it.
    """
    n = at = character = end = 0
    for edit in range(edits.shape[0] + 1):
        is_last = edit == edits.shape[0]
        begin = text.size if is_last else edits[edit, 0]
        end += begin - at
        while at < begin:
            if text[at] & 0xC0 != 0x80:
                starts[n], stops[n] = character, character + 1
                n += 1
                character += 1
            at += 1
        if is_last:
            break
        first = character
        while at < edits[edit, 1]:
            character += text[at] & 0xC0 != 0x80
            at += 1
        for _ in range(edits[edit, 2]):
            if left[end] & 0xC0 != 0x80:
                starts[n], stops[n] = first, character
                n += 1
            end += 1
    return n
