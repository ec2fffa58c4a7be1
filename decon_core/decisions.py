"""Matches to calls: which of them are leaks, at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied anew
for any threshold at or above the evidence floor. The formulas are those of `reference.py`, over
columns; a property test holds the two together. What a person said of a pair comes before its
score.
"""

from __future__ import annotations

from collections.abc import Sequence

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

# One entry per rule, document, benchmark item and place; of several records the best, then the
# correct choice, then the first. Each record is a pair of its own: one that a person cleared must
# not speak for one that leaked, and one that a person confirmed must not be hidden by any other.
_BEST_FIRST = ("is_contaminated", "is_confirmed", "is_by_score", "score", "is_correct")
_ELSE_FIRST = ("record", "question_stop")
_ITEM = [
    *("shard", "row", "benchmark", "split", "instance_index", "detector", "looked_for"),
    "place",
]


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
    score, is_by_score = judge(matches, policy)
    highest = pa.nulls(len(score)) if holds_to is None else pa.array(holds_to, from_pandas=True)
    said = said_of(matches["pair"], verdicts)
    called = {
        "score": pa.array(score),
        "is_by_score": pa.array(is_by_score),
        "holds_to": highest,
        "verdict": said,
        "is_contaminated": pa.array(_with_verdicts(is_by_score, said, verdicts)),
    }
    judged = pa.table([*matches.columns, *called.values()], names=ENTRIES.names)
    # Only `decon` tells places of a document apart.
    place = pl.when(pl.col("detector") == "decon").then(pl.col("question_start"))
    frame = pl.DataFrame(judged.cast(ENTRIES)).with_columns(
        place.alias("place"), (pl.col("verdict") == LEAK).alias("is_confirmed")
    )
    if holds_to is not None:
        frame = frame.with_columns(pl.col("holds_to").max().over(_ITEM))
    best = (
        frame.sort(
            [*_ITEM, *(pl.col(name).fill_null(False) for name in _BEST_FIRST), *_ELSE_FIRST],
            descending=[False] * len(_ITEM) + [True] * len(_BEST_FIRST) + [False] * 2,
        )
        .unique(_ITEM, keep="first", maintain_order=True)
        .drop("place", "is_confirmed")
        .to_arrow()
    )
    return best.cast(ENTRIES)


def said_of(pairs: pa.ChunkedArray, verdicts: Verdicts) -> pa.Array:
    """What a person said of each pair; null of most."""
    if not verdicts:
        return pa.nulls(len(pairs), pa.string())
    known = pa.array(verdicts.by_pair, pa.string())
    said = pa.array([one.verdict for one in verdicts.by_pair.values()], pa.string())
    return said.take(pc.index_in(pairs.combine_chunks(), known))


def _with_verdicts(is_by_score: Booleans, said: pa.Array, verdicts: Verdicts) -> Booleans:
    is_leak = _is_one_of(said, [LEAK])
    return is_leak | (is_by_score & ~_is_one_of(said, verdicts.clears))


def _is_one_of(said: pa.Array, wanted: Sequence[str]) -> Booleans:
    found: Booleans = pc.is_in(said, pa.array(wanted, pa.string())).to_numpy(zero_copy_only=False)
    return found


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
