"""BLEU and chrF from sums of counts by segment, so that any set of segments can be scored.

sacrebleu tokenizes and counts, and computes BLEU; the formula of chrF takes many sums at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Protocol

import numpy as np
import numpy.typing as npt

from decon_core.errors import InputError, Problem
from decon_core.features.study.settings import CorpusMetricName, TokenizerName, Translation

Floats = npt.NDArray[np.float64]
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
        scores = []
        for length, reference_length, *counts in sums.astype(np.int64).tolist():
            matches, totals = counts[:_ORDERS], counts[_ORDERS:]
            bleu = self._of_corpus.compute_bleu(
                matches, totals, length, reference_length, smooth_method="exp"
            )
            scores.append(bleu.score)
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
        found, remedy = (
            "no package 'sacrebleu' installed",
            "run `pip install 'decon-assets[translation]'`",
        )
        raise InputError(Problem(where, found, "that package", remedy))
    if name == "chrf":
        return Chrf()
    try:
        return Bleu(tokenize)
    except (ImportError, RuntimeError, OSError) as error:  # needs a package, or a download
        lines = " ".join(str(error).split())
        found, expected = f"a tokenizer {tokenize!r} that fails ({lines})", "one that works here"
        raise InputError(Problem(where, found, expected)) from error


def check(translation: Translation) -> None:
    """Raise InputError with all metrics and tokenizers that do not work here."""
    problems: list[Problem] = []
    tokenizers: list[TokenizerName] = ["13a", *translation.tokenize.values()]
    for name in translation.metrics:
        for tokenizer in dict.fromkeys(tokenizers[:1] if name == "chrf" else tokenizers):
            try:
                corpus_metric(name, tokenizer)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))
