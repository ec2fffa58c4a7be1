"""Matches to calls: which of them are leaks, at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied anew
for any threshold at or above the evidence floor. The formulas are those of `reference.py`, over
columns; a property test holds the two together. What a person said of a pair comes before its
score.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.policy import RULES, Policy
from decon_core.schemas import ENTRIES
from decon_core.verdicts import LEAK, NO_VERDICTS, Verdicts

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

_PARTS = ("question", "answer", "passage")

# One entry per rule, document, benchmark item and place; of several records the best, then the
# correct choice, then the first. Each record is a pair of its own: one that a person cleared must
# not speak for one that leaked, and one that a person confirmed must not be hidden by any other.
_BEST_FIRST = ("is_contaminated", "is_confirmed", "is_enough", "score", "is_said", "is_correct")
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
    score, is_enough = judge(matches, policy)
    highest = pa.nulls(len(score)) if holds_to is None else pa.array(holds_to, from_pandas=True)
    said = said_of(matches["pair"], verdicts)
    # Only `decon` tells places of a document apart.
    place = pl.when(pl.col("detector") == "decon").then(pl.col("question_start"))
    frame = pl.DataFrame(matches).with_columns(
        place.alias("place"),
        pl.Series("score", score),
        pl.Series("is_enough", is_enough),
        pl.Series("verdict", said),
        pl.Series("holds_to", highest).cast(pl.Float64),
    )
    if holds_to is not None:
        frame = frame.with_columns(pl.col("holds_to").max().over(_ITEM))
    return _chosen(_called(frame, verdicts)).select(ENTRIES.names).to_arrow().cast(ENTRIES)


def _called(frame: pl.DataFrame, verdicts: Verdicts) -> pl.DataFrame:
    """Which of the matches count as leaks; and of which items and places some would, by score."""
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
    return frame.with_columns(
        (
            is_confirmed.fill_null(value=False) | (is_enough & ~is_cleared.fill_null(value=False))
        ).alias("is_contaminated"),
        is_enough.max().over(_ITEM).alias("is_by_score"),
        is_confirmed.alias("is_confirmed"),
        said.is_not_null().alias("is_said"),
    )


def _chosen(frame: pl.DataFrame) -> pl.DataFrame:
    best_first = (pl.col(name).fill_null(False) for name in _BEST_FIRST)
    descending = [False] * len(_ITEM) + [True] * len(_BEST_FIRST) + [False] * len(_ELSE_FIRST)
    in_order = frame.sort([*_ITEM, *best_first, *_ELSE_FIRST], descending=descending)
    return in_order.unique(_ITEM, keep="first", maintain_order=True)


def said_of(pairs: pa.ChunkedArray, verdicts: Verdicts) -> pa.Array:
    """What a person said of each pair; null of most."""
    if not verdicts:
        return pa.nulls(len(pairs), pa.string())
    known = pa.array(verdicts.by_pair, pa.string())
    said = pa.array([one.verdict for one in verdicts.by_pair.values()], pa.string())
    return said.take(pc.index_in(pairs.combine_chunks(), known))


def judge(matches: pa.Table, policy: Policy) -> tuple[Floats, Booleans]:
    """Score and call of every match."""
    detector = matches["detector"].to_numpy(zero_copy_only=False)
    score, is_contaminated = _judge_decon(matches, policy)
    base = _column(matches, "base_score")
    for rule in RULES[1:]:
        is_own = detector == rule
        of_rule = base
        if rule == "ngram_any":
            of_rule = np.minimum(_column(matches, "n_matched") / policy.ngram_any_size, 1.0)
        threshold = policy.threshold_of(rule)
        is_enough = of_rule > threshold if rule == "longest_match" else of_rule >= threshold
        score = np.where(is_own, of_rule, score)
        is_contaminated = np.where(is_own, is_enough, is_contaminated)
    return score, is_contaminated


def _judge_decon(matches: pa.Table, policy: Policy) -> tuple[Floats, Booleans]:
    threshold = policy.contamination_score_threshold
    base = _column(matches, "base_score")
    overlap = _column(matches, "question_overlap")
    least = policy.least_question_overlap
    gates = (overlap >= least) & (
        overlap >= policy.decay(_column(matches, "question_tokens"), least)
    )
    required = policy.decay(_column(matches, "total_tokens"), threshold)
    is_penalized = (base != 1.0) & (required > threshold)
    score = np.where(is_penalized, base * threshold / required, base)
    return score, gates & (score >= threshold)


def _column(matches: pa.Table, name: str) -> Floats:
    return np.asarray(matches[name].to_numpy(zero_copy_only=False), dtype=np.float64)
