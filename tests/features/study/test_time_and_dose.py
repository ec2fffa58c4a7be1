"""Training runs through training and by dose: known effects, peaks, and what is refused."""

import csv
import json
import shutil
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

from decon_assets.cli.main import main
from decon_core.decisions import statistics
from decon_core.errors import InputError
from decon_core.features.study.by_dose import NO_REPETITION, compare_doses
from decon_core.features.study.differences import AVERAGE, compare_training_runs
from decon_core.features.study.scores import read_training_runs
from decon_core.features.study.settings import Study, TrainingRun
from decon_core.features.study.through_training import compare_through_training
from tests.features.study.in_memory import training_run_of
from tests.finished_world import DATA
from tests.long_runs import only_in_long_runs

N_ITEMS, N_REPETITIONS = 120, 4
STEPS, DOSES = (10, 20, 30, 40), (0, 1, 10, 100)
BENCHMARKS = ("clean", "planted")
# What one training run has beyond others of its dose, and an item beyond others of its benchmark:
# normal, in logits. What is planted is answered better by these logits at a step, and per tenfold
# dose at the end; more so by items that the model half knows.
SPREAD_OF_RUNS, SPREAD_OF_ITEMS = 0.15, 1.2
LIFTS = {10: 0.0, 20: 2.0, 30: 1.2, 40: 0.8}
PER_TENFOLD = 0.45


def chance(logits):
    return 1 / (1 + np.exp(-logits))


class Planted:
    """A study drawn from a logistic model of items and training runs, and its true effects."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.difficulty = {b: self.rng.normal(0, SPREAD_OF_ITEMS, N_ITEMS) for b in BENCHMARKS}
        self.slopes = np.exp(self.rng.normal(0, 0.3, N_ITEMS))  # how well an item is memorized

    def rows(self, lift, *, spread=0.0, step=None):
        """Yield the rows of a training run; its chances on the same items are `chances`."""
        ability = self.rng.normal(0, spread) if spread else 0.0
        for benchmark in BENCHMARKS:
            logits = ability - self.difficulty[benchmark]
            if benchmark == "planted":
                logits = logits + lift * self.slopes
            right = self.rng.random(N_ITEMS) < chance(logits)
            for index, score in enumerate(right.tolist()):
                yield {"benchmark": benchmark, "index": index, "score": score, "step": step}


@cache
def truth(lift, spread=0.0):
    """Return the effect of a lift on a benchmark of all items and training runs there could be."""
    rng = np.random.default_rng(1)
    items = rng.normal(0, SPREAD_OF_ITEMS, 200_000) + spread * rng.normal(0, 1, 200_000)
    slopes = np.exp(rng.normal(0, 0.3, items.size))
    return float((chance(lift * slopes - items) - chance(-items)).mean())


def write(folder, name, rows):
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TrainingRun(name=name, results=(path.name,))


def planted_doses(seed):
    """Return differences by dose and benchmark, in a study with repetitions."""
    planted = Planted(seed)
    read = []
    for dose in DOSES:
        for number in range(N_REPETITIONS):
            rows = planted.rows(lift_of(dose), spread=SPREAD_OF_RUNS)
            run = TrainingRun(name=f"{dose} {number}", results=("x",), dose=float(dose))
            read.append(training_run_of(run, rows))
    study = Study(baseline="0 0", contrasts={"planted": "clean"})
    found = compare_training_runs(read, study)
    rows = compare_doses(read, found, study)
    return {(row.dose, row.benchmark): row for row in rows}


def planted_steps(seed):
    """Return the differences by step, and the changes, in a study of two training runs."""
    planted = Planted(seed)
    read = []
    for name in ("base", "dosed"):
        rows = [
            row
            for step in STEPS
            for row in planted.rows(LIFTS[step] if name == "dosed" else 0.0, step=step)
        ]
        read.append(training_run_of(TrainingRun(name=name, results=("x",)), rows))
    return compare_through_training(read, Study(baseline="base", contrasts={"planted": "clean"}))


@pytest.fixture
def _fewer_draws(monkeypatch):
    monkeypatch.setattr(statistics, "N_DRAWS", 1_000)


def lift_of(dose):
    return float(PER_TENFOLD * np.log10(1 + 9 * dose)) if dose else 0.0


def hits_of_doses(seeds):
    hits = defaultdict(list)
    for seed in seeds:
        for (dose, benchmark), row in planted_doses(seed).items():
            effect = truth(lift_of(dose), SPREAD_OF_RUNS)
            effect = {"clean": 0.0, AVERAGE: effect / 2}.get(benchmark, effect)
            hits[dose, benchmark].append(row.low <= effect <= row.high)
    return {key: sum(values) for key, values in hits.items()}


def hits_of_steps(seeds):
    shares = {"clean": 0.0, AVERAGE: 0.5}
    hits = defaultdict(list)
    for seed in seeds:
        found = planted_steps(seed)
        for row in found.by_step:
            if row.training_run == "dosed":
                effect = truth(LIFTS[row.step]) * shares.get(row.benchmark, 1.0)
                hits[row.step, row.benchmark].append(row.low <= effect <= row.high)
        for row in found.changes:
            effect = truth(LIFTS[row.step]) - truth(LIFTS[row.other_step])
            effect *= shares.get(row.benchmark, 1.0)
            # Where the end is the peak, nothing is estimated.
            is_right = row.low is None or row.low <= effect <= row.high
            hits[row.change, row.benchmark].append(is_right)
    return {key: sum(values) for key, values in hits.items()}


@pytest.mark.usefixtures("_fewer_draws")
def test_intervals_hold_the_effects_of_a_logistic_model():
    for hits in (hits_of_doses, hits_of_steps):
        n_hits = hits(range(3))
        assert len(n_hits) in (12, 24)
        assert sum(n_hits.values()) >= 0.9 * 3 * len(n_hits)


@only_in_long_runs("600 studies take two minutes")
def test_each_interval_holds_the_effect_in_93_of_100_studies():
    for hits in (hits_of_doses, hits_of_steps):
        n_hits = hits(range(600))
        assert min(n_hits.values()) >= 0.93 * 600, n_hits


def scores_at(steps, *, n=40):
    """Return rows of a benchmark with so many right answers at each step."""
    return [
        {"benchmark": "quiz", "index": index, "score": int(index < n_right), "step": step}
        for step, n_right in steps.items()
        for index in range(n)
    ]


def test_the_peak_is_compared_with_the_end_on_the_same_items(tmp_path):
    runs = (
        write(tmp_path, "base", scores_at({1: 10, 2: 10, 3: 20})),
        write(tmp_path, "dosed", scores_at({1: 10, 2: 30, 3: 30})),
    )
    study = Study(baseline="base", training_run=runs)
    found = compare_through_training(read_training_runs(study, tmp_path), study)
    assert [(row.step, row.difference) for row in found.by_step if row.training_run == "dosed"] == [
        (1, 0.0), (2, 0.5), (3, 0.25),
    ]  # fmt: skip
    peak, rise = found.changes
    assert (peak.change, peak.step, peak.other_step) == ("peak - end", 2, 3)
    assert (peak.score, peak.baseline) == (0.5, 0.25)
    # Ten of forty items changed by 1, and the peak was chosen from two steps besides the end.
    error = np.sqrt(0.25 * 0.75 / 39)
    assert peak.difference == 0.25
    assert peak.low == pytest.approx(0.25 - 2.2414 * error, abs=1e-4)
    assert (rise.change, rise.step, rise.other_step) == ("end - start", 3, 1)
    assert rise.high == pytest.approx(0.25 + 1.96 * error, abs=1e-4)


def test_a_baseline_without_steps_is_the_same_at_each(tmp_path):
    runs = (
        write(tmp_path, "base", scores_at({None: 10})),
        write(tmp_path, "dosed", scores_at({1: 30, 2: 20})),
    )
    study = Study(baseline="base", training_run=runs)
    found = compare_through_training(read_training_runs(study, tmp_path), study)
    rows = {row.step: row for row in found.by_step if row.training_run == "dosed"}
    assert {step: row.difference for step, row in rows.items()} == {1: 0.5, 2: 0.25}
    assert found.changes[0].difference == 0.25


def test_a_step_may_stand_in_the_path_of_results(tmp_path):
    for step in (5, 10, 100):
        folder = tmp_path / f"step{step}"
        folder.mkdir()
        (folder / "scores.csv").write_text(f"benchmark,score,stderr\nquiz,{step / 200},0.01\n")
    run = TrainingRun(name="a", results=("step{step}/*.csv",))
    read, _ = read_training_runs(
        Study(baseline="a", training_run=(run, TrainingRun(name="b", results=("step5",)))), tmp_path
    )
    assert [each.step for each in read.checkpoints] == [5, 10, 100]
    (scores,) = read.scores.values()
    assert (read.step, scores.mean) == (100, 0.5)  # the last one
    (tmp_path / "stepfinal").mkdir()
    (tmp_path / "stepfinal" / "scores.csv").write_text("benchmark,score\nquiz,0.5\n")
    with pytest.raises(InputError, match=r"a number in place of \{step\}"):
        read_training_runs(Study(baseline="a", training_run=(run,)), tmp_path)


def test_results_with_and_without_a_step_are_refused(tmp_path):
    run = write(tmp_path, "mixed", scores_at({None: 10, 1: 10}))
    with pytest.raises(InputError, match="results without a step"):
        read_training_runs(Study(baseline="mixed", training_run=(run,)), tmp_path)
    path = tmp_path / "wrong.csv"
    path.write_text("benchmark,score,step\nquiz,0.5,soon\nquiz,0.5,10\n")
    run = TrainingRun(name="wrong", results=(path.name,))
    (read,) = read_training_runs(Study(baseline="wrong", training_run=(run,)), tmp_path)
    (problem,) = read.problems
    assert problem.found == "the step 'soon'"


EXAMPLE = DATA.parent / "examples/wmt_copies"


def test_printed_scores_by_copies_are_a_table_and_figures_by_dose(tmp_path, capsys):
    shutil.copytree(EXAMPLE, tmp_path / "study", ignore=shutil.ignore_patterns(".decon"))
    config = tmp_path / "study/decon.toml"
    config.write_text(config.read_text().replace("../../data", str(DATA)))
    command = ["study", "--config", str(config)]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    page = (DATA.parent / "docs/studies/time-and-dose.md").read_text().splitlines()
    shown = [
        " ".join(line.split()) for line in page if line.startswith(("    source ", "    full "))
    ]
    assert len(shown) >= 6
    assert {*shown} <= {*printed}
    rows = [*csv.DictReader((tmp_path / "out/by_dose.csv").read_text().splitlines())]
    assert {row["dose"] for row in rows} == {"1.0", "10.0", "100.0"}
    assert all(NO_REPETITION in row["remark"] for row in rows)
    drawing = (tmp_path / "out/difference_by_dose_2.svg").read_text()
    assert "Difference by dose: wmt23" in drawing
    assert "full: 15.969" in drawing
    config.write_text(config.read_text().replace('wmt23 = "wmt24"', 'wmt23 = "wmt25"'))
    assert main(command) == 2
    assert "Did you mean 'wmt24'" in capsys.readouterr().err
