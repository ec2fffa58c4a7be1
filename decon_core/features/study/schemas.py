"""Tables of a study: training runs, their differences, effects by exposure, problems."""

import pyarrow as pa

from decon_core.schemas import field, required

# One row per training run of the study.
TRAINING_RUNS = pa.schema(
    [
        required("training_run", pa.string(), "name of the training run"),
        field("of", pa.string(), "the mixture or blend that its model was trained on"),
        required("is_baseline", pa.bool_(), "whether the other training runs are compared with it"),
        field("dose", pa.float64(), "test data in its training data: a ratio, or copies"),
        field("series", pa.string(), "name of the dose curve that the training run belongs to"),
    ]
)

_COMPARED = (
    required("training_run", pa.string(), "name of the training run"),
    required("benchmark", pa.string(), "name of the task, or of a group of them"),
    required("metric", pa.string(), "name of the metric; empty: an average over several"),
    required("filter", pa.string(), "filter that extracted the answers; empty: none"),
)
_INTERVAL = (
    field("low", pa.float64(), "lower end of the 95 % interval of the difference"),
    field("high", pa.float64(), "upper end of the 95 % interval of the difference"),
    field("p", pa.float64(), "two-sided p-value of the difference"),
)

_SCORES = (
    field("n_benchmarks", pa.int64(), "for an average: number of its benchmarks"),
    field(
        "n",
        pa.int64(),
        "items compared; for the baseline, or if the items differ: items of the training run",
    ),
    required("score", pa.float64(), "score of the training run"),
    field("baseline", pa.float64(), "score of the baseline"),
    field("difference", pa.float64(), "score minus baseline; null for the baseline itself"),
    *_INTERVAL,
    field("stderr", pa.float64(), "standard error of the difference"),
    field("relative", pa.float64(), "difference as a share of the baseline"),
    required("basis", pa.string(), "what the interval is based on; empty: no interval"),
    required("remark", pa.string(), "why there is no interval, or which items it is based on"),
)

# One row per training run and benchmark, or group of benchmarks, at the end of training; the table
# by_step has the same at each step.
DIFFERENCES = pa.schema(
    [
        *_COMPARED,
        field("step", pa.float64(), "steps or tokens of training; null: the results have no steps"),
        *_SCORES,
    ]
)

# One row per training run and benchmark, or group of benchmarks, and pair of steps.
CHANGES = pa.schema(
    [
        *_COMPARED,
        required("change", pa.string(), "which steps: peak - end, or end - start"),
        required("step", pa.float64(), "the first of the two steps, such as the peak"),
        required("other_step", pa.float64(), "the second of the two steps"),
        field("n", pa.int64(), "items compared"),
        required("at_step", pa.float64(), "difference from the baseline at the first step"),
        required("at_other_step", pa.float64(), "difference from the baseline at the second step"),
        field("difference", pa.float64(), "how much the difference changed between the two steps"),
        *_INTERVAL,
        required("basis", pa.string(), "what the interval is based on; empty: no interval"),
        required("remark", pa.string(), "why there is no interval"),
    ]
)

# One row per series, dose and benchmark, or group of benchmarks.
BY_DOSE = pa.schema(
    [
        required(
            "series", pa.string(), "name of the dose curve; empty: training runs without a series"
        ),
        required("dose", pa.float64(), "test data in the training data: a ratio, or copies"),
        required("n_training_runs", pa.int64(), "repetitions: training runs with this dose"),
        *_COMPARED,
        *_SCORES,
    ]
)

# One row per training run, benchmark and kind of exposure of the items.
EFFECTS = pa.schema(
    [
        *_COMPARED,
        required("exposure", pa.string(), "seen, held back, not planted, leaked, clean, or a pair"),
        required("form", pa.string(), "for seen items: the form in which they were planted"),
        required("copies", pa.string(), "for seen items: how many times they were planted"),
        required("when", pa.string(), "for seen items: the part of the blend they are in"),
        required("n", pa.int64(), "items that both training runs answered"),
        field("score", pa.float64(), "score of the training run on these items"),
        field("baseline", pa.float64(), "score of the baseline on these items"),
        field("difference", pa.float64(), "score minus baseline, or the difference of two effects"),
        *_INTERVAL,
        required("remark", pa.string(), "why there is no interval"),
    ]
)

# The same at each step of training.
EFFECTS_BY_STEP = EFFECTS.insert(0, required("step", pa.float64(), "steps or tokens of training"))

# One row per problem of the results of a study.
PROBLEMS = pa.schema(
    [
        required("where", pa.string(), "file and row"),
        required("found", pa.string(), "what was found there"),
        required("expected", pa.string(), "what was expected"),
        field("remedy", pa.string(), "what to do, or the consequence"),
    ]
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
