"""Refuse to average or compare scores of training runs that are on different scales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from decon_core.errors import InputError, Problem
from decon_core.features.results.scales import Part, mix_of_scales
from decon_core.features.study.training_runs.scores import Measure, TrainingRunScores

REMEDY = (
    "Divide scores from 0 to 100 by 100 in the results, or choose metrics on one scale with "
    "`metrics` under [study]. If the scores of 1 or less are low scores on the larger scale, "
    "name their tasks in `beyond_one`."
)


def require_one_scale(
    training_runs: Sequence[TrainingRunScores],
    averages: Iterable[tuple[str, Sequence[Measure]]],
    beyond_one: Sequence[str],
) -> None:
    """Raise InputError if a measure or an average has scores on different scales.

    `averages`: what is averaged together, by name. A measure is not named beside its average.
    """
    every = dict.fromkeys(
        measure for training_run in training_runs for measure in training_run.scores
    )
    pools = [(f"study, {name}", members) for name, members in averages]
    pools.sort(key=lambda pool: len(pool[1]), reverse=True)
    pools += [(f"study, {measure.metric} of {measure.benchmark}", [measure]) for measure in every]
    problems: list[Problem] = []
    named: set[Measure] = set()
    for where, measures in pools:
        if not named.issuperset(measures):
            parts = _parts(training_runs, measures)
            if problem := mix_of_scales(where, parts, beyond_one, REMEDY):
                problems.append(problem)
                named.update(measures)
    InputError.raise_for(problems)


def _parts(
    training_runs: Sequence[TrainingRunScores], measures: Sequence[Measure]
) -> Iterator[Part]:
    for measure in measures:
        for training_run in training_runs:
            if scores := training_run.scores.get(measure):
                for place, highest in scores.highest.items():
                    yield Part(
                        task=measure.benchmark,
                        metric=measure.metric,
                        place=place,
                        highest=highest,
                        is_of_items=bool(scores.by_item),
                    )
