"""Build the study that decon.toml declares: scores by training run, and effects by exposure.

study/
  study.duckdb     the tables below, `training_runs` and `problems`
  differences.csv  scores by training run and benchmark, and their difference from the baseline
  by_step.csv      the same at each step of training
  changes.csv      how much these differences change: peak to end, start to end
  by_dose.csv      differences by how much test data the models were trained on
  effects.csv      differences by how items were exposed: planted, held back, leaked, clean
  effects_by_step.csv
  *.svg            figures
  study.md         all of it as a page
  study.json       inputs, counts, and what could not be read
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
from threadpoolctl import threadpool_limits

from decon_core.config.validation import did_you_mean
from decon_core.corpus.packs import FILES
from decon_core.errors import InputError, Problem, StaleError
from decon_core.features.blends.schemas import blend_manifest
from decon_core.features.results.items import Items, indexed_items
from decon_core.features.results.join import join
from decon_core.features.results.scales import Part, mix_of_scales
from decon_core.features.results.tasks import parse_task_mappings
from decon_core.features.study import page, schemas
from decon_core.features.study.by_dose import compare_doses
from decon_core.features.study.differences import (
    Comparison,
    Difference,
    compare_training_runs,
    left_out,
)
from decon_core.features.study.exposure import (
    Effect,
    ItemId,
    Label,
    corpus_effects,
    effects,
    id_of,
    leaked_labels,
    planted_labels,
)
from decon_core.features.study.page import TABLES, figures, files_of
from decon_core.features.study.product import (
    DATABASE,
    SUMMARY,
    Inputs,
    fingerprint_of,
    study_folder,
)
from decon_core.features.study.scores import (
    REMEDY,
    TrainingRunScores,
    read_training_runs,
)
from decon_core.features.study.settings import Study
from decon_core.features.study.through_training import (
    Training,
    checkpoints_at,
    compare_through_training,
    steps_of,
)
from decon_core.features.study.translation import CorpusMetric, Counts
from decon_core.report.html.charts import Chart
from decon_core.report.html.still import svg
from decon_core.report.items import load_report_items
from decon_core.schemas import Column, schema_of
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.store import Store
from decon_core.text_tables import as_csv, rounded
from decon_core.wording import render

V = TypeVar("V")
Rows = Mapping[str, Sequence[Mapping[str, Any]]]  # those of each table

_MOST_LISTED = 50

PAGE = "study.md"
AS_CSV = ("differences", "by_step", "changes", "by_dose", "effects", "effects_by_step")


@dataclass(frozen=True)
class Found:
    """The tables of a study."""

    training_runs: Sequence[TrainingRunScores]
    comparison: Comparison
    training: Training
    by_dose: Sequence[Difference]
    effects: Sequence[Effect]
    effects_by_step: Sequence[tuple[float, Effect]]
    problems: Sequence[Problem]


def build_study(inputs: Inputs) -> Found:
    """Read all results, and write the study. Raises InputError if a training run has none."""
    key = fingerprint_of(inputs)
    # The matrices are small: more threads would wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = _found(inputs)
    _write(inputs, found, key)
    return found


def _found(inputs: Inputs) -> Found:
    training_runs = read_training_runs(inputs.study, inputs.folder)
    study = inputs.study
    comparison = compare_training_runs(training_runs, study)
    InputError.raise_for(_unknown_in_contrasts(study, comparison))
    training = compare_through_training(training_runs, study)
    by_dose = compare_doses(training_runs, comparison, study)
    by_exposure, not_joined = _effects(inputs, training_runs)
    effects_by_step: list[tuple[float, Effect]] = []
    for step in steps_of(training_runs):
        there = checkpoints_at(training_runs, study.baseline, step)
        at_step, problems_there = _effects(inputs, there)
        effects_by_step += [(step, effect) for effect in at_step]
        not_joined += problems_there
    problems = [problem for run in training_runs for problem in run.problems]
    problems += dict.fromkeys(not_joined)  # the last step is the end
    return Found(
        training_runs, comparison, training, by_dose, by_exposure, effects_by_step, problems
    )


def _unknown_in_contrasts(study: Study, comparison: Comparison) -> Iterator[Problem]:
    """Yield a problem for each name in `contrasts` that no difference has."""
    names = sorted({row.benchmark for row in comparison.all})
    for name in dict.fromkeys(chain.from_iterable(study.contrasts.items())):
        if name not in names:
            expected, remedy = f"one of {', '.join(names)}", did_you_mean(name, names)
            yield Problem("study.contrasts", repr(name), expected, remedy)


def faults_of_study(folder: Path) -> Iterator[Problem]:
    """Yield the results that a study could not use."""
    path = folder / SUMMARY
    for problem in read_json(path)["problems"] if path.is_file() else ():
        yield Problem(str(path), problem)


def copy_study(store: Store, folder: Path) -> None:
    """Copy the files of the study to a folder, which appears whole."""
    with atomic_path(folder) as draft:
        shutil.copytree(study_folder(store), draft)


# Effects ------------------------------------------------------------------------------------------

_Key = tuple[str, str, str, str]  # benchmark, setting, metric, filter


@dataclass(frozen=True)
class _Joined:
    """What a training run has of the items of the report, by what was measured."""

    scores: Mapping[_Key, dict[ItemId, float]]
    counts: Mapping[_Key, dict[ItemId, Counts]]  # counts of translated segments
    metrics: Mapping[str, CorpusMetric]  # metrics that the counts belong to
    parts: Mapping[_Key, Sequence[Part]]  # the scores by task and file


def _effects(
    inputs: Inputs, training_runs: Sequence[TrainingRunScores]
) -> tuple[list[Effect], list[Problem]]:
    """Return the effects by exposure of all training runs, and the rows that match no item."""
    if not inputs.store.report.is_file() or not any(run.results for run in training_runs):
        return [], []
    benchmarks = indexed_items(load_report_items(inputs.store.report))
    problems: list[Problem] = []
    joined = {
        run.settings.name: _joined(inputs, run, benchmarks, problems) for run in training_runs
    }
    baseline = joined[inputs.study.baseline]
    every = [item for items in benchmarks.values() for item in items.all]
    leaked, blends = leaked_labels(every), {blend.name: blend for blend in inputs.blends}
    by_exposure: list[Effect] = []
    InputError.raise_for(_mixes(joined, inputs.study))
    for run in training_runs:
        name = run.settings.name
        if name == inputs.study.baseline:
            continue
        labellings = [leaked]
        if blend := blends.get(run.settings.of or ""):
            if not inputs.is_built(blend):
                where = f"study.training_run {name!r}"
                found = f"the blend {blend.name!r}, not built or built from other inputs"
                expected = "a blend that says which items were planted"
                raise StaleError(Problem(where, found, expected, "`decon-assets run` builds it"))
            planted = planted_labels(blend, blend_manifest(inputs.store, blend.name).parent)
            # An item that the blend plants or holds back is no measure of leaks of the corpus.
            others = {item: label for item, label in leaked.items() if item not in planted}
            labellings = [planted, others] if planted else labellings
        for labels in labellings:
            by_exposure += _effects_of(name, joined[name], baseline, labels)
    return by_exposure, problems


def _mixes(joined: Mapping[str, _Joined], study: Study) -> Iterator[Problem]:
    """Yield a problem for each metric whose effects would be of scores on different scales."""
    baseline = joined[study.baseline].parts
    parts: defaultdict[tuple[str, str], list[Part]] = defaultdict(list)
    for of_training_run in joined.values():
        for key in sorted(of_training_run.parts.keys() & baseline.keys()):
            parts[key[2:]] += of_training_run.parts[key]
    for (metric, _), of_metric in parts.items():
        where = f"study, {metric} by exposure"
        if problem := mix_of_scales(where, of_metric, study.beyond_one, REMEDY):
            yield problem


def _effects_of(
    training_run: str, own: _Joined, baseline: _Joined, labels: Mapping[ItemId, Label]
) -> Iterator[Effect]:
    """Yield the effects of a training run, one metric after the other."""
    for (metric, name), scores, others in _by_measure(own.scores, baseline.scores):
        yield from effects(
            Effect(training_run=training_run, metric=metric, filter=name), scores, others, labels
        )
    for (metric, name), counts, those in _by_measure(own.counts, baseline.counts):
        blank = Effect(training_run=training_run, metric=metric, filter=name)
        yield from corpus_effects(blank, own.metrics[metric], counts, those, labels)


def _by_measure(
    own: Mapping[_Key, Mapping[ItemId, V]], baseline: Mapping[_Key, Mapping[ItemId, V]]
) -> Iterator[tuple[tuple[str, str], dict[ItemId, V], dict[ItemId, V]]]:
    """Yield what both have by metric and filter: of several tasks with an item, the first one's."""
    by_measure: defaultdict[tuple[str, str], list[_Key]] = defaultdict(list)
    for key in sorted(own.keys() & baseline.keys()):
        by_measure[key[2:]].append(key)
    for measure, keys in by_measure.items():
        values: dict[ItemId, V] = {}
        others: dict[ItemId, V] = {}
        for key in reversed(keys):
            values.update(own[key])
            others.update(baseline[key])
        yield measure, values, others


def _joined(
    inputs: Inputs,
    run: TrainingRunScores,
    benchmarks: Mapping[str, Items],
    problems: list[Problem],
) -> _Joined:
    """Find the items of the report in a training run's results."""
    mappings = parse_task_mappings(inputs.study.tasks, benchmarks)
    scores: defaultdict[_Key, dict[ItemId, float]] = defaultdict(dict)
    counts: defaultdict[_Key, dict[ItemId, Counts]] = defaultdict(dict)
    metrics: dict[str, CorpusMetric] = {}
    parts: defaultdict[_Key, list[Part]] = defaultdict(list)
    for rows in join(run.results, benchmarks, mappings, inputs.recipes):
        results, task = rows.results, rows.task
        if task is None:
            continue  # not in the report: only compared as a whole
        problems += rows.problems
        translations = {
            measure: of_measure.segments
            for measure, of_measure in run.scores.items()
            if measure.benchmark == results.task and of_measure.segments
        }
        highest: dict[_Key, float] = {}
        computed = {measure.metric: segments.metric for measure, segments in translations.items()}
        metrics |= computed
        for sample, item in rows.pairs:
            if item is None:
                continue
            for metric, score in sample.scores.items():
                is_chosen = not inputs.study.metrics or metric in inputs.study.metrics
                if is_chosen and metric not in computed:
                    key = (task.benchmark, task.setting, metric, sample.filter)
                    scores[key].setdefault(id_of(item), score)
                    highest[key] = max(score, highest.get(key, score))
            for measure, segments in translations.items():
                added = segments.counts.get(results.key_of(sample))
                if measure.filter == sample.filter and added is not None:
                    key = (task.benchmark, task.setting, measure.metric, sample.filter)
                    counts[key].setdefault(id_of(item), added)
        for key, score in highest.items():
            place = str(results.path)
            parts[key].append(Part(task=results.task, metric=key[2], place=place, highest=score))
    return _Joined(scores, counts, metrics, parts)


# Files --------------------------------------------------------------------------------------------


def _write(inputs: Inputs, found: Found, key: str) -> None:
    """Write all files of the study; they appear together."""
    rows = rows_of(inputs.study, found)
    tables = {name: _table(rows[name], columns) for name, columns in schemas.TABLES.items()}
    with atomic_path(study_folder(inputs.store)) as draft:
        draft.mkdir(parents=True)
        with duckdb.connect(str(draft / DATABASE)) as connection:
            for name, table in tables.items():
                connection.register("rows", table)
                connection.execute(f'CREATE TABLE "{name}" AS FROM rows')
                connection.unregister("rows")
        for name in AS_CSV:
            text = as_csv(tables[name].to_pylist(), tables[name].column_names)
            (draft / f"{name}.csv").write_text(text, encoding="utf-8")
        drawn = figures({name: tables[name].to_pylist() for name in TABLES})
        charts = dict(files_of(drawn))
        for name, chart in charts.items():
            (draft / f"{name}.svg").write_text(svg(chart), encoding="utf-8")
        page_text = as_markdown(inputs.study, found, rows, charts)
        (draft / PAGE).write_text(page_text, encoding="utf-8")
        content = {
            "key": key,
            "study": asdict(inputs.study),
            "n_results": {run.settings.name: len(run.scores) for run in found.training_runs},
            "signatures": _signatures(found.training_runs),
            "problems": [str(problem) for problem in found.problems],
            "earlier_runs": [path for run in found.training_runs for path in run.earlier],
            "other_files": [path for run in found.training_runs for path in run.others],
        }
        hashes = {file.name: hash_file(file) for file in sorted(draft.iterdir())}
        write_json(draft / SUMMARY, content | {FILES: hashes})


def _signatures(training_runs: Sequence[TrainingRunScores]) -> dict[str, list[str]]:
    """Return sacrebleu's descriptions of the scores of translations, with the tasks they are of."""
    tasks_by_signature: defaultdict[str, set[str]] = defaultdict(set)
    for run in training_runs:
        for measure, scores in run.scores.items():
            if scores.segments:
                tasks_by_signature[scores.segments.signature].add(measure.benchmark)
    return {signature: sorted(tasks) for signature, tasks in sorted(tasks_by_signature.items())}


def rows_of(study: Study, found: Found) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables; some rows have more columns than their table."""
    return {
        "training_runs": [
            {
                "training_run": run.name,
                "of": run.of,
                "is_baseline": run.name == study.baseline,
                "dose": run.dose,
                "series": run.series,
            }
            for run in study.training_run
        ],
        "differences": [_compared(row) for row in found.comparison.all],
        "by_step": [_compared(row) for row in found.training.by_step],
        "changes": [
            {**vars(row), "at_step": row.score, "at_other_step": row.baseline}
            for row in found.training.changes
        ],
        "by_dose": [_compared(row) for row in found.by_dose],
        "effects": [{**vars(effect), **effect.label._asdict()} for effect in found.effects],
        "effects_by_step": [
            {**vars(effect), **effect.label._asdict(), "step": step}
            for step, effect in found.effects_by_step
        ],
        "problems": [asdict(problem) for problem in found.problems],
    }


def _compared(row: Difference) -> dict[str, Any]:
    return {**vars(row), "relative": row.relative}


def _table(rows: Iterable[Mapping[str, Any]], columns: Iterable[Column]) -> pa.Table:
    schema = schema_of(columns)
    cells = [{name: rounded(row[name]) for name in schema.names} for row in rows]
    return pa.Table.from_pylist(cells, schema=schema)


def as_markdown(study: Study, found: Found, rows: Rows, charts: Mapping[str, Chart]) -> str:
    return render(
        "features/study/study.md.j2",
        study=study,
        charts=charts,
        left_out=[*left_out(found.training_runs)],
        **page.tables(rows, study.baseline),
        signatures=_signatures(found.training_runs),
        problems=[str(problem) for problem in found.problems],
        most=_MOST_LISTED,
    )
