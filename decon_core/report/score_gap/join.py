"""Results to items: by what was asked, and by number only where that says nothing against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decon_core.benchmarks import Recipe, normalize_rows
from decon_core.errors import Problem, RecordError
from decon_core.report.score_gap.items import Item, Items
from decon_core.report.score_gap.results import Results, Sample, texts_in
from decon_core.report.score_gap.tasks import Task
from decon_core.wording import counted

BY_FINGERPRINT = "fingerprint"
BY_TEXT = "text"
BY_TEXT_INSIDE = "text inside a longer one"
BY_TEXT_AND_INDEX = "text and index"
BY_INDEX = "index"

# Of the different words of an item's question so many must stand in what the file has of it, or the
# index means another item. Harnesses rewrite questions, but with the words of the question.
_LEAST_SHARED = 0.5

_LEFT_OUT = "The row counts as not joined."


@dataclass
class Joined:
    """The samples of a file, each with its item, or with none."""

    split: str | None
    pairs: list[tuple[Sample, Item | None]] = field(default_factory=list)
    ways: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def join(results: Results, task: Task, items: Items, recipe: Recipe | None = None) -> Joined:
    """Find the item of every sample."""
    split = _split(results, task, items)
    search = _Search(items, results, split, task.config, recipe)
    joined = Joined(split)
    for sample in results.samples:
        item, way = search.item_of(sample)
        joined.pairs.append((sample, item))
        joined.ways[way] += 1
    joined.problems = search.problems
    return joined


def _split(results: Results, task: Task, items: Items) -> str | None:
    """The split that was asked: as said, as the files say, or the only one in which texts stand."""
    for split in (task.split, results.split):
        if split in items.splits:
            return split
    if results.split:
        return None  # one that the report does not have: numbers of it mean nothing here
    if len(items.splits) == 1:
        return items.splits[0]
    search = _Search(items, results, None, task.config, None)
    holding: set[str] = set()
    has_texts = False
    for sample in results.samples:
        found = {item.split for item in search.named(sample)}
        has_texts |= bool(found)
        if len(found) == 1:
            holding |= found
    if has_texts:
        return holding.pop() if len(holding) == 1 else None
    indexes = {sample.index for sample in results.samples}
    fitting = [split for split in items.splits if _is_all(indexes, items.of(split, task.config))]
    return fitting[0] if len(fitting) == 1 and results.is_counted else None


def _is_all(indexes: Iterable[int | None], part: Sequence[Item]) -> bool:
    return set(indexes) == set(range(len(part)))


class _Search:
    """The items that samples of one file may mean."""

    def __init__(
        self,
        items: Items,
        results: Results,
        split: str | None,
        config: str | None,
        recipe: Recipe | None,
    ) -> None:
        self.problems: list[Problem] = []
        self._items = items
        self._split = split
        self._config = config
        self._recipe = replace(recipe, extra_fields=()) if recipe else None
        self._found: dict[tuple[str, ...], tuple[list[Item], str]] = {}
        self._taken: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self._numbered = self._by_number(results)
        self._why_no_index = ""
        if not self._numbered:
            self._why_no_index = self._why(results)
        elif contradiction := self._contradiction(results):
            self._numbered = {}
            self._why_no_index = "an index that contradicts the texts of other rows"
            self.problems.append(contradiction)

    def item_of(self, sample: Sample) -> tuple[Item | None, str]:
        """The item of a sample and how it was found; or none, and the reason is told."""
        by_number = self._numbered.get(sample.index) if sample.index is not None else None
        found, way = self._candidates(sample)
        if by_number is not None and self._may_mean(by_number, sample, found, way):
            return by_number, way if found == [by_number] else BY_TEXT_AND_INDEX
        if len(found) == 1:
            return found[0], way
        if found:
            return self._one_of(found, sample, way)
        if by_number is None:
            self._tell(sample, "no item of that text, and " + self._why_not(sample))
            return None, ""
        if not self._agrees(sample, by_number):
            self._tell(sample, f"a text that shares little with item {by_number.instance_index}")
            return None, ""
        return by_number, BY_INDEX

    def named(self, sample: Sample) -> list[Item]:
        return self._candidates(sample)[0]

    def _candidates(self, sample: Sample) -> tuple[list[Item], str]:
        named = self._here(self._items.with_fingerprint(sample.fingerprint or ""))
        if named:
            return named, BY_FINGERPRINT
        texts = texts_in(sample.doc)
        if texts not in self._found:
            found = self._by_recipe(sample.doc)
            self._found[texts] = (found, BY_FINGERPRINT) if found else self._by_text(texts)
        return self._found[texts]

    def _by_recipe(self, doc: Mapping[str, object]) -> list[Item]:
        """As a row of the benchmark: its passage and answers tell equal questions apart."""
        if self._recipe is None or not doc:
            return []
        try:
            split = self._split or "any"
            records = normalize_rows(self._recipe, [doc], split=split, origin="a row of results")
        except RecordError:
            return []  # a harness may rename fields
        of_each = [self._items.with_fingerprint(one) for one in records["fingerprint"].to_pylist()]
        first = self._here(of_each[0]) if of_each else []
        return [item for item in first if all(item in of_one for of_one in of_each)]

    def _by_text(self, texts: Sequence[str]) -> tuple[list[Item], str]:
        cleaned = [self._items.words(text) for text in texts]
        for find, way in ((self._items.asking, BY_TEXT), (self._items.asked_in, BY_TEXT_INSIDE)):
            for words in cleaned:
                if found := self._here(find(words)):
                    return found, way
        return [], BY_TEXT

    def _may_mean(self, item: Item, sample: Sample, found: list[Item], way: str) -> bool:
        """Whether texts say this item, or do not rule it out.

        A question may be the beginning of another one, which a word of the prompt ("A:") completes.
        """
        if item in found:
            return True
        return bool(found) and way == BY_TEXT_INSIDE and self._share(sample, item) == 1

    def _here(self, found: Iterable[Item]) -> list[Item]:
        return [
            item
            for item in found
            if self._split in (None, item.split) and self._config in (None, item.config)
        ]

    def _one_of(self, found: list[Item], sample: Sample, way: str) -> tuple[Item | None, str]:
        """Several items ask the same. Which is meant does not matter where all fared alike."""
        if len({(item.verdict, item.config) for item in found}) > 1:
            named = ", ".join(f"{item.split} {item.instance_index}" for item in found[:5])
            self._tell(sample, f"the question of {counted(len(found), 'item')} ({named})")
            return None, ""
        name = (sample.filter, found[0].words)
        self._taken[name] += 1
        return found[min(self._taken[name], len(found)) - 1], way

    def _by_number(self, results: Results) -> dict[int, Item]:
        part = self._items.of(self._split, self._config)
        if self._split is None:
            return {}
        if not results.is_counted:
            part = self._items.of(self._split, None)
            return {item.instance_index: item for item in part}
        indexes = {sample.index for sample in results.samples}
        return dict(enumerate(part)) if _is_all(indexes, part) else {}

    def _why(self, results: Results) -> str:
        if self._split is None:
            said = f"the split {results.split!r}" if results.split else "no split said"
            splits = ", ".join(self._items.splits)
            return f"{said} where there are {splits}: --task {results.task}=BENCHMARK:SPLIT"
        n = len(self._items.of(self._split, self._config))
        n_asked = len({sample.index for sample in results.samples} - {None})
        return f"{n_asked} different indexes where the report has {counted(n, 'item')}"

    def _why_not(self, sample: Sample) -> str:
        return self._why_no_index or ("no such index" if sample.index is not None else "no index")

    def _contradiction(self, results: Results) -> Problem | None:
        """A row whose text is that of another item than its index says."""
        wrong = []
        for sample in results.samples:
            by_number = None if sample.index is None else self._numbered.get(sample.index)
            found, way = self._candidates(sample)
            if by_number and found and not self._may_mean(by_number, sample, found, way):
                wrong.append((sample, by_number, found[0]))
        if not wrong:
            return None
        sample, by_number, item = wrong[0]
        return Problem(
            sample.place,
            f"index {sample.index}, that of {_named(by_number)}, and the text of {_named(item)}; "
            f"so in {counted(len(wrong), 'row')}",
            "an index that agrees with the texts",
            "No row of this file is joined by index.",
        )

    def _agrees(self, sample: Sample, item: Item) -> bool:
        return not texts_in(sample.doc) or self._share(sample, item) >= _LEAST_SHARED

    def _share(self, sample: Sample, item: Item) -> float:
        """Of the words of an item's question, how many stand in what the file has of it."""
        said = {word for text in texts_in(sample.doc) for word in self._items.words(text)}
        asked = set(item.words)
        return len(asked & said) / len(asked) if asked else 1.0

    def _tell(self, sample: Sample, found: str) -> None:
        self.problems.append(
            Problem(sample.place, found, f"an item of {self._items.all[0].benchmark}", _LEFT_OUT)
        )


def _named(item: Item) -> str:
    return f"{item.split} {item.instance_index}"
