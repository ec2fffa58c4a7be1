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


def aligned(item: Units, document: Units, span: tuple[int, int]) -> list[Block]:
    """Return the equal units of the best stretch of a document that overlaps a range of its units.

    The longest common subsequence of item and document is cut to the stretch that is worth most;
    what surrounds it, as far as the item would reach, is then compared once more by itself. So a
    word that is far away is not taken for one of the item.
    """
    number_of: dict[str, int] = {}
    of_item = [number_of.setdefault(key, len(number_of)) for key in item.keys]
    of_document = [number_of.get(key, -1) for key in document.keys]
    worth = [
        1.0 if number or is_content(key) else _WORTH_OF_STOP_WORD
        for key, number in zip(item.keys, item.is_number, strict=True)
    ]
    best = _best_stretch(_common(of_item, of_document), worth, span)
    if not best:
        return []
    first, last = best[0], best[-1]
    start = max(0, first.document - first.item - 1)
    stop = last.document + len(of_item) - last.item + 1
    again = _common(of_item, of_document[start:stop])
    moved = [block._replace(document=block.document + start) for block in again]
    return _best_stretch(moved, worth, span)


def _common(item: Sequence[int], document: Sequence[int]) -> list[Block]:
    """Return the blocks of a longest common subsequence."""
    blocks = LCSseq.opcodes(item, document).as_matching_blocks()
    return [Block(one.a, one.b, one.size) for one in blocks if one.size]


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
