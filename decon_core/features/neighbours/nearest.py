"""The nearest paragraphs of each item, exactly, from blocks of vectors in any division.

A product of two vectors and the place of a paragraph are one whole number, so no two paragraphs are
equal: of equally similar ones the first in the sample is nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.config.seeding import numbers_at
from decon_core.features.neighbours.vectors import SCALE, Vectors

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_PLACE_BITS = 32  # places below 4.3e9; products are from -2^30 to 2^30
_LAST_PLACE = (1 << _PLACE_BITS) - 1
_NONE = 1 - (1 << 63)
_ITEMS_AT_ONCE = 4096
_DECIMALS = 5


class Found(NamedTuple):
    """The nearest paragraphs, by item and rank."""

    items: Integers
    ranks: Integers  # ranks from 1
    places: Integers
    similarities: Floats


class Nearest:
    """The nearest paragraphs of the items of one benchmark among those that were added."""

    def __init__(self, items: Vectors, top: int) -> None:
        self._items = items.T.astype(np.float64)
        self._top = top
        self._keys = np.full((top, len(items)), _NONE, np.int64)
        self.best = np.full(len(items), -np.inf)  # similarity of each item, in this source

    def add(self, paragraphs: Vectors, first: int) -> Floats:
        """Add a block whose first paragraph has this place; return each one's best similarity."""
        vectors = paragraphs.astype(np.float64)
        best = np.full(len(vectors), -np.inf)
        places = _LAST_PLACE - np.arange(first, first + len(vectors))
        for start in range(0, self._items.shape[1], _ITEMS_AT_ONCE):
            part = slice(start, start + _ITEMS_AT_ONCE)
            products = vectors @ self._items[:, part]
            np.maximum(best, products.max(axis=1, initial=-np.inf), out=best)
            highest = products.max(axis=0, initial=-np.inf)
            self.best[part] = np.maximum(self.best[part], similarity(highest))
            keys = self._keys[:, part]
            # The least of the nearest, as a product; a later paragraph must exceed it.
            improved = np.flatnonzero(highest > (keys.min(axis=0) >> _PLACE_BITS))
            if improved.size:
                added = (products[:, improved].astype(np.int64) << _PLACE_BITS) + places[:, None]
                together = np.concatenate([keys[:, improved], added])
                rest = len(together) - self._top
                keys[:, improved] = np.partition(together, rest, axis=0)[rest:]
        return similarity(best)

    def start_source(self) -> None:
        """Forget the best similarity of each item, which is counted by source."""
        self.best[:] = -np.inf

    def nearest(self) -> Found:
        keys = -np.sort(-self._keys, axis=0).T  # a row for each item, the nearest first
        items, ranks = np.nonzero(keys != _NONE)
        kept = keys[items, ranks]
        places = _LAST_PLACE - (kept & _LAST_PLACE)
        products = (kept >> _PLACE_BITS).astype(np.float64)
        return Found(items, ranks + 1, places, similarity(products))


def drawn(found: Found, n: int, name: str) -> tuple[Found, Floats]:
    """Return `n` random paragraphs of each item, and how many each of them stands for.

    The name determines the draw.
    """
    numbers = numbers_at(name, (found.items << _PLACE_BITS) + found.places)
    order = np.lexsort((numbers, found.items))
    n_of_item = np.bincount(found.items)
    firsts = np.cumsum(n_of_item) - n_of_item
    position = np.arange(order.size) - firsts[found.items[order]]
    kept = np.sort(order[position < n])
    n_near = n_of_item[found.items[kept]]
    return Found._make(column[kept] for column in found), n_near / np.minimum(n_near, n)


def similarity(products: Floats) -> Floats:
    """Return products as cosines; rounding may have made a vector longer than 1."""
    return np.clip(products / (SCALE * SCALE), -1, 1).round(_DECIMALS)


_N_BINS = 20  # 0.05 wide
EDGES: Sequence[float] = tuple(edge / _N_BINS for edge in range(_N_BINS))


def n_by_bin(values: Floats) -> Integers:
    """Count values by bin; the first has all below it, too, and the last has 1."""
    bins = np.clip(np.floor(values * _N_BINS + 1e-9), 0, _N_BINS - 1).astype(np.int64)
    return np.bincount(bins[np.isfinite(values)], minlength=_N_BINS).astype(np.int64)
