"""Matches to calls: which of them are leaks, at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied anew
for any threshold at or above the evidence floor. The formulas are those of `reference.py`, over
columns; a property test holds the two together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from decon_core.policy import RULES, Policy
from decon_core.schemas import ENTRIES

Floats = npt.NDArray[np.float64]

# One entry per rule, document, benchmark item and place; of several records the best, then the
# correct choice, then the first.
_BEST_FIRST = ("is_contaminated", "score", "is_correct")
_ELSE_FIRST = ("record", "question_stop")
_ITEM = [
    *("shard", "row", "benchmark", "split", "instance_index", "detector", "looked_for"),
    "place",
]


def decide(matches: pa.Table, policy: Policy, *, holds_to: Floats | None = None) -> pa.Table:
    """One entry per document, item and place, with its score and whether it counts as a leak.

    `holds_to`: of every match the highest threshold at which it would be one.
    """
    score, is_contaminated = judge(matches, policy)
    judged = matches.append_column("score", pa.array(score)).append_column(
        "is_contaminated", pa.array(is_contaminated)
    )
    # Only `decon` tells places of a document apart.
    place = pl.when(pl.col("detector") == "decon").then(pl.col("question_start"))
    frame = pl.DataFrame(judged.cast(ENTRIES)).with_columns(place.alias("place"))
    best = (
        frame.sort(
            [*_ITEM, *(pl.col(name).fill_null(False) for name in _BEST_FIRST), *_ELSE_FIRST],
            descending=[False] * len(_ITEM) + [True] * len(_BEST_FIRST) + [False] * 2,
        )
        .unique(_ITEM, keep="first", maintain_order=True)
        .drop("place")
        .to_arrow()
    )
    return best.cast(ENTRIES)


def judge(matches: pa.Table, policy: Policy) -> tuple[Floats, npt.NDArray[np.bool_]]:
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


def _judge_decon(matches: pa.Table, policy: Policy) -> tuple[Floats, npt.NDArray[np.bool_]]:
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
