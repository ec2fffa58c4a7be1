"""Read a plain table of scores: CSV, TSV, or JSON rows with the same names.

Columns, in upper or lower case: `benchmark` or `task`; `index` (the item's instance_index in its
split), `id` (the fingerprint of one of its records) or `question`; `score`, or `prediction` with
`reference` (a text) or `references` (a list, in CSV as JSON), or both; optionally `model`,
`filter`, `metric`, `split`, `step` (a number: how far the model was trained). Items can be grouped
by other columns.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from decon_core.benchmarks.fields import Row, describe
from decon_core.errors import Problem
from decon_core.features.results import per_item

NAME = "a table of scores"

_LEFT_OUT = "The row is left out."
_COLUMNS = frozenset(
    (
        "benchmark", "task", "index", "id", "question", "score", "model", "filter", "metric",
        "split", "step", "prediction", "reference", "references",
    )
)  # fmt: skip
_SCORE = "a finite number, true or false"
_WORDS = {"false": 0.0, "true": 1.0}


def fits(row: Row) -> bool:
    names = {*per_item.cells_of(row)}
    has_task, has_item = names & {"benchmark", "task"}, names & {"index", "id", "question"}
    has_texts = "prediction" in names and bool(names & {"reference", "references"})
    return ("score" in names or has_texts) and bool(has_task) and bool(has_item)


def read(path: Path) -> list[per_item.Results]:
    """Read the scores of a file, one `Results` per model, task, split and step."""
    blank = partial(per_item.Results, path=path, format=NAME, has_harness_index=False)
    results: dict[tuple[str, str, str, float | None], per_item.Results] = {}
    problems: list[Problem] = []
    for place, row in per_item.rows_of(path):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        cells = per_item.cells_of(row)
        task = _cell(cells, "task") or _cell(cells, "benchmark")
        others = {
            str(name): value
            for name, value in row.items()
            if str(name).strip().lower() not in _COLUMNS
        }
        sample = _sample(place, cells, others)
        if isinstance(sample, Problem):
            problems.append(sample)
            continue
        if not task:
            expected = "the name of a benchmark or task"
            problems.append(Problem(place, "no benchmark", expected, _LEFT_OUT))
            continue
        step = per_item.step_of(place, cells)
        if isinstance(step, Problem):
            problems.append(step)
            continue
        name = (_cell(cells, "model") or "model", task, _cell(cells, "split"), step)
        if name not in results:
            results[name] = blank(model=name[0], task=task, split=name[2] or None, step=step)
        results[name].samples.append(sample)
        if not sample.scores:
            results[name].without_scores.append(Problem(place, "no score", _SCORE, _LEFT_OUT))
    if not results:
        results["", "", "", None] = blank(model="", task="")
    next(iter(results.values())).problems = problems
    return list(results.values())


def _cell(cells: Row, name: str) -> str:
    value = cells.get(name)
    return "" if value is None else str(value).strip()


def _sample(place: str, cells: Row, others: Row) -> per_item.Sample | Problem:
    texts, word = _texts(cells), _cell(cells, "score").lower()
    score = _WORDS[word] if word in _WORDS else per_item.number_in(cells.get("score"))
    if score is None and (_cell(cells, "score") or not texts.are_complete):
        found = f"the score {describe(cells.get('score'))}"
        return Problem(place, found, _SCORE, _LEFT_OUT)
    index, question = per_item.index_of(cells.get("index")), _cell(cells, "question")
    if _cell(cells, "index") and index is None:
        found = f"the index {describe(cells['index'])}"
        return Problem(place, found, "a whole number, 0 or more", _LEFT_OUT)
    return per_item.Sample(
        place=place,
        scores={} if score is None else {_cell(cells, "metric") or "score": score},
        filter=_cell(cells, "filter") or per_item.NO_FILTER,
        index=index,
        fingerprint=_cell(cells, "id") or None,
        doc={"question": question} if question else {},
        columns=others,
        texts=texts,
    )


def _texts(cells: Row) -> per_item.Texts:
    """Return the texts of a row; an empty prediction counts where there is a reference."""
    references = per_item.listed_texts(_parsed(cells.get("references")))
    references = references or per_item.listed_texts(cells.get("reference"))
    prediction = cells.get("prediction")
    return per_item.Texts(
        prediction if isinstance(prediction, str) else None,
        tuple(reference for reference in references if reference.strip()),
    )


def _parsed(value: object) -> object:
    """Parse a JSON list in a text; return anything else unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
