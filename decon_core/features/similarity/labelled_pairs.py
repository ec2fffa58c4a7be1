"""Labelled pairs of texts, and how well each metric tells duplicates from other pairs.

A metric says duplicate above some value. Its AUC is the probability that a duplicate has a higher
value than another pair (half for a tie). Its recall is the share of duplicates above the value that
at most 1 % of the other pairs exceed. A pair without a value ranks below all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from decon_core.benchmarks.fields import Row, describe
from decon_core.benchmarks.readers import is_readable, read_rows
from decon_core.decisions.calibration import wilson
from decon_core.errors import InputError, Problem

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MAX_FALSE_POSITIVES = 0.01
_COLUMNS = "an object with the texts `original` and `other`, and `label` (true: a duplicate)"
# 1 and 0 are equal to True and False.
_LABELS: Mapping[object, bool] = {
    **dict.fromkeys((True, "true", "1"), True),
    **dict.fromkeys((False, "false", "0"), False),
}
_N_RESAMPLES = 1000
_RESAMPLES_AT_ONCE = 50


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of texts, as columns."""

    originals: tuple[str, ...]
    others: tuple[str, ...]
    are_duplicates: Flags
    kinds: tuple[str, ...]  # kinds of pairs, in any words; empty where the file has none

    def __len__(self) -> int:
        return len(self.originals)


def read_labelled_pairs(path: Path) -> tuple[LabelledPairs, list[Problem]]:
    """Read a JSONL, JSON, CSV or Parquet file; return its pairs, and the rows that hold none.

    Raises InputError if the file cannot be read, or has no pair of one of the two labels.
    """
    if not path.is_file() or not is_readable(path):
        found = "no such file" if not path.exists() else "no table"
        raise InputError(Problem(str(path), found, "a JSON Lines, JSON, CSV or Parquet file"))
    pairs: list[tuple[str, str, bool, str]] = []
    problems: list[Problem] = []
    for number, row in enumerate(read_rows(path), start=1):
        pair = row if isinstance(row, Problem) else _pair(f"{path} row {number}", row)
        if isinstance(pair, Problem):
            problems.append(pair)
        else:
            pairs.append(pair)
    labels = {label for _, _, label, _ in pairs}
    if len(labels) < 2:
        which = "no pair" if not labels else f"only pairs labelled {str(*labels).lower()}"
        expected = "pairs labelled true and pairs labelled false"
        raise InputError([*problems, Problem(str(path), which, expected)])
    originals, others, are_duplicates, kinds = zip(*pairs, strict=True)
    return LabelledPairs(originals, others, np.array(are_duplicates), kinds), problems


def _pair(place: str, row: Row) -> tuple[str, str, bool, str] | Problem:
    texts = [row.get("original"), row.get("other")]
    for name, text in zip(("original", "other"), texts, strict=True):
        if not isinstance(text, str) or not text.strip():
            return Problem(place, f"`{name}`: {describe(text)}", _COLUMNS)
    label = row.get("label")
    key = label.strip().lower() if isinstance(label, str) else label
    if not isinstance(key, bool | int | str) or key not in _LABELS:
        return Problem(place, f"`label`: {describe(label)}", _COLUMNS)
    kind = row.get("kind")
    return str(texts[0]), str(texts[1]), _LABELS[key], "" if kind is None else str(kind)


@dataclass(frozen=True)
class MetricScore:
    """How well one metric tells duplicates from other pairs, with 95 % intervals."""

    metric: str
    n_undefined: int  # pairs without a value
    auc: float
    auc_low: float
    auc_high: float
    recall: float
    recall_low: float
    recall_high: float
    above: float  # the value that duplicates must exceed


@dataclass(frozen=True)
class KindScore:
    """How well one metric tells the pairs of a kind from all pairs of the other label."""

    kind: str
    is_duplicate: bool
    n: int
    metric: str
    auc: float
    recall: float


def score_metrics(
    pairs: LabelledPairs, values: Mapping[str, Floats], *, seed: int = 0
) -> list[MetricScore]:
    """Return the score of each metric from its values, nan where a pair has none.

    Intervals are percentiles of resamples of the originals, each with all its pairs, as pairs of
    one original are not independent.
    """
    number_of = {text: number for number, text in enumerate(dict.fromkeys(pairs.originals))}
    n = len(number_of)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), _N_RESAMPLES)
    # How often each pair is in each resample: one row per resample.
    weights = draws[:, [number_of[text] for text in pairs.originals]]
    once = np.ones((1, len(pairs)), np.int64)
    scores = []
    for name, metric_values in values.items():
        (auc,), (recall,) = _auc_and_recall(metric_values, pairs.are_duplicates, once).tolist()
        resampled = [
            _auc_and_recall(metric_values, pairs.are_duplicates, part)
            for part in np.split(weights, _N_RESAMPLES // _RESAMPLES_AT_ONCE)
        ]
        aucs, recalls = np.concatenate(resampled, axis=1)
        auc_low, auc_high = _interval(auc, aucs, n)
        recall_low, recall_high = _interval(recall, recalls, n)
        score = MetricScore(
            metric=name,
            n_undefined=int(np.isnan(metric_values).sum()),
            auc=auc,
            auc_low=auc_low,
            auc_high=auc_high,
            recall=recall,
            recall_low=recall_low,
            recall_high=recall_high,
            above=_threshold(metric_values[~pairs.are_duplicates]),
        )
        scores.append(score)
    return scores


def score_kinds(pairs: LabelledPairs, values: Mapping[str, Floats]) -> list[KindScore]:
    """Return the scores of each kind, if the file has kinds: duplicates first, by name."""
    labels_and_kinds = {*zip(~pairs.are_duplicates, pairs.kinds, strict=True)}
    if not any(kind for _, kind in labels_and_kinds):
        return []
    kinds = np.array(pairs.kinds, object)
    scores = []
    for is_other, kind in sorted(labels_and_kinds):
        is_own = (pairs.are_duplicates != is_other) & (kinds == kind)
        chosen = is_own | (pairs.are_duplicates == is_other)
        are_duplicates, once = pairs.are_duplicates[chosen], np.ones((1, chosen.sum()), np.int64)
        for name, metric_values in values.items():
            (auc,), (recall,) = _auc_and_recall(
                metric_values[chosen], are_duplicates, once
            ).tolist()
            scores.append(KindScore(kind, not is_other, int(is_own.sum()), name, auc, recall))
    return scores


def _interval(value: float, resampled: Floats, n: int) -> tuple[float, float]:
    """Return the middle 95 % of resamples.

    If all are 0 or all are 1, resampling cannot show how far the value may be off: the interval is
    then Wilson's of a share of `n`.
    """
    low, high = np.nanpercentile(resampled, (2.5, 97.5)).tolist()
    if low == high and value in (0, 1):
        low, high = wilson(value, n)
    return min(low, value), max(high, value)


def _auc_and_recall(values: Floats, are_duplicates: Flags, weights: Integers) -> Floats:
    """Return AUC and recall, a row each, with each row of weights; nan if one label has none."""
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-ranked, kind="stable")
    descending = ranked[order]
    starts = np.flatnonzero(np.append(True, descending[1:] != descending[:-1]))
    # The pairs of both labels by distinct value, highest first.
    duplicates, others = (
        np.add.reduceat((weights * is_one)[:, order], starts, axis=1)
        for is_one in (are_duplicates, ~are_duplicates)
    )
    n_duplicates, n_others = duplicates.sum(axis=1), others.sum(axis=1)
    above = np.cumsum(duplicates, axis=1) - duplicates
    wins = ((2 * above + duplicates) * others).sum(axis=1)  # a tie is half a win
    allowed = np.floor(MAX_FALSE_POSITIVES * n_others + 1e-9)
    first = (np.cumsum(others, axis=1) > allowed[:, None]).argmax(axis=1)
    found = above[np.arange(len(above)), first]
    with np.errstate(invalid="ignore"):
        return np.array([wins / (2 * n_duplicates * n_others), found / n_duplicates])


def _threshold(values: Floats) -> float:
    """Return the value that at most 1 % of these pairs exceed."""
    allowed = floor(MAX_FALSE_POSITIVES * values.size + 1e-9)
    return float(np.sort(np.where(np.isnan(values), -np.inf, values))[-1 - allowed])
