"""The items of a report with their verdicts, indexed by fingerprint and question text."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from decon_core.config.policy import PUNCTUATION
from decon_core.report.open import opened
from decon_core.text.canonical import clean

CLEAN = "clean"
LEAKED = "leaked"
WITH_ANSWER = "leaked with its answer"
QUESTION_ONLY = "question-only"
CANDIDATE = "candidate"
NOT_INDEXABLE = "not indexable"
NOT_FULLY_SCANNED = "not fully scanned"
NOT_JOINED = "not joined"

# The groups of a gap, and the verdicts of their items.
NEITHER = (CLEAN, NOT_INDEXABLE, NOT_FULLY_SCANNED)
JOINED = (*NEITHER, LEAKED, WITH_ANSWER, QUESTION_ONLY, CANDIDATE)
GROUPS = {
    "all": (*JOINED, NOT_JOINED),
    "clean": (CLEAN,),
    "leaked": (LEAKED, WITH_ANSWER),
    "with_answer": (WITH_ANSWER,),
    "question_only": (QUESTION_ONLY,),
    "candidate": (CANDIDATE,),
    "not_indexable": (NOT_INDEXABLE,),
    "not_fully_scanned": (NOT_FULLY_SCANNED,),
    "not_joined": (NOT_JOINED,),
}

# A question is looked up inside a longer text ("Question: ... Answer:") by its first words. Shorter
# questions are too likely to match by chance.
_FEWEST_WORDS = 5

_QUERY = """
    SELECT benchmark, split, instance_index, s.config, s.question, fingerprints,
           CASE WHEN what_leaked = 'with its answer' THEN 'leaked with its answer'
                ELSE status END AS verdict
    FROM item_status s JOIN items USING (benchmark, split, instance_index)
    ORDER BY benchmark, split, instance_index
"""


@dataclass(frozen=True)
class Item:
    """One item of a benchmark and its verdict in the report."""

    benchmark: str
    split: str
    instance_index: int
    config: str | None
    verdict: str
    words: tuple[str, ...]  # of its canonical question


class Items:
    """The items of one benchmark, with lookups by fingerprint and question."""

    def __init__(self, punctuation: str) -> None:
        self.punctuation = punctuation
        self.all: list[Item] = []
        self._by_fingerprint: dict[str, list[Item]] = defaultdict(list)
        self._by_question: dict[tuple[str, ...], list[Item]] = defaultdict(list)
        self._by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)

    def add(self, item: Item, fingerprints: Iterable[str]) -> None:
        self.all.append(item)
        for fingerprint in dict.fromkeys(fingerprints):
            self._by_fingerprint[fingerprint].append(item)
        if item.words:
            self._by_question[item.words].append(item)
        if len(item.words) >= _FEWEST_WORDS:
            self._by_start[item.words[:_FEWEST_WORDS]].add(item.words)

    @property
    def splits(self) -> list[str]:
        return sorted({item.split for item in self.all})

    def of(self, split: str | None, config: str | None) -> list[Item]:
        return in_part(self.all, split, config)

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
    return [one for one in items if split in (None, one.split) and config in (None, one.config)]


def load_items(report: Path) -> tuple[dict[str, Items], Mapping[str, object]]:
    """Read the items of every benchmark in a report, and the report's state and threshold."""
    with opened(report) as connection:
        rows = connection.execute(_QUERY).fetchall()
        runs = connection.execute("SELECT state, threshold, policy FROM runs").fetchone()
    state, threshold, policy = runs or ("", None, "{}")
    punctuation = json.loads(policy).get("punctuation_chars", PUNCTUATION)
    benchmarks: dict[str, Items] = defaultdict(lambda: Items(punctuation))
    for benchmark, split, index, config, question, fingerprints, verdict in rows:
        items = benchmarks[benchmark]
        item = Item(benchmark, split, index, config, verdict, items.words(question))
        items.add(item, fingerprints)
    return dict(benchmarks), {"state": state, "threshold": threshold}
