"""Which units of an item stand in a document, in order, around a nominated span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from decon_core.alignment.units import Units
from decon_core.text.content_words import is_content

# A stretch of a document is worth the units that it shares with the item, less this for each unit
# between them that the item lacks.
_COST_OF_OTHER_UNIT = 0.22
_WORTH_OF_STOP_WORD = 0.4
_WORTH_ALONE = 0.7  # of a unit whose neighbours differ


class Block(NamedTuple):
    """Equal units: where they begin in the item and in the document, and how many they are."""

    item: int
    document: int
    size: int


class Item:
    """The units of an item, numbered, and what each is worth."""

    def __init__(self, units: Units) -> None:
        self.number_of: dict[str, int] = {}
        self.numbers = [self.number_of.setdefault(key, len(self.number_of)) for key in units.keys]
        self.worth = [
            1.0 if is_number or is_content(key) else _WORTH_OF_STOP_WORD
            for key, is_number in zip(units.keys, units.is_number, strict=True)
        ]


def aligned(item: Item, document: Units, span: tuple[int, int]) -> list[Block]:
    """Return the equal units of the best stretch of a document that overlaps a range of its units.

    The longest common subsequence of the item and the range is cut to the stretch that is worth
    most. It is then compared with what surrounds it, as far as the item would reach. So neither a
    word that is far away is taken for one of the item, nor those of another copy of it.
    """
    n_units = len(item.numbers)
    of_document = [item.number_of.get(key, -1) for key in document.keys]
    start, stop = span
    for more in (n_units // 4, 1, 0):
        common = _common(item.numbers, of_document[start:stop])
        moved = [Block(block.item, block.document + start, block.size) for block in common]
        best = _best_stretch(moved, item.worth, span)
        if not best or best[0].size == n_units:  # nothing, or a whole copy
            return best
        start = max(0, best[0].document - best[0].item - more)
        stop = best[-1].document + n_units - best[-1].item + more
    return best


def _common(item: Sequence[int], document: Sequence[int]) -> list[Block]:
    """Return the blocks of a longest common subsequence, of several one with few gaps.

    A unit that stands at several places is taken where the one beside it in the item is: first the
    one after it, then the one before it.
    """
    common = LCSseq.opcodes(item, document).as_matching_blocks()
    blocks = [(one.a, one.b, one.size) for one in common if one.size]
    joined = _joined_to_next(blocks, item, document)
    return _joined_to_last(joined, item, document)


def _joined_to_next(
    blocks: Sequence[tuple[int, int, int]], item: Sequence[int], document: Sequence[int]
) -> list[Block]:
    """Move the last units of each block to the next one where they stand before it as well."""
    joined: list[Block] = []
    next_item, next_document = len(item) + 1, 0  # of the block that was joined last
    for first, place, size in reversed(blocks):
        left = size
        if first + size == next_item:
            while left and next_document and document[next_document - 1] == item[next_item - 1]:
                left, next_item, next_document = left - 1, next_item - 1, next_document - 1
            stop = joined[-1].item + joined[-1].size
            joined[-1] = Block(next_item, next_document, stop - next_item)
        if left:
            joined.append(Block(first, place, left))
            next_item, next_document = first, place
    return joined[::-1]


def _joined_to_last(
    blocks: Sequence[Block], item: Sequence[int], document: Sequence[int]
) -> list[Block]:
    """Move the first units of each block to the one before where they stand after it as well."""
    joined: list[Block] = []
    stop, place_after = -1, 0  # of the block that was joined last
    for first, place, size in blocks:
        moved = 0
        if first == stop:
            while (
                moved < size
                and place_after + moved < len(document)
                and document[place_after + moved] == item[first + moved]
            ):
                moved += 1
            last = joined[-1]
            joined[-1] = last._replace(size=last.size + moved)
            stop, place_after = stop + moved, place_after + moved
        if moved < size:
            joined.append(Block(first + moved, place + moved, size - moved))
            stop, place_after = first + size, place + size
    return joined


def _best_stretch(
    blocks: Sequence[Block], worth: Sequence[float], span: tuple[int, int]
) -> list[Block]:
    """Return the consecutive blocks that are worth most, of those that overlap the span."""
    best, most = range(0), 0.0
    first, value = 0, 0.0
    for number, block in enumerate(blocks):
        if number:
            before = blocks[number - 1]
            others = block.document - before.document - before.size
            value -= _COST_OF_OTHER_UNIT * others
        if value <= 0:
            first, value = number, 0.0
        gain = sum(worth[block.item : block.item + block.size])
        value += gain if block.size > 1 else _WORTH_ALONE * gain
        overlaps = block.document + block.size > span[0] and blocks[first].document < span[1]
        if value > most and overlaps:
            best, most = range(first, number + 1), value
    return [blocks[number] for number in best]
