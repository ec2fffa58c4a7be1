"""Plan which items are planted and how, and which are held out of the index."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from random import Random
from typing import Literal, TypeVar

import pyarrow as pa

from decon_core.errors import ConfigError, Problem
from decon_core.features.scorecard.edits import TRANSFORMATIONS
from decon_core.features.scorecard.edits.edit import Edit, Material, Written
from decon_core.features.scorecard.items import Item, ItemKey, items_of
from decon_core.features.scorecard.lexicon import Lexicon, lexicon_of
from decon_core.features.scorecard.negatives import HARD_NEGATIVES
from decon_core.text.segments import canonical_words

Kind = Literal["plant", "hard_negative"]
T = TypeVar("T")

_MAX_HELD_OUT = 0.2  # share of a benchmark's items
_CANDIDATES = 5  # considered for each item to hold out
_NEAR_N = 5  # words of an n-gram
_NEAR_SHARE = 0.5  # share of its n-grams in one other question: a near duplicate


@dataclass(frozen=True)
class Planting:
    """A text, or turns of a conversation, to plant into the corpus."""

    id: str
    kind: Kind
    transformation: str  # the family
    grade: str
    items: tuple[ItemKey, ...]  # planted items; for a hard negative, its origin
    written: Written


@dataclass(frozen=True)
class Tally:
    """The number of plantings of one kind from one benchmark."""

    kind: Kind
    transformation: str
    grade: str
    benchmark: str
    n_planted: int
    n_not_applicable: int  # items tried that had nothing to change


@dataclass(frozen=True)
class Plan:
    """All plantings, and the items to leave out of the index."""

    seed: int
    plantings: tuple[Planting, ...]
    held_out: frozenset[ItemKey]
    tallies: tuple[Tally, ...]


def plan(records: pa.Table, *, per_transformation: int, seed: int) -> Plan:
    """Plan up to `per_transformation` plantings of each transformation and hard negative.

    All transformations use the same items where they apply, so that grades and detectors are
    compared on the same questions. The result does not depend on the order of the records.
    """
    if per_transformation < 1:
        found = str(per_transformation)
        raise ConfigError(Problem("plantings per transformation", found, "at least 1"))
    items = items_of(records)
    shuffled = {
        name: seeded(seed, "order", name).sample(group, len(group))
        for name, group in _grouped(items).items()
    }
    lexicons = {
        name: lexicon_of(group, seeded(seed, "words", name)) for name, group in shuffled.items()
    }
    held_out = _held_out(shuffled, items, n=per_transformation, seed=seed)
    indexed = {
        name: [item for item in group if item.key not in held_out]
        for name, group in shuffled.items()
    }
    neighbours = _grouped(held_out.values())
    plantings: list[Planting] = []
    tallies: list[Tally] = []
    edits: list[tuple[Kind, Edit]] = [("plant", edit) for edit in TRANSFORMATIONS]
    edits += [("hard_negative", edit) for edit in HARD_NEGATIVES]
    for kind, edit in edits:
        groups = neighbours if edit.is_of_held_out else indexed
        counts: dict[str, Counter[bool]] = {name: Counter() for name in groups}
        queues = [
            _planted(kind, edit, group, lexicons[name], seed, counts[name])
            for name, group in groups.items()
        ]
        plantings += islice(in_turn(queues), per_transformation)
        names = kind, edit.group, edit.grade
        tallies += [Tally(*names, name, n[True], n[False]) for name, n in counts.items()]
    return Plan(seed, tuple(plantings), frozenset(held_out), tuple(tallies))


def seeded(seed: int, *names: object) -> Random:
    """Return a generator seeded by a name, so that additions do not change other draws."""
    return Random("|".join(map(str, (seed, *names))))  # noqa: S311 - must be repeatable


def indexed_records(records: pa.Table, plan: Plan) -> pa.Table:
    """Return the records to index, without those of held-out items."""
    columns = (records[name].to_pylist() for name in ItemKey._fields)
    is_in = [ItemKey(*key) not in plan.held_out for key in zip(*columns, strict=True)]
    return records.filter(pa.array(is_in, pa.bool_()))


def _grouped(items: Iterable[Item]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        groups[item.key.benchmark].append(item)
    return dict(sorted(groups.items()))


def _planted(
    kind: Kind,
    edit: Edit,
    items: Sequence[Item],
    lexicon: Lexicon,
    seed: int,
    counts: Counter[bool],
) -> Iterator[Planting]:
    """Apply an edit to items as they are asked for, and count those that it fits or does not."""
    names = kind, edit.group, edit.grade
    for at, item in enumerate(items):
        partner = items[at - 1] if edit.has_partner and len(items) > 1 else None
        rng = seeded(seed, *names, *item.key)
        written = edit.apply(Material(item, lexicon, rng, partner))
        counts[written is not None] += 1
        if written is not None:
            keys = (item.key, partner.key) if partner else (item.key,)
            yield Planting("/".join(map(str, (*names, *item.key))), *names, keys, written)


def in_turn(queues: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield from the iterators in turn (round robin), lazily."""
    left = deque(queues)
    while left:
        queue = left.popleft()
        for element in islice(queue, 1):
            yield element
            left.append(queue)


def _held_out(
    by_benchmark: Mapping[str, list[Item]], items: Sequence[Item], *, n: int, seed: int
) -> dict[ItemKey, Item]:
    """Choose items to leave out of the index that have no near duplicate in it.

    Benchmarks contribute in turn, each at most a fifth of its items. A passage shared with other
    items is removed from the item, because it would be a leak of the others.
    """
    limits = {name: min(n, int(_MAX_HELD_OUT * len(group))) for name, group in by_benchmark.items()}
    candidates = {
        name: seeded(seed, "held out", name).sample(group, len(group))[: _CANDIDATES * limits[name]]
        for name, group in by_benchmark.items()
    }
    unique = _without_near_duplicate([*chain.from_iterable(candidates.values())], items)
    queues = [
        islice((item for item in group if item.key in unique), limits[name])
        for name, group in candidates.items()
    ]
    passages = Counter(item.passage for item in items)
    return {
        item.key: replace(item, passage=None) if passages[item.passage] > 1 else item
        for item in islice(in_turn(queues), n)
    }


def _without_near_duplicate(candidates: Sequence[Item], items: Iterable[Item]) -> set[ItemKey]:
    """Return the candidates whose question has no near duplicate among the other items."""
    grams = {item.key: _grams(item) for item in candidates}
    keys_with_gram: dict[tuple[str, ...], list[ItemKey]] = defaultdict(list)
    for key, own in grams.items():
        for gram in own:
            keys_with_gram[gram].append(key)
    unique = set(grams)
    for item in items:
        shared: Counter[ItemKey] = Counter()
        for gram in _grams(item):
            shared.update(keys_with_gram.get(gram, ()))
        for key, n_shared in shared.items():
            if key != item.key and n_shared >= _NEAR_SHARE * len(grams[key]):
                unique.discard(key)
    return unique


def _grams(item: Item) -> set[tuple[str, ...]]:
    words = canonical_words(item.question)
    n = min(_NEAR_N, len(words))
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}
