"""Per-item results, as every reader hands them on."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from decon_core.benchmarks.fields import Row, describe
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.errors import Problem
from decon_core.storage.compression import open_bytes

NO_FILTER = ""

# Where files hold what the model was asked, the likeliest first: the other texts of an item are
# tried as well, but only after these.
_ASKED = (
    *("question", "query", "ctx", "problem", "prompt", "source", "instruction", "goal", "sentence"),
    *("input", "text", "original_query"),
)
_DEEPEST = 4


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One item that a model answered: what can tell which one it is, and its scores."""

    place: str
    scores: Mapping[str, float]
    filter: str = NO_FILTER  # how the answer was taken out of what the model wrote
    index: int | None = None
    fingerprint: str | None = None  # of a record of the item
    doc: Row = field(default_factory=dict)  # the item as the file has it
    doc_hash: str | None = None  # the harness's own: it tells items apart where nothing else does


@dataclass(kw_only=True)
class Results:
    """What one file says of one model and one task."""

    path: Path
    format: str
    model: str
    task: str
    run: str = ""  # when, as far as names say it: of several runs the latest counts
    split: str | None = None
    # Harnesses count what they asked, so an index is one of the report's only where they asked
    # everything. A person who writes an index means the report's.
    is_counted: bool = True
    samples: list[Sample] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def rows_of(path: Path) -> Iterator[tuple[str, Row | Problem]]:
    """Every row of a file with its place. Early harnesses wrote a list into their `.jsonl`."""
    if not is_readable(path):
        return
    rows = _listed(path) if ".jsonl" in path.suffixes and _begins_a_list(path) else read_rows(path)
    for number, row in enumerate(rows, start=1):
        yield f"{path} row {number}", row


def scored_rows(
    results: Results, scores_of: Callable[[Row], Iterable[tuple[str, float]]]
) -> Iterator[tuple[str, Row, dict[str, float]]]:
    """The rows of a file of results that have a score; what is wrong with others is noted there."""
    for place, row in rows_of(results.path):
        if isinstance(row, Problem):
            results.problems.append(row)
            continue
        scores = dict(scores_of(row))
        if scores:
            yield place, row, scores
            continue
        expected = "a number for some metric"
        results.problems.append(Problem(place, "no score", expected, "The row is left out."))


def _begins_a_list(path: Path) -> bool:
    with open_bytes(path) as file:
        return file.read(64).lstrip().startswith(b"[")


def _listed(path: Path) -> Iterator[Row | Problem]:
    with open_bytes(path) as file:
        content = file.read()
    try:
        values = json.loads(content)  # knows NaN, which metrics may be
    except ValueError as error:
        yield Problem(str(path), f"text that is not JSON ({error})", "a JSON list of objects")
        return
    for number, value in enumerate(values, start=1):
        if isinstance(value, Mapping):
            yield value
        else:
            yield Problem(f"{path} item {number}", describe(value), "an object")


def companion(path: Path) -> Mapping[str, object]:
    """What stands in a JSON file beside the results; nothing, where there is none to read."""
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, Mapping) else {}


def mapping_in(row: Row, *keys: str) -> Mapping[str, object]:
    """The object below these keys; empty where there is none."""
    value: object = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def text_at(row: Row, key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) and value.strip() else None


def number_of(value: object) -> float | None:
    """A score: a finite number, or whether it was right."""
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    return None


def index_of(value: object) -> int | None:
    """A count from 0; also where it was written as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, int) and value >= 0 else None


def literal(value: object) -> object:
    """Of a column that was written as Python would print it, the value."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def texts_in(doc: Row) -> tuple[str, ...]:
    """Every text of an item, what is likeliest the question first."""
    found = list(_texts(doc, "", _DEEPEST))
    found.sort(key=lambda one: _rank(one[0]))
    return tuple(dict.fromkeys(text for _, text in found))


def _rank(name: str) -> int:
    return _ASKED.index(name) if name in _ASKED else len(_ASKED)


def _texts(value: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value.strip():
            yield name, value
    elif depth and isinstance(value, Mapping):
        for key, below in value.items():
            yield from _texts(below, str(key).lower(), depth - 1)
    elif depth and isinstance(value, list | tuple):
        for below in value:
            yield from _texts(below, name, depth - 1)
