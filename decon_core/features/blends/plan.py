"""Plan a blend before it is written: the order of documents and items, and the parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from decon_core.config.mixtures import mixture_named
from decon_core.config.policy import Policy
from decon_core.features.blends.draw import (
    Integers,
    Material,
    Small,
    Stream,
    draw_stream,
    material_of,
)
from decon_core.features.blends.insert import Insertions, insert, stream_room
from decon_core.features.blends.items import ChosenItems, Item, choose_items, item_text, parts_of
from decon_core.features.blends.rewordings import ItemWords, Rewordings
from decon_core.features.blends.settings import REWORDED, Blend, Contamination, is_for_training
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.layouts import n_tokens_of

# Part of file names, so that files with items are not used for training by accident.
TEST_MARK = ".holds-test-items"
TRAIN_MARK = ".holds-train-items"


@dataclass(frozen=True, eq=False)
class Contaminated:
    """One contamination of a blend: its items and their places."""

    declared: Contamination
    items: ChosenItems
    sizes: Integers  # tokens of each text of every seen item
    insertions: Insertions


@dataclass(frozen=True, eq=False)
class PlannedPart:
    """A range of the texts of a blend that becomes a file."""

    number: int
    phase: int
    name: str  # without suffix
    start: int
    stop: int


@dataclass(frozen=True)
class TestText:
    """A text of an item to insert."""

    __test__ = False  # not a pytest class

    item: Item
    part: str
    copy: int
    contamination: Contamination
    number: int  # number of the contamination

    @property
    def id(self) -> str:
        """A unique id within the blend."""
        return f"test-item:{self.item.name}:{self.part}:{self.number}:{self.copy}"


@dataclass(frozen=True, eq=False)
class Plan:
    """The texts of a blend, in order. Each is a document of the stream or an item in its place."""

    blend: Blend
    materials: tuple[Material, ...]
    stream: Stream
    contaminated: tuple[Contaminated, ...]
    place: Integers  # per text: number of the document in the stream
    by: Small  # per text: number of the contamination; -1 for the document itself
    insertion: Integers  # per text: number of the insertion in its contamination

    def __len__(self) -> int:
        return self.place.size

    @cached_property
    def phase(self) -> Small:
        return np.searchsorted(self.stream.phases, self.place, side="right").astype(np.int32) - 1

    @cached_property
    def parts(self) -> list[PlannedPart]:
        """The files: a new one for each phase, and after `part_tokens` tokens of documents."""
        tokens = self.stream.draws.n_tokens
        before = np.cumsum(tokens) - tokens
        parts: list[PlannedPart] = []
        for phase in range(self.stream.phases.size - 1):
            first, last = np.searchsorted(self.place, self.stream.phases[phase : phase + 2])
            places = self.place[first:last]
            in_phase = before[places] - before[self.stream.phases[phase]]
            numbers = in_phase // self.blend.part_tokens
            starts = first + np.flatnonzero(np.diff(numbers, prepend=-1))
            for start, stop in pairwise([*starts.tolist(), int(last)]):
                number, mark = len(parts), ""
                if splits := {text.item.split for text in self.inserted(start, stop)}:
                    mark = TRAIN_MARK if all(map(is_for_training, splits)) else TEST_MARK
                name = f"phase-{phase + 1}/part-{number:05}{mark}"
                parts.append(PlannedPart(number, phase, name, start, stop))
        return parts

    def inserted(self, start: int, stop: int) -> Iterator[TestText]:
        """Yield the texts of items among these texts."""
        by, insertion = self.by[start:stop], self.insertion[start:stop]
        is_item = by >= 0
        for number, at in zip(by[is_item].tolist(), insertion[is_item].tolist(), strict=True):
            contaminated = self.contaminated[number]
            insertions, declared = contaminated.insertions, contaminated.declared
            item = contaminated.items.seen[int(insertions.item[at])]
            part = parts_of(declared.form)[int(insertions.part[at])]
            yield TestText(item, part, int(insertions.copy[at]), declared, number)


def plan_blend(builder: Builder, blend: Blend, rewordings: Rewordings) -> Plan:
    """Draw the documents of a blend, and find places for its items."""
    materials = material_of(builder, mixture_named(builder.mixtures, blend.of))
    stream = draw_stream(materials, blend.phases, blend.seed)
    contaminated: list[Contaminated] = []
    for number, contamination in enumerate(blend.contamination):
        items = choose_items(builder.store, builder.versions, contamination, blend.seed, rewordings)
        into = contamination.into
        takes_items = np.array([not into or material.source.name in into for material in materials])
        room = stream_room(
            stream.draws.n_tokens,
            takes_items[stream.draws.source],
            [earlier.insertions.replaced for earlier in contaminated],
        )
        sizes = _sizes(builder.policy, items.seen, contamination)
        name = f"{blend.seed} contamination {number}"
        insertions = insert(room, contamination, sizes, name)
        contaminated.append(Contaminated(contamination, items, sizes, insertions))
    # The documents that remain and the items, in the order of the stream.
    is_left = np.ones(len(stream), np.bool_)
    for planned in contaminated:
        is_left[planned.insertions.replaced] = False
    left = np.flatnonzero(is_left)
    places, by, insertion = [left], [np.full(left.size, -1, np.int32)], [np.full(left.size, -1)]
    for number, planned in enumerate(contaminated):
        places.append(planned.insertions.place)
        by.append(np.full(planned.insertions.place.size, number, np.int32))
        insertion.append(np.arange(planned.insertions.place.size))
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    return Plan(
        blend=blend,
        materials=materials,
        stream=stream,
        contaminated=tuple(contaminated),
        place=place[order],
        by=np.concatenate(by)[order],
        insertion=np.concatenate(insertion)[order],
    )


def _sizes(policy: Policy, items: Sequence[Item], contamination: Contamination) -> Integers:
    """Return a row for every item, with the tokens of each of its texts."""
    parts = parts_of(contamination.form)
    texts = [item_text(item, part, contamination, "0").text for item in items for part in parts]
    return n_tokens_of(policy, texts).reshape(len(items), len(parts))


def items_to_reword(builder: Builder, blends: Iterable[Blend]) -> list[ItemWords]:
    """Return the seen items that blends insert in other words."""
    return [
        item.words
        for blend in blends
        for inserted in blend.contamination
        if inserted.form == REWORDED
        for item in choose_items(builder.store, builder.versions, inserted, blend.seed, None).seen
    ]
