"""Token ids that are not a plain list of whole numbers: in strings, in objects, in nested lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from decon_core.corpus.byte_places import places_of
from decon_core.corpus.fields import Field
from decon_core.corpus.text_values import LEAST_BYTES, LEAST_NUMBERS, n_tokens
from decon_core.kernels.arrays import Bools, Bytes, Integers

_SIGNS = b"0123456789 \t\r\n.,;[]()-"  # of which a string of numbers consists
_OF_NUMBERS = np.isin(np.arange(256), [*_SIGNS])
_ONLY_NUMBERS = re.compile(rf"[{re.escape(_SIGNS.decode())}]+")
_NUMBER = re.compile(r"(?<![\d.-])(\d{1,9})(?:\.0*)?(?![\d.])", re.ASCII)
_LEAST_LARGE = 256  # most token ids of a text are larger, few numbers of grids and scores are
_LEAST_SIZE = 2 * LEAST_NUMBERS - 1  # bytes of a string of token ids
_N_SAMPLES = 9  # bytes of a string that are looked at first

# What the compiled reader of lines leaves to the plain one: the lists of `loose_ids`.
_LOOSE = re.compile(rb'"[^"]+(?:"\s*:\s*\[\s*(?:[\[{]|-?\d+[.eE])|\.npy"\s*:\s*\{)', re.IGNORECASE)


def loose_ids(value: object, at: Field) -> int:
    """Return how many token ids are in nested lists, objects or floats of a field; 0 if none.

    Lists that are a text by themselves do not count here.
    """
    if not (at.has_tokens and at.key):
        return 0
    if isinstance(value, dict):  # a member of a tar archive that is passed over
        n_bytes = value.get("n_bytes") if len(value) == 1 else None
        return n_bytes if isinstance(n_bytes, int) and at.key.lower().endswith(".npy") else 0
    if not (isinstance(value, list | tuple) and value and _is_loose(value[0])):
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


def _is_loose(value: object) -> bool:
    return isinstance(value, list | tuple | dict | float)


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
    numbers, the name of the field does not matter.
    """
    ids: dict[Field, list[str]] = {}
    is_only = True
    for at, text in texts:
        if _ONLY_NUMBERS.fullmatch(text):
            ids.setdefault(at, []).extend(_NUMBER.findall(text))
        elif len(text.encode()) >= LEAST_BYTES:
            is_only = False
    for at, numbers in ids.items():
        if len(numbers) >= LEAST_NUMBERS and (at.has_tokens or (is_only and _are_large(numbers))):
            yield at, len(numbers)


def _are_large(numbers: Iterable[str]) -> bool:
    are_large = [int(number) >= _LEAST_LARGE for number in numbers]
    return 2 * sum(are_large) >= len(are_large)


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
