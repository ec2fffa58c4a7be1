"""The datasets and splits that rows name as their own: `"data_source": "openai/gsm8k"`.

A short value of some fields (`field_names.toml`) is a name. The plain reader collects names here,
the compiled one from all rows of a block together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from decon_core.corpus.fields import Field, FieldTree, Names
from decon_core.corpus.string_kinds import is_text
from decon_core.kernels.arrays import Bools, Integers, distinct
from decon_core.kernels.string_kinds import LEAST_WORDS, LONGEST_NAME, TO_NOTE

if TYPE_CHECKING:
    from decon_core.corpus.compiled_rows import Strings

# Names that are kept for a field of a shard. A field may have another value in each row.
MOST_NAMES = 100


class Origin(NamedTuple):
    """A name that rows give as their origin in a field, with the split that they also name."""

    field: str  # path in the row
    value: str | None  # None: any of the values that are not kept
    split: str | None  # None: they name no split


Origins = Mapping[Origin, int]  # numbers of rows


def origins_of_row(strings: Iterable[tuple[Field, str]]) -> Origins:
    """Return the origins that a row names, from its strings in reading order."""
    names = [
        (field, text)
        for field, text in strings
        if field.names and len(text.encode()) <= LONGEST_NAME and not is_text(text)
    ]
    split = next((text for field, text in names if field.names is Names.SPLIT), None)
    return Counter(
        Origin(field.path, text, split) for field, text in names if field.names is Names.ORIGIN
    )


def total(counts: Iterable[Origins]) -> Counter[Origin]:
    """Return the sums of the numbers of rows."""
    sums = Counter[Origin]()
    for numbers in counts:
        sums.update(numbers)
    return sums


def shortest(origins: Origins) -> Origins:
    """Return the `MOST_NAMES` shortest names of each field, and the number of the other rows.

    So the same are left of all rows, however they are counted together.
    """
    kept: dict[Origin, int] = {}
    for field, named in groupby(sorted(origins, key=_by_length), key=lambda origin: origin.field):
        names = [*named]
        others = Origin(field, None, None)
        kept |= {origin: origins[origin] for origin in names[:MOST_NAMES] if origin != others}
        n_others = sum(origins[origin] for origin in names[MOST_NAMES:] if origin != others)
        if n_others + origins.get(others, 0):
            kept[others] = n_others + origins.get(others, 0)
    return kept


def _by_length(origin: Origin) -> tuple[str, bool, int, str, str]:
    """Sort by field, the names of the fewest bytes first and those that are not kept last."""
    value, split = origin.value or "", origin.split or ""
    return origin.field, origin.value is None, len(f"{value}{split}".encode()), value, split


# Origins of a block of rows ----------------------------------------------------------------------


def origins_in(strings: Strings, is_usual: Bools, tree: FieldTree, kinds: Integers) -> Origins:
    """Return what rows name as their origins; of rows that are not usual nothing.

    `kinds`: of each field, what it names. Of a field with many names, those that `shortest` would
    leave out anyway are counted together.
    """
    n_fields, kinds, sizes = kinds.size, kinds[strings.fields], strings.stops - strings.starts
    may_be_name = (kinds != Names.NOTHING) & is_usual[strings.rows]
    may_be_name &= (strings.actions <= TO_NOTE) & (sizes <= LONGEST_NAME)
    if not may_be_name.any():
        return {}
    named, kinds = strings.take(may_be_name), kinds[may_be_name]
    values, codes = _numbered(named)
    # A text this short must have many words: letters of scripts without spaces take three bytes.
    is_long = [len(value.split()) >= LEAST_WORDS and is_text(value) for value in values]
    is_name = ~np.array(is_long)[codes]
    split_of_row = np.full(is_usual.size, -1)
    at = np.flatnonzero(is_name & (kinds == Names.SPLIT))[::-1]  # the first one of a row is left
    split_of_row[named.rows[at]] = codes[at]
    at = np.flatnonzero(is_name & (kinds == Names.ORIGIN))
    names = np.ravel_multi_index(
        (named.fields[at], codes[at], split_of_row[named.rows[at]] + 1),
        (shape := (n_fields, len(values), len(values) + 1)),
    )
    names, counts = np.unique(names, return_counts=True)
    numbers, origins, splits = np.unravel_index(names, shape)
    value_sizes = np.array([*(len(value.encode()) for value in values), 0])
    is_short = _are_short(numbers, value_sizes[origins] + value_sizes[splits - 1])
    sums = Counter[Origin]()  # fields may have the same path: keys may contain dots
    columns = (column[is_short].tolist() for column in (numbers, origins, splits, counts))
    for number, origin, split, n_rows in zip(*columns, strict=True):
        beside = values[split - 1] if split else None
        sums[Origin(tree.fields[number].path, values[origin], beside)] += n_rows
    for number in distinct(numbers[~is_short]).tolist():
        n_rows = int(counts[~is_short & (numbers == number)].sum())
        sums[Origin(tree.fields[number].path, None, None)] += n_rows
    return sums


def _numbered(strings: Strings) -> tuple[list[str], Integers]:
    """Return the different strings, and the number of each string among them."""
    sizes = strings.stops - strings.starts
    edges = np.append(0, np.cumsum(sizes))
    places = np.arange(edges[-1]) + np.repeat(strings.starts - edges[:-1], sizes)
    buffers = map(pa.py_buffer, (edges, strings.text[places]))
    coded = pa.LargeStringArray.from_buffers(sizes.size, *buffers).dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(coded.indices.to_numpy(), np.int64)


def _are_short(numbers: Integers, sizes: Integers) -> Bools:
    """Return which names may be among the `MOST_NAMES` shortest of their fields."""
    is_short = np.ones(numbers.size, np.bool_)
    for number in distinct(numbers).tolist() if numbers.size > MOST_NAMES else ():
        of_field = numbers == number
        if np.count_nonzero(of_field) > MOST_NAMES:
            longest = np.partition(sizes[of_field], MOST_NAMES - 1)[MOST_NAMES - 1]
            is_short &= ~of_field | (sizes <= longest)
    return is_short
