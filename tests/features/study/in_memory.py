"""Training runs with scores by item, without files: simulations compare hundreds of them."""

from collections import defaultdict
from dataclasses import replace

from decon_core.features.study.scores import Measure, Scores, TrainingRunScores


def training_run_of(settings, rows):
    """Return what is read of a table with columns benchmark, index, score and step."""
    steps = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        key = ("", "index", f"{row['index']:09}")
        steps[row.get("step")][Measure(row["benchmark"], "score", "")][key] = float(row["score"])
    checkpoints = [
        TrainingRunScores(
            settings,
            {measure: Scores(by_item=scores) for measure, scores in by_measure.items()},
            *([], [], [], [], {}, step),
        )
        for step, by_measure in sorted(steps.items())
    ]
    with_step = [each for each in checkpoints if each.step is not None]
    return replace(checkpoints[-1], checkpoints=with_step)
