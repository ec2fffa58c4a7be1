"""Find lines of base64 in texts. `runs_in` of `corpus/string_kinds.py` does so in plain Python."""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.instructions import bytes_between
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.string_kinds import LINE_OF_BASE64, end_of_base64

_WINDOW = 30
_FIRST_WINDOW = np.uint64((1 << _WINDOW) - 1)
_SECOND_WINDOW = np.uint64((1 << _WINDOW) - 1 << _WINDOW)


@entry(compile_seconds=0.5, steps=lambda _text, starts, stops, *_: int((stops - starts).sum()) // 8)
def find_runs(
    text: Bytes,
    starts: Integers,
    stops: Integers,
    strings: Integers,
    run_starts: Integers,
    run_stops: Integers,
) -> int:
    """Write lines of base64 in strings, and in which; return how many.

    A line has all of one window of half as many letters: most windows have a space.
    """
    n = 0
    for string in range(starts.size):
        least, stop = starts[string], stops[string]  # a line begins at `least` or behind it
        at = least
        while at + _WINDOW <= stop:
            spaces = bytes_between(text, np.uint64(at), 0, 0x20)
            if (spaces & _FIRST_WINDOW) != 0:
                at += 2 * _WINDOW if (spaces & _SECOND_WINDOW) != 0 else _WINDOW
                continue
            if not _is_of_base64(text[at]):
                at += _WINDOW
                continue
            first = at
            while (first > least) and _is_of_base64(text[first - 1]):
                first -= 1
            end = end_of_base64(text, at, stop)
            if end - first < LINE_OF_BASE64:
                at = end + 1
                continue
            at = least = _end_of_lines(text, first, stop)
            strings[n], run_starts[n], run_stops[n] = string, first, at
            n += 1
    return n


@kernel
def _end_of_lines(text: Bytes, start: int, stop: int) -> int:
    """Return where lines of base64 end, which all have enough letters."""
    at = end_of_base64(text, start, stop)
    while at < stop:
        after = at + 1
        if (text[at] == 0x0D) & (after < stop) and text[after] == 0x0A:
            after += 1
        elif text[at] != 0x0A:
            break
        end = end_of_base64(text, after, stop) if after < stop else after
        if end - after < LINE_OF_BASE64:
            break
        at = end
    return at


@kernel
def _is_of_base64(byte: np.uint8) -> bool:
    is_letter = ((byte | 0x20) >= 0x61) & ((byte | 0x20) <= 0x7A)
    is_digit = (byte >= 0x2F) & (byte <= 0x39)
    return bool(is_letter | is_digit | (byte == 0x2B) | (byte == 0x2D) | (byte == 0x5F))
