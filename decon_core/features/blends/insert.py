"""Choose where test items go in a stream, and which documents they replace.

With `copies` or `swap`, each text replaces the document of its batch that is nearest in length: a
blend with items has as many documents as one without, and nearly as many tokens. With `ratio`,
random documents are replaced, each by as many items as make up its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from decon_core.config.seeding import numbers, shuffled
from decon_core.errors import ConfigError, Problem
from decon_core.features.blends.draw import Flags, Integers
from decon_core.features.blends.settings import Contamination
from decon_core.mixtures.match_sizes import matching


@dataclass(frozen=True, eq=False)
class Insertions:
    """The inserted texts, in the order of the stream. Several texts may have the same place."""

    place: Integers  # number of the replaced document in the stream
    item: Integers  # number of the item
    part: Integers  # number of the text of the item
    copy: Integers
    replaced: Integers  # places of all replaced documents

    def in_order(self) -> Insertions:
        order = np.argsort(self.place, kind="stable")
        columns = (self.place, self.item, self.part, self.copy)
        place, item, part, copy = (column[order] for column in columns)
        return Insertions(place, item, part, copy, np.sort(self.replaced))


@dataclass(frozen=True, eq=False)
class Room:
    """The documents of a stream, with the places where items may go."""

    n_tokens: Integers
    is_free: Flags  # may be replaced
    is_replaced: Flags  # replaced by items of another contamination

    def edges(self, token_range: tuple[float, float]) -> tuple[int, int]:
        """Return start and stop of the documents that begin in a range of the tokens."""
        before = np.cumsum(self.n_tokens) - self.n_tokens
        low, high = (share * int(self.n_tokens.sum()) for share in token_range)
        first, last = np.searchsorted(before, [low, high]).tolist()
        return first, last


def insert(room: Room, contamination: Contamination, sizes: Integers, name: str) -> Insertions:
    """Find places for all items of a contamination; raise `ConfigError` if there are too few.

    `sizes`: a row for every item, with the tokens of each of its texts. `name` seeds the choice.
    """
    if contamination.ratio is not None:
        return _by_ratio(room, contamination, contamination.ratio, sizes[:, 0], name).in_order()
    n_items, n_parts = sizes.shape
    first, last = room.edges(contamination.token_range)
    is_free = np.zeros_like(room.is_free)
    is_free[first:last] = room.is_free[first:last]
    room = replace(room, is_free=is_free)
    n_units = n_items * (contamination.copies or 0)
    if contamination.swap is not None:
        n_units = contamination.swap // n_parts
    batch, unit, part = _batches_of(room, contamination, n_units, n_parts, name)
    copy = unit // n_items
    item = np.empty_like(unit)
    for number in range(int(copy.max()) + 1):  # the last copy may be incomplete
        in_copy = copy == number
        item[in_copy] = shuffled(f"{name} copy {number}", n_items)[unit[in_copy] % n_items]
    place = _documents_for(room, contamination, batch, sizes[item, part])
    return Insertions(place, item, part, copy, place).in_order()


def _batches_of(
    room: Room, contamination: Contamination, n_units: int, n_parts: int, name: str
) -> tuple[Integers, Integers, Integers]:
    """Choose a batch for every text; return first documents of batches, unit and part numbers."""
    starts = np.arange(0, room.n_tokens.size, contamination.batch_documents)
    n_documents = np.diff(starts, append=room.n_tokens.size)
    n_free = np.add.reduceat(room.is_free, starts, dtype=np.int64)
    n_replaced = np.add.reduceat(room.is_replaced, starts, dtype=np.int64)
    most = (contamination.most_per_batch * n_documents).astype(np.int64)
    capacities = np.clip(most - n_replaced, 0, n_free)[n_free > 0]
    starts = starts[n_free > 0]
    together = n_parts if contamination.form == "apart_in_batch" else 1
    if n_units * n_parts > capacities.sum():  # checked before arrays of this size are allocated
        n = n_units * n_parts // together
        raise ConfigError(_no_room(capacities // together, n, contamination))
    units = np.arange(n_units)
    if contamination.form == "apart":
        most_of_pairs = np.minimum(capacities, n_units)
        slots = np.sort(_slots(most_of_pairs, 2 * n_units, contamination, name))
        # No batch has more than half of the slots, so the slots of a pair are in two batches.
        pairs = np.stack([slots[:n_units], slots[n_units:]])[:, shuffled(f"{name} pairs", n_units)]
        is_turned = (numbers(f"{name} turns", n_units) & np.uint64(1)).astype(np.bool_)
        sources, targets = np.where(is_turned, pairs[::-1], pairs)
        slots = np.concatenate([sources, targets])
    else:
        slots = np.tile(_slots(capacities // together, n_units, contamination, name), n_parts)
    return starts[slots], np.tile(units, n_parts), np.repeat(np.arange(n_parts), n_units)


def _slots(capacities: Integers, n: int, contamination: Contamination, name: str) -> Integers:
    """Choose `n` batch numbers within the capacities: the earliest, or from all batches."""
    reached = np.cumsum(capacities)
    n_slots = int(reached[-1]) if reached.size else 0
    if n_slots < n:
        raise ConfigError(_no_room(capacities, n, contamination))
    if contamination.is_front_loaded:
        capacities = capacities[: int(np.searchsorted(reached, n)) + 1]
    slots = np.repeat(np.arange(capacities.size), capacities)
    return slots[shuffled(f"{name} slots", slots.size)[:n]]


def _no_room(capacities: Integers, n: int, contamination: Contamination) -> Problem:
    low, high = contamination.token_range
    room = int(capacities.sum())
    each = int(contamination.most_per_batch * contamination.batch_documents)
    what = "pairs of documents" if contamination.form == "apart_in_batch" else "documents"
    return Problem(
        f"contamination with {', '.join(contamination.benchmarks)}",
        f"{n:,} {what} must be replaced, but only {room:,} may be: there are {capacities.size:,} "
        f"batches between {low:.0%} and {high:.0%} of the tokens, and in each, {each:,} documents "
        "may be replaced",
        remedy="use fewer copies or items, a larger most_per_batch, or a longer blend",
    )


def _documents_for(
    room: Room, contamination: Contamination, batch: Integers, sizes: Integers
) -> Integers:
    """Choose the document that each text replaces: the nearest in size in its batch."""
    place = np.empty_like(batch)
    order = np.argsort(batch, kind="stable")
    edges = np.flatnonzero(np.diff(batch[order], prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        texts = order[first:last]
        start = int(batch[texts[0]])
        stop = start + contamination.batch_documents
        pool = start + np.flatnonzero(room.is_free[start:stop])
        chosen = pool[matching(sizes[texts], room.n_tokens[pool])]
        by_size = texts[np.argsort(sizes[texts], kind="stable")]
        place[by_size] = chosen[np.argsort(room.n_tokens[chosen], kind="stable")]
    return place


def _by_ratio(
    room: Room, contamination: Contamination, ratio: float, sizes: Integers, name: str
) -> Insertions:
    replaced = _documents_by_ratio(room, contamination, ratio, name)
    n_items = sizes.size
    sizes = np.maximum(sizes, 1)
    place: list[int] = []
    order: list[int] = []  # items, copy after copy
    n_removed = n_inserted = 0  # tokens
    for document in replaced.tolist():
        n_removed += int(room.n_tokens[document])
        while True:
            if len(place) == len(order):
                cycle = len(order) // n_items
                order += shuffled(f"{name} copy {cycle}", n_items).tolist()
            size = int(sizes[order[len(place)]])
            if 2 * n_inserted + size > 2 * n_removed:
                break
            place.append(document)
            n_inserted += size
    if not place:
        where = f"contamination with {', '.join(contamination.benchmarks)}"
        found = (
            f"a ratio of {ratio:g} replaces only {n_removed:,} tokens of documents, and the "
            f"shortest item has {sizes.min():,}"
        )
        remedy = "use a larger ratio, or a longer blend"
        raise ConfigError(Problem(where, found, remedy=remedy))
    places, items = np.array([place, order[: len(place)]], np.int64)
    copies = np.arange(len(place)) // n_items
    return Insertions(places, items, np.zeros_like(places), copies, replaced)


def _documents_by_ratio(
    room: Room, contamination: Contamination, ratio: float, name: str
) -> Integers:
    """Choose random documents with this share of the tokens, in the window and in every batch."""
    replaced: list[int] = []
    n_removed, wanted = 0, 0.0  # tokens
    first, last = room.edges(contamination.token_range)
    for start in range(first, last, contamination.batch_documents):
        batch = slice(start, min(start + contamination.batch_documents, last))
        wanted += ratio * int(room.n_tokens[batch].sum())
        pool = start + np.flatnonzero(room.is_free[batch])
        for document in pool[shuffled(f"{name} batch {start}", pool.size)].tolist():
            size = int(room.n_tokens[document])
            if size and n_removed + size / 2 <= wanted:
                replaced.append(document)
                n_removed += size
    largest = int(room.n_tokens.max(initial=0))
    if not replaced or n_removed + largest / 2 < wanted:
        found = f"{wanted:,.0f} tokens of documents must be replaced, but only {n_removed:,} may be"
        where = f"contamination with {', '.join(contamination.benchmarks)}"
        remedy = "use a longer blend, or more sources in `into`"
        raise ConfigError(Problem(where, found, remedy=remedy))
    return np.array(sorted(replaced), np.int64)


def stream_room(n_tokens: Integers, is_free: Flags, replaced: Sequence[Integers]) -> Room:
    """Return the room that earlier insertions leave. `replaced`: the places of each of them."""
    is_replaced = np.zeros(n_tokens.size, np.bool_)
    for places in replaced:
        is_replaced[places] = True
    return Room(n_tokens, is_free & ~is_replaced, is_replaced)
