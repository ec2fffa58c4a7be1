"""What items are grouped by: a column, or categories of its values.

Files that map values to categories are YAML or JSON, or built-in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from decon_core.benchmarks.catalog import FOLDER
from decon_core.benchmarks.fields import FieldError, Row, describe, text_of, value_at
from decon_core.benchmarks.parse import YamlSource
from decon_core.config.validation import did_you_mean
from decon_core.errors import InputError, Problem
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
        return self.categories.category_of(value) if self.covers(benchmark) else None

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


def problems_without_category(
    where: str, grouping: Grouping, values: Counter[str | None], *, has_others: bool
) -> Iterator[Problem]:
    """Yield what had no category, with counts and the most common values; None is no value."""
    remedy = "The benchmark has no averages."
    if has_others:
        remedy = f"They are counted as {NO_CATEGORY!r} and left out of averages."
    if n_without := values[None]:
        found = f"{counted(n_without, 'item')} without a value for {grouping.column!r}"
        yield Problem(where, found, "a text, a number or a boolean", remedy)
    others = [(value, times) for value, times in values.items() if value is not None]
    if others:
        n = counted(values.total() - n_without, "item")
        most = sorted(others, key=lambda value: (-value[1], value[0]))
        names = ", ".join(f"{value!r} ({times:,})" for value, times in most[:_MOST_LISTED])
        rest = f" and {len(most) - _MOST_LISTED} more" if len(most) > _MOST_LISTED else ""
        found = f"{n} with values in no category: {names}{rest}"
        expected = f"values that {grouping.name!r} assigns to a category"
        yield Problem(where, found, expected, remedy)


BUILT_IN_PATH = FOLDER.with_name("categories.yaml")

_KEYS = ("benchmarks", "column", "categories")
_ENDINGS = (".yaml", ".yml", ".json")  # JSON is YAML as well


@dataclass(frozen=True)
class Categories:
    """The categories of one file; `*` in a value or benchmark matches anything."""

    name: str
    column: str | None  # the column of the values; None: the file does not say
    benchmarks: Sequence[str]
    by_value: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The categories in the order of the file."""
        return [*dict.fromkeys(self.by_value.values())]

    def covers(self, benchmark: str) -> bool:
        return any(fnmatchcase(benchmark, pattern) for pattern in self.benchmarks)

    def category_of(self, value: str) -> str | None:
        """Return the category of a value; just this value precedes a pattern."""
        if value in self.by_value:
            return self.by_value[value]
        fitting = (pattern for pattern in self.by_value if fnmatchcase(value, pattern))
        return self.by_value.get(next(fitting, ""))


@cache
def built_in() -> Mapping[str, Mapping[str, object]]:
    """Return the declarations of categories.yaml by name."""
    value = YamlSource(BUILT_IN_PATH, BUILT_IN_PATH.read_bytes()).value
    return value if isinstance(value, Mapping) else {}


def load_categories(name: str) -> Categories:
    """Load a file, or built-in categories by their name; `InputError` has all problems."""
    path = Path(name)
    if name in built_in():
        return _declared(name, name, built_in()[name])
    if not path.is_file():
        known = f"a file, or one of {', '.join(built_in())}"
        remedy = did_you_mean(name, built_in())
        raise InputError(Problem(f"--categories {name}", "no such file", known, remedy))
    if path.suffix.lower() not in _ENDINGS:
        expected = f"a name that ends in {', '.join(_ENDINGS)}"
        raise InputError(Problem(str(path), "another kind of file", expected))
    source = YamlSource(path, path.read_bytes())
    InputError.raise_for(source.problems)
    return _declared(path.stem, str(path), source.value)


def _declared(name: str, where: str, value: object) -> Categories:
    """Build the categories of an object: a declaration, or values or categories by name."""
    if not isinstance(value, Mapping):
        expected = "an object: `category: [values]` or `value: category`"
        raise InputError(Problem(where, describe(value), expected))
    problems: list[Problem] = []
    is_declaration = isinstance(value.get("categories"), Mapping)
    for key in value if is_declaration else ():
        if key not in _KEYS:
            expected, remedy = f"one of {', '.join(_KEYS)}", did_you_mean(key, _KEYS)
            problems.append(Problem(where, f"unknown key {key!r}", expected, remedy))
    entries = value["categories"] if is_declaration else value
    column = value.get("column") if is_declaration else None
    benchmarks = (value.get("benchmarks") if is_declaration else None) or ["*"]
    if not isinstance(benchmarks, list | tuple):
        benchmarks = [benchmarks]
    if column is not None and not isinstance(column, str):
        problems.append(Problem(f"{where}: column", describe(column), "the name of a column"))
    pairs: list[tuple[str, str]] = []  # a value and its category
    for key, entry in entries.items():
        if isinstance(entry, list | tuple):
            pairs += [(str(member), str(key)) for member in entry]
        elif isinstance(entry, str | int | float):
            pairs.append((str(key), str(entry)))
        else:
            expected = "a category, or a list of its values"
            problems.append(Problem(f"{where}: {key}", describe(entry), expected))
    by_value: dict[str, str] = {}
    for member, category in pairs:
        if (first := by_value.setdefault(member, category)) != category:
            found = f"{member!r} in the categories {first!r} and {category!r}"
            problems.append(Problem(where, found, "one category for each value"))
    if not by_value and not problems:
        problems.append(Problem(where, "no values", "values and their categories"))
    InputError.raise_for(problems)
    named = [str(benchmark) for benchmark in benchmarks]
    return Categories(name, str(column) if column else None, named, by_value)
