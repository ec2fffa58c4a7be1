"""Which units of an item tell it from the other items of its benchmark.

A run of three units that another item has, too, is shared. Of a family of items that are made from
one template, most runs are shared by the whole family, and what tells one from its nearest siblings
may still be shared by some. So a run is an item's own if it is not shared, or, in a family, by a
tenth of it at most. A unit is its own if all runs that hold it are.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bools, Integers, Words64, filled
from decon_core.kernels.hashing import numbered_digests
from decon_core.text.word_cache import Ragged, edges_of

_RUN = 3
_PRIMES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_TEMPLATE_SHARE = 0.4  # least share of an item's units that makes a template
_NEAREST = 10  # one in so many of a family
_NO_RUN = np.iinfo(np.int64).max


def own_of(
    n_items_with: Integers, n_items_around: Integers, lengths: Integers
) -> tuple[Bools, Bools, Integers]:
    """Return which units are an item's own, which are the middle of an own run, and its family.

    The family is how many items share two fifths of an item. `n_items_with` and `n_items_around`
    are those of `items_with_runs`; `lengths`: the number of units of each item.
    """
    edges = np.append(0, np.cumsum(lengths))
    n_alone = np.diff(np.append(0, np.cumsum(n_items_with == 1))[edges])
    at = ((1 - _TEMPLATE_SHARE) * (lengths - 1)).astype(np.int64)
    n_family = np.ones(lengths.size, np.int64)
    # Sort only items that share so many of their units: of all others the family is 1.
    for item in np.flatnonzero((n_alone <= at) & (lengths > 0)).tolist():
        of_item = n_items_with[edges[item] : edges[item + 1]]
        n_family[item] = np.partition(of_item, at[item])[at[item]]
    most = np.repeat(np.maximum(1, n_family // _NEAREST), lengths)
    return n_items_with <= most, n_items_around <= most, n_family


def items_with_runs(keys: Words64, lengths: Integers, asked: Integers) -> tuple[Integers, Integers]:
    """Return for each unit how many items have the runs that hold it, and the run around it.

    Of those that hold it the most frequent counts. Around the first and last of an item is none.
    The units are those of the questions of one benchmark, all different, and `lengths` how many
    each has. `asked`: how many items ask each, about another passage each.
    """
    item_of = np.repeat(np.arange(lengths.size), lengths)
    n_runs = max(0, keys.size - _RUN + 1)
    runs = np.flatnonzero(item_of[:n_runs] == item_of[_RUN - 1 :])
    digests = np.zeros(runs.size, np.uint64)
    for at, prime in enumerate(_PRIMES):
        digests += keys[runs + at] * np.uint64(prime)
        digests ^= digests >> np.uint64(29)
    kinds, first = numbered_digests(digests)
    # A run that an item repeats counts once.
    of_items = Ragged(kinds, edges_of(np.maximum(lengths - _RUN + 1, 0))).distinct()
    n_items_with = of_items.count(asked, first.size)[kinds]
    most = np.repeat(asked, lengths)
    for at in range(_RUN):
        np.maximum.at(most, runs + at, n_items_with)
    around = filled(keys.size, _NO_RUN)
    around[runs + _RUN // 2] = n_items_with
    return most, around
