"""The scores of a training run: by item where its results have them, else of whole benchmarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from decon_core.errors import InputError, Problem, collecting
from decon_core.features.results.aggregate import Aggregate, read_aggregates
from decon_core.features.results.find import find_results
from decon_core.features.results.per_item import ItemKey, Results
from decon_core.features.results.scales import Part, mix_of_scales
from decon_core.features.study.product import find_paths
from decon_core.features.study.settings import Study, TrainingRun
from decon_core.features.study.translation import MOST, Segments, check, score_of, translated
from decon_core.storage.files import files_below
from decon_core.wording import counted


class Measure(NamedTuple):
    """What is compared: scores of different measures never are."""

    benchmark: str  # the task's name in the results
    metric: str
    filter: str


@dataclass(frozen=True)
class Scores:
    """The scores of a training run by one measure: by item, a mean, or of translated segments."""

    by_item: Mapping[ItemKey, float] = field(default_factory=dict)
    aggregate: Aggregate | None = None
    segments: Segments | None = None  # segments of a score of the whole test set
    highest_of_items: Mapping[str, float] = field(default_factory=dict)  # keyed by file

    @property
    def highest(self) -> Mapping[str, float]:
        """The highest score by place, which tells the scale; computed ones are of 0 to 100."""
        if self.segments:
            return {"the computed scores": MOST}
        if self.aggregate:
            return {self.aggregate.place: self.aggregate.score}
        return self.highest_of_items

    @property
    def mean(self) -> float:
        if self.segments:
            return score_of(self.segments.metric, self.segments.rows(self.segments.counts))
        if self.aggregate:
            return self.aggregate.score
        return sum(self.by_item[key] for key in sorted(self.by_item)) / len(self.by_item)

    @property
    def n(self) -> int | None:
        if self.segments:
            return len(self.segments.counts)
        return self.aggregate.n if self.aggregate else len(self.by_item)


@dataclass
class TrainingRunScores:
    """All that was read of a training run at its end, and of its checkpoints."""

    settings: TrainingRun
    scores: Mapping[Measure, Scores]
    results: Sequence[Results]  # results by item
    problems: list[Problem]
    others: list[str]  # files without results
    earlier: list[str]  # files of runs before the latest
    part_of: Mapping[str, frozenset[str]]  # benchmarks that are parts of others, with those others
    step: float | None = None
    # All that have a step, in its order; the last one has the same scores as the training run.
    checkpoints: Sequence[TrainingRunScores] = ()


def read_training_runs(study: Study, folder: Path) -> list[TrainingRunScores]:
    """Read the results of all training runs; raise InputError with all that are missing.

    Paths are relative to `folder`.
    """
    if study.translation:
        check(study.translation)
    read: list[TrainingRunScores] = []
    problems: list[Problem] = []
    for settings in study.training_run:
        paths, missing = find_paths(settings, folder)
        problems += missing
        if not missing:
            with collecting(problems, InputError):
                read.append(_read_training_run(settings, paths, study))
    InputError.raise_for(problems)
    (baseline,) = (run for run in read if run.settings.name == study.baseline)
    for run in read:
        run.problems += _other_references(run, baseline)
    return read


def _other_references(run: TrainingRunScores, baseline: TrainingRunScores) -> Iterator[Problem]:
    """Yield a problem for each measure whose references are not those of the baseline."""
    for measure, own in run.scores.items():
        other = baseline.scores.get(measure)
        if own.segments and other and other.segments:
            ours, theirs = own.segments.texts, other.segments.texts
            both = ours.keys() & theirs.keys()
            n = sum(ours[key].references != theirs[key].references for key in both)
            if n:
                where = f"study.training_run {run.settings.name!r}"
                found = f"different references in {counted(n, 'segment')} of {measure.benchmark}"
                yield Problem(where, f"{found} ({measure.metric})", "those of the baseline")


def _read_training_run(
    run: TrainingRun, paths: Sequence[tuple[Path, float | None]], study: Study
) -> TrainingRunScores:
    """Read the results of a training run; its scores are those of the last checkpoint."""
    problems: list[Problem] = []
    aggregates: list[Aggregate] = []
    results: list[Results] = []
    others: list[str] = []
    earlier: list[str] = []
    for step in dict.fromkeys(step for _, step in paths):
        of_step = [path for path, own in paths if own == step]
        rows, taken = _whole_benchmarks(of_step, problems)
        aggregates += [replace(row, step=step if row.step is None else row.step) for row in rows]
        read = find_results(
            [path for path in of_step if path.resolve() not in taken],
            but=taken,
            is_wanted=study.translation.fits if study.translation else lambda _: False,
        )
        for result in read.results:
            result.step = step if result.step is None else result.step
        results += read.results
        problems += read.problems
        others += read.others
        earlier += read.earlier
    checkpoints = []
    for step in _steps(run, [*aggregates, *results]):
        rows = [row for row in aggregates if row.step == step]
        by_item = [result for result in results if result.step == step]
        scores = _scores(rows, by_item, study, problems)
        part_of = {row.task: row.part_of for row in rows if row.part_of}
        checkpoints.append(TrainingRunScores(run, scores, by_item, [], [], [], part_of, step))
    end = replace(checkpoints[-1], problems=problems, others=others, earlier=earlier)
    return replace(end, checkpoints=[each for each in checkpoints if each.step is not None])


def _steps(run: TrainingRun, rows: Sequence[Aggregate | Results]) -> Sequence[float | None]:
    """Return the steps of the results in ascending order: only None, if they have none."""
    places: dict[float | None, str] = {}
    for row in rows:
        places.setdefault(
            row.step, row.place if isinstance(row, Aggregate) else f"{row.path} {row.task}"
        )
    if None in places and len(places) > 1:
        where = f"study.training_run {run.name!r}"
        found = f"results without a step ({places[None]}) next to results with a step"
        remedy = "Add a column `step`, or put {step} in the path of the results."
        raise InputError(Problem(where, found, "a step for all results, or for none", remedy))
    return sorted(places, key=lambda step: step or 0.0) or [None]


def _whole_benchmarks(
    paths: Sequence[Path], problems: list[Problem]
) -> tuple[list[Aggregate], set[Path]]:
    """Return the scores of whole benchmarks, and the files that have them."""
    aggregates: list[Aggregate] = []
    taken = set()
    files = [
        file
        for path in paths
        for file in (files_below(path) if path.is_dir() else [path] if path.is_file() else [])
    ]
    for file in dict.fromkeys(file.resolve() for file in files):
        rows = read_aggregates(file)
        if rows is not None:
            taken.add(file)
            problems += [row for row in rows if isinstance(row, Problem)]
            aggregates += [row for row in rows if isinstance(row, Aggregate)]
    return aggregates, taken


def _scores(
    aggregates: Sequence[Aggregate],
    results: Sequence[Results],
    study: Study,
    problems: list[Problem],
) -> dict[Measure, Scores]:
    """Return the scores of a checkpoint: those by item count before those of the whole benchmark.

    Computed scores of translations count before those that the results have under their names.
    """
    scores: dict[Measure, Scores] = {}
    for row in aggregates:
        measure = Measure(row.task, row.metric, row.filter)
        if measure in scores:
            again = f"a second score for {row.task} ({row.metric}): {row.score:g}"
            remedy = "Only the first one counts."
            problems.append(Problem(row.place, again, "one for each benchmark", remedy))
        scores.setdefault(measure, Scores(aggregate=row))
    scores |= _by_item(results, problems)
    chosen = {
        measure: score
        for measure, score in scores.items()
        if not study.metrics or measure.metric in study.metrics
    }
    if study.translation:
        segments, not_counted = translated(results, study.translation)
        problems += not_counted
        chosen |= {Measure(*name): Scores(segments=counts) for name, counts in segments.items()}
    return chosen


def _by_item(results: Sequence[Results], problems: list[Problem]) -> dict[Measure, Scores]:
    """Return the scores by item; a second score of an item is a problem, and does not count."""
    by_measure: defaultdict[Measure, dict[ItemKey, float]] = defaultdict(dict)
    highest: defaultdict[Measure, dict[str, float]] = defaultdict(dict)
    for result in results:
        place = str(result.path)
        problems += result.problems
        for sample in result.samples:
            key = result.key_of(sample)
            for metric, score in sample.scores.items():
                measure = Measure(result.task, metric, sample.filter)
                scores, of_file = by_measure[measure], highest[measure]
                if key in scores:
                    again = f"a second score for an item ({metric})"
                    remedy = "Only the first one counts."
                    problems.append(Problem(sample.place, again, "one for each item", remedy))
                    continue
                scores[key] = score
                of_file[place] = max(score, of_file.get(place, score))
    return {
        measure: Scores(by_item=scores, highest_of_items=highest[measure])
        for measure, scores in by_measure.items()
    }


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
    every = dict.fromkeys(measure for run in training_runs for measure in run.scores)
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
        for run in training_runs:
            if scores := run.scores.get(measure):
                for place, highest in scores.highest.items():
                    yield Part(
                        task=measure.benchmark,
                        metric=measure.metric,
                        place=place,
                        highest=highest,
                        is_of_items=bool(scores.by_item),
                    )
