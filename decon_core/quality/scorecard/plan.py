"""Which items are planted and how, which are held out, and what was not applicable."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Literal, TypeVar

import pyarrow as pa

from decon_core.errors import ConfigError, Problem
from decon_core.quality.scorecard.edits import TRANSFORMATIONS, Material, Transformation, Written
from decon_core.quality.scorecard.items import Item, ItemKey, items_of
from decon_core.quality.scorecard.lexicon import Lexicon, lexicon_of
from decon_core.quality.scorecard.negatives import HARD_NEGATIVES, HardNegative
from decon_core.quality.scorecard.pieces import canonical_words

Kind = Literal["plant", "hard_negative"]
One = TypeVar("One")

_MOST_HELD_OUT = 0.2  # of a benchmark's items
_CANDIDATES = 5  # looked at for each item to be held out
_NEAR_N = 5  # words of an n-gram
_NEAR_SHARE = 0.5  # of its n-grams in one other question: the same question, more or less


@dataclass(frozen=True)
class Planting:
    """A text, or turns of a conversation, to be put into the corpus."""

    id: str
    kind: Kind
    transformation: str  # the family
    grade: str
    items: tuple[ItemKey, ...]  # planted; of a hard negative, what it was made of
    written: Written


@dataclass(frozen=True)
class Tally:
    """How far a benchmark went for one kind of planting."""

    kind: Kind
    transformation: str
    grade: str
    benchmark: str
    n_planted: int
    n_not_applicable: int  # items that were looked at and had nothing to change


@dataclass(frozen=True)
class Plan:
    """All plantings, and the items that the index must not hold."""

    seed: int
    plantings: tuple[Planting, ...]
    held_out: frozenset[ItemKey]
    tallies: tuple[Tally, ...]


def plan(records: pa.Table, *, per_transformation: int, seed: int) -> Plan:
    """So many plantings of each transformation and each hard negative, where there are so many.

    The same items go through all transformations, as far as each applies: grades and rules are
    compared on the same questions. The order of the records changes nothing.
    """
    if per_transformation < 1:
        found = str(per_transformation)
        raise ConfigError(Problem("plantings per transformation", found, "at least 1"))
    items = items_of(records)
    by_benchmark = {
        name: _shuffled(found, seeded(seed, "order", name))
        for name, found in _grouped(items).items()
    }
    lexicons = {
        name: lexicon_of(found, seeded(seed, "words", name)) for name, found in by_benchmark.items()
    }
    held_out = _held_out(by_benchmark, items, n=per_transformation, seed=seed)
    indexed = {
        name: [item for item in found if item.key not in held_out]
        for name, found in by_benchmark.items()
    }
    neighbours = _grouped(held_out.values())
    picker = _Picker(lexicons, per_transformation, seed)
    for transformation in TRANSFORMATIONS:
        picker.plant(transformation, indexed)
    for negative in HARD_NEGATIVES:
        picker.pretend(negative, neighbours if negative.is_of_held_out else indexed)
    return Plan(seed, tuple(picker.plantings), frozenset(held_out), tuple(picker.tallies))


def seeded(seed: int, *names: object) -> Random:
    """A generator of its own for everything that has a name: what is added moves nothing else."""
    return Random("|".join(map(str, (seed, *names))))  # noqa: S311 - to be repeatable is the point


def indexed_records(records: pa.Table, plan: Plan) -> pa.Table:
    """The records without those of held-out items: what the rules may look for."""
    columns = (records[name].to_pylist() for name in ItemKey._fields)
    is_in = [ItemKey(*key) not in plan.held_out for key in zip(*columns, strict=True)]
    return records.filter(pa.array(is_in, pa.bool_()))


def _grouped(items: Iterable[Item]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        groups[item.key.benchmark].append(item)
    return dict(sorted(groups.items()))


def _shuffled(items: Sequence[Item], rng: Random) -> list[Item]:
    return rng.sample(items, len(items))


# Picking ------------------------------------------------------------------------------------------

_Make = Callable[[Material], Written | None]


class _Picker:
    """Takes items benchmark by benchmark in turn, until there are enough of each kind."""

    def __init__(self, lexicons: Mapping[str, Lexicon], n: int, seed: int) -> None:
        self._lexicons = lexicons
        self._n = n
        self._seed = seed
        self.plantings: list[Planting] = []
        self.tallies: list[Tally] = []

    def plant(self, way: Transformation, indexed: Mapping[str, list[Item]]) -> None:
        self._pick("plant", way.group, way.grade, way.apply, indexed, has_partner=way.has_partner)

    def pretend(self, way: HardNegative, items: Mapping[str, list[Item]]) -> None:
        self._pick("hard_negative", way.name, "", way.apply, items, has_partner=False)

    def _pick(
        self,
        kind: Kind,
        transformation: str,
        grade: str,
        make: _Make,
        items: Mapping[str, list[Item]],
        *,
        has_partner: bool,
    ) -> None:
        n_planted: Counter[str] = Counter()
        n_not_applicable: Counter[str] = Counter()

        def planted(benchmark: str) -> Iterator[Planting]:
            order = items[benchmark]
            for at, item in enumerate(order):
                partner = order[at - 1] if has_partner and len(order) > 1 else None
                rng = seeded(self._seed, kind, transformation, grade, *item.key)
                written = make(Material(item, self._lexicons[benchmark], rng, partner))
                if written is None:
                    n_not_applicable[benchmark] += 1
                    continue
                n_planted[benchmark] += 1
                keys = (item.key, partner.key) if partner else (item.key,)
                name = "/".join(map(str, (kind, transformation, grade, *item.key)))
                yield Planting(name, kind, transformation, grade, keys, written)

        self.plantings += islice(in_turn([planted(benchmark) for benchmark in items]), self._n)
        self.tallies += [
            Tally(kind, transformation, grade, name, n_planted[name], n_not_applicable[name])
            for name in items
        ]


def in_turn(queues: Iterable[Iterator[One]]) -> Iterator[One]:
    """One of each as long as it has any, and no more than are asked for."""
    left = deque(queues)
    while left:
        queue = left.popleft()
        for one in islice(queue, 1):
            yield one
            left.append(queue)


# Held out -----------------------------------------------------------------------------------------


def _held_out(
    by_benchmark: Mapping[str, list[Item]], items: Sequence[Item], *, n: int, seed: int
) -> dict[ItemKey, Item]:
    """Items to leave out of the index, none of which stands there under another number as well.

    Benchmarks give in turn, each a fifth of its items at most. A passage that other items have as
    well is taken off: it would be a leak of theirs.
    """
    wanted = {
        name: min(n, int(_MOST_HELD_OUT * len(found))) for name, found in by_benchmark.items()
    }
    candidates = {
        name: _shuffled(found, seeded(seed, "held out", name))[: _CANDIDATES * wanted[name]]
        for name, found in by_benchmark.items()
    }
    alone = _without_twin([item for found in candidates.values() for item in found], items)
    passages = Counter(item.passage for item in items)
    held_out: dict[ItemKey, Item] = {}
    for turn in range(n):
        for name, found in candidates.items():
            left = [item for item in found if item.key in alone]
            if turn < min(wanted[name], len(left)) and len(held_out) < n:
                item = left[turn]
                if passages[item.passage] > 1:
                    item = replace(item, passage=None)
                held_out[item.key] = item
    return held_out


def _without_twin(candidates: Sequence[Item], items: Iterable[Item]) -> set[ItemKey]:
    """Those whose question is no other item's, not even in part and in other words around it."""
    grams = {item.key: _grams(item) for item in candidates}
    holders: dict[tuple[str, ...], list[ItemKey]] = defaultdict(list)
    for key, found in grams.items():
        for gram in found:
            holders[gram].append(key)
    alone = set(grams)
    for item in items:
        shared: Counter[ItemKey] = Counter()
        for gram in _grams(item):
            shared.update(holders.get(gram, ()))
        for key, n_shared in shared.items():
            if key != item.key and n_shared >= _NEAR_SHARE * len(grams[key]):
                alone.discard(key)
    return alone


def _grams(item: Item) -> set[tuple[str, ...]]:
    found = canonical_words(item.question)
    n = min(_NEAR_N, len(found))
    return {tuple(found[at : at + n]) for at in range(len(found) - n + 1)}
