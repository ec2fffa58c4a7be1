"""[study] in decon.toml: models that were trained on variants of the data, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import (
    AS_WRITTEN,
    TABLE,
    Distinct,
    Name,
    Names,
    SettingsReader,
    did_you_mean,
    expects,
)

_Benchmarks = Annotated[Names[Name], expects("task names or patterns")]
_Results = Annotated[Names[Name], expects("result files, folders of them, or patterns")]
_Dose = Annotated[float, Field(strict=True, ge=0), AS_WRITTEN]
STEP = "{step}"  # stands for a number in the path of results


@dataclass(frozen=True, kw_only=True, config=TABLE)
class TrainingRun:
    """[[study.training_run]]: a trained model and its evaluation results."""

    name: Name
    """Name of the training run, as shown in tables."""
    results: _Results
    """Files with the scores of its model, folders of such files, or globs. {step} in a path stands
    for a number, the step of a checkpoint."""
    of: Name | None = None
    """The mixture or blend that the model was trained on."""
    dose: _Dose | None = None
    """Amount of test data in the training data: a ratio, or a number of copies. Training runs with
    the same dose and series are repetitions."""
    series: Name | None = None
    """Name of the dose curve, such as a form of the items: training runs with the same series form
    one curve."""


CorpusMetricName = Literal["bleu", "chrf"]
TokenizerName = Literal[
    "13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab", "flores101", "flores200"
]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Translation:
    """[study.translation]: sacrebleu scores of whole translation test sets."""

    benchmarks: _Benchmarks
    """Tasks whose results contain translations and references; * in a name matches anything."""
    metrics: Distinct[CorpusMetricName] = ("bleu", "chrf")
    """Metrics to compute."""
    tokenize: Mapping[Name, TokenizerName] = field(default_factory=dict, hash=False)
    """Tokenizer for BLEU, by task, for example "*_zh" = "zh"; default: 13a."""

    def tokenizer(self, task: str) -> TokenizerName:
        """Return the tokenizer of a task: that of the first pattern that fits."""
        names = (name for pattern, name in self.tokenize.items() if fnmatchcase(task, pattern))
        return next(names, "13a")

    def fits(self, task: str) -> bool:
        """Return whether the results of a task are translations."""
        return any(fnmatchcase(task, pattern) for pattern in self.benchmarks)


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Study(FeatureTable):
    """[study]: training runs that are compared with a baseline."""

    baseline: Name
    """Name of the training run that the others are compared with."""
    training_run: tuple[TrainingRun, ...] = ()
    """The training runs, including the baseline."""
    groups: Mapping[str, Names[Name]] = field(default_factory=dict, hash=False)
    """Benchmarks to average together, by group name; * in a name matches anything."""
    contrasts: Mapping[str, Name] = field(default_factory=dict, hash=False)
    """Pairs of groups or benchmarks. For each pair, the study compares the two differences from the
    baseline: that on the first minus that on the second."""
    metrics: Names[Name] = ()
    """Use only these metrics; default: all."""
    beyond_one: Names[Name] = ()
    """Tasks on a scale of 0 to 100 even if none of their scores exceeds 1; * matches anything."""
    tasks: Names[Name] = ()
    """Benchmarks of tasks whose names do not begin with the benchmark's: "NAME=BENCHMARK:SPLIT"."""
    translation: Translation | None = None
    """BLEU and chrF of translations."""

    def checked(self, reader: SettingsReader) -> Study:
        names = [run.name for run in self.training_run]
        if len(names) < 2:
            reader.wrong(
                "study.training_run", f"{len(names)}", "at least two [[study.training_run]] tables"
            )
        for name, n in Counter(names).items():
            if n > 1:
                reader.wrong(
                    "study.training_run.name", f"{name!r} {n} times", "a different name for each"
                )
        if names and self.baseline not in names:
            expected, remedy = f"one of {', '.join(names)}", did_you_mean(self.baseline, names)
            reader.wrong("study.baseline", repr(self.baseline), expected, remedy)
        products = reader.names["products"]
        for number, run in enumerate(self.training_run):
            where = f"study.training_run[{number}]"
            if run.series is not None and run.dose is None:
                reader.wrong(f"{where}.series", repr(run.series), "also 'dose'")
            for path in run.results:
                if path.count(STEP) > 1:
                    reader.wrong(f"{where}.results", repr(path), f"{STEP} once in a path")
            if run.of is not None and run.of not in products:
                expected = f"a mixture or blend: {', '.join(products) or 'none is declared'}"
                remedy = did_you_mean(run.of, products)
                reader.wrong(f"{where}.of", repr(run.of), expected, remedy)
        return self
