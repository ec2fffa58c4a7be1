"""The origins that the rows of a block name, counted by a compiled kernel."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from decon_core.corpus.fields import FieldTree, Names
from decon_core.corpus.origins import MOST_NAMES, Origin, Origins
from decon_core.kernels import json_lines, row_origins
from decon_core.kernels.arrays import Bools, Integers, distinct

if TYPE_CHECKING:
    from decon_core.corpus.compiled_rows import Fields, Strings


def origins_in(strings: Strings, is_usual: Bools, tree: FieldTree, fields: Fields) -> Origins:
    """Return what rows name as their origins; of rows that are not usual nothing.

    Of a field with many names, those that `shortest` would leave out anyway are counted together.
    """
    names = fields.columns[:, json_lines.NAMES].copy()
    most = is_usual.size * int((names == Names.ORIGIN).sum())  # a row has a string of each field
    origins, splits, counts = np.empty((3, most), np.int64)
    starts, stops = strings.starts, strings.stops
    n = row_origins.count_origins(
        strings.text,
        starts,
        stops,
        strings.fields,
        strings.actions,
        strings.rows,
        names,
        is_usual.view(np.uint8),
        np.full(1 << (2 * most).bit_length(), -1),
        origins,
        splits,
        counts,
    )
    if not n:
        return {}
    origins, splits, counts = origins[:n], splits[:n], counts[:n]
    numbers = strings.fields[origins]
    split_sizes = np.where(splits >= 0, stops[splits] - starts[splits], 0)
    is_short = _are_short(numbers, stops[origins] - starts[origins] + split_sizes)

    def string(at: int) -> str:
        return strings.text[starts[at] : stops[at]].tobytes().decode()

    sums = Counter[Origin]()  # fields may have the same path: keys may contain dots
    columns = (column[is_short].tolist() for column in (numbers, origins, splits, counts))
    for number, origin, split, n_rows in zip(*columns, strict=True):
        beside = string(split) if split >= 0 else None
        sums[Origin(tree.fields[number].path, string(origin), beside)] += n_rows
    for number in distinct(numbers[~is_short]).tolist():
        n_rows = int(counts[~is_short & (numbers == number)].sum())
        sums[Origin(tree.fields[number].path, None, None)] += n_rows
    return sums


def _are_short(numbers: Integers, sizes: Integers) -> Bools:
    """Return which names may be among the `MOST_NAMES` shortest of their fields."""
    is_short = np.ones(numbers.size, np.bool_)
    for number in distinct(numbers).tolist() if numbers.size > MOST_NAMES else ():
        of_field = numbers == number
        if np.count_nonzero(of_field) > MOST_NAMES:
            longest = np.partition(sizes[of_field], MOST_NAMES - 1)[MOST_NAMES - 1]
            is_short &= ~of_field | (sizes <= longest)
    return is_short
