"""Split program text of any language into tokens that renaming and layout do not change.

One digest for each token: all names are equal except those in a table (keywords, functions and
methods of standard libraries), all strings are equal, numbers count as written, a run of operator
signs is one token. White space, comments, `pass`, `;` and strings that are statements of their own
(docstrings) are no tokens. `tests/oracle/code.py` says the same with a regular expression.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Flags, Integers, Words64
from decon_core.kernels.hashing import BASE, MIX, ONE, ZERO, free_slot, mixed, next_slot, scaled
from decon_core.kernels.jit import inlined, kernel

# Digests of the tokens that stand for many texts; that of the end is 0.
END = ZERO
NAME = np.uint64(0x5851F42D4C957F2D)
STRING = np.uint64(0x14057B7EF767814F)

# Marks digests of names that count only after a dot or before a bracket.
CALLED = np.uint64(0xFF << 56)

# A longer comment or string with three quotes has probably no end.
_LONGEST = 1 << 14

_OTHER, _BLANK, _LETTER, _DIGIT, _OPERATOR, _SIGN, _QUOTE, _HASH = range(8)

_OPERATORS = b"=+-*/<>!%&|^~"
_NEW_LINE, _BACKSLASH, _SLASH, _STAR, _DOT = 10, 92, 47, 42, 46
_PAREN, _COLON, _SEMICOLON, _OPEN, _CLOSE, _UNDERSCORE = 40, 58, 59, 123, 125, 95


def _kinds_of_bytes() -> Bytes:
    kinds = np.full(256, _OTHER, np.uint8)
    groups = {
        _BLANK: b" \t\n\r\f\v",
        _LETTER: b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" + bytes(range(128, 256)),
        _DIGIT: b"0123456789",
        _OPERATOR: _OPERATORS,
        _SIGN: b"()[]{},.:@?",
        _QUOTE: b"\"'",
        _HASH: b"#",
    }
    for kind, members in groups.items():
        kinds[[*members]] = kind
    return kinds


KINDS = _kinds_of_bytes()


@kernel
def digest_of_bytes(data: Bytes, start: int, stop: int) -> np.uint64:
    """Hash a text; never 0."""
    digest = MIX
    for at in range(start, stop):
        digest = (digest ^ np.uint64(data[at])) * BASE
    return mixed(digest) | ONE


@kernel
def enter_names(digests: Words64, table: Words64) -> None:
    """Fill a table of the names that count as themselves; at least one slot stays free."""
    for at in range(digests.size):
        table[free_slot(scaled(digests[at], table.size), table)] = digests[at]


@inlined
def _is_entered(digest: np.uint64, table: Words64) -> bool:
    slot = scaled(digest, table.size)
    while table[slot] and table[slot] != digest:
        slot = next_slot(slot, table.size)
    return table[slot] == digest


@kernel
def mark_code(data: Bytes, starts: Integers, stops: Integers, has_code: Flags) -> None:
    """Mark the documents in which a name is followed by a bracket: every program has that."""
    for document in range(starts.size):
        for at in range(starts[document] + 1, stops[document]):
            if data[at] == _PAREN and KINDS[data[at - 1]] in (_LETTER, _DIGIT):
                has_code[document] = 1
                break


@kernel
def has_slash_comments(data: Bytes, start: int, stop: int) -> bool:
    """Return whether more lines end in `;`, `{` or `}` than in `:`; else `//` divides."""
    n_braces = n_colons = 0
    last = 0
    for at in range(start, stop):
        byte = data[at]
        if byte == _NEW_LINE:
            n_braces += last in (_SEMICOLON, _OPEN, _CLOSE)
            n_colons += last == _COLON
            last = 0
        elif KINDS[byte] != _BLANK:
            last = byte
    n_braces += last in (_SEMICOLON, _OPEN, _CLOSE)
    n_colons += last == _COLON
    return n_braces > n_colons


@kernel
def next_token(
    data: Bytes, at: int, start: int, stop: int, has_slashes: bool, names: Words64
) -> tuple[np.uint64, int, int]:
    """Return digest, first and last byte of the first token from `at` on; digest 0 at the end.

    `start` is where the document begins.
    """
    while at < stop:
        kind = KINDS[data[at]]
        first = at
        if kind == _LETTER:
            at = _after_word(data, at, stop)
            digest = _digest_of_word(data, first, at, start, stop, names)
            if digest != ZERO:
                return digest, first, at
        elif kind == _DIGIT:
            at = _after_number(data, at, stop)
            return digest_of_bytes(data, first, at), first, at
        elif kind == _SIGN:
            return digest_of_bytes(data, first, at + 1), first, at + 1
        elif kind == _QUOTE:
            at = _after_string(data, at, stop)
            if at > first + 1 and not _is_statement(data, first, at, start):
                return STRING, first, at
        elif kind == _HASH:
            at = _after_line(data, at, stop)
        elif kind == _OPERATOR:
            at = _after_comment(data, at, stop, has_slashes)
            if at == first:
                at = _after_operators(data, at, stop, has_slashes)
                return digest_of_bytes(data, first, at), first, at
        else:
            at += 1
    return END, stop, stop


@kernel
def _digest_of_word(
    data: Bytes, first: int, at: int, start: int, stop: int, names: Words64
) -> np.uint64:
    """Return the digest of a word; 0 if it is no token."""
    if at < stop and at - first <= 2 and KINDS[data[at]] == _QUOTE and _is_prefix(data, first, at):
        return ZERO
    digest = digest_of_bytes(data, first, at)
    is_called = (at < stop and data[at] == _PAREN) or (first > start and data[first - 1] == _DOT)
    if not _is_entered(digest, names) and not (is_called and _is_entered(digest ^ CALLED, names)):
        return NAME
    is_pass = at - first == 4 and data[first] == 112 and data[first + 1] == 97
    if is_pass and data[first + 2] == 115 and data[first + 3] == 115:
        return ZERO
    return digest


@kernel
def _is_prefix(data: Bytes, first: int, at: int) -> bool:
    """Return whether letters are a prefix of strings, such as f or Rb."""
    n = 0
    for place in range(first, at):
        n += data[place] | 32 in (114, 98, 102, 117)  # r b f u
    return n == at - first


@inlined
def _after_word(data: Bytes, at: int, stop: int) -> int:
    while at < stop and (KINDS[data[at]] == _LETTER or KINDS[data[at]] == _DIGIT):
        at += 1
    return at


@inlined
def _after_number(data: Bytes, at: int, stop: int) -> int:
    while at < stop and (
        KINDS[data[at]] == _LETTER or KINDS[data[at]] == _DIGIT or data[at] == _DOT
    ):
        at += 1
    return at


@inlined
def _after_line(data: Bytes, at: int, stop: int) -> int:
    while at < stop and data[at] != _NEW_LINE:
        at += 1
    return at


@kernel
def _after_string(data: Bytes, at: int, stop: int) -> int:
    """Return the end of a string that begins here; `at + 1` if it has no end."""
    quote, first = data[at], at
    if at + 2 < stop and data[at + 1] == quote and data[at + 2] == quote:
        at += 3
        last = min(stop, first + _LONGEST)
        while at + 2 < last:
            if data[at] == _BACKSLASH:
                at += 2
            elif data[at] == quote and data[at + 1] == quote and data[at + 2] == quote:
                return at + 3
            else:
                at += 1
        return first + 1
    at += 1
    while at < stop and data[at] != _NEW_LINE:
        if data[at] == quote:
            return at + 1
        at += 2 if data[at] == _BACKSLASH and at + 1 < stop and data[at + 1] != _NEW_LINE else 1
    return first + 1


@kernel
def _is_statement(data: Bytes, first: int, at: int, start: int) -> bool:
    """Return whether a string has its lines for itself and three quotes: a docstring."""
    is_triple = (
        at - first >= 6 and data[first + 1] == data[first] and data[first + 2] == data[first]
    )
    if not is_triple:
        return False
    place = first - 1
    while place >= start and KINDS[data[place]] == _LETTER:  # its prefix
        place -= 1
    if first - 1 - place > 2:
        return False
    while place >= start and KINDS[data[place]] == _BLANK and data[place] != _NEW_LINE:
        place -= 1
    return place < start or data[place] == _NEW_LINE


@kernel
def _after_comment(data: Bytes, at: int, stop: int, has_slashes: bool) -> int:
    """Return the end of a comment that begins with a slash here; `at` if none does."""
    if not has_slashes or data[at] != _SLASH or at + 1 >= stop:
        return at
    if data[at + 1] == _SLASH:
        return _after_line(data, at, stop)
    if data[at + 1] != _STAR:
        return at
    place, last = at + 2, min(stop, at + _LONGEST)
    while place + 1 < last:
        if data[place] == _STAR and data[place + 1] == _SLASH:
            return place + 2
        place += 1
    return at


@kernel
def _after_operators(data: Bytes, at: int, stop: int, has_slashes: bool) -> int:
    """Return the end of a run of operator signs; a comment ends it."""
    at += 1
    while at < stop and KINDS[data[at]] == _OPERATOR:
        if _after_comment(data, at, stop, has_slashes) > at:
            break
        at += 1
    return at


@kernel
def write_tokens(data: Bytes, start: int, stop: int, names: Words64, digests: Words64) -> int:
    """Write the digests of all tokens, of which there may be one per byte; return their number."""
    has_slashes = has_slash_comments(data, start, stop)
    n, at = 0, start
    while at < stop:
        digest, _, at = next_token(data, at, start, stop, has_slashes, names)
        if digest != END:
            digests[n] = digest
            n += 1
    return n
