"""The scores of a training run: by item where its results have them, else of whole benchmarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from decon_core.errors import InputError, Problem
from decon_core.features.results.aggregate import Aggregate, read_aggregates
from decon_core.features.results.find import find_results
from decon_core.features.results.per_item import ItemKey, Results
from decon_core.features.study.product import find_paths
from decon_core.features.study.settings import Study, TrainingRun
from decon_core.features.study.translation.metrics import check
from decon_core.features.study.translation.segments import MOST, Segments, score_of, translated
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
    highest_of_items: Mapping[str, float] = field(default_factory=dict)  # by file

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
    """All that was read of a training run."""

    settings: TrainingRun
    scores: Mapping[Measure, Scores]
    results: Sequence[Results]  # results by item
    problems: list[Problem]
    others: list[str]  # files without results
    earlier: list[str]  # files of runs that were repeated later
    part_of: Mapping[str, frozenset[str]]  # benchmarks that are parts of others, with those others


def read_training_runs(study: Study, folder: Path) -> list[TrainingRunScores]:
    """Read the results of all training runs; raise InputError with all that are missing.

    Paths are relative to `folder`.
    """
    if study.translation:
        check(study.translation)
    read: list[TrainingRunScores] = []
    problems: list[Problem] = []
    for training_run in study.training_run:
        paths, missing = find_paths(training_run, folder)
        problems += missing
        try:
            if not missing:
                read.append(_read_training_run(training_run, paths, study))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    (baseline,) = (
        training_run for training_run in read if training_run.settings.name == study.baseline
    )
    for training_run_scores in read:
        training_run_scores.problems += _other_references(training_run_scores, baseline)
    return read


def _other_references(
    training_run: TrainingRunScores, baseline: TrainingRunScores
) -> Iterator[Problem]:
    """Yield a problem for each measure whose references are not those of the baseline."""
    for measure, own in training_run.scores.items():
        other = baseline.scores.get(measure)
        if own.segments and other and other.segments:
            ours, theirs = own.segments.texts, other.segments.texts
            both = ours.keys() & theirs.keys()
            n = sum(ours[key].references != theirs[key].references for key in both)
            if n:
                where, expected = (
                    f"study.training_run {training_run.settings.name!r}",
                    "those of the baseline",
                )
                found = f"different references in {counted(n, 'segment')} of {measure.benchmark}"
                yield Problem(where, f"{found} ({measure.metric})", expected)


def _read_training_run(
    training_run: TrainingRun, paths: Sequence[Path], study: Study
) -> TrainingRunScores:
    """Read the results of a training run. Scores by item count before those of the whole benchmark.

    Computed scores of translations count before those that the results have under their names.
    """
    problems: list[Problem] = []
    aggregates: list[Aggregate] = []
    files = [
        file
        for path in paths
        for file in (files_below(path) if path.is_dir() else [path] if path.is_file() else [])
    ]
    taken = set()
    for file in dict.fromkeys(file.resolve() for file in files):
        rows = read_aggregates(file)
        if rows is not None:
            taken.add(file)
            problems += [row for row in rows if isinstance(row, Problem)]
            aggregates += [row for row in rows if isinstance(row, Aggregate)]
    translation = study.translation
    read = find_results(
        [path for path in paths if path.resolve() not in taken],
        but=taken,
        is_wanted=translation.fits if translation else lambda _: False,
    )
    problems += read.problems
    scores: dict[Measure, Scores] = {}
    for row in aggregates:
        measure = Measure(row.task, row.metric, row.filter)
        if measure in scores:
            again = f"a second score for {row.task} ({row.metric}): {row.score:g}"
            remedy = "Only the first one counts."
            problems.append(Problem(row.place, again, "one for each benchmark", remedy))
        scores.setdefault(measure, Scores(aggregate=row))
    scores |= _by_item(read.results, problems)
    chosen = {
        measure: score
        for measure, score in scores.items()
        if not study.metrics or measure.metric in study.metrics
    }
    if translation:
        segments, not_counted = translated(read.results, translation)
        problems += not_counted
        chosen |= {Measure(*name): Scores(segments=counts) for name, counts in segments.items()}
    part_of = {row.task: row.part_of for row in aggregates if row.part_of}
    return TrainingRunScores(
        training_run, chosen, read.results, problems, read.others, read.earlier, part_of
    )


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
