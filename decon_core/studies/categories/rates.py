"""Leak rates of benchmarks by category, and their averages over the categories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from decon_core.errors import InputError, Problem
from decon_core.similarity.calibration import wilson
from decon_core.studies.categories.groupings import (
    ITEM_COLUMNS,
    NO_CATEGORY,
    Grouping,
    Uncategorized,
    unknown_column,
    value_of_item,
)
from decon_core.studies.statistics import mean_share_interval
from decon_core.studies.tables import rounded
from decon_core.studies.verdicts import ItemRow, ReportItems
from decon_core.wording import percent

CATEGORY = "category"
WITHOUT = "without category"
MICRO = "micro average"
MACRO = "macro average"

_STATUSES = ("leaked", "question-only", "candidate", "not indexable", "not fully scanned")

HEADS = (
    *("benchmark", "split", "by", "category", "items", "leaked", "question-only", "candidates"),
    *("not indexable", "not fully scanned", "rate", "95 % interval"),
)

# Values of items that only the results have: by benchmark, split and instance_index, then column.
ResultValues = Mapping[tuple[str, str, int], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The leak rate of the items of a category, or an average over categories."""

    benchmark: str
    split: str  # empty: all
    by: str
    kind: str
    category: str  # empty in averages
    n_categories: int
    n_items: int
    n_leaked: int
    n_question_only: int
    n_candidates: int
    n_not_indexable: int
    n_not_fully_scanned: int
    leak_rate: float | None  # None: the number of items is unknown, or there is none
    low: float | None
    high: float | None


@dataclass
class LeakRates:
    """Leak rates by category, and what has no category."""

    rates: list[Rate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def leak_rates(
    report: ReportItems,
    groupings: Sequence[Grouping],
    *,
    splits: Mapping[str, Collection[str]] | None = None,
    values: ResultValues | None = None,
) -> LeakRates:
    """Compute leak rates by category for each split of each benchmark.

    `splits`: only these, by benchmark. `values`: those that only results have.
    A category of splits is over all splits.
    """
    found = LeakRates()
    for grouping in groupings:
        by_part: dict[tuple[str, str], list[ItemRow]] = defaultdict(list)
        for row in report.rows:
            is_wanted = splits is None or row.split in splits.get(row.benchmark, ())
            if is_wanted and grouping.covers(row.benchmark):
                split = "" if grouping.column == "split" else row.split
                by_part[row.benchmark, split].append(row)
        for (benchmark, split), rows in sorted(by_part.items()):
            is_known = benchmark not in report.without_total
            _add(found, grouping, (benchmark, split), rows, values or {}, is_known=is_known)
    return found


def require_groupings(
    report: ReportItems, groupings: Sequence[Grouping], of_results: Collection[str] = ()
) -> None:
    """Raise `InputError` for a column that nothing has, and categories of no benchmark here.

    `of_results`: the columns that the rows of results have.
    """
    extras = {name for row in report.rows for name in row.extras}
    benchmarks = sorted({row.benchmark for row in report.rows})
    problems = []
    for one in groupings:
        if one.column not in (*ITEM_COLUMNS, *extras, *of_results):
            problems.append(unknown_column(one.column, extras.union(of_results)))
        if not any(one.covers(benchmark) for benchmark in benchmarks):
            expected = f"categories of a benchmark of the report: {', '.join(benchmarks)}"
            problems.append(Problem(f"--categories {one.name}", "no such benchmark", expected))
    if problems:
        raise InputError(problems)


def _value(row: ItemRow, grouping: Grouping, values: ResultValues) -> str | None:
    columns = {"config": row.config, "split": row.split}
    own = value_of_item(columns, row.extras, grouping.column)
    if own is not None:
        return own
    place = row.benchmark, row.split, row.instance_index
    return values.get(place, {}).get(grouping.column)


def _add(
    found: LeakRates,
    grouping: Grouping,
    part: tuple[str, str],
    rows: Sequence[ItemRow],
    values: ResultValues,
    *,
    is_known: bool,
) -> None:
    """Add the rates of one part of a benchmark, and what has no category."""
    by_category: dict[str, Counter[str]] = defaultdict(Counter)
    without, rest = Uncategorized(), Counter[str]()
    for row in rows:
        value = _value(row, grouping, values)
        category = grouping.category_of(row.benchmark, value)
        status = "leaked" if row.verdict.startswith("leaked") else row.verdict
        if category is None:
            without.add(value)
            rest[status] += 1
        else:
            by_category[category][status] += 1
    if grouping.is_optional and len(by_category) < 2:
        return
    names = grouping.ordered(by_category)
    rate = partial(_rate, part, grouping.name, is_known=is_known)
    found.rates += [rate(CATEGORY, name, [by_category[name]]) for name in names]
    if rest and names and not grouping.is_optional:
        found.rates.append(rate(WITHOUT, NO_CATEGORY, [rest]))
    for kind in (MICRO, MACRO) if names else ():
        found.rates.append(rate(kind, "", [by_category[name] for name in names]))
    where = f"{' '.join(filter(None, part))}, by {grouping.name}"
    if not grouping.is_optional:
        found.problems += without.problems(where, grouping, has_others=bool(names))


def _rate(
    part: tuple[str, str],
    by: str,
    kind: str,
    category: str,
    counts: Sequence[Counter[str]],
    *,
    is_known: bool,
) -> Rate:
    total = sum(counts, Counter())
    n_items = total.total()
    share = low = high = None
    if is_known and kind == MACRO:
        shares = [(one["leaked"], one.total()) for one in counts]
        share = sum(hits / n for hits, n in shares) / len(shares)
        low, high = mean_share_interval(shares)
    elif is_known:
        share = total["leaked"] / n_items
        low, high = wilson(share, n_items)
    numbers = (total[status] for status in _STATUSES)
    leaked, question_only, candidates, not_indexable, not_fully_scanned = numbers
    return Rate(
        benchmark=part[0],
        split=part[1],
        by=by,
        kind=kind,
        category=category,
        n_categories=len(counts) if kind in (MICRO, MACRO) else 1,
        n_items=n_items,
        n_leaked=leaked,
        n_question_only=question_only,
        n_candidates=candidates,
        n_not_indexable=not_indexable,
        n_not_fully_scanned=not_fully_scanned,
        leak_rate=share,
        low=low,
        high=high,
    )


def rate_row(one: Rate) -> dict[str, object]:
    """Return a rate as a flat row for JSON and CSV, rounded for any processor."""
    return {name: rounded(value) for name, value in asdict(one).items()}


def rate_lines(rates: Sequence[Rate]) -> Iterator[tuple[str, ...]]:
    """Format rates as rows under HEADS."""
    for one in rates:
        average = f"{one.kind} of {one.n_categories}"
        counts = (one.n_items, one.n_leaked, one.n_question_only, one.n_candidates)
        rare = (one.n_not_indexable, one.n_not_fully_scanned)
        yield (
            *(one.benchmark, one.split, one.by, one.category or average),
            *(f"{n:,}" for n in counts),
            *(f"{n:,}" if n else "" for n in rare),
            percent(one.leak_rate),
            "–" if one.low is None else f"{percent(one.low)} to {percent(one.high)}",
        )
