"""Join results to items: by text, and by index only if the texts do not contradict it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import Problem, RecordError
from decon_core.features.results.items import Item, Items, in_part
from decon_core.features.results.per_item import Results, Sample, texts_in
from decon_core.features.results.tasks import Task, TaskMapping, task_of
from decon_core.wording import counted

BY_FINGERPRINT = "fingerprint"
BY_TEXT = "text"
BY_TEXT_INSIDE = "text inside a longer one"
BY_TEXT_AND_INDEX = "text and index"
BY_INDEX = "index"

# The least share of a question's different words that the file's text must contain for an index to
# be trusted. Harnesses rewrite questions, but keep their words.
_LEAST_SHARED = 0.5

_LEFT_OUT = "The row is counted as not joined."


@dataclass
class Joined:
    """The samples of a file, each with its item or None, and how the items were found."""

    results: Results
    task: Task | None  # None: no benchmark of the report
    split: str | None = None
    pairs: list[tuple[Sample, Item | None]] = field(default_factory=list)
    ways: Counter[str] = field(default_factory=Counter)  # rows by how their item was found
    problems: list[Problem] = field(default_factory=list)
    note: str = ""  # a doubt about the whole file
    n_repeated: int = 0  # rows that do not count, because their item has a score already

    @property
    def n_not_joined(self) -> int:
        return len(self.results.samples) - self.ways.total()


def join(
    results: Iterable[Results],
    benchmarks: Mapping[str, Items],
    mappings: Sequence[TaskMapping],
    recipes: Mapping[str, Recipe],
) -> Iterator[Joined]:
    """Find the benchmark of each file, and the item of every sample."""
    for own in results:
        joined = Joined(own, task_of(own.task, mappings, benchmarks))
        if task := joined.task:
            items, recipe = benchmarks[task.benchmark], recipes.get(task.benchmark)
            joined.split = _split(own, task, items)
            search = _Search(items, own, joined.split, task.config, recipe)
            joined.problems = search.problems
            for sample in own.samples:
                item, way = search.item_of(sample)
                joined.pairs.append((sample, item))
                joined.ways.update([way] if item else [])
            if n_by_index := joined.ways[BY_INDEX]:
                joined.note = search.doubt(own, n_by_index)
        yield joined


def _split(results: Results, task: Task, items: Items) -> str | None:
    """Return the evaluated split: as given, as the files say, or the only one with the texts."""
    for split in (task.split, results.split):
        if split in items.splits:
            return split
    if results.split:
        return None  # not in the report, so its indexes mean nothing here
    if len(items.splits) == 1:
        return items.splits[0]
    search = _Search(items, results, None, task.config, None)
    by_sample = [{item.split for item in search.find(sample)[0]} for sample in results.samples]
    if any(by_sample):
        certain = {split for splits in by_sample if len(splits) == 1 for split in splits}
        return certain.pop() if len(certain) == 1 else None
    indexes = {sample.index for sample in results.samples}
    sizes = {split: len(in_part(items.all, split, task.config)) for split in items.splits}
    fitting = [split for split, n in sizes.items() if indexes == {*range(n)}]
    return fitting[0] if len(fitting) == 1 and results.has_harness_index else None


class _Search:
    """Search the items of one benchmark for the samples of one file."""

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
        # Fields that a harness drops, and that no text of a record comes from.
        self._recipe = replace(recipe, extra_fields=(), dataset_name_field=None) if recipe else None
        self._by_texts: dict[tuple[str, ...], tuple[list[Item], str]] = {}
        self._n_taken: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self._by_index: dict[int, Item] = {}
        self._why_no_index = ""
        self._set_index(results)

    def item_of(self, sample: Sample) -> tuple[Item | None, str]:
        """Return a sample's item and how it was found; for None, add a problem."""
        by_index = self._by_index.get(sample.index) if sample.index is not None else None
        items, way = self.find(sample)
        if by_index is not None and self._is_compatible(by_index, sample, items, way):
            return by_index, way if items == [by_index] else BY_TEXT_AND_INDEX
        if len(items) == 1:
            return items[0], way
        if items:
            return self._choose(items, sample, way)
        if by_index is None:
            why_not = "no such index" if sample.index is not None else "no index"
            found = f"no item with this text, and {self._why_no_index or why_not}"
            return self._not_joined(sample, found)
        if texts_in(sample.doc) and self._share(sample, by_index) < _LEAST_SHARED:
            found = f"a text that shares few words with item {by_index.instance_index}"
            return self._not_joined(sample, found)
        return by_index, BY_INDEX

    def doubt(self, results: Results, n_by_index: int) -> str:
        """Return a note if rows of another number of items were joined by index alone."""
        n_items = len(self._in_part(self._items.all))
        n_indexes = len({sample.index for sample in results.samples} - {None})
        if n_indexes == n_items:
            return ""
        return (
            f"{results.path}: {counted(n_by_index, 'row')} joined by index alone, although the "
            f"file has {n_indexes:,} different indexes, and the report "
            f"{counted(n_items, 'item')} of {self._items.all[0].benchmark}. If the "
            "results are of another version of the benchmark, they are attributed to the wrong "
            "items; add a `question` column."
        )

    def find(self, sample: Sample) -> tuple[list[Item], str]:
        """Return the items with the fingerprint or text of a sample, and which of both."""
        named = self._in_part(self._items.with_fingerprint(sample.fingerprint or ""))
        if named:
            return named, BY_FINGERPRINT
        texts = texts_in(sample.doc)
        if texts not in self._by_texts:
            items = self._find_by_recipe(sample.doc)
            self._by_texts[texts] = (items, BY_FINGERPRINT) if items else self._find_by_text(texts)
        return self._by_texts[texts]

    def _find_by_recipe(self, doc: Mapping[str, object]) -> list[Item]:
        """Normalize as a benchmark row: passage and answers distinguish equal questions."""
        if self._recipe is None or not doc:
            return []
        try:
            split = self._split or "any"
            records = normalize_rows(self._recipe, [doc], split=split, origin="a row of results")
        except RecordError:
            return []  # a harness may rename fields
        fingerprints = records["fingerprint"].to_pylist()
        by_record = [self._items.with_fingerprint(fingerprint) for fingerprint in fingerprints]
        first = self._in_part(by_record[0]) if by_record else []
        return [item for item in first if all(item in items for items in by_record)]

    def _find_by_text(self, texts: Sequence[str]) -> tuple[list[Item], str]:
        cleaned = [self._items.words(text) for text in texts]
        lookups = (
            (self._items.with_question, BY_TEXT),
            (self._items.with_question_in, BY_TEXT_INSIDE),
        )
        for find, way in lookups:
            for words in cleaned:
                if items := self._in_part(find(words)):
                    return items, way
        return [], BY_TEXT

    def _is_compatible(self, item: Item, sample: Sample, items: list[Item], way: str) -> bool:
        """Whether the items found by text include this one, or do not exclude it.

        A question may be the start of another one that a word of the prompt ("A:") completes.
        """
        if item in items:
            return True
        return bool(items) and way == BY_TEXT_INSIDE and self._share(sample, item) == 1

    def _in_part(self, items: Iterable[Item]) -> list[Item]:
        return in_part(items, self._split, self._config)

    def _choose(self, items: list[Item], sample: Sample, way: str) -> tuple[Item | None, str]:
        """Choose among items with the same question; only if they have the same groups."""
        if len({(item.verdict, item.config, item.categories) for item in items}) > 1:
            named = ", ".join(map(_place, items[:5]))
            found = f"the question of {counted(len(items), 'item')} ({named})"
            return self._not_joined(sample, found)
        key = (sample.filter, items[0].words)
        self._n_taken[key] += 1
        return items[min(self._n_taken[key], len(items)) - 1], way

    def _set_index(self, results: Results) -> None:
        """Set the items by index, or why indexes cannot be used."""
        if self._split is None:
            split = f"the split {results.split!r}" if results.split else "no split"
            remedy = f"set it with --task {results.task}=BENCHMARK:SPLIT"
            has = f"the report has {', '.join(self._items.splits)}; {remedy}"
            self._why_no_index = f"{split} in the file ({has})"
            return
        part = self._in_part(self._items.all)
        indexes = {sample.index for sample in results.samples}
        if not results.has_harness_index:
            items = in_part(self._items.all, self._split, None)
            self._by_index = {item.instance_index: item for item in items}
        elif indexes == {*range(len(part))}:
            self._by_index = dict(enumerate(part))
        if not self._by_index:
            n_asked, n_items = len(indexes - {None}), counted(len(part), "item")
            self._why_no_index = f"{n_asked} different indexes, but the report has {n_items}"
        elif contradiction := self._contradiction(results):
            self._by_index = {}
            self._why_no_index = "an index that contradicts the texts of other rows"
            self.problems.append(contradiction)
        elif shifted := self._shifted(results, {*indexes}):
            self._by_index = {}
            self._why_no_index = "an index that seems to count from 1"
            self.problems.append(shifted)

    def _shifted(self, results: Results, indexes: set[int | None]) -> Problem | None:
        """Return a problem if indexes seem to count from 1: without the first, with one too many.

        A text that agrees with its index refutes this.
        """
        n = max(self._by_index) + 1
        if 0 in indexes or n not in indexes or 0 not in self._by_index:
            return None
        for sample in results.samples:
            by_index = None if sample.index is None else self._by_index.get(sample.index)
            if by_index is not None and by_index in self.find(sample)[0]:
                return None
        return Problem(
            str(results.path),
            f"index {n} and no index 0, as if the indexes counted from 1",
            f"indexes from 0 to {n - 1}, as in the report",
            "No row of this file is joined by index. Subtract 1 from each index.",
        )

    def _contradiction(self, results: Results) -> Problem | None:
        """Return a problem if the text of any row is that of another item than its index."""
        wrong = []
        for sample in results.samples:
            by_index = None if sample.index is None else self._by_index.get(sample.index)
            if by_index is None:
                continue
            items, way = self.find(sample)
            if not items:
                items = self._asked_instead(sample, by_index)
            if items and not self._is_compatible(by_index, sample, items, way):
                wrong.append((sample, by_index, items[0]))
        if not wrong:
            return None
        sample, by_index, item = wrong[0]
        return Problem(
            sample.place,
            f"index {sample.index} ({_place(by_index)}) has the text of {_place(item)}; "
            f"{counted(len(wrong), 'such row')}",
            remedy="No row of this file is joined by index.",
        )

    def _asked_instead(self, sample: Sample, item: Item) -> list[Item]:
        """Return the items of another question in the prompt, if the item's own is not in it."""
        asked = [self._items.words(text) for text in texts_in({"prompt": sample.prompt})]
        if any(f" {' '.join(item.words)} " in f" {' '.join(words)} " for words in asked):
            return []
        found = (self._in_part(self._items.with_question_in(words)) for words in asked)
        return next(filter(None, found), [])

    def _share(self, sample: Sample, item: Item) -> float:
        """Return the share of the different words of an item's question that the sample has."""
        words = {word for text in texts_in(sample.doc) for word in self._items.words(text)}
        question = set(item.words)
        return len(question & words) / len(question) if question else 1.0

    def _not_joined(self, sample: Sample, found: str) -> tuple[None, str]:
        expected = f"an item of {self._items.all[0].benchmark}"
        self.problems.append(Problem(sample.place, found, expected, _LEFT_OUT))
        return None, ""


def _place(item: Item) -> str:
    return f"{item.split} {item.instance_index}"
