"""Decides which matches are leaks at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied for
any threshold at or above the evidence floor. The formulas are those of `reference.py`, over
columns; a property test compares the two. A verdict on a pair overrides its score.

A `decon` match that is not a leak may be *question-only*: the question was found, but not enough
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

# One entry per detector, document, benchmark item and place: among several records the best, then
# the correct choice, then the first. Every record is a pair of its own: a cleared one must not
# represent one that leaked, and a confirmed one must not be hidden by another.
_BEST_FIRST = (
    *("is_contaminated", "is_question_only", "is_confirmed"),
    *("reaches_threshold", "score", "has_verdict", "is_correct"),
)
_TIE_BREAKERS = ("record", "question_stop")
_ITEM = [
    *("shard", "row", "benchmark", "split", "instance_index", "detector", "looked_for"),
    "place",
]
# Records of an item found at one place by the same words: mostly choices whose answer was not
# found. A verdict that clears the best of them applies to the others as well.
_SAME_WORDS = [*_ITEM, *(f"{part}_{edge}" for part in _PARTS for edge in ("start", "stop"))]


def decide(
    matches: pa.Table,
    policy: Policy,
    verdicts: Verdicts = NO_VERDICTS,
    *,
    holds_to: Floats | None = None,
) -> pa.Table:
    """Return one entry per document, item and place, with its score and whether it is a leak.

    `holds_to` is the highest threshold at which each match would be a leak. An entry gets the
    highest value of all matches that it was chosen from.
    """
    score, is_leak, is_question_only = judge(matches, policy)
    highest = pa.nulls(len(score)) if holds_to is None else pa.array(holds_to, from_pandas=True)
    verdict = verdict_column(matches["pair"], verdicts)
    # Only `decon` distinguishes several places in a document.
    place = pl.when(pl.col("detector") == "decon").then(pl.col("question_start"))
    frame = pl.DataFrame(matches).with_columns(
        place.alias("place"),
        pl.Series("score", score),
        pl.Series("reaches_threshold", is_leak),
        pl.Series("is_question_only", is_question_only),
        pl.Series("verdict", verdict),
        pl.Series("holds_to", highest).cast(pl.Float64),
    )
    if holds_to is not None:
        frame = frame.with_columns(pl.col("holds_to").max().over(_ITEM))
    return (
        _best_entries(_apply_verdicts(frame, verdicts))
        .select(ENTRIES.names)
        .to_arrow()
        .cast(ENTRIES)
    )


def _apply_verdicts(frame: pl.DataFrame, verdicts: Verdicts) -> pl.DataFrame:
    """Add whether each match is a leak or question-only, and whether its item leaks by score.

    A verdict that clears a pair clears it of both.
    """
    reaches_threshold = pl.col("reaches_threshold")
    if not verdicts:
        return frame.with_columns(
            reaches_threshold.alias("is_contaminated"),
            reaches_threshold.alias("is_by_score"),
            pl.lit(value=False).alias("is_confirmed"),
            pl.lit(value=False).alias("has_verdict"),
        )
    verdict = pl.col("verdict")
    is_confirmed, is_clearing = verdict == LEAK, verdict.is_in(verdicts.clears)
    best_cleared = pl.col("score").filter(is_clearing).max().over(_SAME_WORDS)
    is_cleared = is_clearing | (verdict.is_null() & (pl.col("score") <= best_cleared))
    is_open = ~is_cleared.fill_null(value=False)
    is_leak = is_confirmed.fill_null(value=False) | (reaches_threshold & is_open)
    return frame.with_columns(
        is_leak.alias("is_contaminated"),
        (pl.col("is_question_only") & is_open & ~is_leak).alias("is_question_only"),
        reaches_threshold.max().over(_ITEM).alias("is_by_score"),
        is_confirmed.alias("is_confirmed"),
        verdict.is_not_null().alias("has_verdict"),
    )


def _best_entries(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the best match of each document, item and place."""
    best_first = (pl.col(name).fill_null(False) for name in _BEST_FIRST)
    descending = [False] * len(_ITEM) + [True] * len(_BEST_FIRST) + [False] * len(_TIE_BREAKERS)
    ordered = frame.sort([*_ITEM, *best_first, *_TIE_BREAKERS], descending=descending)
    return ordered.unique(_ITEM, keep="first", maintain_order=True)


def verdict_column(pairs: pa.ChunkedArray, verdicts: Verdicts) -> pa.Array:
    """Return the verdict on each pair; null where there is none."""
    if not verdicts:
        return pa.nulls(len(pairs), pa.string())
    known = pa.array(verdicts.by_pair, pa.string())
    values = pa.array([one.verdict for one in verdicts.by_pair.values()], pa.string())
    return values.take(pc.index_in(pairs.combine_chunks(), known))


class Judged(NamedTuple):
    """Score and class of each match, by score alone, without verdicts."""

    score: Floats
    is_leak: Booleans
    is_question_only: Booleans  # never together with `is_leak`


def judge(matches: pa.Table, policy: Policy) -> Judged:
    """Score and classify every match by the thresholds of its benchmark."""
    judged = _judge(matches, policy)
    for rows, benchmark_policy in by_threshold(matches, policy):
        of_rows = _judge(matches.take(pa.array(rows)), benchmark_policy)
        for column, values in zip(judged, of_rows, strict=True):
            column[rows] = values
    return judged


def by_threshold(matches: pa.Table, policy: Policy) -> Iterator[tuple[Integers, Policy]]:
    """Yield the rows of each benchmark with its own thresholds, and the policy for them."""
    for name in policy.benchmark:
        is_of_benchmark = pc.equal(matches["benchmark"], name).to_numpy(zero_copy_only=False)
        if (rows := np.flatnonzero(is_of_benchmark)).size:
            yield rows, policy.for_benchmark(name)


def _judge(matches: pa.Table, policy: Policy) -> Judged:
    detector = matches["detector"].to_numpy(zero_copy_only=False)
    score, is_leak, is_question_only = _judge_decon(matches, policy)
    is_question_only = is_question_only & (detector == "decon")
    base = _column(matches, "base_score")
    for name in RULES[1:]:
        is_of_detector = detector == name
        values = base
        if name == "ngram_any":
            values = np.minimum(_column(matches, "n_matched") / policy.ngram_any_size, 1.0)
        is_enough = (exceeds if name == "longest_match" else reaches)(
            values, policy.threshold_of(name)
        )
        score = np.where(is_of_detector, values, score)
        is_leak = np.where(is_of_detector, is_enough, is_leak)
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
    """Apply the length penalty: a short text needs a higher score, unless it is exactly 1."""
    threshold = policy.contamination_score_threshold
    required = policy.decay(lengths, threshold)
    is_penalized = (base != 1.0) & (required > threshold)
    return np.where(is_penalized, base * threshold / required, base)


def _is_leak_without_answer(matches: pa.Table, policy: Policy) -> Booleans:
    """Whether the record would be a leak if it had only its question, or no answer.

    Vectorized version of `reference.is_question_only`, without the gates.
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
    # Without a passage match its length is nan, for which every comparison is false.
    with_passage = has_answer & has_passage & _is_leak_of_length(both, n_both, policy)
    return ((has_answer | has_passage) & alone) | with_passage


def _is_leak_of_length(base: Floats, lengths: Floats, policy: Policy) -> Booleans:
    """Whether a text of this many tokens would be indexed and reach the threshold."""
    is_indexed = lengths >= policy.eval_min_token_length
    score = _penalized(base, lengths, policy)
    return is_indexed & reaches(score, policy.contamination_score_threshold)


def _column(matches: pa.Table, name: str) -> Floats:
    return np.asarray(matches[name].to_numpy(zero_copy_only=False), dtype=np.float64)
