"""Find where terminal escape sequences, such as colors, end, and what replaces them."""

from __future__ import annotations

from decon_core.kernels.arrays import Bytes
from decon_core.kernels.backslashes import UNIT_BYTES, unit
from decon_core.kernels.html_tags import NOTHING, holds_text
from decon_core.kernels.jit import kernel
from decon_core.kernels.utf8 import is_digit, is_letter

ESCAPE = 0x1B
_BELL = 0x07
_BACKSLASH, _CARET, _SPACE = map(ord, "\\^ ")
_OPEN, _CLOSE, _OPEN_BRACKET, _BRACKET = map(ord, "()[]")
_ZERO, _ONE, _THREE, _QUESTION, _COLON, _SEMICOLON = map(ord, "013?:;")
_B, _E, _K, _M, _X = map(ord, "beKmx")
_A_CAPITAL, _Z_CAPITAL = map(ord, "AZ")


@kernel
def terminal_code(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the end of an escape sequence and its replacement; -1 if there is none."""
    place = _escape_end(text, at, stop)
    if place < 0:
        return _spelled_color(text, at, stop), NOTHING
    following, value = -1, NOTHING
    if place + 1 < stop:
        if text[place] == _OPEN_BRACKET:
            place += 1
            while place < stop and _ZERO <= text[place] <= _QUESTION:
                place += 1
            if place < stop and is_letter(text[place]):
                following = place + 1
                value = NOTHING if text[place] in (_K, _M) else _SPACE
        elif text[place] == _BRACKET:
            following = _string_end(text, place + 1, stop)
        elif text[place] in (_OPEN, _CLOSE):
            following = _character_set_end(text, place + 1, stop)
    return following, value


@kernel
def _escape_end(text: Bytes, at: int, stop: int) -> int:
    """Return the end of the character ESC or of its spelling `\\u001b`; -1 if there is none."""
    if text[at] == ESCAPE:
        return at + 1
    return at + UNIT_BYTES if unit(text, at, stop) == ESCAPE else -1


@kernel
def _spelled_color(text: Bytes, at: int, stop: int) -> int:
    """Return the end of a color with ESC spelled `\\x1b`, `\\033`, `\\e` or `^[`; -1 if none."""
    place = at + 1
    if text[at] == _CARET:
        place = place + 1 if place < stop and text[place] == _OPEN_BRACKET else stop
    elif place < stop and text[place] == _E:
        place += 1
    elif place + 2 < stop and (
        (text[place] == _X and text[place + 1] == _ONE and text[place + 2] | 0x20 == _B)
        or (text[place] == _ZERO and text[place + 1] == text[place + 2] == _THREE)
    ):
        place += 3
    else:
        place = stop
    if place >= stop or text[place] != _OPEN_BRACKET:
        return -1
    place += 1
    while place < stop and (is_digit(text[place]) or text[place] in (_COLON, _SEMICOLON)):
        place += 1
    return place + 1 if place < stop and text[place] in (_K, _M) else -1


@kernel
def _character_set_end(text: Bytes, place: int, stop: int) -> int:
    """Return the end of the sign that names a character set; -1 if there is none, as in `(B)`."""
    is_set = is_digit(text[place]) or _A_CAPITAL <= text[place] <= _Z_CAPITAL
    is_closed = place + 1 < stop and text[place + 1] == _CLOSE
    return place + 1 if is_set and not is_closed else -1


@kernel
def _string_end(text: Bytes, first: int, stop: int) -> int:
    """Return the end of a string, such as the target of a link; -1 if none, or if it holds text.

    A string ends before the first control character, so the time is linear in the text.
    """
    place = first
    while place < stop and text[place] >= _SPACE and text[place] != _BACKSLASH:
        place += 1
    if place >= stop or not is_digit(text[first]) or holds_text(text, first, place):
        return -1
    if text[place] == _BELL:
        return place + 1
    point = unit(text, place, stop)
    if point == _BELL:
        return place + UNIT_BYTES
    n_backslashes = 1 if text[place] == ESCAPE else 2 if point == ESCAPE else 0
    place = _escape_end(text, place, stop)
    for _ in range(n_backslashes):
        if place >= stop or text[place] != _BACKSLASH:
            return -1
        place += 1
    return place
