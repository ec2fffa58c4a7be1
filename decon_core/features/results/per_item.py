"""The common form of per-item results, and functions that the readers share."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from decon_core.benchmarks.fields import Row, describe
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.errors import Problem
from decon_core.wording import counted

NO_FILTER = ""

# Fields that may hold the question, the likeliest first; other texts of an item are tried after.
_QUESTION_FIELDS = (
    "question", "query", "ctx", "problem", "prompt", "source", "instruction", "goal", "sentence",
    "input", "text", "original_query",
)  # fmt: skip
_MAX_DEPTH = 4


class Texts(NamedTuple):
    """What a model wrote, and what it should have written."""

    prediction: str | None
    references: tuple[str, ...]

    @property
    def are_complete(self) -> bool:
        return self.prediction is not None and bool(self.references)


NO_TEXTS = Texts(None, ())


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One item that a model answered: its scores, and everything that may identify it."""

    place: str
    scores: Mapping[str, float]
    filter: str = NO_FILTER  # how the answer was extracted from the model's output
    index: int | None = None
    fingerprint: str | None = None  # fingerprint of a record of the item
    doc: Row = field(default_factory=dict)  # the item in the harness's form
    prompt: object = None  # what was asked, examples included: it can only contradict an index
    columns: Row = field(default_factory=dict)  # columns of a table that have no meaning here
    texts: Texts = NO_TEXTS


ItemKey = tuple[str, ...]


@dataclass(kw_only=True)
class Results:
    """The samples of one model on one task, from one file."""

    path: Path
    format: str
    model: str
    task: str
    run: str = ""  # date from the file name; of several runs the latest counts
    step: float | None = None  # how far the model was trained: steps or tokens
    split: str | None = None
    # Harnesses number the items they asked, so an index equals the report's instance_index only if
    # they asked the whole split. In a plain table, the index is the instance_index.
    has_harness_index: bool = True
    samples: list[Sample] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    # Problems of rows that have texts and no score: none where texts are wanted.
    without_scores: list[Problem] = field(default_factory=list)
    beside: list[Path] = field(default_factory=list)  # files that were read with the results

    @property
    def model_at_step(self) -> str:
        """The name of the model; each checkpoint of its training counts as a model."""
        return self.model if self.step is None else f"{self.model} at step {self.step:,.15g}"

    def key_of(self, sample: Sample) -> ItemKey:
        """Return what identifies an item in all results that asked the same items."""
        split = self.split or ""
        if sample.fingerprint:
            return split, "fingerprint", sample.fingerprint
        texts = texts_in(sample.doc)
        if sample.index is not None:
            return split, "index", f"{sample.index:09}", *texts[:1]
        return split, "text", *texts

    def keep_scored(self) -> None:
        """Leave out the samples without a score, and report them as problems."""
        self.samples = [sample for sample in self.samples if sample.scores]
        self.problems += self.without_scores
        self.without_scores = []


def rows_of(path: Path) -> Iterator[tuple[str, Row | Problem]]:
    """Yield every row of a file with its place."""
    for number, row in enumerate(read_rows(path) if is_readable(path) else (), start=1):
        yield f"{path} row {number}", row


def add_samples(results: Results, sample_of: Callable[[str, Row], Sample]) -> None:
    """Add a sample for each row that has a score or texts, and a problem for every other row."""
    for place, row in rows_of(results.path):
        if isinstance(row, Problem):
            results.problems.append(row)
        else:
            add_sample(results, sample_of(place, row))


def add_sample(results: Results, sample: Sample) -> None:
    """Add a sample if it has a score or texts; without a score, also add a problem."""
    if not sample.scores:
        expected, remedy = "a number for some metric", "The row is left out."
        problem = Problem(sample.place, "no score", expected, remedy)
        is_complete = sample.texts.are_complete
        (results.without_scores if is_complete else results.problems).append(problem)
    if sample.scores or sample.texts.are_complete:
        results.samples.append(sample)


def ignored_metrics(path: Path, not_numbers: Mapping[str, int]) -> Iterator[Problem]:
    """Yield a problem for each metric without a number in some rows."""
    for name, n in sorted(not_numbers.items()):
        where, found = f"{path}, metric {name!r}", f"no number in {counted(n, 'row')}"
        remedy = "These rows do not count for this metric."
        yield Problem(where, found, "one number for each item", remedy)


def companion(path: Path) -> Mapping[str, object]:
    """Read the JSON object in a file beside the results; empty if missing or unreadable."""
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, Mapping) else {}


def numbers_in(metrics: object) -> dict[str, float]:
    """Return the values of an object that are numbers, by name."""
    values = metrics.items() if isinstance(metrics, Mapping) else ()
    numbers = ((str(name), number_of(value)) for name, value in values)
    return {name: number for name, number in numbers if number is not None}


def mapping_in(row: Row, *keys: str) -> Mapping[str, object]:
    """Return the object below these keys; empty if there is none."""
    value: object = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def cells_of(row: Row) -> dict[str, object]:
    """Return the cells of a row of a table, by name in lower case."""
    return {str(name).strip().lower(): value for name, value in row.items()}


def doc_of(row: Row) -> Row:
    """Return the item in a row; an item that is only a text becomes an object."""
    doc = row.get("doc")
    return doc if isinstance(doc, Mapping) else {"text": doc}


def text_at(row: Row, key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) and value.strip() else None


def listed_texts(value: object) -> tuple[str, ...]:
    """Return a text, or the texts of a list, as a tuple; empty for anything else."""
    if isinstance(value, str):
        return (value,)
    listed = value if isinstance(value, list | tuple) else ()
    return tuple(map(str, listed)) if all(isinstance(text, str) for text in listed) else ()


def first_text(value: object) -> str | None:
    """Return a text, or the first one in lists of them; None for anything else."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def number_of(value: object) -> float | None:
    """Return a finite number or a boolean as a float; None for anything else."""
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    return None


def number_in(value: object) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if not isinstance(value, str):
        return number_of(value)
    try:
        return number_of(float(value))
    except ValueError:
        return None


def step_of(place: str, cells: Row) -> float | Problem | None:
    """Return the step in a row of a table; None if it has none."""
    value = cells.get("step")
    if value is None or value == "":
        return None
    step = number_in(value)
    if step is None or step < 0:
        expected = "a number of 0 or more: steps or tokens of training"
        return Problem(place, f"the step {describe(value)}", expected, "The row is left out.")
    return step


def index_of(value: object) -> int | None:
    """Return an index of 0 or more, also from text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, int) and value >= 0 else None


def literal(value: object) -> object:
    """Parse text that is a Python literal; return anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def texts_in(doc: Row) -> tuple[str, ...]:
    """Return every text of an item, likely questions first."""
    texts = list(_texts(doc, "", _MAX_DEPTH))
    ranks = {name: rank for rank, name in enumerate(_QUESTION_FIELDS)}
    texts.sort(key=lambda field: ranks.get(field[0], len(ranks)))
    return tuple(dict.fromkeys(text for _, text in texts))


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
