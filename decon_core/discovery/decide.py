"""Decide how the rows of a benchmark are read: by the catalog first, then by evidence.

A public benchmark is recognized by its fields: the recipe of the catalog that explains most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from decon_core.benchmarks.catalog import entries_by_key
from decon_core.benchmarks.fields import FieldError, Row, value_at
from decon_core.benchmarks.parse import expanded
from decon_core.discovery.columns import Column, columns_of, words_of
from decon_core.discovery.evidence import has_role, is_named, may_be_passage, read_by_evidence
from decon_core.discovery.reading import (
    ANSWERS,
    OpenChoice,
    Reading,
    field_names,
    prefixes,
    records_of,
)

_READ = ("prompt", "prompts", "source", "target", "both_directions", "passage", *ANSWERS)
_KEPT = ("dataset_name_field", "extra_fields", "tests")
_SPECIFIC = 3  # fields: that many are no coincidence
_MOST_NAMED = 3
_FEW = 3  # rows that may ask the same


def reading_of(
    rows: Sequence[Row], named: Sequence[str] = (), *, benchmark: str = ""
) -> Reading | OpenChoice:
    """Return how to read the rows; `named`: the names that `init` gave to columns without any.

    Of recipes that read the rows alike, that of the `benchmark` is named first.
    """
    reading = _as_published(rows, benchmark) or read_by_evidence(rows)
    if named and isinstance(reading, Reading):
        why = f"the file does not name its columns; here they are called {', '.join(named)}"
        return Reading(reading.keys, (why, *reading.why), reading.doubts)
    return reading


def _as_published(rows: Sequence[Row], benchmark: str) -> Reading | None:
    """Return the reading of the catalog's recipe that explains most fields, if it convinces."""
    columns = [column for column in columns_of(rows) if column.values]
    matches = _matches_of(rows)
    if not matches:
        return None
    best = max(matches, key=lambda match: len(_texts(match, rows)))
    if len({text[0] for text in _texts(best, rows)}) == 1 < _FEW < len(rows):
        return None  # an instruction that is the same in all rows is no question
    rest = [
        column for column in columns if "." not in column.name and column.name not in best.explained
    ]
    missed = [column for column in rest if has_role(column)]
    is_specific = len(best.explained) >= _SPECIFIC
    if _answers_with_letters(best, columns) or (missed and not is_specific):
        return None
    is_alone = not any(column.is_prose or is_named(column) for column in rest)
    if best.n_required == 1 and not (is_specific or is_alone):
        return None
    expected = _texts(best, rows)
    same = [match.name for match in matches if _texts(match, rows) == expected]
    same.sort(key=lambda name: name != benchmark)
    others = [match.name for match in matches if not {*_texts(match, rows)} <= {*expected}]
    doubts = [f"the fields also match {name}, which reads them differently" for name in others[:1]]
    if best.n_required < _SPECIFIC:
        unsure = [column for column in rest if column in missed or may_be_passage(column)]
        doubts += [f"{column.name} is not read, but may belong to the item" for column in unsure]
    if rest and len(best.explained) == 1:
        doubts.append("only one of several fields is read")
    why = f"the fields {', '.join(sorted(best.explained))} are read as in the catalog's recipe"
    spelling = "" if best.is_exact else ", where they are spelled differently"
    listed = ", ".join(same[:_MOST_NAMED])
    n_more = len(same) - _MOST_NAMED
    listed += f" and {n_more} more" if n_more > 0 else ""
    unread = [f"not read: {', '.join(map(str, rest))}"] if rest else []
    return Reading(best.keys, (f"{why} {listed}{spelling}", *unread), tuple(doubts))


def _texts(match: Match, rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return what the records of a recipe hold."""
    keys = ("question", "passage", "answer", "is_correct")
    records = records_of(_only_read(match.keys), rows)
    return [tuple(record[key] for key in keys) for record in records]


def _answers_with_letters(match: Match, columns: Sequence[Column]) -> bool:
    """Return whether a plain answer of the recipe is a letter here, which points to a choice."""
    answers: Any = next((match.keys[key] for key in ANSWERS if key in match.keys), [])
    listed = answers if isinstance(answers, list) else [answers]
    simple = [answer for answer in listed if isinstance(answer, str) or "field" in answer]
    names = {*field_names(simple)}
    return any(column.name in names and column.has_letters for column in columns)


# Recipes of the catalog ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """A recipe of the catalog whose fields the rows have, with their spelling."""

    name: str
    keys: Mapping[str, object]
    explained: frozenset[str]  # fields of the rows, without those inside of objects
    is_exact: bool  # whether the fields are spelled as published
    n_required: int

    @property
    def rank(self) -> tuple[bool, int]:
        return not self.is_exact, -len(self.explained)


def _matches_of(rows: Sequence[Row]) -> list[Match]:
    """Return the recipes that read all these rows, and explain most of their fields."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    possible = []
    for name, recipe in _recipes().items():
        match = _match(name, recipe, names, rows, is_exact=True)
        if match is None and (spelled := _spelled_as_in(names, recipe)):
            match = _match(name, spelled, names, rows, is_exact=False)
        if match is not None:
            possible.append(match)
    rank = attrgetter("rank")
    for _, alike in groupby(sorted(possible, key=rank), key=rank):
        if fitting := [match for match in alike if records_of(_only_read(match.keys), rows)]:
            return fitting
    return []


@lru_cache(maxsize=1)
def _recipes() -> dict[str, dict[str, Any]]:
    """Return the recipes of the catalog that were tried, as written, and one of each family."""
    recipes = {}
    for key, entry in entries_by_key().items():
        name, _, first = next(expanded({key: entry}))
        if entry.get("verified", True):
            recipes[name] = first
    return recipes


def _match(
    name: str,
    recipe: Mapping[str, object],
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    is_exact: bool,
) -> Match | None:
    read = _only_read(recipe)
    required = {*field_names([*read.values()], optional=False)}
    groups = [_numbered(names, prefix) for prefix in prefixes([*read.values()])]
    found = {_top(field, names) for field in required}
    if None in found or any(len(group) < 2 for group in groups):
        return None
    kept, of_kept = _present(recipe, rows)
    named = {_top(field, names) for field in field_names([*read.values()])}
    explained = {*named, *of_kept, *(field for group in groups for field in group)}
    tops = frozenset(field for field in explained if field is not None)
    return Match(name, {**read, **kept}, tops, is_exact, len(required) + len(groups))


def _only_read(recipe: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of a recipe that make its records."""
    return {key: value for key, value in recipe.items() if key in _READ}


def _top(path: str, names: Sequence[str]) -> str | None:
    """Return the field of the rows that a path starts with, if they have it."""
    return path if path in names else next((n for n in names if path.startswith(f"{n}.")), None)


def _numbered(names: Sequence[str], prefix: str) -> list[str]:
    return [name for name in names if re.fullmatch(rf"{re.escape(prefix)}([A-Za-z]|\d+)", name)]


def _present(
    recipe: Mapping[str, object], rows: Sequence[Row]
) -> tuple[dict[str, object], list[str]]:
    """Return the optional keys of a recipe, without fields that the rows lack, and the fields."""
    kept: dict[str, object] = {}
    fields: list[str] = []
    for key in _KEPT:
        value = recipe.get(key)
        least = len(rows) if key == "dataset_name_field" else 1
        listed = value if isinstance(value, list) else [value] if value else []
        has = [entry for entry in listed if _n_having(rows, entry) >= least]
        fields += [str(entry.get("field") if isinstance(entry, dict) else entry) for entry in has]
        if has:
            kept[key] = has if isinstance(value, list) else value
    return kept, fields


def _n_having(rows: Sequence[Row], field: object) -> int:
    name = str(field.get("field") if isinstance(field, Mapping) else field)
    n_rows = 0
    for row in rows:
        with suppress(FieldError):
            value_at(row, name)
            n_rows += 1
    return n_rows


def _spelled_as_in(names: Sequence[str], recipe: Mapping[str, object]) -> dict[str, object] | None:
    """Return a recipe with the rows' spelling of its fields: `Question` in place of `question`."""
    read = _only_read(recipe)
    spelled = {words_of(name): name for name in names}
    if len(spelled) < len(names) or any(prefixes([*read.values()])):
        return None
    renamed = {
        field: spelled.get(words_of(field), field) for field in field_names([*read.values()])
    }
    return {key: _renamed(value, renamed) for key, value in read.items()}


def _renamed(value: object, names: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    return value
