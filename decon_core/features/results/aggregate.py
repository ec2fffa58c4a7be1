"""Read scores of whole benchmarks, where there are none by item.

results*.json            of lm-evaluation-harness and lighteval: {"results": {TASK: {METRIC: ...}}}
task-*-metrics.json      of OLMES
.csv, .tsv, .jsonl       a table with `benchmark` or `task`, and `score`; optionally `metric`,
                         `filter`, `stderr`, `n`, `step`; without a column that identifies items
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decon_core.benchmarks.fields import Row, describe
from decon_core.errors import DeconError, Problem
from decon_core.features.results.inspect_logs import is_log
from decon_core.features.results.per_item import (
    cells_of,
    companion,
    listed_texts,
    mapping_in,
    number_in,
    number_of,
    rows_of,
    step_of,
)

_STDERR = "_stderr"
_ALL_TASKS = "all"  # lighteval's average over everything that it ran
_AVERAGE = ":_average"
_NOT_METRICS = ("alias", "samples", "name", "sample_len", "sample_count")
_ITEM_COLUMNS = {"index", "id", "question", "doc_id", "native_id"}
_LEFT_OUT = "The row is left out."


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """The score of a model on a whole benchmark."""

    place: str
    task: str
    metric: str
    filter: str
    score: float
    stderr: float | None = None
    n: int | None = None  # items
    step: float | None = None  # how far the model was trained: steps or tokens
    part_of: frozenset[str] = frozenset()  # tasks whose scores are of this one's items and others


def read_aggregates(path: Path) -> list[Aggregate | Problem] | None:
    """Return the scores of a file; None if it is another kind of file."""
    if is_log(path):
        return None  # it has scores by item
    if path.suffix == ".json":
        return _from_json(path)
    try:
        first = next((row for _, row in rows_of(path) if not isinstance(row, Problem)), None)
    except DeconError:
        return None  # the readers of results by item report what is wrong with it
    names = {*cells_of(first or {})}
    if "score" not in names or not names & {"benchmark", "task"} or names & _ITEM_COLUMNS:
        return None
    return [
        row if isinstance(row, Problem) else _from_row(place, cells_of(row))
        for place, row in rows_of(path)
    ]


def _from_json(path: Path) -> list[Aggregate | Problem] | None:
    content = companion(path)
    if isinstance(content.get("task_name"), str) and isinstance(content.get("metrics"), Mapping):
        n = _count(content.get("num_instances"))
        metrics = mapping_in(content, "metrics")
        return [*_of_task(path, str(content["task_name"]), metrics, n)]
    if not isinstance(content.get("results"), Mapping):
        return None
    scores: list[Aggregate | Problem] = []
    tasks = [task for task in mapping_in(content, "results") if task != _ALL_TASKS]
    groups = _groups(tasks, mapping_in(content, "group_subtasks"))
    for task in tasks:
        n = _count(mapping_in(content, "n-samples", task).get("effective"))
        above = _above(task, groups)
        metrics = mapping_in(content, "results", task)
        scores += [replace(row, part_of=above) for row in _of_task(path, task, metrics, n)]
    return scores


def _groups(tasks: Sequence[str], listed: Mapping[str, object]) -> dict[str, set[str]]:
    """Return the tasks of each group: those that lm-evaluation-harness lists, and averages of
    lighteval, whose names end in `:_average` where those of their tasks go on.
    """
    groups = {name: {*listed_texts(members)} for name, members in listed.items()}
    for task in tasks:
        start, mark, _ = task.partition(_AVERAGE)
        if mark:
            groups[task] = {name for name in tasks if name.startswith(f"{start}:")} - {task}
    return groups


def _above(task: str, groups: Mapping[str, set[str]]) -> frozenset[str]:
    """Return all groups that a task belongs to, also through others."""
    above: set[str] = set()
    new = {task}
    while new:
        new = {name for name, members in groups.items() if members & new} - above - {task}
        above |= new
    return frozenset(above)


def _of_task(path: Path, task: str, metrics: Row, n: int | None) -> Iterator[Aggregate]:
    """Yield the metrics of a task: those that are numbers, each with its standard error."""
    for name, value in metrics.items():
        metric, _, which = name.partition(",")
        score = number_of(value)
        is_score = not metric.endswith(_STDERR) and metric not in _NOT_METRICS
        if is_score and score is not None and not isinstance(value, bool):
            error = metrics.get(f"{metric}{_STDERR},{which}" if which else f"{metric}{_STDERR}")
            yield Aggregate(
                place=f"{path} {task}",
                task=task,
                metric=metric,
                filter="" if which == "none" else which,
                score=score,
                stderr=number_of(error),
                n=n,
            )


def _from_row(place: str, cells: Mapping[str, object]) -> Aggregate | Problem:
    score = number_in(cells.get("score"))
    task = str(cells.get("task") or cells.get("benchmark") or "").strip()
    if score is None:
        found = f"the score {describe(cells.get('score'))}"
        return Problem(place, found, "a finite number", _LEFT_OUT)
    if not task:
        return Problem(place, "no benchmark", "the name of a benchmark or task", _LEFT_OUT)
    step = step_of(place, cells)
    if isinstance(step, Problem):
        return step
    return Aggregate(
        place=place,
        task=task,
        metric=str(cells.get("metric") or "score").strip(),
        filter=str(cells.get("filter") or "").strip(),
        score=score,
        stderr=number_in(cells.get("stderr")),
        n=_count(number_in(cells.get("n"))),
        step=step,
    )


def _count(value: object) -> int | None:
    number = number_of(value)
    return int(number) if number is not None and number >= 1 else None
