"""Compare training runs with the baseline by dose, over repetitions where there are some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decon_core.decisions.statistics import LEAST_ITEMS, Floats
from decon_core.features.study.differences import (
    SURE,
    Averaged,
    Comparison,
    Difference,
    averages_of,
    joined_remark,
)
from decon_core.features.study.scores import Measure, TrainingRunScores
from decon_core.features.study.settings import Study

FIXED_ITEMS = "the interval ignores the choice of the items"
NO_REPETITION = "not repeated"  # how much repetitions differ is not known

_What = tuple[str, str, str]  # benchmark, metric and filter
_Weights = Mapping[Measure, float]


@dataclass(frozen=True)
class _Arms:
    """The training runs of a series: those without a dose, and those with each dose."""

    control: Sequence[TrainingRunScores]
    by_dose: Mapping[float, Sequence[TrainingRunScores]]

    @property
    def every(self) -> Sequence[Sequence[TrainingRunScores]]:
        return self.control, *self.by_dose.values()


def compare_doses(
    training_runs: Sequence[TrainingRunScores], comparison: Comparison, study: Study
) -> list[Difference]:
    """Return the differences by series and dose, from the baseline and others without a dose.

    `comparison`: that of single training runs.
    """
    series = dict.fromkeys(run.settings.series or "" for run in training_runs if run.settings.dose)
    averaged = averages_of(training_runs, study.groups)
    rows: list[Difference] = []
    for name in series:
        arms = _arms(training_runs, name, study.baseline)
        if any(len(arm) > 1 for arm in arms.every):  # repetitions
            rows += _of_repetitions(name, arms, _weights(arms, averaged, study.contrasts))
        else:
            rows += _of_single_runs(name, arms, comparison)
    return rows


def _arms(runs: Sequence[TrainingRunScores], series: str, baseline: str) -> _Arms:
    """Return the arms of a series; without a series, a training run without a dose is in all."""
    by_dose: dict[float, list[TrainingRunScores]] = {}
    control = [run for run in runs if run.settings.name == baseline]
    for run in runs:
        if run.settings.dose == 0 and run.settings.series in (None, series):
            control += [run] if run.settings.name != baseline else []
        elif run.settings.dose and (run.settings.series or "") == series:
            by_dose.setdefault(run.settings.dose, []).append(run)
    return _Arms(control, dict(sorted(by_dose.items())))


def _of_single_runs(series: str, arms: _Arms, comparison: Comparison) -> Iterator[Difference]:
    for dose, (run,) in arms.by_dose.items():
        for row in comparison.all:
            if row.training_run == run.settings.name:
                remark = joined_remark(row.remark, NO_REPETITION)
                yield replace(row, series=series, dose=dose, remark=remark)


def _weights(
    arms: _Arms, averaged: Averaged, contrasts: Mapping[str, str]
) -> dict[_What, _Weights]:
    """Return benchmarks, averages and contrasts as weighted sums of measures that all runs have."""
    by_run = [set(run.scores) for arm in arms.every for run in arm]
    shared = set.intersection(*by_run)
    weights: dict[_What, _Weights] = {(*measure,): {measure: 1.0} for measure in sorted(shared)}
    for name, metric, members in averaged:
        weights[name, metric, ""] = dict.fromkeys(members, 1 / len(members))
    for name, other in contrasts.items():
        for (benchmark, metric, filter_name), own in [*weights.items()]:
            control = weights.get((other, metric, filter_name))
            if benchmark == name and control:
                both = {m: own.get(m, 0.0) - control.get(m, 0.0) for m in {**own, **control}}
                weights[f"{name} - {other}", metric, filter_name] = both
    return weights


def _of_repetitions(
    series: str, arms: _Arms, weights: Mapping[_What, _Weights]
) -> Iterator[Difference]:
    """Yield differences whose intervals cover how repetitions differ, and the choice of items."""
    table = {measure: _items(arms, measure) for own in weights.values() for measure in own}
    for dose, arm in arms.by_dose.items():
        for what, own in weights.items():
            row = _difference(what, own, arms, dose, table)
            yield replace(row, series=series, dose=dose, n_training_runs=len(arm))


_Items = Mapping[str, Floats]  # the scores on the same items, by training run


def _items(arms: _Arms, measure: Measure) -> _Items | None:
    """Return the scores of all training runs on the items that all have; None without them."""
    scores = {run.settings.name: run.scores[measure] for arm in arms.every for run in arm}
    items_by_run = [set(each.by_item) for each in scores.values()]
    items = sorted(set.intersection(*items_by_run))
    most = max(len(each.by_item) for each in scores.values())
    if len(items) < max(LEAST_ITEMS, most / 2) or any(each.segments for each in scores.values()):
        return None
    return {
        name: np.array([each.by_item[item] for item in items], np.float64)
        for name, each in scores.items()
    }


def _difference(
    what: _What,
    weights: _Weights,
    arms: _Arms,
    dose: float,
    table: Mapping[Measure, _Items | None],
) -> Difference:
    """Compare the repetitions of a dose with those of the control."""
    own, control = arms.by_dose[dose], arms.control
    means = [np.array([_mean_of(run, weights, table) for run in arm]) for arm in arms.every]
    at = 1 + [*arms.by_dose].index(dose)
    shares = 1 / len(own) + 1 / len(control)
    n_free = sum(len(arm) - 1 for arm in arms.every)
    spread = sum(float(((mean - mean.mean()) ** 2).sum()) for mean in means) / n_free
    parts = [
        (weight, values, _item_variance(values, arms, own))
        for measure, weight in weights.items()
        if (values := table[measure]) is not None
    ]
    of_items = sum(weight * weight * variance for weight, _, variance in parts)
    n_items = sum(len(next(iter(values.values()))) for _, values, _ in parts)
    error = math.sqrt(spread * shares + of_items)
    score, baseline = float(means[at].mean()), float(means[0].mean())
    row = Difference(
        training_run=", ".join(run.settings.name for run in own),
        benchmark=what[0],
        metric=what[1],
        filter=what[2],
        n_benchmarks=len(weights) if len(weights) > 1 else None,
        n=n_items or None,
        score=score,
        baseline=baseline,
        difference=score - baseline,
        stderr=error,
        basis="training runs",
        remark="" if len(parts) == len(weights) else FIXED_ITEMS,
    )
    if not error:
        return replace(row, remark="no interval: all repetitions have the same scores")
    # Satterthwaite's degrees of freedom of a sum of two variances.
    squares = (spread * shares) ** 2 / n_free + of_items**2 / max(n_items - 1, 1)
    return _students(row, error**4 / squares)


def _students(row: Difference, n_free: float) -> Difference:
    """Add interval and p-value by Student's t."""
    from scipy.special import stdtr, stdtrit

    difference, error = row.difference or 0.0, row.stderr or 0.0
    half = float(stdtrit(n_free, (1 + SURE) / 2)) * error
    p = 2 * float(stdtr(n_free, -abs(difference) / error))
    return replace(row, low=difference - half, high=difference + half, p=p)


def _mean_of(
    run: TrainingRunScores, weights: _Weights, table: Mapping[Measure, _Items | None]
) -> float:
    """Return a training run's score: on the items that all have, where there are items."""
    total = 0.0
    for measure, weight in weights.items():
        values = table[measure]
        own = run.scores[measure].mean if values is None else values[run.settings.name].mean()
        total += weight * float(own)
    return total


def _item_variance(values: _Items, arms: _Arms, own: Sequence[TrainingRunScores]) -> float:
    """Return the variance of a difference of means that comes from the choice of the items.

    What chance adds to the scores of an item is subtracted: it is in the differences between
    repetitions.
    """

    def stacked(arm: Sequence[TrainingRunScores]) -> Floats:
        return np.array([values[run.settings.name] for run in arm])

    differences = stacked(own).mean(axis=0) - stacked(arms.control).mean(axis=0)
    repeated = [stacked(arm) for arm in arms.every if len(arm) > 1]
    n_free = sum(len(arm) - 1 for arm in repeated)
    chance = sum(float(arm.var(axis=0).mean()) * len(arm) for arm in repeated) / n_free
    noise = chance * (1 / len(own) + 1 / len(arms.control))
    return max(0.0, float(differences.var(ddof=1)) - noise) / int(differences.size)
