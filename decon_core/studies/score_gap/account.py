"""Compute mean scores by verdict of the item, and the gap between leaked and clean items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decon_core.benchmarks import Recipe
from decon_core.errors import Problem
from decon_core.studies.results.find import find_results
from decon_core.studies.results.items import GROUPS, JOINED, NEITHER, NOT_JOINED, load_items
from decon_core.studies.results.join import Joined, join
from decon_core.studies.results.per_item import Results
from decon_core.studies.results.tasks import Task, parse_task_mappings, task_of
from decon_core.studies.statistics import Floats, interval, p_value

# With fewer items on either side an interval means little: resampling ten items gives some
# thousand different means, resampling five about a hundred.
LEAST_ITEMS = 10


@dataclass(frozen=True)
class Name:
    """The key of a gap: scores with the same name are compared."""

    model: str
    benchmark: str
    split: str  # empty: several
    setting: str  # the task's name in the harness
    filter: str
    metric: str


@dataclass(frozen=True)
class Group:
    """The items with one verdict: their number and mean score."""

    n: int
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Scores of one model on one benchmark (or subset), by verdict of the items."""

    name: Name
    subset: str | None  # a config of the benchmark; None: the whole benchmark
    all: Group
    clean: Group
    leaked: Group
    with_answer: Group  # leaked with at least half of the answer; included in `leaked`
    question_only: Group  # neither leaked nor clean
    candidate: Group  # likewise: found by a detector whose score is no proof
    not_indexable: Group
    not_fully_scanned: Group  # no match, in a report that does not cover all shards
    not_joined: Group
    gap: float | None  # leaked - clean
    low: float | None
    high: float | None
    p: float | None
    question_only_gap: float | None  # question-only - clean
    decontaminated: (
        float | None
    )  # on joined items of the other classes: not leaked, question-only or candidates
    moved: float | None  # `decontaminated` - score on all joined items
    remark: str


@dataclass(frozen=True)
class JoinCount:
    """How the rows of one file were joined to items."""

    path: str
    format: str
    model: str
    task: str
    benchmark: str | None  # None: not in the report
    split: str | None
    n_rows: int
    ways: Mapping[str, int]
    n_not_joined: int
    n_twice: int


@dataclass
class ScoreGaps:
    """The gaps of all results, and everything that was left out of them."""

    report: Mapping[str, object]
    problems: list[Problem]
    others: list[str]  # files without results
    earlier: list[str]  # files of runs that were repeated later
    gaps: list[Gap] = field(default_factory=list)
    joins: list[JoinCount] = field(default_factory=list)


_Scores = dict[Name, list[tuple[str | None, str, float]]]  # config, verdict, score


def score_gap(
    paths: Sequence[Path],
    report: Path,
    *,
    tasks: Sequence[str] = (),
    recipes: Mapping[str, Recipe] | None = None,
) -> ScoreGaps:
    """Read results, find their items in a report, and compare scores by verdict."""
    benchmarks, made_with = load_items(report)
    mappings = parse_task_mappings(tasks, benchmarks)
    files = find_results(paths)
    account = ScoreGaps(made_with, files.problems, files.others, files.earlier)
    scores: _Scores = defaultdict(list)
    seen: dict[tuple[Name, int], str] = {}
    for results in files.results:
        account.problems += results.problems
        task = task_of(results.task, mappings, benchmarks)
        if task is None:
            account.joins += [_count(results, None, Joined(None), 0)] if results.samples else []
            continue
        items = benchmarks[task.benchmark]
        joined = join(results, task, items, (recipes or {}).get(task.benchmark))
        account.problems += joined.problems
        n_twice = _add(scores, seen, results, task, joined, account.problems)
        account.joins.append(_count(results, task.benchmark, joined, n_twice))
    for name in sorted(scores, key=lambda one: tuple(vars(one).values())):
        rows = scores[name]
        account.gaps.append(_gap(name, None, rows))
        configs = sorted({config for config, _, _ in rows if config is not None})
        for config in configs if len(configs) > 1 else ():
            account.gaps.append(_gap(name, config, [row for row in rows if row[0] == config]))
    return account


def _count(results: Results, benchmark: str | None, joined: Joined, n_twice: int) -> JoinCount:
    ways = {way: n for way, n in sorted(joined.ways.items()) if way}
    n_rows = len(results.samples)
    task = (str(results.path), results.format, results.model, results.task)
    n_not_joined = n_rows - sum(ways.values())
    return JoinCount(*task, benchmark, joined.split, n_rows, ways, n_not_joined, n_twice)


def _add(
    scores: _Scores,
    seen: dict[tuple[Name, int], str],
    results: Results,
    task: Task,
    joined: Joined,
    problems: list[Problem],
) -> int:
    """Add the scores of a file; a second score of an item under one name is not counted.

    Returns the number of rows that were not counted for that reason.
    """
    twice: dict[str, Problem] = {}
    for sample, item in joined.pairs:
        for metric, score in sample.scores.items():
            run = (results.model, task.benchmark, joined.split or "", task.setting)
            name = Name(*run, sample.filter, metric)
            if item is None:
                scores[name].append((task.config, NOT_JOINED, score))
                continue
            first = seen.setdefault((name, id(item)), sample.place)
            if first == sample.place:
                scores[name].append((item.config, item.verdict, score))
            else:
                again = (
                    f"{item.benchmark} {item.split} {item.instance_index} again, first in {first}"
                )
                expected = "each item once per model, task, filter and metric"
                remedy = "Only the first one counts."
                twice.setdefault(sample.place, Problem(sample.place, again, expected, remedy))
    problems += twice.values()
    return len(twice)


def _gap(name: Name, subset: str | None, rows: Iterable[tuple[str | None, str, float]]) -> Gap:
    by_verdict: dict[str, list[float]] = defaultdict(list)
    for _, verdict, score in rows:
        by_verdict[verdict].append(score)

    def scores_of(*verdicts: str) -> Floats:
        # Sorted: sums of floats and draws depend on the order, which must not be that of the rows.
        return np.sort(np.array([one for verdict in verdicts for one in by_verdict[verdict]]))

    clean, leaked = scores_of(*GROUPS["clean"]), scores_of(*GROUPS["leaked"])
    questions, unleaked = scores_of(*GROUPS["question_only"]), scores_of(*NEITHER)
    text = " | ".join([*vars(name).values(), subset or ""])
    remark = _remark(leaked, clean)
    low, high = (None, None) if remark else interval(leaked, clean, text)
    has_p_value = not remark or min(leaked.size, clean.size) >= LEAST_ITEMS
    groups = {group: scores_of(*verdicts) for group, verdicts in GROUPS.items()}
    return Gap(
        name=name,
        subset=subset,
        gap=_difference(leaked, clean),
        low=low,
        high=high,
        p=p_value(leaked, clean, text) if has_p_value else None,
        question_only_gap=_difference(questions, clean),
        decontaminated=_mean(unleaked),
        moved=_difference(unleaked, scores_of(*JOINED)),
        remark=remark,
        **{group: Group(scores.size, _mean(scores)) for group, scores in groups.items()},
    )


def _remark(leaked: Floats, clean: Floats) -> str:
    """Return why there is no interval; empty if there is one."""
    sides = (("leaked", leaked), ("clean", clean))
    few = [f"{scores.size} {name}" for name, scores in sides if scores.size < LEAST_ITEMS]
    if few:
        return f"too few items: {' and '.join(few)}"
    same = [f"{name} items" for name, scores in sides if scores[0] == scores[-1]]
    if same:
        return f"no interval: all {' and all '.join(same)} have the same score"
    return ""


def _mean(scores: Floats) -> float | None:
    return float(scores.mean()) if scores.size else None


def _difference(one: Floats, other: Floats) -> float | None:
    """Return the difference of the means."""
    return float(one.mean() - other.mean()) if one.size and other.size else None
