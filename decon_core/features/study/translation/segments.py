"""The translated segments of an arm: their counts by metric, whose sums give scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from decon_core.errors import Problem
from decon_core.features.results.per_item import Results, Sample, Texts
from decon_core.features.study.settings import Translation
from decon_core.features.study.translation.metrics import (
    CorpusMetric,
    Counts,
    Floats,
    corpus_metric,
)
from decon_core.wording import counted

K = TypeVar("K")


@dataclass(frozen=True)
class Segments(Generic[K]):
    """What was translated, and what each segment adds to the score of a test set."""

    metric: CorpusMetric
    texts: Mapping[K, Texts]
    counts: Mapping[K, Counts]

    @property
    def signature(self) -> str:
        """sacrebleu's description of the settings."""
        return self.metric.signature([len(text.references) for text in self.texts.values()])

    def rows(self, keys: Iterable[K]) -> Floats:
        """Return the counts of these segments, a row for each."""
        return np.array([self.counts[key] for key in keys], np.float64)


def score_of(metric: CorpusMetric, rows: Floats) -> float:
    """Return the score of a test set from the counts of its segments."""
    return float(metric.scores(rows.sum(axis=0, keepdims=True))[0])


def translated(
    results: Sequence[Results],
    translation: Translation,
    key_of: Callable[[Results, Sample], K],
) -> tuple[dict[tuple[str, str, str], Segments[K]], list[Problem]]:
    """Return the segments by task, metric and filter, and problems of rows that do not count."""
    problems: list[Problem] = []
    texts: defaultdict[tuple[str, str], dict[K, Texts]] = defaultdict(dict)
    for result in results:
        if not translation.fits(result.task):
            continue
        without = 0
        for sample in result.samples:
            if not sample.texts.are_complete:
                without += 1
                continue
            known = texts[result.task, sample.filter]
            if known.setdefault(key_of(result, sample), sample.texts) != sample.texts:
                expected, remedy = "one for each item", "Only the first one counts."
                problems.append(Problem(sample.place, "a second translation", expected, remedy))
        if without:
            where, n_rows = f"{result.path} {result.task}", counted(len(result.samples), "row")
            found = f"no output with references in {without:,} of {n_rows}"
            remedy = "These rows do not count for BLEU and chrF."
            problems.append(Problem(where, found, "both in each row", remedy))
    segments: dict[tuple[str, str, str], Segments[K]] = {}
    for (task, filter_name), own in texts.items():
        for name in translation.metrics:
            metric = corpus_metric(name, translation.tokenizer(task))
            counts = {
                key: metric.count(text.prediction or "", text.references)
                for key, text in own.items()
            }
            segments[task, name, filter_name] = Segments(metric, own, counts)
    return segments, problems


def with_other_references(own: Segments[K], baseline: Segments[K]) -> int:
    """Return the number of segments whose references are not those of the baseline."""
    both = own.texts.keys() & baseline.texts.keys()
    return sum(own.texts[key].references != baseline.texts[key].references for key in both)
