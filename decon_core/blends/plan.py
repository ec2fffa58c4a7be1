"""All that is decided of a blend before it is written: which text comes where, in which part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from decon_core.blends.draw import Stream, draw_stream
from decon_core.blends.insert import Insertions, insert, stream_room
from decon_core.blends.items import Chosen, Item, choose_items, item_text, parts_of
from decon_core.blends.material import Material, material_of
from decon_core.config.blends import Blend, Contamination, is_for_training
from decon_core.config.mixtures import mixture_named
from decon_core.config.policy import Policy
from decon_core.mixtures.build import Builder
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

# In the names of parts: nobody shall train on such a file without having read it.
TEST_MARK = ".holds-test-items"
TRAIN_MARK = ".holds-train-items"


@dataclass(frozen=True, eq=False)
class Contaminated:
    """One contamination of a blend: its items, and where they are."""

    declared: Contamination
    items: Chosen
    sizes: Integers  # tokens of each text of every item that is seen
    insertions: Insertions


@dataclass(frozen=True, eq=False)
class PlannedPart:
    """A stretch of the stream that becomes a file."""

    number: int
    phase: int
    name: str  # without its ending
    start: int  # in the texts of the blend
    stop: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Every text of a blend, in order: a document of the stream, or an item in its place."""

    blend: Blend
    materials: tuple[Material, ...]
    stream: Stream
    contaminated: tuple[Contaminated, ...]
    place: Integers  # which document of the stream, per text
    by: Small  # which contamination has put a text there; -1: it is the document itself
    insertion: Integers  # which of its insertions

    def __len__(self) -> int:
        return self.place.size

    @cached_property
    def phase(self) -> Small:
        """The phase of each text."""
        return np.searchsorted(self.stream.phases, self.place, side="right").astype(np.int32) - 1

    @cached_property
    def parts(self) -> list[PlannedPart]:
        """New files where a phase begins, and after so many tokens of documents."""
        tokens = self.stream.draws.n_tokens
        before = np.cumsum(tokens) - tokens
        found: list[PlannedPart] = []
        for phase in range(self.stream.phases.size - 1):
            first, last = np.searchsorted(self.place, self.stream.phases[phase : phase + 2])
            places = self.place[first:last]
            own = (before[places] - before[self.stream.phases[phase]]) // self.blend.part_tokens
            starts = first + np.flatnonzero(np.diff(own, prepend=-1))
            for start, stop in pairwise([*starts.tolist(), int(last)]):
                number = len(found)
                name = f"phase-{phase + 1}/part-{number:05}{self._mark(start, stop)}"
                found.append(PlannedPart(number, phase, name, start, stop))
        return found

    def _mark(self, start: int, stop: int) -> str:
        """What a file holds that no training data should."""
        splits = {
            contaminated.items.seen[item].split
            for number, contaminated in enumerate(self.contaminated)
            for item in np.unique(self._items(contaminated, number, start, stop)).tolist()
        }
        if not splits:
            return ""
        return TRAIN_MARK if all(map(is_for_training, splits)) else TEST_MARK

    def _items(self, contaminated: Contaminated, number: int, start: int, stop: int) -> Integers:
        own: Integers = self.insertion[start:stop][self.by[start:stop] == number]
        found: Integers = contaminated.insertions.item[own]
        return found


def plan_blend(builder: Builder, blend: Blend) -> Plan:
    """Draw the documents of a blend, and find places for its test items."""
    materials = material_of(builder, mixture_named(builder.mixtures, blend.of))
    stream = draw_stream(materials, blend.phases, blend.seed)
    sizes = TokenCount(builder.policy)
    found: list[Contaminated] = []
    for number, contamination in enumerate(blend.contamination):
        items = choose_items(builder.store, builder.versions, contamination, blend.seed)
        room = stream_room(
            stream.draws.n_tokens,
            _takes_items(materials, contamination)[stream.draws.source],
            [earlier.insertions.replaced for earlier in found],
        )
        lengths = sizes.of_items(items.seen, contamination)
        name = f"{blend.seed} contamination {number}"
        insertions = insert(room, contamination, lengths, name)
        found.append(Contaminated(contamination, items, lengths, insertions))
    return Plan(blend, materials, stream, tuple(found), *_texts(len(stream), found))


def _takes_items(
    materials: Sequence[Material], contamination: Contamination
) -> npt.NDArray[np.bool_]:
    """Of each source, whether its documents may be replaced."""
    into = contamination.into
    return np.array([not into or material.source.name in into for material in materials])


def _texts(n_documents: int, found: Sequence[Contaminated]) -> tuple[Integers, Small, Integers]:
    """Documents that stay, and items in the place of the others, in the order of their places."""
    is_left = np.ones(n_documents, np.bool_)
    for contaminated in found:
        is_left[contaminated.insertions.replaced] = False
    left = np.flatnonzero(is_left)
    places, by, insertion = [left], [np.full(left.size, -1, np.int32)], [np.full(left.size, -1)]
    for number, contaminated in enumerate(found):
        own = contaminated.insertions.place
        places.append(own)
        by.append(np.full(own.size, number, np.int32))
        insertion.append(np.arange(own.size))
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    return place[order], np.concatenate(by)[order], np.concatenate(insertion)[order]


class TokenCount:
    """Canonical tokens of texts: what blends are measured by."""

    def __init__(self, policy: Policy) -> None:
        self._encoder = Encoder(
            load_tokenizer(policy.tokenizer_str),
            FixedVocabulary(np.empty(0, np.int64)),
            form=policy.form,
            table_mb=policy.word_table_mb,
        )

    def of(self, texts: Sequence[str]) -> Integers:
        pieces = [text.encode() for text in texts]
        edges = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        data = np.frombuffer(b"".join(pieces), np.uint8).copy()
        return self._encoder.encode(data, edges[:-1], edges[1:]).lengths

    def of_items(self, items: Sequence[Item], contamination: Contamination) -> Integers:
        """A row for every item, with the length of each of its texts."""
        parts = parts_of(contamination.form)
        texts = [item_text(item, part, contamination, "0").text for item in items for part in parts]
        return self.of(texts).reshape(len(items), len(parts))
