r"""Text that is written as numbers: token ids, or escapes such as `&#24352;` and `\u5f20`.

It has no words that could be searched. The compiled readers leave rows that may have some to the
plain reader: a pattern that matches in bytes is found by what it begins with, which is faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from decon_core.corpus.fields import Field
from decon_core.corpus.text_values import LEAST_BYTES, LEAST_LETTERS, LEAST_NUMBERS, n_tokens
from decon_core.kernels.arrays import Bools, Bytes, Integers

# Escapes -----------------------------------------------------------------------------------------

_LEAST_RUN = 3  # escapes one behind the other
_ESCAPE = r"\\+u[0-9a-fA-F]{4}"
_ENTITY = r"&#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});"
_ESCAPES = re.compile(  # not from each of many backslashes on, which is slow
    rf"(?<!\\)(?:{_ESCAPE}){{{_LEAST_RUN},}}|(?:{_ENTITY}){{{_LEAST_RUN},}}"
)
# In JSON, a backslash in a string takes two, and some writers escape `&`.
_IN_JSON = re.compile(
    rf"(?:\\{_ESCAPE}){{{_LEAST_RUN}}}|(?:(?:&|\\*u0026){_ENTITY[1:]}){{{_LEAST_RUN}}}".encode()
)
_BEGINNINGS_IN_JSON = (b"\\\\u", b"&#", b"u0026#")
# Not more of them: a match must not go on in the strings behind, which it would hide.
_IN_TEXT = re.compile(rf"(?:{_ESCAPE}){{{_LEAST_RUN}}}|(?:{_ENTITY}){{{_LEAST_RUN}}}".encode())
_BEGINNINGS = (b"\\u", b"&#")


def is_escaped_text(value: str) -> bool:
    """Return whether a string has as many escapes as a text has letters."""
    if "\\u" not in value and "&#" not in value:
        return False
    runs: list[str] = _ESCAPES.findall(value)
    return sum(run.count("u") + run.count(";") for run in runs) >= LEAST_LETTERS


def lines_with_escapes(lines: Bytes, line_starts: Integers) -> Integers:
    """Return the numbers of the lines of JSON that may have such a text."""
    places = places_of(_IN_JSON, _BEGINNINGS_IN_JSON, lines)
    return np.searchsorted(line_starts, places, side="right") - 1


def strings_with_escapes(text: Bytes, starts: Integers) -> Integers:
    """Return the numbers of the strings that may be such a text."""
    places = places_of(_IN_TEXT, _BEGINNINGS, text)
    if not places.size:
        return places
    order = np.argsort(starts, kind="stable")
    return order[np.searchsorted(starts[order], places, side="right") - 1]


# Token ids ---------------------------------------------------------------------------------------

_SIGNS = b"0123456789 \t\r\n.,;[]()-"  # of which a string of numbers consists
_OF_NUMBERS = np.isin(np.arange(256), [*_SIGNS])
_ONLY_NUMBERS = re.compile(rf"[{re.escape(_SIGNS.decode())}]+")
_NUMBER = re.compile(r"(?<![\d.-])(\d{1,9})(?:\.0*)?(?![\d.-])", re.ASCII)
_ANY_NUMBER = re.compile(r"\d[\d.-]*", re.ASCII)  # also a fraction or a date
_LEAST_LARGE = 256  # most token ids of a text are larger, few numbers of grids and scores are
_LEAST_SIZE = 2 * LEAST_NUMBERS - 1  # bytes of a string of token ids
_N_SAMPLES = 9  # bytes of a string that are looked at first

# What the compiled reader of lines leaves to the plain one: the lists of `loose_ids`.
_LOOSE = re.compile(
    rb'"[^"]+(?:"\s*:\s*\[\s*(?:null\s*,\s*)*(?:[\[{]|-?\d+[.eE])|\.npy"\s*:\s*\{)', re.IGNORECASE
)


def loose_ids(value: object, at: Field) -> int:
    """Return how many token ids are in nested lists, objects or floats of a field; 0 if none.

    Lists that are a text by themselves do not count here.
    """
    if not (at.has_tokens and at.key):
        return 0
    if isinstance(value, dict):  # a member of a tar archive that is passed over
        n_bytes = value.get("n_bytes") if len(value) == 1 else None
        return n_bytes if isinstance(n_bytes, int) and at.key.lower().endswith(".npy") else 0
    if not isinstance(value, list | tuple):
        return 0
    first = next((inner for inner in value if inner is not None), None)
    if not isinstance(first, list | tuple | dict | float):
        return 0
    n, waiting = 0, [value]
    while waiting:
        for inner in waiting.pop():
            if isinstance(inner, list | tuple):
                if not n_tokens(inner, is_named=True):
                    waiting.append(inner)
            elif isinstance(inner, dict):
                n += _is_id_alone(inner)
            else:
                n += _is_id(inner)
    return n if n >= LEAST_NUMBERS else 0


def _is_id(value: object) -> bool:
    if type(value) is float:
        return value >= 0 and value.is_integer()
    return type(value) is int and value >= 0


def _is_id_alone(value: dict[str, object]) -> bool:
    """Return whether an object has a token id, and no string, as of the word itself."""
    has_string = any(isinstance(inner, str | bytes) for inner in value.values())
    return not has_string and any(_is_id(value.get(key)) for key in _KEYS_OF_ID)


_KEYS_OF_ID = ("id", "token_id", "token")


def ids_in_strings(texts: Sequence[tuple[Field, str]]) -> Iterator[tuple[Field, int]]:
    """Yield the fields of a row whose strings are token ids, and how many.

    `texts`: the strings of the row that are read. If all that are longer than a word or two are
    lists of numbers, the name of the field does not matter.
    """
    strings: dict[Field, list[str]] = {}
    is_only = True
    for at, text in texts:
        if _ONLY_NUMBERS.fullmatch(text):
            strings.setdefault(at, []).append(text)
        elif len(text.encode()) >= LEAST_BYTES:
            is_only = False
    for at, of_field in strings.items():
        text = " ".join(of_field)
        ids = _NUMBER.findall(text)
        are_lists = is_only and all(string.lstrip().startswith("[") for string in of_field)
        if len(ids) >= LEAST_NUMBERS and (at.has_tokens or (are_lists and _are_likely(ids, text))):
            yield at, len(ids)


def _are_likely(ids: Sequence[str], text: str) -> bool:
    """Return whether half of the ids are large, and few other numbers are in their text."""
    n_large = sum(int(number) >= _LEAST_LARGE for number in ids)
    n_others = len(_ANY_NUMBER.findall(text)) - len(ids)
    return 2 * n_large >= len(ids) and 10 * n_others <= len(ids)


def may_have_ids(
    text: Bytes, starts: Integers, sizes: Integers, rows: Integers, is_named: Bools, n_rows: int
) -> Bools:
    """Return for which rows `ids_in_strings` may find something, by some bytes of each string.

    `is_named`: whether the field of a string is one of token ids.
    """
    left = np.arange(sizes.size)
    for step in range(_N_SAMPLES):
        places = starts[left] + (sizes[left] - 1) * step // (_N_SAMPLES - 1)
        left = left[_OF_NUMBERS[text[places]]]
        if not left.size:
            return np.zeros(n_rows, np.bool_)
    n_bytes = np.bincount(rows[left], sizes[left], n_rows)
    is_other = sizes >= LEAST_BYTES
    is_other[left] = False
    may_have = n_bytes >= _LEAST_SIZE
    may_have[rows[is_other]] = False
    may_have[rows[left[is_named[left]]]] = True
    return may_have


def lines_with_loose_ids(lines: Bytes, line_starts: Integers, keys: Iterable[bytes]) -> Integers:
    """Return the numbers of lines that may have what `loose_ids` finds, in fields of these keys."""
    places = places_of(_LOOSE, (b'"%s"' % key for key in keys), lines)
    return np.searchsorted(line_starts, places, side="right") - 1


# Patterns in bytes -------------------------------------------------------------------------------


def places_of(pattern: re.Pattern[bytes], beginnings: Iterable[bytes], text: Bytes) -> Integers:
    """Return places where a pattern matches, which begins in one of these ways."""
    places = [at for beginning in beginnings for at in _matches(pattern, beginning, text)]
    return np.array(places, np.int64)


def _matches(pattern: re.Pattern[bytes], beginning: bytes, text: Bytes) -> Iterator[int]:
    behind = 0
    for at in _beginnings(beginning, text).tolist():
        if at >= behind and (match := pattern.match(text.data, at)):
            yield at
            behind = match.end()


def _beginnings(beginning: bytes, text: Bytes) -> Integers:
    """Return where some bytes stand: the last two of them are searched as one number."""
    pair = int.from_bytes(beginning[-2:], "little")
    n_before = len(beginning) - 2
    found = [
        2 * np.flatnonzero(text[first : first + (text.size - first) // 2 * 2].view("<u2") == pair)
        + first
        for first in (0, 1)
    ]
    places = np.sort(np.concatenate(found)) - n_before
    places = places[places >= 0]
    for at, byte in enumerate(beginning[:-2]):
        places = places[text[places + at] == byte]
    return places
