"""The data sets and splits that rows name as their own: `"data_source": "openai/gsm8k"`.

A short value of some fields (`field_names.toml`) is a name. The plain reader collects names here,
the compiled one in `compiled_origins.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from decon_core.corpus.fields import Field, Names
from decon_core.corpus.text_values import is_text
from decon_core.kernels.string_values import LONGEST_NAME

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
