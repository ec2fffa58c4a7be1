"""What items are grouped by: a column, or categories of its values.

Files that map values to categories are YAML, JSON, CSV or TSV, or built-in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from decon_core.benchmarks.catalog import FOLDER
from decon_core.benchmarks.fields import FieldError, Row, describe, text_of, value_at
from decon_core.benchmarks.parse import YamlSource
from decon_core.benchmarks.readers import is_readable, read_rows
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
_ENDINGS = ".yaml, .yml, .json, .csv or .tsv"
_TABLE = "the columns value and category, optionally benchmark and column"


@dataclass(frozen=True)
class Rule:
    """A value of a column and its category; `*` in a value or benchmark matches anything."""

    value: str
    category: str
    benchmark: str = "*"


@dataclass
class Categories:
    """The rules of one file."""

    name: str
    column: str | None  # the column of the values; None: the file does not say
    rules: tuple[Rule, ...]
    _known: dict[tuple[str, str], str | None] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> list[str]:
        """The categories in the order of the file."""
        return [*dict.fromkeys(rule.category for rule in self.rules)]

    def covers(self, benchmark: str) -> bool:
        """Return whether any rule is about a benchmark."""
        return any(fnmatchcase(benchmark, rule.benchmark) for rule in self.rules)

    def category_of(self, benchmark: str, value: str) -> str | None:
        """Return the category of a value; a rule with just this value precedes a pattern."""
        key = benchmark, value
        if key not in self._known:
            rules = [rule for rule in self.rules if fnmatchcase(benchmark, rule.benchmark)]
            exact = [rule for rule in rules if rule.value == value]
            fitting = exact or [rule for rule in rules if fnmatchcase(value, rule.value)]
            self._known[key] = fitting[0].category if fitting else None
        return self._known[key]


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
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        source = YamlSource(path, path.read_bytes())
        if source.problems:
            raise InputError(source.problems)
        return _declared(path.stem, str(path), source.value)
    if suffix == ".json":
        try:
            value = json.loads(path.read_text(encoding="utf-8-sig"))
        except ValueError as error:
            found = f"text that is not JSON ({error})"
            raise InputError(Problem(str(path), found, "a JSON object")) from None
        return _declared(path.stem, str(path), value)
    if is_readable(path):
        return _from_table(path)
    raise InputError(Problem(str(path), "another kind of file", f"a name that ends in {_ENDINGS}"))


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
    rules = [
        Rule(member, category, str(benchmark))
        for member, category in pairs
        for benchmark in benchmarks
    ]
    return _checked(name, where, str(column) if column else None, rules, problems)


def _from_table(path: Path) -> Categories:
    problems: list[Problem] = []
    rules: list[Rule] = []
    columns: set[str] = set()
    for number, row in enumerate(read_rows(path), start=1):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        cells = {str(name).strip().lower(): str(cell or "").strip() for name, cell in row.items()}
        if not (cells.get("value") and cells.get("category")):
            missing = [name for name in ("value", "category") if not cells.get(name)]
            found = f"no {' and no '.join(missing)} (the columns are {', '.join(cells)})"
            problems.append(Problem(f"{path} row {number}", found, _TABLE))
            continue
        rules.append(Rule(cells["value"], cells["category"], cells.get("benchmark") or "*"))
        columns |= {cells["column"]} if cells.get("column") else set()
    if len(columns) > 1:
        found = f"values of several columns: {', '.join(sorted(columns))}"
        problems.append(Problem(str(path), found, "one column", "Write one file for each column."))
    column = min(columns) if columns else None
    return _checked(path.stem, str(path), column, rules, problems)


def _checked(
    name: str, where: str, column: str | None, rules: Iterable[Rule], problems: list[Problem]
) -> Categories:
    """Return the categories; raise if there are none, or a value has two."""
    by_value: dict[tuple[str, str], str] = {}
    for rule in rules:
        first = by_value.setdefault((rule.benchmark, rule.value), rule.category)
        if first != rule.category:
            found = f"{rule.value!r} in the categories {first!r} and {rule.category!r}"
            problems.append(Problem(where, found, "one category for each value"))
    if not by_value and not problems:
        problems.append(Problem(where, "no values", "values and their categories"))
    InputError.raise_for(problems)
    kept = (Rule(value, category, benchmark) for (benchmark, value), category in by_value.items())
    return Categories(name, column, tuple(kept))
