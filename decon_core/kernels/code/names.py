"""Find names of several words in program text, however their words are joined.

`has_close_elements`, `hasCloseElements` and `HasCloseElements` are one name. Names with digits are
none.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import NONE, Bytes, Table
from decon_core.kernels.code.lexer import KINDS
from decon_core.kernels.hashing import BASE, MIX, ONE, Numbered, mixed, number_of_digest
from decon_core.kernels.jit import inlined, kernel

# Columns of what is found.
NAME, AT = range(2)

_LETTER, _DIGIT = KINDS[97], KINDS[48]
_UNDERSCORE, _CASE = 95, 32


@inlined
def _digest(data: Bytes, start: int, stop: int) -> np.uint64:
    digest = MIX
    for at in range(start, stop):
        if data[at] != _UNDERSCORE:
            digest = (digest ^ np.uint64(data[at] | _CASE)) * BASE
    return mixed(digest) | ONE


@kernel
def digest_of_name(data: Bytes) -> np.uint64:
    return _digest(data, 0, data.size)


@kernel
def find_names(data: Bytes, index: Numbered, found: Table) -> int:
    """Write number and place of the names in a document; return how many there are.

    More than there are rows for: call it again with as many rows.
    """
    n = at = 0
    while at < data.size:
        if KINDS[data[at]] != _LETTER and KINDS[data[at]] != _DIGIT:
            at += 1
            continue
        first, has_digits = at, False
        while at < data.size and (KINDS[data[at]] == _LETTER or KINDS[data[at]] == _DIGIT):
            has_digits |= KINDS[data[at]] == _DIGIT
            at += 1
        if has_digits:
            continue
        number = number_of_digest(_digest(data, first, at), index)
        if number != NONE:
            if n < found.shape[0]:
                found[n, NAME], found[n, AT] = number, first
            n += 1
    return n
