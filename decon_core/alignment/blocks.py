"""Which units of an item stand in a document, in order, around a nominated span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def aligned(item: Units, document: Units, span: tuple[int, int]) -> list[Block]:
    """Return the equal units of the best stretch of a document that overlaps a range of its units.

    The longest common subsequence of the item and the range is cut to the stretch that is worth
    most. It is then compared with what surrounds it, as far as the item would reach. So neither a
    word that is far away is taken for one of the item, nor those of another copy of it.
    """
    number_of: dict[str, int] = {}
    of_item = [number_of.setdefault(key, len(number_of)) for key in item.keys]
    of_document = [number_of.get(key, -1) for key in document.keys]
    worth = [
        1.0 if number or is_content(key) else _WORTH_OF_STOP_WORD
        for key, number in zip(item.keys, item.is_number, strict=True)
    ]
    start, stop = span
    for more in (len(of_item) // 4, 1, 0):
        common = _common(of_item, of_document[start:stop])
        moved = [block._replace(document=block.document + start) for block in common]
        best = _best_stretch(moved, worth, span)
        if not best:
            return []
        start = max(0, best[0].document - best[0].item - more)
        stop = best[-1].document + len(of_item) - best[-1].item + more
    return best


def _common(item: Sequence[int], document: Sequence[int]) -> list[Block]:
    """Return the blocks of a longest common subsequence, of several one with few gaps."""
    blocks = LCSseq.opcodes(item, document).as_matching_blocks()
    place_of = {one.a + at: one.b + at for one in blocks for at in range(one.size)}
    # A unit that stands at several places is taken where the one beside it in the item is.
    for at in reversed(place_of):
        beside = place_of.get(at + 1, 0) - 1
        if beside >= 0 and document[beside] == item[at]:
            place_of[at] = beside
    for at in place_of:
        beside = place_of.get(at - 1, len(document)) + 1
        if beside < len(document) and document[beside] == item[at]:
            place_of[at] = beside
    return _as_blocks(place_of)


def _as_blocks(place_of: Mapping[int, int]) -> list[Block]:
    """Return the blocks of units of an item by their places in a document, both ascending."""
    blocks: list[Block] = []
    for at, place in place_of.items():
        last = blocks[-1] if blocks else Block(0, 0, 0)
        if (last.item + last.size, last.document + last.size) == (at, place) and last.size:
            blocks[-1] = last._replace(size=last.size + 1)
        else:
            blocks.append(Block(at, place, 1))
    return blocks


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
