"""Compare each training run with the baseline: by benchmark, on averages, and by contrasts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np

from decon_core.decisions.statistics import (
    LEAST_ITEMS,
    Floats,
    interval,
    interval_of_few,
    p_value,
    paired_interval,
    paired_p_value,
)
from decon_core.features.results.scales import less_is_better
from decon_core.features.study.scores import (
    Measure,
    Scores,
    TrainingRunScores,
    require_one_scale,
)
from decon_core.features.study.settings import Study
from decon_core.features.study.translation import paired_draws, score_of, summarize
from decon_core.wording import counted

AVERAGE = "average"
SAME_DIFFERENCES = "no interval: all items have the same difference"

# What an interval rests on.
Basis = Literal["same items", "items", "standard errors", "benchmarks", "training runs", ""]

# Training runs are compared on their common items if these are at least so much of the larger
# set; with fewer, two groups of all items tell more.
_LEAST_SHARED = 0.5
_LEAST_BENCHMARKS = 3  # benchmarks that an interval of their average can rest on
SURE = 0.95

# Name of an average, its metric, and the measures that it is over.
Averaged = Sequence[tuple[str, str, Sequence[Measure]]]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The score of a training run, and its difference from the baseline."""

    training_run: str
    benchmark: str  # or the name of a group, or AVERAGE
    metric: str
    filter: str
    n_benchmarks: int | None  # benchmarks of an average
    n: int | None  # items
    score: float
    baseline: float | None  # the baseline's score on the items that are compared
    difference: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    stderr: float | None = None  # standard error of the difference
    basis: Basis = ""
    remark: str = ""
    step: float | None = None  # step of the training run's checkpoint
    # Of a change between two steps: `score` and `baseline` are the differences at these steps.
    change: str = ""
    other_step: float | None = None
    # Of the training runs of a dose.
    series: str = ""
    dose: float | None = None
    n_training_runs: int = 1
    is_contrast: bool = False  # whether two groups or benchmarks are compared

    @property
    def what(self) -> tuple[str, str, str]:
        """What is compared: benchmark or average, metric and filter."""
        return self.benchmark, self.metric, self.filter

    @property
    def relative(self) -> float | None:
        """The difference as a share of the baseline; that of a contrast would mean nothing."""
        if self.difference is None or not self.baseline or self.is_contrast:
            return None
        return self.difference / self.baseline


@dataclass(frozen=True)
class Comparison:
    """The differences of all training runs: by benchmark, then averages and contrasts."""

    benchmarks: Sequence[Difference]
    averages: Sequence[Difference]

    @property
    def all(self) -> Sequence[Difference]:
        """All of them, benchmarks first."""
        return *self.benchmarks, *self.averages


def compare_training_runs(
    training_runs: Sequence[TrainingRunScores], study: Study, *, averaged: Averaged | None = None
) -> Comparison:
    """Compare all training runs with the baseline. Averages are over benchmarks that all have.

    `averaged`: other averages than those of the study's groups. Raises InputError if scores on
    different scales would be averaged or compared.
    """
    (base,) = (run for run in training_runs if run.settings.name == study.baseline)
    averaged = averages_of(training_runs, study.groups) if averaged is None else averaged
    named = ((name, members) for name, _, members in averaged)
    require_one_scale(training_runs, named, study.beyond_one)
    differences = {
        (run.settings.name, measure): _difference(run, base, measure)
        for measure in _measures(training_runs)
        for run in training_runs
        if measure in run.scores
    }
    compared = with_averages(differences, averaged, study.contrasts, baseline=study.baseline)
    steps = {each.settings.name: each.step for each in training_runs}
    benchmarks, averages = (
        [_at_step(row, steps[row.training_run], base.step) for row in rows]
        for rows in (compared.benchmarks, compared.averages)
    )
    return Comparison(benchmarks, averages)


def with_averages(
    differences: Mapping[tuple[str, Measure], Difference],
    averaged: Averaged,
    contrasts: Mapping[str, str],
    *,
    baseline: str,
    sure: float = SURE,
) -> Comparison:
    """Return the differences of benchmarks with their averages and contrasts."""
    names = dict.fromkeys(name for name, _ in differences)
    averages = [
        average
        for name, metric, members in averaged
        for run in names
        if (parts := _parts(differences, run, members))
        and (average := _average(name, metric, parts, baseline, sure))
    ]
    benchmarks = [*differences.values()]
    contrasted = _contrasts([*benchmarks, *averages], contrasts, baseline, sure)
    return Comparison(benchmarks, [*averages, *contrasted])


def _parts(
    differences: Mapping[tuple[str, Measure], Difference], run: str, members: Sequence[Measure]
) -> list[Difference]:
    """Return the differences of a training run on these measures; empty if some are missing."""
    parts = [differences.get((run, member)) for member in members]
    return [part for part in parts if part] if None not in parts else []


def _contrasts(
    rows: Sequence[Difference], contrasts: Mapping[str, str], baseline: str, sure: float
) -> Iterator[Difference]:
    """Yield the difference of each group or benchmark less that of another, by training run."""
    by_name = {(row.training_run, *row.what): row for row in rows}
    for name, other in contrasts.items():
        for row in rows:
            control = by_name.get((row.training_run, other, row.metric, row.filter))
            if row.benchmark != name or control is None:
                continue
            if row.training_run == baseline:
                yield replace(_contrast(row, control, sure), difference=None, p=None, remark="")
            elif None not in (row.difference, control.difference):
                yield _contrast(row, control, sure)


def _contrast(row: Difference, control: Difference, sure: float) -> Difference:
    """Return the difference of two differences, of other benchmarks."""
    counts = (row.n_benchmarks, control.n_benchmarks)
    result = replace(
        row,
        benchmark=f"{row.benchmark} - {control.benchmark}",
        n_benchmarks=None if None in counts else sum(filter(None, counts)),
        n=None if None in (row.n, control.n) else sum(filter(None, (row.n, control.n))),
        score=row.score - control.score,
        baseline=(row.baseline or 0.0) - (control.baseline or 0.0),
        difference=(row.difference or 0.0) - (control.difference or 0.0),
        low=None,
        high=None,
        p=None,
        stderr=None,
        basis="",
        remark="no interval: one side has no standard error",
        is_contrast=True,
    )
    if row.stderr is None or control.stderr is None:
        return result
    basis = row.basis if row.basis == control.basis else "standard errors"
    error = math.hypot(row.stderr, control.stderr)
    return normal(replace(result, stderr=error, basis=basis, remark=""), sure)


def _at_step(row: Difference, step: float | None, of_baseline: float | None) -> Difference:
    """Return a difference with the step of its training run; a remark if the baseline's differs."""
    if None in (row.difference, step, of_baseline) or step == of_baseline:
        return replace(row, step=step)
    remark = f"the baseline is at step {of_baseline:,.15g}"
    return replace(row, step=step, remark=joined_remark(row.remark, remark))


def _measures(training_runs: Sequence[TrainingRunScores]) -> list[Measure]:
    return sorted({measure for run in training_runs for measure in run.scores})


def averages_of(
    training_runs: Sequence[TrainingRunScores], groups: Mapping[str, Sequence[str]]
) -> Averaged:
    """Return each group with its measures, one for each benchmark; then that of all benchmarks.

    Scores of translations have another scale, and of perplexities and errors less is better: they
    are averaged apart, one metric at a time. A benchmark does not count beside one that it is a
    part of, such as a subject of MMLU beside MMLU.
    """
    part_of = {name: above for run in training_runs for name, above in run.part_of.items()}
    kinds: defaultdict[str, list[Measure]] = defaultdict(list)
    for measure in _measures(training_runs):
        if all(measure in run.scores for run in training_runs):
            is_apart = less_is_better(measure.metric) or any(
                run.scores[measure].segments for run in training_runs
            )
            kinds[measure.metric if is_apart else ""].append(measure)
    averaged: list[tuple[str, str, Sequence[Measure]]] = []
    for metric, same_kind in sorted(kinds.items()):
        for name, members in _groups(same_kind, groups):
            names = {member.benchmark for member in members}
            whole = [
                member for member in members if names.isdisjoint(part_of.get(member.benchmark, ()))
            ]
            if len(whole) > 1 or name != AVERAGE:
                averaged.append((name, metric, whole))
    return averaged


def left_out(training_runs: Sequence[TrainingRunScores]) -> Iterator[str]:
    """Yield a sentence for each set of benchmarks in no average, since some runs lack them."""
    by_lacking: defaultdict[str, list[str]] = defaultdict(list)
    for measure in _measures(training_runs):
        lacking = [run.settings.name for run in training_runs if measure not in run.scores]
        if lacking:
            details = ", ".join(filter(None, (measure.metric, measure.filter)))
            by_lacking[", ".join(lacking)].append(f"{measure.benchmark} ({details})")
    for names, measures in by_lacking.items():
        yield f"In no average, because there is no score of {names}: {', '.join(measures)}."


def _groups(
    measures: Sequence[Measure], groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, list[Measure]]]:
    first: dict[str, Measure] = {}
    for measure in measures:
        first.setdefault(measure.benchmark, measure)
    for name, patterns in groups.items():
        chosen = [
            measure
            for benchmark, measure in first.items()
            if any(fnmatchcase(benchmark, pattern) for pattern in patterns)
        ]
        if chosen:
            yield name, chosen
    if len(first) > 1:
        yield AVERAGE, [*first.values()]


def _difference(run: TrainingRunScores, base: TrainingRunScores, measure: Measure) -> Difference:
    own, other = run.scores[measure], base.scores.get(measure)
    result = Difference(
        training_run=run.settings.name,
        **measure._asdict(),
        n_benchmarks=None,
        n=own.n,
        score=own.mean,
        baseline=None if other is None else other.mean,
        difference=None,
    )
    if other is None:
        return replace(result, remark="the baseline has no such score")
    if run is base:
        return result
    result = replace(result, difference=own.mean - other.mean)
    text = " | ".join(("study", run.settings.name, base.settings.name, *measure))
    if own.segments or other.segments:
        return _of_segments(result, own, other, text)
    if own.by_item and other.by_item:
        return _of_items(result, own, other, text)
    ours, theirs = error_of(own), error_of(other)
    if ours is None or theirs is None:
        return replace(result, remark="no interval: a score has neither items nor a standard error")
    return normal(replace(result, stderr=math.hypot(ours, theirs), basis="standard errors"))


def _of_items(result: Difference, own: Scores, other: Scores, text: str) -> Difference:
    """Compare the same items where both training runs have them, else the two sets of items."""
    both = sorted(own.by_item.keys() & other.by_item.keys())
    n_most = max(len(own.by_item), len(other.by_item))
    if len(both) >= n_most * _LEAST_SHARED:
        ours, theirs = (np.array([side.by_item[key] for key in both]) for side in (own, other))
        differences = ours - theirs
        result = replace(
            result,
            n=len(both),
            score=mean(ours.tolist()),
            baseline=mean(theirs.tolist()),
            difference=float(differences.mean()),
            basis="same items",
            stderr=stderr_of(differences),
            remark="" if len(both) == n_most else _only_on(both),
        )
        if len(both) < LEAST_ITEMS:
            return replace(result, remark=f"too few items: {len(both)}")
        result = replace(result, p=paired_p_value(np.sort(differences), text))
        if is_constant(differences):
            return replace(result, remark=joined_remark(result.remark, SAME_DIFFERENCES))
        low, high = paired_interval(differences, text)
        return replace(result, low=low, high=high)
    # Sorted: draws depend on the order, which must not be that of the rows.
    ours, theirs = (np.sort(np.array([*side.by_item.values()])) for side in (own, other))
    errors = [error for error in (stderr_of(ours), stderr_of(theirs)) if error is not None]
    error = math.hypot(*errors) if len(errors) == 2 else None
    remark = f"only {len(both)} items are in the results of both training runs"
    result = replace(result, basis="items", stderr=error, remark=remark)
    if min(ours.size, theirs.size) < LEAST_ITEMS:
        return replace(result, remark=f"too few items: {min(ours.size, theirs.size)}")
    result = replace(result, p=p_value(ours, theirs, text))
    if is_constant(ours) or is_constant(theirs):
        same = "no interval: all scores of a training run are the same"
        return replace(result, remark=joined_remark(remark, same))
    low, high = interval(ours, theirs, text)
    return replace(result, low=low, high=high)


def is_constant(values: Floats) -> bool:
    """Whether all values are the same, so that drawing them again would tell nothing."""
    return not values.size or bool(values.min() == values.max())


def joined_remark(*remarks: str) -> str:
    return "; ".join(filter(None, remarks))


def _only_on(both: Sequence[object]) -> str:
    return f"based only on the {counted(len(both), 'item')} that both training runs have"


def _of_segments(result: Difference, own: Scores, other: Scores, text: str) -> Difference:
    """Compare scores of the test set of the segments that both training runs translated."""
    if own.segments is None or other.segments is None:
        return replace(result, difference=None, remark="only one training run has translations")
    metric = own.segments.metric
    # Sorted: draws depend on the order, which must not be that of the rows.
    both = sorted(own.segments.counts.keys() & other.segments.counts.keys())
    if not both:
        return replace(
            result, difference=None, remark="no segment is in the results of both training runs"
        )
    ours, theirs = own.segments.rows(both), other.segments.rows(both)
    score, baseline = score_of(metric, ours), score_of(metric, theirs)
    result = replace(result, n=len(both), score=score, baseline=baseline, basis="same items")
    result = replace(result, difference=score - baseline)
    if len(both) < max(len(own.segments.counts), len(other.segments.counts)):
        result = replace(result, remark=_only_on(both))
    if len(both) < LEAST_ITEMS:
        return replace(result, basis="", remark=f"too few items: {len(both)}")
    draws = paired_draws(ours, theirs, metric, text)
    result = replace(result, stderr=float(draws.std(ddof=1)))
    return replace(result, **summarize(draws, score - baseline))


def normal(result: Difference, sure: float = SURE) -> Difference:
    """Add interval and p-value of a difference that is normal, with its standard error."""
    from scipy.special import ndtri

    difference, error = result.difference or 0.0, result.stderr or 0.0
    if not error:  # all items have the same difference
        return replace(result, remark="no interval: the standard errors are 0")
    p = math.erfc(abs(difference) / error / math.sqrt(2))
    half = float(ndtri((1 + sure) / 2)) * error
    return replace(result, low=difference - half, high=difference + half, p=p)


def error_of(scores: Scores) -> float | None:
    """Return the standard error of a mean score; that of a share, if only its n is known."""
    if scores.by_item:
        return stderr_of(np.array([*scores.by_item.values()]))
    whole = scores.aggregate
    if whole is None:
        return None
    if whole.stderr is not None:
        return whole.stderr
    if whole.n and 0 <= whole.score <= 1:
        return math.sqrt(whole.score * (1 - whole.score) / whole.n)
    return None


def stderr_of(values: Floats) -> float | None:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else None


def _average(
    name: str, metric: str, parts: Sequence[Difference], baseline: str, sure: float
) -> Difference | None:
    """Average over benchmarks, each counting the same."""
    first = parts[0]
    baselines = [part.baseline for part in parts if part.baseline is not None]
    if len(baselines) < len(parts):
        return None
    result = Difference(
        training_run=first.training_run,
        benchmark=name,
        metric=metric,
        filter="",
        n_benchmarks=len(parts),
        n=None,
        score=mean([part.score for part in parts]),
        baseline=mean(baselines),
        difference=None,
    )
    if first.training_run == baseline:
        return result
    differences = np.array([part.score for part in parts]) - np.array(baselines)
    result = replace(result, difference=float(differences.mean()))
    errors = [part.stderr for part in parts if part.stderr is not None]
    if len(errors) == len(parts):
        error = math.sqrt(sum(error * error for error in errors)) / len(parts)
        bases = {part.basis for part in parts}
        basis = bases.pop() if len(bases) == 1 else "standard errors"
        return normal(replace(result, stderr=error, basis=basis), sure)
    if len(parts) < _LEAST_BENCHMARKS:
        return replace(result, remark="no interval: some scores have no items or standard errors")
    text = f"study | {first.training_run} | {baseline} | {name}"
    low, high = interval_of_few(differences, sure)
    p = paired_p_value(np.sort(differences), text)
    return replace(result, low=low, high=high, p=p, basis="benchmarks")


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
