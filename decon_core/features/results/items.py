"""The items of a report with their verdicts, indexed by fingerprint and question text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decon_core.config.policy import PUNCTUATION
from decon_core.report.categories.groupings import Grouping, value_of_item
from decon_core.report.items import (
    CLEAN,
    LEAKED,
    NO_ANSWER,
    NOT_CHECKABLE,
    NOT_FULLY_SCANNED,
    REVIEW,
    WITH_ANSWER,
    ReportItems,
)
from decon_core.text.canonical import clean

NOT_JOINED = "not joined"

# The groups of a gap, and the verdicts of their items.
NEITHER = (CLEAN, NOT_CHECKABLE, NOT_FULLY_SCANNED)
JOINED = (*NEITHER, LEAKED, WITH_ANSWER, NO_ANSWER, REVIEW)
GROUPS = {
    "all": JOINED,  # a row that is not joined is no item of the benchmark
    "clean": (CLEAN,),
    "leaked": (LEAKED, WITH_ANSWER),
    "with_answer": (WITH_ANSWER,),
    "no_answer": (NO_ANSWER,),
    "review": (REVIEW,),
    "not_checkable": (NOT_CHECKABLE,),
    "not_fully_scanned": (NOT_FULLY_SCANNED,),
    "not_joined": (NOT_JOINED,),
}

# A question is looked up inside a longer text ("Question: ... Answer:") by its first words. Shorter
# questions are too likely to match by chance.
_FEWEST_WORDS = 5


@dataclass(frozen=True)
class Item:
    """One item of a benchmark and its verdict in the report."""

    benchmark: str
    split: str
    instance_index: int
    config: str | None
    verdict: str
    words: tuple[str, ...]  # words of its canonical question, the first if its row has several
    values: tuple[str | None, ...] = ()  # values of the columns by which items are grouped
    categories: tuple[str | None, ...] = ()  # categories of these values
    has_several: bool = False  # whether its row has several questions


class Items:
    """The items of one benchmark, with lookups by fingerprint and question."""

    def __init__(self, punctuation: str) -> None:
        self.punctuation = punctuation
        self.all: list[Item] = []
        self._by_fingerprint: dict[str, list[Item]] = defaultdict(list)
        self._by_question: dict[tuple[str, ...], list[Item]] = defaultdict(list)
        self._by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)

    def add(
        self, item: Item, fingerprints: Iterable[str], other_questions: Iterable[str] = ()
    ) -> None:
        self.all.append(item)
        for fingerprint in dict.fromkeys(fingerprints):
            self._by_fingerprint[fingerprint].append(item)
        for words in dict.fromkeys([item.words, *map(self.words, other_questions)]):
            if words:
                self._by_question[words].append(item)
            if len(words) >= _FEWEST_WORDS:
                self._by_start[words[:_FEWEST_WORDS]].add(words)

    @property
    def splits(self) -> list[str]:
        return sorted({item.split for item in self.all})

    def words(self, text: str) -> tuple[str, ...]:
        return tuple(clean(text, punctuation=self.punctuation).split())

    def with_fingerprint(self, fingerprint: str) -> list[Item]:
        return self._by_fingerprint.get(fingerprint, [])

    def with_question(self, words: tuple[str, ...]) -> list[Item]:
        """Return the items whose question is exactly this text."""
        return self._by_question.get(words, [])

    def with_question_in(self, words: tuple[str, ...]) -> list[Item]:
        """Return the items with the longest question that this text contains."""
        longest: tuple[str, ...] = ()
        for at in range(len(words) - _FEWEST_WORDS + 1):
            for question in self._by_start.get(words[at : at + _FEWEST_WORDS], ()):
                if words[at : at + len(question)] == question:
                    longest = max(longest, question, key=len)
        return self.with_question(longest)


def in_part(items: Iterable[Item], split: str | None, config: str | None) -> list[Item]:
    """Return the items of a split and config; None selects all."""
    return [item for item in items if split in (None, item.split) and config in (None, item.config)]


def indexed_items(report: ReportItems, groupings: Sequence[Grouping] = ()) -> dict[str, Items]:
    """Return the items of every benchmark of a report."""
    punctuation = str(report.policy.get("punctuation_chars", PUNCTUATION))
    benchmarks: dict[str, Items] = defaultdict(lambda: Items(punctuation))
    for row in report.rows:
        items = benchmarks[row.benchmark]
        columns = {"config": row.config, "split": row.split}
        values = [value_of_item(columns, row.extras, grouping.column) for grouping in groupings]
        categories = [
            grouping.category_of(row.benchmark, value)
            for grouping, value in zip(groupings, values, strict=True)
        ]
        item = Item(
            benchmark=row.benchmark,
            split=row.split,
            instance_index=row.instance_index,
            config=row.config,
            verdict=row.verdict,
            words=items.words(row.question),
            has_several=bool(row.other_questions),
            values=tuple(values),
            categories=tuple(categories),
        )
        items.add(item, row.fingerprints, row.other_questions)
    return dict(benchmarks)
