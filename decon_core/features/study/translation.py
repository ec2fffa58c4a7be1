"""BLEU and chrF of translations, from sums of counts by segment: any set of segments has a score.

sacrebleu tokenizes and counts; the formula of chrF is here, as a study computes many scores.
Training runs are compared by a paired bootstrap: segments are drawn, and test sets scored again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from decon_core.config import seeding
from decon_core.decisions.statistics import Floats
from decon_core.errors import InputError, Problem, collecting
from decon_core.features.results.per_item import ItemKey, Results, Texts
from decon_core.features.study.settings import CorpusMetricName, TokenizerName, Translation
from decon_core.wording import counted

Counts = tuple[int, ...]

_ORDERS = 4  # up to 4-grams of words, as everywhere


class CorpusMetric(Protocol):
    """A score of a whole test set."""

    def count(self, prediction: str, references: Sequence[str]) -> Counts:
        """Return what a segment adds to the sums."""

    def scores(self, sums: Floats) -> Floats:
        """Return the score of each row of sums, from 0 to 100."""

    def signature(self, n_references: Sequence[int]) -> str:
        """Return sacrebleu's description of the settings."""


class Bleu:
    """BLEU of sacrebleu's defaults: up to 4-grams, case counts, exponential smoothing."""

    def __init__(self, tokenize: str) -> None:
        from sacrebleu.metrics.bleu import BLEU

        # The effective order changes only scores of single segments, of which only counts are used;
        # without it, sacrebleu warns of such scores.
        self._of_segment = BLEU(tokenize=tokenize, effective_order=True)
        self._of_corpus = BLEU(tokenize=tokenize)

    def count(self, prediction: str, references: Sequence[str]) -> Counts:
        score = self._of_segment.sentence_score(prediction, references)
        return score.sys_len, score.ref_len, *score.counts, *score.totals

    def scores(self, sums: Floats) -> Floats:
        rows = sums.astype(np.int64).tolist()
        scores = [
            self._of_corpus.compute_bleu(
                counts[:_ORDERS], counts[_ORDERS:], length, of_references, smooth_method="exp"
            ).score
            for length, of_references, *counts in rows
        ]
        return np.array(scores, np.float64)

    def signature(self, n_references: Sequence[int]) -> str:
        self._of_corpus.corpus_score(*_corpus_with(n_references))  # type: ignore[arg-type] # takes None
        return f"bleu|{self._of_corpus.get_signature()}"


class Chrf:
    """chrF2 of sacrebleu's defaults: up to 6-grams of characters, without spaces."""

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF

        self._metric = CHRF()
        self._order, self._weight = CHRF.CHAR_ORDER, CHRF.BETA**2

    def count(self, prediction: str, references: Sequence[str]) -> Counts:
        """Return predicted, expected and matching n-grams by order, of the best reference."""
        counts = [self._counts(prediction, reference) for reference in references]
        if len(counts) == 1:
            return counts[0]
        return counts[int(np.argmax(self.scores(np.array(counts, np.float64))))]

    def _counts(self, prediction: str, reference: str) -> Counts:
        from sacrebleu.metrics.helpers import extract_all_char_ngrams

        counts: list[int] = []
        sides = (extract_all_char_ngrams(text, self._order) for text in (prediction, reference))
        for own, other in zip(*sides, strict=True):
            n_other = other.total()
            # No n-gram of the reference, no hit or miss.
            counts += own.total() if n_other else 0, n_other, (own & other).total()
        return tuple(counts)

    def scores(self, sums: Floats) -> Floats:
        own, other, matches = np.moveaxis(sums.reshape(len(sums), self._order, 3), 2, 0)
        # Orders without n-grams have no matches, and add nothing.
        is_counted = (own > 0) & (other > 0)
        n_orders = np.maximum(is_counted.sum(axis=1), 1)
        precision = (matches * is_counted / np.maximum(own, 1)).sum(axis=1) / n_orders
        recall = (matches * is_counted / np.maximum(other, 1)).sum(axis=1) / n_orders
        below = self._weight * precision + recall
        scores = (1 + self._weight) * precision * recall / np.where(below > 0, below, 1)
        return np.asarray(100 * scores)

    def signature(self, n_references: Sequence[int]) -> str:
        self._metric.corpus_score(*_corpus_with(n_references))  # type: ignore[arg-type] # takes None
        return f"chrf|{self._metric.get_signature()}"


def _corpus_with(n_references: Sequence[int]) -> tuple[list[str], list[list[str | None]]]:
    """Return a test set with these numbers of references, which sacrebleu's signature names."""
    sizes = sorted({*n_references})
    references = [["a" if at < n else None for n in sizes] for at in range(max(sizes))]
    return ["a"] * len(sizes), references


@cache
def corpus_metric(name: CorpusMetricName, tokenize: TokenizerName) -> CorpusMetric:
    """Return a metric. Raises InputError if a package that it needs is not installed."""
    where = f"study.translation {name}"
    if find_spec("sacrebleu") is None:
        found = "the package 'sacrebleu' is not installed"
        remedy = "run `pip install 'decon-assets[translation]'`"
        raise InputError(Problem(where, found, remedy=remedy))
    if name == "chrf":
        return Chrf()
    try:
        return Bleu(tokenize)
    except (ImportError, RuntimeError, OSError) as error:  # needs a package, or a download
        lines = " ".join(str(error).split())
        raise InputError(Problem(where, f"tokenizer {tokenize!r} failed: {lines}")) from error


def check(translation: Translation) -> None:
    """Raise InputError with all metrics and tokenizers that do not work here."""
    problems: list[Problem] = []
    tokenizers: list[TokenizerName] = ["13a", *translation.tokenize.values()]
    for name in translation.metrics:
        for tokenizer in dict.fromkeys(tokenizers[:1] if name == "chrf" else tokenizers):
            with collecting(problems, InputError):
                corpus_metric(name, tokenizer)
    InputError.raise_for(dict.fromkeys(problems))


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
            found = f"no output or no reference in {without:,} of {n_rows}"
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


N_DRAWS = 1_000
_MOST_AT_ONCE = 2_000_000  # numbers drawn at a time
_ENDS = (0.025, 0.975)
_TOLERANCE = 1e-9


def paired_draws(own: Floats, other: Floats, metric: CorpusMetric, name: str) -> Floats:
    """Return the differences of two training runs on N_DRAWS test sets of the same segments.

    `own` and `other`: counts, with a row for each segment.
    """
    n, n_counts = own.shape
    both = np.hstack([own, other])
    differences = np.empty(N_DRAWS)
    step = max(_MOST_AT_ONCE // n, 1)
    for start in range(0, N_DRAWS, step):
        n_rows = min(step, N_DRAWS - start)
        # Counts are whole numbers, so sums are exact in any order.
        sums = _times_drawn(n_rows, n, name, first=start * n) @ both
        differences[start : start + n_rows] = metric.scores(sums[:, :n_counts])
        differences[start : start + n_rows] -= metric.scores(sums[:, n_counts:])
    return differences


def _times_drawn(n_rows: int, n: int, name: str, *, first: int) -> Floats:
    """Return how often each of n segments is in each of `n_rows` test sets."""
    drawn = (seeding.fractions(name, n_rows * n, first=first) * n).astype(np.int64)
    drawn += np.repeat(np.arange(n_rows) * n, n)
    return np.bincount(drawn, minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


def summarize(draws: Floats, observed: float) -> dict[str, Any]:
    """Return the 95 % interval, `low` and `high`, and `p` of a difference from draws of it.

    The p-value is the share of draws that lie as far from their mean as the difference from 0,
    counting the observed difference as one of them. sacrebleu takes absolute differences before it
    subtracts their mean, which gives small p-values where there is no effect.
    """
    low, high = np.quantile(draws, _ENDS)
    is_as_far = np.abs(draws - draws.mean()) >= abs(observed) - _TOLERANCE
    p = (int(is_as_far.sum()) + 1) / (draws.size + 1)
    return {"low": float(low), "high": float(high), "p": p}
