"""Compare an item's question with the place of a document where a detector nominated it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from decon_core.alignment.blocks import Block, Item, aligned
from decon_core.alignment.siblings import Own
from decon_core.alignment.units import PlacedUnits, Units


@dataclass(frozen=True, eq=False)
class Question:
    """The units of a question, their weights, and which of them are its own in the benchmark."""

    units: Units
    weights: Sequence[int]
    own: Own
    n_characters: int

    @cached_property
    def item(self) -> Item:
        return Item(self.units)

    @cached_property
    def own_weights(self) -> list[int]:
        """The weight of each unit that is its own, 0 of the others."""
        flags = self.own.is_own.tolist()
        return [weight * is_own for weight, is_own in zip(self.weights, flags, strict=True)]

    @cached_property
    def sums(self) -> Sums:
        of_units = (self.weights, self.own_weights, self.units.is_number, self.units.is_name)
        return Sums(*([*accumulate(values, initial=0)] for values in of_units))


class Sums(NamedTuple):
    """Of the units of a question up to each: their weight, and how many are of a kind."""

    weight: list[int]
    own_weight: list[int]
    numbers: list[int]
    names: list[int]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What of a question stands in a document, in order, and what stands there instead.

    Weights are thousandths of a natural logarithm of how rare a unit is in general text.
    """

    n_units: int
    n_found: int
    weight: int
    weight_found: int
    longest: int  # units of the longest run
    extent: int  # units of the question from the first to the last that was found
    n_inserted: int  # units of the document between these that the question lacks
    own_weight: int  # of the units that no other item has
    own_found: int
    n_family: int  # items of the benchmark that share two fifths of the question
    n_numbers_found: int
    n_numbers_changed: int
    n_names_found: int
    n_names_changed: int  # consistently, each name to one other
    start: int  # characters of the document
    stop: int
    blocks: tuple[Block, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every unit of the question was found, and nothing between them."""
        return self.n_found == self.n_units and not self.n_inserted


def compare(question: Question, document: PlacedUnits, span: tuple[int, int]) -> Comparison | None:
    """Compare a question with the units of a document around a nominated span of characters.

    None if nothing of the question stands there that is worth more than what surrounds it.
    """
    units, sums = question.units, question.sums
    nominated = bisect_left(document.stops, span[0] + 1), bisect_left(document.starts, span[1])
    blocks = aligned(question.item, document, nominated)
    if not blocks:
        return None
    first, last = blocks[0], blocks[-1]
    changes = _changes(blocks, units, document)
    weight_found, own_found, n_numbers_found, n_names_found = (
        sum(up_to[block.item + block.size] - up_to[block.item] for block in blocks)
        for up_to in sums
    )
    return Comparison(
        n_units=len(units),
        n_found=sum(block.size for block in blocks),
        weight=sums.weight[-1],
        weight_found=weight_found,
        longest=max(block.size for block in blocks),
        extent=last.item + last.size - first.item,
        n_inserted=changes.n_inserted,
        own_weight=sums.own_weight[-1],
        own_found=own_found,
        n_family=question.own.n_family,
        n_numbers_found=n_numbers_found,
        n_numbers_changed=changes.n_numbers,
        n_names_found=n_names_found,
        n_names_changed=changes.n_names,
        start=document.starts[first.document],
        stop=document.stops[last.document + last.size - 1],
        blocks=tuple(blocks),
    )


@dataclass
class _Changes:
    n_inserted: int = 0
    n_numbers: int = 0
    n_names: int = 0


def _changes(blocks: Sequence[Block], item: Units, document: Units) -> _Changes:
    """Count what stands in place of the question's units that were not found."""
    changes = _Changes()
    names: dict[str, str] = {}
    for in_item, in_document in _gaps(blocks, len(item), len(document)):
        changes.n_inserted += max(0, len(in_document) - len(in_item))
        changes.n_numbers += min(
            sum(item.is_number[at] for at in in_item),
            sum(document.is_number[at] for at in in_document),
        )
        if len(in_item) != len(in_document):
            continue
        for own, other in zip(in_item, in_document, strict=True):
            key, new = item.keys[own], document.keys[other]
            is_name = item.is_name[own] and document.is_name[other]
            if (is_name or names.get(key) == new) and names.setdefault(key, new) == new:
                changes.n_names += 1
    return changes


def _gaps(blocks: Sequence[Block], n_item: int, n_document: int) -> Iterator[tuple[range, range]]:
    """Yield the units of a question that were not found, with those in their place.

    Before and after what was found these are as many as the question lacks. Its first unit is left
    out: it may be its number in a list.
    """
    first, last = blocks[0], blocks[-1]
    n_before = min(max(0, first.item - 1), first.document)
    yield range(first.item - n_before, first.item), range(first.document - n_before, first.document)
    for before, after in pairwise(blocks):
        stop, place = before.item + before.size, before.document + before.size
        yield range(stop, after.item), range(place, after.document)
    stop, place = last.item + last.size, last.document + last.size
    n_after = min(n_item - stop, n_document - place)
    yield range(stop, stop + n_after), range(place, place + n_after)
