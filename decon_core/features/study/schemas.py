"""Tables of a study: training runs, their differences, effects by exposure, problems."""

from decon_core.schemas import field, required

# One row per training run of the study.
TRAINING_RUNS = (
    required("training_run", "string", "name of the training run"),
    field("of", "string", "the mixture or blend that its model was trained on"),
    required("is_baseline", "bool", "whether the other training runs are compared with it"),
    field("dose", "double", "test data in its training data: a ratio, or copies"),
    field("series", "string", "name of the dose curve that the training run belongs to"),
)

_COMPARED = (
    required("training_run", "string", "name of the training run"),
    required("benchmark", "string", "name of the task, or of a group of them"),
    required("metric", "string", "name of the metric; empty: an average over several"),
    required("filter", "string", "filter that extracted the answers; empty: none"),
)
_INTERVAL = (
    field("low", "double", "lower end of the 95 % interval of the difference"),
    field("high", "double", "upper end of the 95 % interval of the difference"),
    field("p", "double", "two-sided p-value of the difference"),
)

_SCORES = (
    field("n_benchmarks", "int64", "for an average: number of its benchmarks"),
    field(
        "n",
        "int64",
        "items compared; for the baseline, or if the items differ: items of the training run",
    ),
    required("score", "double", "score of the training run"),
    field("baseline", "double", "score of the baseline"),
    field("difference", "double", "score minus baseline; null for the baseline itself"),
    *_INTERVAL,
    field("stderr", "double", "standard error of the difference"),
    field("relative", "double", "difference as a share of the baseline"),
    required("basis", "string", "what the interval is based on; empty: no interval"),
    required("remark", "string", "why there is no interval, or which items it is based on"),
)

# One row per training run and benchmark, or group of benchmarks, at the end of training; the table
# by_step has the same at each step.
DIFFERENCES = (
    *_COMPARED,
    field("step", "double", "steps or tokens of training; null: the results have no steps"),
    *_SCORES,
)

# One row per training run and benchmark, or group of benchmarks, and pair of steps.
CHANGES = (
    *_COMPARED,
    required("change", "string", "which steps: peak - end, or end - start"),
    required("step", "double", "the first of the two steps, such as the peak"),
    required("other_step", "double", "the second of the two steps"),
    field("n", "int64", "items compared"),
    required("at_step", "double", "difference from the baseline at the first step"),
    required("at_other_step", "double", "difference from the baseline at the second step"),
    field("difference", "double", "how much the difference changed between the two steps"),
    *_INTERVAL,
    required("basis", "string", "what the interval is based on; empty: no interval"),
    required("remark", "string", "why there is no interval"),
)

# One row per series, dose and benchmark, or group of benchmarks.
BY_DOSE = (
    required("series", "string", "name of the dose curve; empty: training runs without a series"),
    required("dose", "double", "test data in the training data: a ratio, or copies"),
    required("n_training_runs", "int64", "repetitions: training runs with this dose"),
    *_COMPARED,
    *_SCORES,
)

# One row per training run, benchmark and kind of exposure of the items.
EFFECTS = (
    *_COMPARED,
    required("exposure", "string", "seen, held back, not planted, leaked, clean, or a pair"),
    required("form", "string", "for seen items: the form in which they were planted"),
    required("copies", "string", "for seen items: how many times they were planted"),
    required("when", "string", "for seen items: the part of the blend they are in"),
    required("n", "int64", "items that both training runs answered"),
    field("score", "double", "score of the training run on these items"),
    field("baseline", "double", "score of the baseline on these items"),
    field("difference", "double", "score minus baseline, or the difference of two effects"),
    *_INTERVAL,
    required("remark", "string", "why there is no interval"),
)

# The same at each step of training.
EFFECTS_BY_STEP = (required("step", "double", "steps or tokens of training"), *EFFECTS)

# One row per problem of the results of a study.
PROBLEMS = (
    required("where", "string", "file and row"),
    required("found", "string", "what was found there"),
    required("expected", "string", "what was expected"),
    field("remedy", "string", "what to do, or the consequence"),
)

TABLES = {
    "training_runs": TRAINING_RUNS,
    "differences": DIFFERENCES,
    "by_step": DIFFERENCES,
    "changes": CHANGES,
    "by_dose": BY_DOSE,
    "effects": EFFECTS,
    "effects_by_step": EFFECTS_BY_STEP,
    "problems": PROBLEMS,
}
