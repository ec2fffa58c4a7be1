"""Read a plain table of scores: CSV, TSV, or JSON rows with the same names.

Columns, in upper or lower case: `benchmark` or `task`; `index` (the item's instance_index in its
split), `id` (the fingerprint of one of its records) or `question`; `score`; optionally `model`,
`filter`, `metric`, `split`. Items can be grouped by other columns.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from decon_core.benchmarks.fields import Row, describe
from decon_core.errors import Problem
from decon_core.studies.results import per_item

NAME = "a table of scores"

_LEFT_OUT = "The row is left out."
_COLUMNS = frozenset(
    {"benchmark", "task", "index", "id", "question", "score", "model", "filter", "metric", "split"}
)
_WORDS = {"false": 0.0, "true": 1.0}


def fits(row: Row) -> bool:
    names = {_plain(name) for name in row}
    has_task, has_item = names & {"benchmark", "task"}, names & {"index", "id", "question"}
    return "score" in names and bool(has_task) and bool(has_item)


def read(path: Path) -> list[per_item.Results]:
    """Read the scores of a file, one `Results` per model, task and split."""
    blank = partial(per_item.Results, path=path, format=NAME, has_harness_index=False)
    found: dict[tuple[str, str, str], per_item.Results] = {}
    problems: list[Problem] = []
    for place, row in per_item.rows_of(path):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        cells = {_plain(name): value for name, value in row.items()}
        task = _cell(cells, "task") or _cell(cells, "benchmark")
        others = {str(name): row[name] for name in row if _plain(name) not in _COLUMNS}
        sample = _sample(place, cells, others)
        if isinstance(sample, Problem) or not task:
            no_task = Problem(place, "no benchmark", "the name of a benchmark or task", _LEFT_OUT)
            problems.append(sample if isinstance(sample, Problem) else no_task)
            continue
        name = (_cell(cells, "model") or "model", task, _cell(cells, "split"))
        if name not in found:
            found[name] = blank(model=name[0], task=task, split=name[2] or None)
        found[name].samples.append(sample)
    if not found:
        found["", "", ""] = blank(model="", task="")
    next(iter(found.values())).problems = problems
    return list(found.values())


def _plain(name: object) -> str:
    return str(name).strip().lower()


def _cell(cells: Row, name: str) -> str:
    value = cells.get(name)
    return "" if value is None else str(value).strip()


def _sample(place: str, cells: Row, others: Row) -> per_item.Sample | Problem:
    score = _score(cells.get("score"))
    if score is None:
        found = f"the score {describe(cells.get('score'))}"
        return Problem(place, found, "a finite number, true or false", _LEFT_OUT)
    index, question = per_item.index_of(cells.get("index")), _cell(cells, "question")
    if _cell(cells, "index") and index is None:
        found = f"the index {describe(cells['index'])}"
        return Problem(place, found, "a whole number, 0 or more", _LEFT_OUT)
    return per_item.Sample(
        place=place,
        scores={_cell(cells, "metric") or "score": score},
        filter=_cell(cells, "filter") or per_item.NO_FILTER,
        index=index,
        fingerprint=_cell(cells, "id") or None,
        doc={"question": question} if question else {},
        columns=others,
    )


def _score(value: object) -> float | None:
    if not isinstance(value, str):
        return per_item.number_of(value)
    word = value.strip().lower()
    try:
        return _WORDS[word] if word in _WORDS else per_item.number_of(float(word))
    except ValueError:
        return None
