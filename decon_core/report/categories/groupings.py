"""What items are grouped by: a column, or categories of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from decon_core.benchmarks.fields import FieldError, Row, text_of, value_at
from decon_core.errors import InputError, Problem
from decon_core.report.categories.mapping import Categories, load_categories
from decon_core.wording import counted

NO_CATEGORY = "(no category)"

# Columns that every item has; the others are fields that a recipe keeps, or are in the results.
ITEM_COLUMNS = ("config", "split")

_MOST_LISTED = 5


@dataclass(frozen=True)
class Grouping:
    """A column of the items, and the categories of its values if they are grouped further."""

    name: str
    column: str
    categories: Categories | None = None
    is_optional: bool = False  # only for benchmarks with several values; others are not reported

    def covers(self, benchmark: str) -> bool:
        return self.categories is None or self.categories.covers(benchmark)

    def category_of(self, benchmark: str, value: str | None) -> str | None:
        """Return the category of a value; None if it has none."""
        if value is None or self.categories is None:
            return value
        return self.categories.category_of(benchmark, value)

    def ordered(self, categories: Iterable[str]) -> list[str]:
        """Sort categories: those of a file in its order, values of a column by name."""
        ranks = {
            name: at for at, name in enumerate(self.categories.names if self.categories else ())
        }
        return sorted({*categories}, key=lambda name: (ranks.get(name, 0), name))


PARTS = Grouping("config", "config", is_optional=True)


def parse_groupings(by: Sequence[str], categories: Sequence[str]) -> tuple[Grouping, ...]:
    """Return the groupings of `--by` and `--categories`.

    The values in a file that names no column are those of the only column of `--by`, or of
    `config`.
    """
    columns = [*dict.fromkeys(by)]
    groupings: list[Grouping] = []
    grouped: set[str] = set()
    problems: list[Problem] = []
    for name in dict.fromkeys(categories):
        try:
            loaded = load_categories(name)
        except InputError as error:
            problems += error.problems
            continue
        if loaded.column is None and len(columns) > 1:
            found = f"no column in the file, and --by {','.join(columns)}"
            remedy = "Name the column in the file, or give one --by."
            problems.append(Problem(f"--categories {name}", found, "one column", remedy))
            continue
        column = loaded.column or (columns[0] if columns else "config")
        grouped |= set() if loaded.column else {column}
        groupings.append(Grouping(loaded.name, column, loaded))
    of_columns = [Grouping(column, column) for column in columns if column not in grouped]
    groupings = [*of_columns, *groupings]
    names = Counter(grouping.name for grouping in groupings)
    for name, n in names.items():
        if n > 1:
            remedy = "Rename a file."
            problems.append(Problem("--by, --categories", f"{name!r} twice", "other names", remedy))
    InputError.raise_for(problems)
    return tuple(groupings)


def value_in(row: Row, column: str) -> str | None:
    """Return a value of a row as text; None if it has none, or a list or an object."""
    try:
        return text_of(value_at(row, column), column)
    except FieldError:
        return None


def value_of_item(columns: Mapping[str, str | None], extras: Row, column: str) -> str | None:
    """Return the value of an item's column; `columns`: those that every item has."""
    return columns[column] if column in columns else value_in(extras, column)


@dataclass
class Uncategorized:
    """What had no category: without a value, and by value that the categories lack."""

    n_without_value: int = 0
    by_value: Counter[str] = field(default_factory=Counter)

    def add(self, value: str | None) -> None:
        if value is None:
            self.n_without_value += 1
        else:
            self.by_value[value] += 1

    def problems(self, where: str, grouping: Grouping, *, has_others: bool) -> list[Problem]:
        """Return what had no category, with counts and the most common values."""
        problems = []
        remedy = "The benchmark has no averages."
        if has_others:
            remedy = f"They are counted as {NO_CATEGORY!r} and left out of averages."
        if self.n_without_value:
            n = counted(self.n_without_value, "item")
            found = f"{n} without a value for {grouping.column!r}"
            problems.append(Problem(where, found, "a text, a number or a boolean", remedy))
        if self.by_value:
            n = counted(self.by_value.total(), "item")
            most = sorted(self.by_value.items(), key=lambda value: (-value[1], value[0]))
            names = ", ".join(f"{value!r} ({times:,})" for value, times in most[:_MOST_LISTED])
            rest = f" and {len(most) - _MOST_LISTED} more" if len(most) > _MOST_LISTED else ""
            found = f"{n} with values in no category: {names}{rest}"
            expected = f"values that {grouping.name!r} assigns to a category"
            problems.append(Problem(where, found, expected, remedy))
        return problems
