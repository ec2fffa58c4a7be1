"""Scores by verdict: what a model reached on the items that leaked, and on the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decon_core.benchmarks import Recipe
from decon_core.errors import Problem
from decon_core.report.score_gap.find import ResultFiles, find_results
from decon_core.report.score_gap.gaps import Floats, chance_of, interval
from decon_core.report.score_gap.items import (
    CLEAN,
    LEAKED,
    NOT_FULLY_SCANNED,
    NOT_INDEXABLE,
    QUESTION_ONLY,
    WITH_ANSWER,
    Item,
    load_items,
)
from decon_core.report.score_gap.join import Joined, join
from decon_core.report.score_gap.results import Results, Sample
from decon_core.report.score_gap.tasks import Task, parse_task_mappings, task_of

NOT_JOINED = "not joined"

# Of fewer items on either side an interval says nothing: resampling ten items shows some thousand
# different means, resampling five a hundred.
LEAST_ITEMS = 10


@dataclass(frozen=True)
class Name:
    """Which scores are compared with each other."""

    model: str
    benchmark: str
    split: str  # empty: several
    setting: str  # the task as the harness calls it
    filter: str
    metric: str


@dataclass(frozen=True)
class Group:
    """How many items have a verdict, and their mean score."""

    n: int
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """One line of the answer."""

    name: Name
    subset: str | None  # a config of the benchmark; None: all of it
    all: Group
    clean: Group
    leaked: Group
    with_answer: Group  # those of the leaked of which at least half of the answer was found
    question_only: Group  # neither leaked nor clean
    not_indexable: Group
    not_fully_scanned: Group  # nothing found, in a report that lacks shards
    not_joined: Group
    gap: float | None  # leaked - clean
    low: float | None
    high: float | None
    p: float | None
    question_only_gap: float | None  # question-only - clean
    decontaminated: float | None  # on all joined items but the leaked and the question-only
    moved: float | None  # by how much that is off the score on all joined items
    remark: str


@dataclass(frozen=True, kw_only=True)
class JoinCount:
    """How the rows of one file found their items."""

    path: str
    format: str
    model: str
    task: str
    benchmark: str | None  # None: the report has no such benchmark
    split: str | None
    n_rows: int
    ways: Mapping[str, int]
    n_not_joined: int
    n_twice: int


@dataclass
class Account:
    """The answer, and everything that has no share in it."""

    report: Mapping[str, object]
    gaps: list[Gap] = field(default_factory=list)
    joins: list[JoinCount] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)


_Scores = dict[Name, list[tuple[str | None, str, float]]]  # config, verdict, score


def score_gap(
    paths: Sequence[Path],
    report: Path,
    *,
    tasks: Sequence[str] = (),
    recipes: Mapping[str, Recipe] | None = None,
) -> Account:
    """Read results, find their items in a report, and compare scores by verdict."""
    benchmarks, made_with = load_items(report)
    said = parse_task_mappings(tasks, benchmarks)
    found = find_results(paths)
    account = _account(found, made_with)
    scores: _Scores = defaultdict(list)
    seen: dict[tuple[Name, int], str] = {}
    for results in found.results:
        account.problems += results.problems
        task = task_of(results.task, said, benchmarks)
        if task is None:
            account.joins += _unknown(results)
            continue
        items = benchmarks[task.benchmark]
        joined = join(results, task, items, (recipes or {}).get(task.benchmark))
        account.problems += joined.problems
        n_twice = _add(scores, seen, results, task, joined, account.problems)
        account.joins.append(_count(results, task, joined, n_twice))
    for name in sorted(scores, key=lambda one: tuple(vars(one).values())):
        account.gaps += _gaps(name, scores[name])
    return account


def _account(found: ResultFiles, made_with: Mapping[str, object]) -> Account:
    return Account(
        report=made_with,
        problems=list(found.problems),
        others=found.others,
        earlier=found.earlier,
    )


def _unknown(results: Results) -> Iterator[JoinCount]:
    if results.samples:
        yield JoinCount(
            path=str(results.path),
            format=results.format,
            model=results.model,
            task=results.task,
            benchmark=None,
            split=None,
            n_rows=len(results.samples),
            ways={},
            n_not_joined=len(results.samples),
            n_twice=0,
        )


def _count(results: Results, task: Task, joined: Joined, n_twice: int) -> JoinCount:
    ways = {way: n for way, n in sorted(joined.ways.items()) if way}
    return JoinCount(
        path=str(results.path),
        format=results.format,
        model=results.model,
        task=results.task,
        benchmark=task.benchmark,
        split=joined.split,
        n_rows=len(results.samples),
        ways=ways,
        n_not_joined=joined.ways[""],
        n_twice=n_twice,
    )


def _add(
    scores: _Scores,
    seen: dict[tuple[Name, int], str],
    results: Results,
    task: Task,
    joined: Joined,
    problems: list[Problem],
) -> int:
    """Sort the scores of a file; an item that stands twice under one name counts once."""
    twice: dict[str, Problem] = {}
    for sample, item in joined.pairs:
        for metric, score in sample.scores.items():
            name = Name(
                model=results.model,
                benchmark=task.benchmark,
                split=joined.split or "",
                setting=task.setting,
                filter=sample.filter,
                metric=metric,
            )
            if item is not None:
                first = seen.setdefault((name, id(item)), sample.place)
                if first != sample.place:
                    twice.setdefault(sample.place, _stands_twice(sample, item, first))
                    continue
            config = item.config if item else task.config
            scores[name].append((config, item.verdict if item else NOT_JOINED, score))
    problems += twice.values()
    return len(twice)


def _stands_twice(sample: Sample, item: Item, first: str) -> Problem:
    return Problem(
        sample.place,
        f"{item.benchmark} {item.split} {item.instance_index} once more, first in {first}",
        "each item once for a model, task, filter and metric",
        "The first counts.",
    )


def _gaps(name: Name, rows: list[tuple[str | None, str, float]]) -> Iterator[Gap]:
    """Of the whole benchmark, and of each of its parts where it has several."""
    yield _gap(name, None, rows)
    configs = sorted({config for config, _, _ in rows if config is not None})
    for config in configs if len(configs) > 1 else ():
        yield _gap(name, config, [row for row in rows if row[0] == config])


def _gap(name: Name, subset: str | None, rows: Iterable[tuple[str | None, str, float]]) -> Gap:
    by_verdict: dict[str, list[float]] = defaultdict(list)
    for _, verdict, score in rows:
        by_verdict[verdict].append(score)

    def scores_of(*verdicts: str) -> Floats:
        # In one order whatever that of the rows: sums of floats depend on it, and so do draws.
        return np.sort(np.array([one for verdict in verdicts for one in by_verdict[verdict]]))

    clean, leaked = scores_of(CLEAN), scores_of(LEAKED, WITH_ANSWER)
    questions = scores_of(QUESTION_ONLY)
    unleaked = scores_of(CLEAN, NOT_INDEXABLE, NOT_FULLY_SCANNED)
    joined = scores_of(
        *(CLEAN, NOT_INDEXABLE, NOT_FULLY_SCANNED, LEAKED, WITH_ANSWER, QUESTION_ONLY)
    )
    text = " | ".join([*vars(name).values(), subset or ""])
    remark = _remark(leaked, clean)
    is_enough = not remark
    low, high = interval(leaked, clean, text) if is_enough else (None, None)
    has_chance = is_enough or min(leaked.size, clean.size) >= LEAST_ITEMS
    return Gap(
        name=name,
        subset=subset,
        all=_group(np.concatenate([joined, scores_of(NOT_JOINED)])),
        clean=_group(clean),
        leaked=_group(leaked),
        with_answer=_group(scores_of(WITH_ANSWER)),
        question_only=_group(questions),
        not_indexable=_group(scores_of(NOT_INDEXABLE)),
        not_fully_scanned=_group(scores_of(NOT_FULLY_SCANNED)),
        not_joined=_group(scores_of(NOT_JOINED)),
        gap=_difference(_mean(leaked), _mean(clean)),
        low=low,
        high=high,
        p=chance_of(leaked, clean, text) if has_chance else None,
        question_only_gap=_difference(_mean(questions), _mean(clean)),
        decontaminated=_mean(unleaked),
        moved=_difference(_mean(unleaked), _mean(joined)),
        remark=remark,
    )


def _remark(leaked: Floats, clean: Floats) -> str:
    """Why there is no interval; empty: there is one."""
    sides = (("leaked", leaked), ("clean", clean))
    few = [f"{scores.size} {name}" for name, scores in sides if scores.size < LEAST_ITEMS]
    if few:
        return f"too few items for a statement: {' and '.join(few)}"
    same = [f"{name} item" for name, scores in sides if scores[0] == scores[-1]]
    if same:
        return f"no interval: every {' and every '.join(same)} has the same score"
    return ""


def _group(scores: Floats) -> Group:
    return Group(scores.size, _mean(scores))


def _mean(scores: Floats) -> float | None:
    return float(scores.mean()) if scores.size else None


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
