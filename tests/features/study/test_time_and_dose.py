"""Training runs through training and by dose: known effects, peaks, and what is refused."""

import json
from collections import defaultdict
from functools import cache

import numpy as np

from decon_core.features.study.settings import Study, TrainingRun
from decon_core.features.study.training_runs.by_dose import compare_doses
from decon_core.features.study.training_runs.differences import AVERAGE, compare_training_runs
from decon_core.features.study.training_runs.scores import read_training_runs
from decon_core.features.study.training_runs.through_training import compare_through_training

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


def planted_doses(folder, seed):
    """Return differences by dose and benchmark, in a study with repetitions."""
    planted = Planted(seed)
    runs = []
    for dose in DOSES:
        for number in range(N_REPETITIONS):
            rows = planted.rows(lift_of(dose), spread=SPREAD_OF_RUNS)
            run = write(folder, f"{dose} {number}", rows)
            runs.append(TrainingRun(name=run.name, results=run.results, dose=float(dose)))
    study = Study(baseline="0 0", training_run=tuple(runs), contrasts={"planted": "clean"})
    read = read_training_runs(study, folder)
    found = compare_training_runs(read, study.baseline, {}, contrasts=study.contrasts)
    rows = compare_doses(read, found, study)
    return {(row.dose, row.difference.benchmark): row.difference for row in rows}


def planted_steps(folder, seed):
    """Return the differences by step, and the changes, in a study of two training runs."""
    planted = Planted(seed)
    names = ("base", "dosed")
    runs = [
        write(
            folder,
            name,
            [
                row
                for step in STEPS
                for row in planted.rows(LIFTS[step] if name == "dosed" else 0.0, step=step)
            ],
        )
        for name in names
    ]
    study = Study(baseline="base", training_run=tuple(runs), contrasts={"planted": "clean"})
    return compare_through_training(read_training_runs(study, folder), study)


def lift_of(dose):
    return float(PER_TENFOLD * np.log10(1 + 9 * dose)) if dose else 0.0


def hits_of_doses(folder, seeds):
    hits = defaultdict(list)
    for seed in seeds:
        for (dose, benchmark), row in planted_doses(folder, seed).items():
            effect = truth(lift_of(dose), SPREAD_OF_RUNS)
            effect = {"clean": 0.0, AVERAGE: effect / 2}.get(benchmark, effect)
            hits[dose, benchmark].append(row.low <= effect <= row.high)
    return {key: sum(values) for key, values in hits.items()}


def hits_of_steps(folder, seeds):
    shares = {"clean": 0.0, AVERAGE: 0.5}
    hits = defaultdict(list)
    for seed in seeds:
        found = planted_steps(folder, seed)
        for row in found.by_step:
            if row.training_run == "dosed":
                effect = truth(LIFTS[row.step]) * shares.get(row.benchmark, 1.0)
                hits[row.step, row.benchmark].append(row.low <= effect <= row.high)
        for change in found.changes:
            row = change.difference
            effect = truth(LIFTS[change.step]) - truth(LIFTS[change.other_step])
            effect *= shares.get(row.benchmark, 1.0)
            # Where the end is the peak, nothing is estimated.
            is_right = row.low is None or row.low <= effect <= row.high
            hits[change.change, row.benchmark].append(is_right)
    return {key: sum(values) for key, values in hits.items()}
