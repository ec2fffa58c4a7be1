"""Where test items go in a stream, and which documents make room for them.

A document is replaced, never joined: a blend with items has as many documents as one without, and
nearly as many tokens, for an item takes the place of the document of its batch that is nearest in
length. With a ratio the tokens are what counts: documents go by chance, and as many items come for
each as make up its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decon_core.config.blends import Contamination
from decon_core.errors import ConfigError, Problem
from decon_core.mixtures.matching import matching
from decon_core.seeding import numbers, shuffled

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_REMEDY = "fewer copies or items, a larger most_per_batch, or a longer blend"


@dataclass(frozen=True, eq=False)
class Insertions:
    """Texts of items in the order of the stream; several may have one place."""

    place: Integers  # number of the document that they stand for
    item: Integers  # number of the item
    part: Integers  # which of its texts
    copy: Integers
    replaced: Integers  # places of all documents that went

    def in_order(self) -> Insertions:
        order = np.argsort(self.place, kind="stable")
        return Insertions(
            self.place[order],
            self.item[order],
            self.part[order],
            self.copy[order],
            np.sort(self.replaced),
        )


@dataclass(frozen=True, eq=False)
class Room:
    """A stream as it looks to somebody who has to find places in it."""

    n_tokens: Integers  # of its documents
    is_free: Flags  # which may be replaced
    is_replaced: Flags  # which were, by items of another contamination

    def within(self, stretch: tuple[float, float]) -> Room:
        """With nothing free outside a part of the tokens."""
        first, last = self.edges(stretch)
        is_free = np.zeros_like(self.is_free)
        is_free[first:last] = self.is_free[first:last]
        return Room(self.n_tokens, is_free, self.is_replaced)

    def edges(self, stretch: tuple[float, float]) -> tuple[int, int]:
        """The documents that begin in a part of the tokens: the first, and the one behind."""
        before = np.cumsum(self.n_tokens) - self.n_tokens
        low, high = (share * int(self.n_tokens.sum()) for share in stretch)
        first, last = np.searchsorted(before, [low, high]).tolist()
        return first, last


def insert(room: Room, contamination: Contamination, sizes: Integers, name: str) -> Insertions:
    """Find a place for all. `sizes`: a row for every item, with the tokens of each of its texts."""
    if contamination.ratio is not None:
        return _by_ratio(room, contamination, contamination.ratio, sizes[:, 0], name).in_order()
    n_items, n_parts = sizes.shape
    room = room.within(contamination.stretch)
    n_units = n_items * (contamination.copies or 0)
    if contamination.swap is not None:
        n_units = contamination.swap // n_parts
    batch, unit, part = _batches_of(room, contamination, n_units, n_parts, name)
    copy = unit // n_items
    item = np.empty_like(unit)
    for number in range(int(copy.max()) + 1):  # of the last copy perhaps not all
        own = copy == number
        item[own] = shuffled(f"{name} copy {number}", n_items)[unit[own] % n_items]
    place = _documents_for(room, contamination, batch, sizes[item, part])
    return Insertions(place, item, part, copy, place).in_order()


# Batches ------------------------------------------------------------------------------------------


def _starts(room: Room, contamination: Contamination) -> Integers:
    """Where the batches begin in which a document may go."""
    starts = np.arange(0, room.n_tokens.size, contamination.batch_documents)
    return starts[np.add.reduceat(room.is_free, starts, dtype=np.int64) > 0]


def _capacities(room: Room, contamination: Contamination, starts: Integers) -> Integers:
    """How many more documents of each batch may be replaced."""
    found = []
    for start in starts.tolist():
        own = slice(start, start + contamination.batch_documents)
        n_documents = room.n_tokens[own].size
        most = int(contamination.most_per_batch * n_documents) - int(room.is_replaced[own].sum())
        found.append(max(min(most, int(room.is_free[own].sum())), 0))
    return np.array(found, np.int64)


def _batches_of(
    room: Room, contamination: Contamination, n_units: int, n_parts: int, name: str
) -> tuple[Integers, Integers, Integers]:
    """For every text the first document of its batch, the copy of an item, and which part it is."""
    starts = _starts(room, contamination)
    capacities = _capacities(room, contamination, starts)
    together = n_parts if contamination.form == "apart_in_batch" else 1
    if n_units * n_parts > capacities.sum():  # before as many are numbered
        n = n_units * n_parts // together
        raise ConfigError(_no_room(capacities // together, n, contamination))
    units = np.arange(n_units)
    if contamination.form == "apart":
        slots = _slots(np.minimum(capacities, n_units), 2 * n_units, contamination, name)
        slots = np.sort(slots)
        # No batch has more than half of them, so these two are never of one batch.
        pairs = np.stack([slots[:n_units], slots[n_units:]])[:, shuffled(f"{name} pairs", n_units)]
        is_turned = (numbers(f"{name} turns", n_units) & np.uint64(1)).astype(np.bool_)
        sources, targets = np.where(is_turned, pairs[::-1], pairs)
        slots = np.concatenate([sources, targets])
    else:
        slots = np.tile(_slots(capacities // together, n_units, contamination, name), n_parts)
    return starts[slots], np.tile(units, n_parts), np.repeat(np.arange(n_parts), n_units)


def _slots(capacities: Integers, n: int, contamination: Contamination, name: str) -> Integers:
    """Numbers of batches, no more of each than fit into it: early ones, or from all of them."""
    reached = np.cumsum(capacities)
    room = int(reached[-1]) if reached.size else 0
    if room < n:
        raise ConfigError(_no_room(capacities, n, contamination))
    if contamination.is_at_once:
        capacities = capacities[: int(np.searchsorted(reached, n)) + 1]
    slots = np.repeat(np.arange(capacities.size), capacities)
    return slots[shuffled(f"{name} slots", slots.size)[:n]]


def _no_room(capacities: Integers, n: int, contamination: Contamination) -> Problem:
    low, high = contamination.stretch
    room = int(capacities.sum())
    each = int(contamination.most_per_batch * contamination.batch_documents)
    what = "pairs of documents" if contamination.form == "apart_in_batch" else "documents"
    return Problem(
        f"contamination with {', '.join(contamination.benchmarks)}",
        f"room for {room:,} {what}: {capacities.size:,} batches stand between {low:.0%} and "
        f"{high:.0%} of the tokens, and of each {each:,} documents may go",
        f"room for {n:,}, which is {n - room:,} more",
        _REMEDY,
    )


def _documents_for(
    room: Room, contamination: Contamination, batch: Integers, sizes: Integers
) -> Integers:
    """The document that each text takes the place of: in its batch the one nearest in size."""
    place = np.empty_like(batch)
    order = np.argsort(batch, kind="stable")
    edges = np.flatnonzero(np.diff(batch[order], prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        own = order[first:last]
        start = int(batch[own[0]])
        stop = start + contamination.batch_documents
        pool = start + np.flatnonzero(room.is_free[start:stop])
        chosen = pool[matching(sizes[own], room.n_tokens[pool])]
        by_size = own[np.argsort(sizes[own], kind="stable")]
        place[by_size] = chosen[np.argsort(room.n_tokens[chosen], kind="stable")]
    return place


# By ratio -----------------------------------------------------------------------------------------


def _by_ratio(
    room: Room, contamination: Contamination, ratio: float, sizes: Integers, name: str
) -> Insertions:
    replaced = _documents_by_ratio(room, contamination, ratio, name)
    n_items = sizes.size
    sizes = np.maximum(sizes, 1)
    place: list[int] = []
    unit: list[int] = []
    order: list[int] = []  # of the items, cycle after cycle
    gone = come = 0
    for document in replaced.tolist():
        gone += int(room.n_tokens[document])
        while True:
            if len(unit) == len(order):
                cycle = len(order) // n_items
                order += shuffled(f"{name} copy {cycle}", n_items).tolist()
            size = int(sizes[order[len(unit)]])
            if 2 * come + size > 2 * gone:
                break
            place.append(document)
            unit.append(len(unit))
            come += size
    if not unit:
        where = f"contamination with {', '.join(contamination.benchmarks)}"
        found = f"{gone:,} tokens of documents that go for a ratio of {ratio:g}"
        remedy = "a larger ratio, or a longer blend"
        raise ConfigError(Problem(where, found, f"room for an item of {sizes.min():,}", remedy))
    units = np.array(unit, np.int64)
    items = np.array(order[: len(unit)], np.int64)
    places = np.array(place, np.int64)
    return Insertions(places, items, np.zeros_like(units), units // n_items, replaced)


def _documents_by_ratio(
    room: Room, contamination: Contamination, ratio: float, name: str
) -> Integers:
    """Documents, by chance, whose tokens are this share of the stretch, and of every batch."""
    replaced: list[int] = []
    gone, wanted = 0, 0.0
    first, last = room.edges(contamination.stretch)
    for start in range(first, last, contamination.batch_documents):
        own = slice(start, min(start + contamination.batch_documents, last))
        wanted += ratio * int(room.n_tokens[own].sum())
        pool = start + np.flatnonzero(room.is_free[own])
        for document in pool[shuffled(f"{name} batch {start}", pool.size)].tolist():
            size = int(room.n_tokens[document])
            if size and gone + size / 2 <= wanted:
                replaced.append(document)
                gone += size
    largest = int(room.n_tokens.max(initial=0))
    if not replaced or gone + largest / 2 < wanted:
        found = f"{gone:,} tokens of documents that may be replaced"
        where = f"contamination with {', '.join(contamination.benchmarks)}"
        raise ConfigError(
            Problem(where, found, f"{wanted:,.0f}", "a longer blend, or more in `into`")
        )
    return np.array(sorted(replaced), np.int64)


def stream_room(n_tokens: Integers, is_free: Flags, replaced: Sequence[Integers]) -> Room:
    """The room that earlier insertions leave."""
    is_replaced = np.zeros(n_tokens.size, np.bool_)
    for places in replaced:
        is_replaced[places] = True
    return Room(n_tokens, is_free & ~is_replaced, is_replaced)
