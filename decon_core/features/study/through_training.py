"""Compare training runs through training: at each step, peak against end, end against start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from decon_core.decisions.statistics import LEAST_ITEMS, Floats
from decon_core.features.results.per_item import ItemKey
from decon_core.features.results.scales import less_is_better
from decon_core.features.study.differences import (
    SURE,
    Averaged,
    Difference,
    averages_of,
    compare_training_runs,
    error_of,
    normal,
    stderr_of,
    with_averages,
)
from decon_core.features.study.scores import (
    Measure,
    Scores,
    TrainingRunScores,
    require_one_scale,
)
from decon_core.features.study.settings import Study
from decon_core.features.study.translation import Segments, paired_draws, score_of

_NOWHERE = "the peak is the end"

_What = tuple[str, str, str]  # benchmark, metric and filter
_Sides = tuple[Scores, Scores | None]  # scores of a training run, and of a baseline with steps


@dataclass(frozen=True)
class Training:
    """Differences at each step of training, and their changes between steps."""

    by_step: Sequence[Difference]
    changes: Sequence[Difference]


def steps_of(training_runs: Sequence[TrainingRunScores]) -> list[float]:
    """Return all steps in ascending order; none if there are fewer than two."""
    every = (each.step for run in training_runs for each in run.checkpoints)
    steps = sorted({step for step in every if step is not None})
    return steps if len(steps) > 1 else []


def checkpoints_at(
    training_runs: Sequence[TrainingRunScores], baseline: str, step: float
) -> list[TrainingRunScores]:
    """Return the checkpoints at a step, and the baseline: one without steps is at all of them.

    A baseline that has other steps is there without scores, as nothing is compared with it.
    """
    there = []
    for run in training_runs:
        checkpoint = next((each for each in run.checkpoints if each.step == step), None)
        if run.settings.name == baseline and checkpoint is None:
            checkpoint = run if run.step is None else replace(run, scores={}, results=[], step=step)
        there += [checkpoint] if checkpoint else []
    return there


def compare_through_training(training_runs: Sequence[TrainingRunScores], study: Study) -> Training:
    """Compare all training runs with the baseline at each step that they have.

    A baseline without steps is compared at every step; one with steps only at the same. Averages
    are over benchmarks that every training run has at every step.
    """
    steps = steps_of(training_runs)
    if not steps:
        return Training([], [])
    every = [each for run in training_runs for each in (run.checkpoints or [run])]
    require_one_scale(every, (), study.beyond_one)
    averaged = averages_of(every, study.groups)
    compared = {
        step: compare_training_runs(
            checkpoints_at(training_runs, study.baseline, step), study, averaged=averaged
        )
        for step in steps
    }
    by_step = [replace(row, step=step) for step in steps for row in compared[step].all]
    (base,) = (run for run in training_runs if run.settings.name == study.baseline)
    changes = [
        change
        for run in training_runs
        if run is not base
        for change in _changes_of(run, base, by_step, averaged, study)
    ]
    return Training(by_step, changes)


def _changes_of(
    run: TrainingRunScores,
    base: TrainingRunScores,
    by_step: Sequence[Difference],
    averaged: Averaged,
    study: Study,
) -> Iterator[Difference]:
    """Yield the changes of a training run, for each benchmark, average and contrast."""
    name = run.settings.name
    rows: dict[_What, dict[float, Difference]] = {}
    for row in by_step:
        if row.training_run == name and row.difference is not None and row.step is not None:
            rows.setdefault(row.what, {})[row.step] = row

    @cache
    def between(step: float, other: float, sure: float) -> Mapping[_What, Difference]:
        to, start = _at(run, base, step), _at(run, base, other)
        changed = {
            (name, measure): _change_of(name, measure, to[measure], start[measure])
            for measure in to.keys() & start.keys()
        }
        compared = with_averages(
            dict(sorted(changed.items())), averaged, study.contrasts, baseline="", sure=sure
        )
        benchmarks = (
            row if row.stderr is None else normal(row, sure) for row in compared.benchmarks
        )
        return {row.what: row for row in (*benchmarks, *compared.averages)}

    for what, at in rows.items():
        if len(at) < 2:
            continue
        start, end = min(at), max(at)
        sign = -1 if less_is_better(what[1]) else 1
        peak = max(at, key=lambda step: (sign * (at[step].difference or 0.0), step))
        # The peak is chosen from all steps: its interval is one that would hold at each of them.
        n_others = len(at) - 1
        peaked = between(peak, end, 1 - (1 - SURE) / n_others).get(what)
        if peaked and peak == end:
            peaked = replace(peaked, low=None, high=None, p=None, basis="", remark=_NOWHERE)
        elif peaked and peaked.p is not None:
            peaked = replace(peaked, p=min(1.0, peaked.p * n_others))
        if peaked:
            yield replace(peaked, change="peak - end", step=peak, other_step=end)
        if risen := between(end, start, SURE).get(what):
            yield replace(risen, change="end - start", step=end, other_step=start)


def _at(run: TrainingRunScores, base: TrainingRunScores, step: float) -> Mapping[Measure, _Sides]:
    """Return the scores of a training run at a step; a baseline without steps cancels out."""
    own, other = (
        next((each.scores for each in scored.checkpoints if each.step == step), {})
        for scored in (run, base)
    )
    if base.step is None:
        return {measure: (scores, None) for measure, scores in own.items()}
    return {measure: (own[measure], other[measure]) for measure in own.keys() & other.keys()}


def _change_of(name: str, measure: Measure, to: _Sides, start: _Sides) -> Difference:
    """Return the change of a difference between two steps, with its standard error."""
    every = [scores for scores in (*to, *start) if scores is not None]
    after, before = (own.mean - (other.mean if other else 0.0) for own, other in (to, start))
    row = Difference(
        training_run=name,
        **measure._asdict(),
        n_benchmarks=None,
        n=to[0].n,
        score=after,
        baseline=before,
        difference=after - before,
    )
    if all(scores.segments for scores in every):
        return _of_segments(row, [scores.segments for scores in every if scores.segments])
    if all(scores.by_item for scores in every):
        items_of_each = [set(scores.by_item) for scores in every]
        items = sorted(set.intersection(*items_of_each))
        if len(items) >= max(LEAST_ITEMS, max(len(scores.by_item) for scores in every) / 2):
            ends = [_values(side, items) for side in (to, start)]
            changes = ends[0] - ends[1]
            after, before = (float(values.mean()) for values in ends)
            row = replace(row, n=len(items), score=after, baseline=before)
            row = replace(row, difference=float(changes.mean()), basis="same items")
            return replace(row, stderr=stderr_of(changes))
    errors = [error for scores in every if (error := error_of(scores)) is not None]
    if len(errors) < len(every):
        remark = "no interval: a score has neither items nor a standard error"
        return replace(row, remark=remark)
    return replace(row, stderr=math.hypot(*errors), basis="standard errors")


def _values(side: _Sides, items: Sequence[ItemKey]) -> Floats:
    own, other = ([scores.by_item[item] for item in items] if scores else 0.0 for scores in side)
    return np.asarray(np.array(own, np.float64) - np.array(other, np.float64))


def _of_segments(row: Difference, every: Sequence[Segments]) -> Difference:
    """Return the change of a score of whole test sets, all of the same segments."""
    segments_of_each = [set(segments.counts) for segments in every]
    both = sorted(set.intersection(*segments_of_each))
    if len(both) < LEAST_ITEMS:
        return replace(row, remark=f"too few items: {len(both)}")
    metric, counts = every[0].metric, [segments.rows(both) for segments in every]
    # Pairs whose differences add up to the change.
    pairs = [(0, 1), (3, 2)] if len(counts) == 4 else [(0, 1)]
    name = " | ".join(("change", row.training_run, *row.what))  # draws the same segments
    draws = [paired_draws(counts[up], counts[down], metric, name) for up, down in pairs]
    scores = [score_of(metric, rows) for rows in counts]
    difference = sum(scores[up] - scores[down] for up, down in pairs)
    error = float(np.sum(draws, axis=0).std(ddof=1))
    return replace(row, n=len(both), difference=difference, stderr=error, basis="same items")
