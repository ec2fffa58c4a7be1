"""Draw the items to plant, each as a document with question, choices and answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decon_core.benchmarks.records import Version
from decon_core.config.seeding import numbers
from decon_core.config.validation import did_you_mean
from decon_core.errors import ConfigError, Problem
from decon_core.features.blends.items import Item, item_text, items_of
from decon_core.features.blends.settings import Contamination, is_for_training
from decon_core.features.haystack.settings import Haystack
from decon_core.storage.store import Store
from decon_core.wording import counted

MOST_TRAINING_ITEMS = 500


@dataclass(frozen=True)
class PlantedItem:
    """An item, and its text as a document."""

    item: Item
    text: str


@dataclass(frozen=True)
class BenchmarkCount:
    """A benchmark with the numbers of its items that could be planted, and that were."""

    benchmark: str
    n_items: int  # items of splits that are not for training
    n_without_answer: int
    n_planted: int


@dataclass(frozen=True)
class Planting:
    """The planted items, and texts of items of training splits to train on."""

    planted: tuple[PlantedItem, ...]
    counts: tuple[BenchmarkCount, ...]
    training: tuple[str, ...]


def choose_items(store: Store, versions: Sequence[Version], settings: Haystack) -> Planting:
    """Draw the items of each benchmark; raise ConfigError for benchmarks without any."""
    known = [version.benchmark for version in versions]
    benchmarks = settings.benchmarks or known
    expected = f"one of {', '.join(known)}"
    problems = [
        Problem("haystack.benchmarks", repr(name), expected, did_you_mean(name, known))
        for name in benchmarks
        if name not in known
    ]
    planted: list[PlantedItem] = []
    counts: list[BenchmarkCount] = []
    training: list[Item] = []
    subjects: set[str] = set()
    for version in versions:
        items = [*items_of(store, version)]
        training += [item for item in items if is_for_training(item.split) and item.answer]
        if version.benchmark not in benchmarks:
            continue
        tested = [item for item in items if not is_for_training(item.split)]
        subjects |= {item.config for item in tested if item.config}
        # All items, if the benchmark has none of the subjects.
        tested = [item for item in tested if item.config in settings.subjects] or tested
        answered = [item for item in tested if item.answer]
        drawn = _in_turn(_distinct(_shuffled(answered, settings.seed)))[: settings.items]
        planted += drawn
        n_without = len(tested) - len(answered)
        counts.append(BenchmarkCount(version.benchmark, len(tested), n_without, len(drawn)))
        if not drawn:
            found = f"{counted(len(tested), 'item')} in test splits, none with an answer"
            expected = "items with an answer to plant"
            problems.append(Problem(f"benchmark {version.benchmark!r}", found, expected))
    problems += [
        Problem(
            "haystack.subjects",
            repr(name),
            "a subject of a benchmark (`config` of its items)",
            did_you_mean(name, sorted(subjects)),
        )
        for name in settings.subjects
        if name not in subjects
    ]
    ConfigError.raise_for(problems)
    return Planting(tuple(planted), tuple(counts), _training_texts(training, planted, settings))


def _shuffled(items: Iterable[Item], seed: int) -> list[Item]:
    """Return the items in a random order, in which other items move none."""
    return sorted(items, key=lambda item: int(numbers(f"haystack {seed} {item.name}", 1)[0]))


def _in_turn(items: Sequence[PlantedItem]) -> list[PlantedItem]:
    """Return the first item of each subject, then the second of each, and so on."""
    n_before = Counter[str | None]()
    turns = []
    for planted in items:
        turns.append(n_before[planted.item.config])
        n_before[planted.item.config] += 1
    return [items[at] for at in sorted(range(len(items)), key=turns.__getitem__)]


def _distinct(items: Iterable[Item]) -> list[PlantedItem]:
    """Return the items as documents, each text once."""
    by_text: dict[str, PlantedItem] = {}
    for item in items:
        form = Contamination(benchmarks=(item.benchmark,))
        text = item_text(item, "full", form, "0").text
        by_text.setdefault(text, PlantedItem(item, text))
    return [*by_text.values()]


def _training_texts(
    items: Iterable[Item], planted: Sequence[PlantedItem], settings: Haystack
) -> tuple[str, ...]:
    """Return items of training splits as question and answer, without those that are planted.

    The words "Answer:" of a planted document are left out: a scorer would learn them.
    """
    held_out = "\n".join(item.text for item in planted)
    texts = (
        "\n\n".join(filter(None, (item.passage, item.question, item.answer)))
        for item in _shuffled(items, settings.seed)
        if item.question not in held_out
    )
    return tuple(dict.fromkeys(texts))[:MOST_TRAINING_ITEMS]
