"""Read results, find their items in a report, and compute the gaps of models and categories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import InputError, Problem
from decon_core.features.gap.gaps import Average, Gap, Name, Scores, average_of, gap_of
from decon_core.features.results.find import find_results
from decon_core.features.results.items import (
    GROUPS,
    NOT_JOINED,
    Item,
    Items,
    in_part,
    indexed_items,
)
from decon_core.features.results.join import Joined, join
from decon_core.features.results.per_item import Sample, texts_in
from decon_core.features.results.scales import Part, mix_of_scales
from decon_core.features.results.tasks import Task, parse_task_mappings
from decon_core.report.categories.groupings import (
    ITEM_COLUMNS,
    NO_CATEGORY,
    PARTS,
    Grouping,
    value_in,
    value_of_item,
)
from decon_core.report.categories.rates import Rate, leak_rates, require_groupings
from decon_core.report.items import ReportItems, about_detectors, load_report_items
from decon_core.wording import counted


@dataclass
class ScoreGaps:
    """The gaps of all results, and everything that was left out of them."""

    report: Mapping[str, object]
    problems: list[Problem]
    others: list[str]  # files without results
    earlier: list[str]  # files of runs before the latest
    gaps: list[Gap] = field(default_factory=list)
    averages: list[Average] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    joins: list[Joined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # on the chosen detectors, and on doubts


_REMEDY = (
    "Divide scores from 0 to 100 by 100 in the results, or pass only results on one scale to "
    "--results. If the scores of 1 or less are low scores on the larger scale, name their tasks "
    "with --beyond-one."
)

_Row = tuple[str, float]  # verdict and score
_TaskFile = tuple[str, str]
_Asked = tuple[str, str, str, str]  # model, benchmark, split and setting


def score_gap(
    paths: Sequence[Path],
    report: Path,
    *,
    tasks: Sequence[str] = (),
    recipes: Mapping[str, Recipe] | None = None,
    groupings: Sequence[Grouping] = (PARTS,),
    detectors: Sequence[str] = (),
    beyond_one: Sequence[str] = (),
) -> ScoreGaps:
    """Read results, find their items in a report, and compare scores by verdict.

    `groupings`: what categories items have. `detectors`: whose verdicts count, instead of the
    report's decision. `beyond_one`: tasks whose scores are not of 0 to 1, though some are not above
    1. Raises `InputError` if scores on different scales would be averaged.
    """
    items = load_report_items(report, detectors)
    benchmarks = indexed_items(items, groupings)
    mappings = parse_task_mappings(tasks, benchmarks)
    files = find_results(paths)
    made_with = {"state": items.state, "detectors": [*detectors]}
    account = ScoreGaps(made_with, files.problems, files.others, files.earlier)
    account.notes = about_detectors(items, detectors)
    gathered = _Gathered(groupings, account.problems)
    for joined in join(files.results, benchmarks, mappings, recipes or {}):
        account.problems += [*joined.results.problems, *joined.problems]
        account.notes += filter(None, [joined.note])
        if task := joined.task:
            joined.n_repeated = gathered.add(joined, task, benchmarks[task.benchmark])
        if joined.task or joined.results.samples:
            account.joins.append(joined)
    gathered.require_one_scale(beyond_one)
    account.notes += gathered.notes_on_missing()
    _add_rates(account, items, gathered)
    for name, rows in sorted(gathered.scores.items()):
        account.gaps.append(gap_of(name, Scores(row for _, row in rows)))
        for at, grouping in enumerate(groupings):
            if grouping.covers(name.benchmark):
                categorized = [(categories[at], row) for categories, row in rows]
                _add_categories(account, name, grouping, categorized)
    return account


class _Gathered:
    """The scores of all results by name, with the categories of their items."""

    def __init__(self, groupings: Sequence[Grouping], problems: list[Problem]) -> None:
        # Rows with a category of each grouping.
        self.scores: dict[Name, list[tuple[tuple[str | None, ...], _Row]]] = defaultdict(list)
        # Values of items that only the results have: by benchmark, split and index, then column.
        self.values: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
        self.groupings = groupings
        self.columns: set[str] = set()  # columns of the rows
        self._problems = problems
        self._seen: dict[tuple[object, ...], str] = {}
        # Joined items of a model on a benchmark, split and setting, and those that there are.
        self._joined: dict[_Asked, set[int]] = defaultdict(set)
        self._asked: dict[_Asked, set[int]] = defaultdict(set)
        # The highest score of each name, by task and file.
        self._highest: dict[Name, dict[_TaskFile, float]] = defaultdict(dict)

    def notes_on_missing(self) -> Iterator[str]:
        """Yield a note for each benchmark of which a model has results for a part of the items."""
        for asked, joined in self._joined.items():
            n_items, (model, benchmark, split, setting) = len(self._asked[asked]), asked
            if 0 < len(joined) < n_items:
                name = setting if setting == benchmark else f"{setting}, {benchmark}"
                yield (
                    f"{', '.join(filter(None, (model, name, split)))}: results for "
                    f"{len(joined):,} of {counted(n_items, 'item')} of the report."
                )

    def add(self, joined: Joined, task: Task, items: Items) -> int:
        """Add the scores of a file; a second score of an item under one name is not counted.

        Returns the number of rows that were not counted for that reason. `items`: of the benchmark.
        """
        run = joined.results.model_at_step, task.benchmark, joined.split or "", task.setting
        answered = [item for _, item in joined.pairs if item is not None]
        self._joined[run] |= {*map(id, answered)}
        for split in {joined.split} if joined.split else {item.split for item in answered}:
            self._asked[run] |= {*map(id, in_part(items.all, split, task.config))}
        twice: dict[str, Problem] = {}
        of = joined.results.task, str(joined.results.path)
        for sample, item in joined.pairs:
            categories = self._categories(sample, item, task, joined.split)
            for metric, score in sample.scores.items():
                name = Name(*run, sample.filter, metric)
                if item is not None:
                    question = texts_in(sample.doc) if item.has_several else ()
                    first = self._seen.setdefault((name, id(item), question), sample.place)
                    if first != sample.place:
                        again = f"{item.benchmark} {item.split} {item.instance_index} again"
                        found, remedy = f"{again} (first: {first})", "Only the first one counts."
                        expected = "each item once per model, task, filter and metric"
                        problem = Problem(sample.place, found, expected, remedy)
                        twice.setdefault(sample.place, problem)
                        continue
                verdict = NOT_JOINED if item is None else item.verdict
                self.scores[name].append((categories, (verdict, score)))
                highest = self._highest[name]
                highest[of] = max(score, highest.get(of, score))
        self._problems += twice.values()
        return len(twice)

    def require_one_scale(self, beyond_one: Sequence[str]) -> None:
        """Raise InputError if a line would average scores on different scales."""
        mixes = []
        for name, highest in self._highest.items():
            where = f"gap, {name.metric} of {name.benchmark} by {name.model}"
            parts = (
                Part(task=task, metric=name.metric, place=place, highest=score)
                for (task, place), score in highest.items()
            )
            mixes.append(mix_of_scales(where, parts, beyond_one, _REMEDY))
        InputError.raise_for(filter(None, mixes))

    def _categories(
        self, sample: Sample, item: Item | None, task: Task, split: str | None
    ) -> tuple[str | None, ...]:
        """Return the category of a row in each grouping: by its item, else by the row itself."""
        categories: list[str | None] = []
        for at, grouping in enumerate(self.groupings):
            if item is not None and item.values[at] is not None:
                value = item.values[at]
            elif item is None and grouping.column in ITEM_COLUMNS:
                value = value_of_item({"config": task.config, "split": split}, {}, grouping.column)
            else:
                value = self._value_in_results(sample, item, grouping.column)
            categories.append(grouping.category_of(task.benchmark, value))
        return tuple(categories)

    def _value_in_results(self, sample: Sample, item: Item | None, column: str) -> str | None:
        """Return the value in a row; where rows differ on an item, the first one counts."""
        if column in ITEM_COLUMNS:
            return None
        value = value_in(sample.columns, column)
        value = value_in(sample.doc, column) if value is None else value
        self.columns.update(map(str, [*sample.columns, *sample.doc]))
        if value is None:
            return None
        self.columns.add(column)
        if item is None:
            return value
        known = self.values[item.benchmark, item.split, item.instance_index]
        first = known.setdefault(column, value)
        if first != value:
            found = f"the value {value!r} of {column!r}; another row of the item has {first!r}"
            remedy = "The first one counts."
            self._problems.append(Problem(sample.place, found, "one value per item", remedy))
        return first


def _add_categories(
    account: ScoreGaps, name: Name, grouping: Grouping, rows: Sequence[tuple[str | None, _Row]]
) -> None:
    """Add the gap of each category, of what has none, and the averages."""
    by_category: dict[str, list[_Row]] = defaultdict(list)
    rest: list[_Row] = []
    for category, row in rows:
        (rest if category is None else by_category[category]).append(row)
    if not by_category or (grouping.is_optional and len(by_category) < 2):
        return
    scores = {category: Scores(by_category[category]) for category in grouping.ordered(by_category)}
    by = grouping.name
    for category, of_category in scores.items():
        account.gaps.append(gap_of(name, of_category, subset=category, by=by))
    if rest and not grouping.is_optional:
        account.gaps.append(gap_of(name, Scores(rest), subset=NO_CATEGORY, by=by))
    joined = {key: own for key, own in scores.items() if own.of(GROUPS["all"]).size}
    if joined:
        together = Scores(row for category in joined for row in by_category[category])
        n_rest = Scores(rest).of(GROUPS["all"]).size
        account.averages.append(average_of(name, by, joined, together, n_without=n_rest))


def _add_rates(account: ScoreGaps, items: ReportItems, gathered: _Gathered) -> None:
    """Add leak rates by category, of the splits that the results are about."""
    groupings = gathered.groupings
    require_groupings(items, groupings, gathered.columns)
    all_splits: dict[str, set[str]] = defaultdict(set)
    for row in items.rows:
        all_splits[row.benchmark].add(row.split)
    splits: dict[str, set[str]] = defaultdict(set)
    for joined in account.joins:
        if task := joined.task:
            # Results that are not of one split may be about any.
            splits[task.benchmark] |= {joined.split} if joined.split else all_splits[task.benchmark]
    leaks = leak_rates(items, groupings, splits=splits, values=gathered.values)
    account.rates = leaks.rates
    account.problems += leaks.problems
