"""Matches to calls: which of them are leaks, at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied anew
for any threshold at or above the evidence floor. The formulas are those of `reference.py`, over
columns; a property test holds the two together. What a person said of a pair comes before its
score.

A `decon` match that is no leak may still be *question-only*: the question was found, and not enough
of the answer or passage for a leak (docs/detector.md, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.config.policy import RULES, Policy, exceeds, reaches
from decon_core.config.verdicts import LEAK
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.schemas import ENTRIES

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_PARTS = ("question", "answer", "passage")

# One entry per rule, document, benchmark item and place; of several records the best, then the
# correct choice, then the first. Each record is a pair of its own: one that a person cleared must
# not speak for one that leaked, and one that a person confirmed must not be hidden by any other.
_BEST_FIRST = (
    *("is_contaminated", "is_question_only", "is_confirmed"),
    *("is_enough", "score", "is_said", "is_correct"),
)
_ELSE_FIRST = ("record", "question_stop")
_ITEM = [
    *("shard", "row", "benchmark", "split", "instance_index", "detector", "looked_for"),
    "place",
]
# Records of an item that were found at one place by the very same words: choices, mostly, of none
# of which anything stands there. Whoever cleared the best of them has seen what the others show.
_SAME = [*_ITEM, *(f"{part}_{edge}" for part in _PARTS for edge in ("start", "stop"))]


def decide(
    matches: pa.Table,
    policy: Policy,
    verdicts: Verdicts = NO_VERDICTS,
    *,
    holds_to: Floats | None = None,
) -> pa.Table:
    """One entry per document, item and place, with its score and whether it counts as a leak.

    `holds_to`: of every match the highest threshold at which it would be one. An entry has the
    highest of all that it was chosen from.
    """
    score, is_enough, is_without_answer = judge(matches, policy)
    highest = pa.nulls(len(score)) if holds_to is None else pa.array(holds_to, from_pandas=True)
    said = verdict_column(matches["pair"], verdicts)
    # Only `decon` tells places of a document apart.
    place = pl.when(pl.col("detector") == "decon").then(pl.col("question_start"))
    frame = pl.DataFrame(matches).with_columns(
        place.alias("place"),
        pl.Series("score", score),
        pl.Series("is_enough", is_enough),
        pl.Series("is_question_only", is_without_answer),
        pl.Series("verdict", said),
        pl.Series("holds_to", highest).cast(pl.Float64),
    )
    if holds_to is not None:
        frame = frame.with_columns(pl.col("holds_to").max().over(_ITEM))
    return _chosen(_called(frame, verdicts)).select(ENTRIES.names).to_arrow().cast(ENTRIES)


def _called(frame: pl.DataFrame, verdicts: Verdicts) -> pl.DataFrame:
    """Which matches are leaks or question-only; and of which items and places some leak by score.

    A person who clears a pair clears it of both.
    """
    is_enough = pl.col("is_enough")
    if not verdicts:
        return frame.with_columns(
            is_enough.alias("is_contaminated"),
            is_enough.alias("is_by_score"),
            pl.lit(value=False).alias("is_confirmed"),
            pl.lit(value=False).alias("is_said"),
        )
    said = pl.col("verdict")
    is_confirmed, is_clearing = said == LEAK, said.is_in(verdicts.clears)
    best_cleared = pl.col("score").filter(is_clearing).max().over(_SAME)
    is_cleared = is_clearing | (said.is_null() & (pl.col("score") <= best_cleared))
    is_open = ~is_cleared.fill_null(value=False)
    is_leak = is_confirmed.fill_null(value=False) | (is_enough & is_open)
    return frame.with_columns(
        is_leak.alias("is_contaminated"),
        (pl.col("is_question_only") & is_open & ~is_leak).alias("is_question_only"),
        is_enough.max().over(_ITEM).alias("is_by_score"),
        is_confirmed.alias("is_confirmed"),
        said.is_not_null().alias("is_said"),
    )


def _chosen(frame: pl.DataFrame) -> pl.DataFrame:
    best_first = (pl.col(name).fill_null(False) for name in _BEST_FIRST)
    descending = [False] * len(_ITEM) + [True] * len(_BEST_FIRST) + [False] * len(_ELSE_FIRST)
    in_order = frame.sort([*_ITEM, *best_first, *_ELSE_FIRST], descending=descending)
    return in_order.unique(_ITEM, keep="first", maintain_order=True)


def verdict_column(pairs: pa.ChunkedArray, verdicts: Verdicts) -> pa.Array:
    """What a person said of each pair; null of most."""
    if not verdicts:
        return pa.nulls(len(pairs), pa.string())
    known = pa.array(verdicts.by_pair, pa.string())
    said = pa.array([one.verdict for one in verdicts.by_pair.values()], pa.string())
    return said.take(pc.index_in(pairs.combine_chunks(), known))


class Judged(NamedTuple):
    """What each match amounts to by its score alone."""

    score: Floats
    is_leak: Booleans
    is_question_only: Booleans  # never together with `is_leak`


def judge(matches: pa.Table, policy: Policy) -> Judged:
    """Score and class of every match, by the thresholds of its benchmark."""
    judged = _judge(matches, policy)
    for rows, own in by_threshold(matches, policy):
        for column, found in zip(judged, _judge(matches.take(pa.array(rows)), own), strict=True):
            column[rows] = found
    return judged


def by_threshold(matches: pa.Table, policy: Policy) -> Iterator[tuple[Integers, Policy]]:
    """The rows of benchmarks that have thresholds of their own, with the policy for them."""
    for name in policy.benchmark:
        is_own = pc.equal(matches["benchmark"], name).to_numpy(zero_copy_only=False)
        if (rows := np.flatnonzero(is_own)).size:
            yield rows, policy.for_benchmark(name)


def _judge(matches: pa.Table, policy: Policy) -> Judged:
    detector = matches["detector"].to_numpy(zero_copy_only=False)
    score, is_leak, is_question_only = _judge_decon(matches, policy)
    is_question_only = is_question_only & (detector == "decon")
    base = _column(matches, "base_score")
    for rule in RULES[1:]:
        is_own = detector == rule
        of_rule = base
        if rule == "ngram_any":
            of_rule = np.minimum(_column(matches, "n_matched") / policy.ngram_any_size, 1.0)
        threshold = policy.threshold_of(rule)
        is_enough = (exceeds if rule == "longest_match" else reaches)(of_rule, threshold)
        score = np.where(is_own, of_rule, score)
        is_leak = np.where(is_own, is_enough, is_leak)
    return Judged(score, is_leak, is_question_only)


def _judge_decon(matches: pa.Table, policy: Policy) -> Judged:
    overlap = _column(matches, "question_overlap")
    least = policy.least_question_overlap
    at_length = policy.decay(_column(matches, "question_tokens"), least)
    passes = reaches(overlap, np.maximum(least, at_length))
    base = _column(matches, "base_score")
    score = _penalized(base, _column(matches, "total_tokens"), policy)
    is_leak = passes & reaches(score, policy.contamination_score_threshold)
    is_question_only = passes & ~is_leak & _is_leak_without_answer(matches, policy)
    return Judged(score, is_leak, is_question_only)


def _penalized(base: Floats, lengths: Floats, policy: Policy) -> Floats:
    """The length penalty: a short text must score higher, unless it scores exactly 1."""
    threshold = policy.contamination_score_threshold
    required = policy.decay(lengths, threshold)
    is_penalized = (base != 1.0) & (required > threshold)
    return np.where(is_penalized, base * threshold / required, base)


def _is_leak_without_answer(matches: pa.Table, policy: Policy) -> Booleans:
    """Whether the record would be a leak if it had only its question, or no answer.

    Twin of `reference.is_question_only`, without the gates.
    """
    question = _column(matches, "question_overlap")
    passage = _column(matches, "passage_overlap")  # nan: the record has none
    has_answer, has_passage = ~np.isnan(_column(matches, "answer_overlap")), ~np.isnan(passage)
    n_question = _column(matches, "question_tokens")
    alone = _is_leak_of_length(question, n_question, policy)
    n_both = n_question + _column(matches, "passage_stop") - _column(matches, "passage_start")
    confidence = np.minimum(0.5 + 0.5 * _column(matches, "n_grams") / 20, 1.0)
    score = 0.85 * confidence * question + (0.15 + 0.85 * (1 - confidence)) * passage
    both = np.where((question == 1.0) & (passage == 1.0), 1.0, np.minimum(1.0, score))
    # Where no passage was found, its length is nan, and no comparison with that is true.
    with_passage = has_answer & has_passage & _is_leak_of_length(both, n_both, policy)
    return ((has_answer | has_passage) & alone) | with_passage


def _is_leak_of_length(base: Floats, lengths: Floats, policy: Policy) -> Booleans:
    """Whether a text of so many tokens would be indexed, and reach the threshold."""
    is_indexed = lengths >= policy.eval_min_token_length
    score = _penalized(base, lengths, policy)
    return is_indexed & reaches(score, policy.contamination_score_threshold)


def _column(matches: pa.Table, name: str) -> Floats:
    return np.asarray(matches[name].to_numpy(zero_copy_only=False), dtype=np.float64)
