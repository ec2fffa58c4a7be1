"""Leak rates of benchmarks by category, and their averages over the categories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from decon_core.config.validation import did_you_mean
from decon_core.decisions.statistics import mean_share_interval
from decon_core.errors import InputError, Problem
from decon_core.report.categories.groupings import (
    ITEM_COLUMNS,
    NO_CATEGORY,
    Grouping,
    problems_without_category,
    value_of_item,
)
from decon_core.report.items import (
    LEAKED,
    NO_ANSWER,
    NOT_FULLY_SCANNED,
    REVIEW,
    ItemRow,
    ReportItems,
)
from decon_core.text_tables import rounded
from decon_core.wording import bounds, percent

CATEGORY = "category"
WITHOUT = "without category"
MICRO = "micro average"
MACRO = "macro average"

HEADS = (
    "benchmark", "split", "by", "category", "items", "leaked", "no answer", "review",
    "not fully scanned", "leaked of checkable", "rate", "95 % interval", "of all items",
)  # fmt: skip

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
    n_no_answer: int
    n_review: int
    n_checkable: int | None  # items that a detector can find; None: the total is unknown
    n_leaked_checkable: int | None  # those of them that leaked
    n_not_fully_scanned: int
    # None: the number of items is unknown, or none can be found. A macro average is of the
    # categories of which items can be found.
    leak_rate: float | None  # leak rate of the items that can be found
    low: float | None
    high: float | None
    at_least: float | None  # share of all items, if those that cannot be found did not leak
    at_most: float | None  # and if all of them did


@dataclass
class LeakRates:
    """Leak rates by category, and what has no category."""

    rates: list[Rate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _Counts:
    """How many items of a category have a status, and can be found."""

    rows: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def add(self, row: ItemRow) -> None:
        status = LEAKED if row.verdict.startswith(LEAKED) else row.verdict
        self.rows[status, row.is_checkable] += 1

    def n(self, status: str) -> int:
        return self.rows[status, True] + self.rows[status, False]

    @property
    def n_items(self) -> int:
        return self.rows.total()

    @property
    def n_checkable(self) -> int:
        return sum(n for (_, is_checkable), n in self.rows.items() if is_checkable)

    @property
    def n_unknown(self) -> int:
        """The items that cannot be found and were not."""
        return self.n_items - self.n_checkable - self.rows[LEAKED, False]


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
    columns = sorted({*ITEM_COLUMNS, *extras, *of_results})
    expected_columns = f"a column of the items or of the results: {', '.join(columns)}"
    benchmarks = sorted({row.benchmark for row in report.rows})
    problems = []
    for grouping in groupings:
        column = grouping.column
        if column not in columns:
            found, remedy = f"no column {column!r}", did_you_mean(column, columns)
            problems.append(Problem("--by, --categories", found, expected_columns, remedy))
        if not any(grouping.covers(benchmark) for benchmark in benchmarks):
            expected = f"categories of a benchmark of the report: {', '.join(benchmarks)}"
            problems.append(Problem(f"--categories {grouping.name}", "no such benchmark", expected))
    InputError.raise_for(problems)


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
    by_category: dict[str, _Counts] = defaultdict(_Counts)
    without: Counter[str | None] = Counter()
    rest = _Counts()
    for row in rows:
        columns = {"config": row.config, "split": row.split}
        value = value_of_item(columns, row.extras, grouping.column)
        if value is None:
            place = row.benchmark, row.split, row.instance_index
            value = values.get(place, {}).get(grouping.column)
        category = grouping.category_of(row.benchmark, value)
        if category is None:
            without[value] += 1
            rest.add(row)
        else:
            by_category[category].add(row)
    if grouping.is_optional and len(by_category) < 2:
        return
    names = grouping.ordered(by_category)
    rate = partial(_rate, part, grouping.name, is_known=is_known)
    found.rates += [rate(CATEGORY, name, [by_category[name]]) for name in names]
    if rest.n_items and names and not grouping.is_optional:
        found.rates.append(rate(WITHOUT, NO_CATEGORY, [rest]))
    for kind in (MICRO, MACRO) if names else ():
        found.rates.append(rate(kind, "", [by_category[name] for name in names]))
    where = f"{' '.join(filter(None, part))}, by {grouping.name}"
    if not grouping.is_optional:
        found.problems += problems_without_category(
            where, grouping, without, has_others=bool(names)
        )


def _rate(
    part: tuple[str, str],
    by: str,
    kind: str,
    category: str,
    counts: Sequence[_Counts],
    *,
    is_known: bool,
) -> Rate:
    total = _Counts(sum((count.rows for count in counts), Counter()))
    share = low = high = at_least = at_most = None
    groups = counts if kind == MACRO else [total]
    if is_known:
        at_least = sum(group.n(LEAKED) / group.n_items for group in groups) / len(groups)
        n_at_most = [(group.n(LEAKED) + group.n_unknown, group.n_items) for group in groups]
        at_most = sum(n / n_items for n, n_items in n_at_most) / len(groups)
        shares = [
            (group.rows[LEAKED, True], group.n_checkable) for group in groups if group.n_checkable
        ]
        if shares:
            share = sum(hits / n for hits, n in shares) / len(shares)
            low, high = mean_share_interval(shares)
    return Rate(
        benchmark=part[0],
        split=part[1],
        by=by,
        kind=kind,
        category=category,
        n_categories=len(counts) if kind in (MICRO, MACRO) else 1,
        n_items=total.n_items,
        n_leaked=total.n(LEAKED),
        n_no_answer=total.n(NO_ANSWER),
        n_review=total.n(REVIEW),
        n_checkable=total.n_checkable if is_known else None,
        n_leaked_checkable=total.rows[LEAKED, True] if is_known else None,
        n_not_fully_scanned=total.n(NOT_FULLY_SCANNED),
        leak_rate=share,
        low=low,
        high=high,
        at_least=at_least,
        at_most=at_most,
    )


def rate_row(rate: Rate) -> dict[str, object]:
    """Return a rate as a flat row for JSON and CSV, rounded for any processor."""
    return {name: rounded(value) for name, value in asdict(rate).items()}


def rate_lines(rates: Sequence[Rate]) -> Iterator[tuple[str, ...]]:
    """Format rates as rows under HEADS."""
    for rate in rates:
        average = f"{rate.kind} of {rate.n_categories}"
        counts = (rate.n_items, rate.n_leaked, rate.n_no_answer, rate.n_review)
        n_not_scanned = rate.n_not_fully_scanned
        yield (
            rate.benchmark,
            rate.split,
            rate.by,
            rate.category or average,
            *(f"{n:,}" for n in counts),
            f"{n_not_scanned:,}" if n_not_scanned else "",
            "–"
            if rate.n_checkable is None
            else f"{rate.n_leaked_checkable:,} of {rate.n_checkable:,}",
            percent(rate.leak_rate),
            "–" if rate.low is None else f"{percent(rate.low)} to {percent(rate.high)}",
            "–" if rate.at_least is None else bounds(rate.at_least, rate.at_most),
        )
