"""The translated segments of a training run: their counts by metric, whose sums give scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decon_core.errors import Problem
from decon_core.features.results.per_item import ItemKey, Results, Texts
from decon_core.features.study.settings import Translation
from decon_core.features.study.translation.metrics import (
    CorpusMetric,
    Counts,
    Floats,
    corpus_metric,
)
from decon_core.wording import counted

MOST = 100.0  # the highest score of a test set


@dataclass(frozen=True)
class Segments:
    """What was translated, and what each segment adds to the score of a test set."""

    metric: CorpusMetric
    texts: Mapping[ItemKey, Texts]
    counts: Mapping[ItemKey, Counts]

    @property
    def signature(self) -> str:
        """sacrebleu's description of the settings."""
        return self.metric.signature([len(text.references) for text in self.texts.values()])

    def rows(self, keys: Iterable[ItemKey]) -> Floats:
        """Return the counts of these segments, a row for each."""
        return np.array([self.counts[key] for key in keys], np.float64)


def score_of(metric: CorpusMetric, rows: Floats) -> float:
    """Return the score of a test set from the counts of its segments."""
    return float(metric.scores(rows.sum(axis=0, keepdims=True))[0])


def translated(
    results: Sequence[Results], translation: Translation
) -> tuple[dict[tuple[str, str, str], Segments], list[Problem]]:
    """Return the segments by task, metric and filter, and problems of rows that do not count."""
    problems: list[Problem] = []
    texts: defaultdict[tuple[str, str], dict[ItemKey, Texts]] = defaultdict(dict)
    for result in results:
        if not translation.fits(result.task):
            continue
        without = 0
        for sample in result.samples:
            if not sample.texts.are_complete:
                without += 1
                continue
            known = texts[result.task, sample.filter]
            if known.setdefault(result.key_of(sample), sample.texts) != sample.texts:
                expected, remedy = "one for each item", "Only the first one counts."
                problems.append(Problem(sample.place, "a second translation", expected, remedy))
        if without:
            where, n_rows = f"{result.path} {result.task}", counted(len(result.samples), "row")
            found = f"no output with references in {without:,} of {n_rows}"
            remedy = "These rows do not count for BLEU and chrF."
            problems.append(Problem(where, found, "both in each row", remedy))
    segments: dict[tuple[str, str, str], Segments] = {}
    for (task, filter_name), own in texts.items():
        for name in translation.metrics:
            metric = corpus_metric(name, translation.tokenizer(task))
            counts = {
                key: metric.count(text.prediction or "", text.references)
                for key, text in own.items()
            }
            segments[task, name, filter_name] = Segments(metric, own, counts)
    return segments, problems
