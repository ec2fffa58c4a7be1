"""Decide how the rows of a benchmark are read: by the catalog first, then by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decon_core.benchmarks.fields import Row
from decon_core.discovery.columns import Column, columns_of
from decon_core.discovery.evidence import has_role, is_named, may_be_passage, read_by_evidence
from decon_core.discovery.published import Match, matches_of, only_read
from decon_core.discovery.reading import ANSWERS, OpenChoice, Reading, field_names, records_of

_SPECIFIC = 3  # fields: that many are no coincidence
_MOST_NAMED = 3


def reading_of(rows: Sequence[Row], named: Sequence[str] = ()) -> Reading | OpenChoice:
    """Return how to read the rows; `named`: the names that `init` gave to columns without any."""
    reading = _as_published(rows) or read_by_evidence(rows)
    if named and isinstance(reading, Reading):
        why = f"the file does not name its columns; here they are called {', '.join(named)}"
        return Reading(reading.keys, (why, *reading.why), reading.doubts)
    return reading


def _as_published(rows: Sequence[Row]) -> Reading | None:
    """Return the reading of the catalog's recipe that explains most fields, if it convinces."""
    columns = [column for column in columns_of(rows) if column.values]
    matches = matches_of(rows)
    if not matches:
        return None
    best = matches[0]
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
    others = [match.name for match in matches if match.name not in same]
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
    records = records_of(only_read(match.keys), rows)
    return [tuple(record[key] for key in keys) for record in records]


def _answers_with_letters(match: Match, columns: Sequence[Column]) -> bool:
    """Return whether a plain answer of the recipe is a letter here, which points to a choice."""
    answers: Any = next((match.keys[key] for key in ANSWERS if key in match.keys), [])
    listed = answers if isinstance(answers, list) else [answers]
    simple = [answer for answer in listed if isinstance(answer, str) or "field" in answer]
    names = {*field_names(simple)}
    return any(column.name in names and column.has_letters for column in columns)
