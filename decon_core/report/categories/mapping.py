"""Read files that map the values of a column to categories: YAML, JSON, CSV or TSV, or built-in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from decon_core.benchmarks.catalog import FOLDER
from decon_core.benchmarks.fields import describe
from decon_core.benchmarks.parse import YamlSource
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.config.validation import did_you_mean
from decon_core.errors import InputError, Problem

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
