"""Decides which matches are leaks at a threshold, without scanning again.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied for
any threshold at or above the lowest recorded score (`judging.py`); a property test compares the
result with the oracle, tests/oracle/decon.py. A verdict on a matched text overrides its score.
Where no score is a proof and no person decided, a judgement of a file or a model does. Which of all
these count for a mixture is decided by its `Leaks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.detector_registry import curve_of, get
from decon_core.config.mixtures import Leaks
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.decisions.calibration import NO_CALIBRATION, Calibration
from decon_core.decisions.judging import judge
from decon_core.decisions.verdicts import LEAK, NO_VERDICTS, Verdicts
from decon_core.schemas import ENTRIES

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

_PARTS = ("question", "answer", "passage")

# One entry per detector, document, benchmark item and place, apart for visible and hidden text:
# among several records the best, then the correct choice, then the first. Each record has its own
# matched text: a cleared text must not represent one that leaked, and no other text may hide a
# confirmed text.
_BEST_FIRST = (
    "is_contaminated",
    "is_no_answer",
    "needs_review",
    "is_confirmed",
    "is_by_score",
    "score",
    "has_verdict",
    "is_correct",
)
_TIE_BREAKERS = ("record", "question_stop")
_ITEM = [
    "shard",
    "row",
    "benchmark",
    "split",
    "instance_index",
    "detector",
    "kind",
    "searched_text",
    "slot_kind",
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
    """Return one entry per document, item and place: its score, and whether it is a leak.

    `holds_to` is the highest threshold at which each match would be a leak. An entry gets the
    highest value of all matches that it was chosen from.
    """
    import polars as pl

    judged = judge(matches, policy)
    highest = pa.nulls(matches.num_rows)
    if holds_to is not None:
        highest = pa.array(holds_to, from_pandas=True)
    verdict = {text_id: latest.verdict for text_id, latest in verdicts.by_text.items()}
    detectors = matches["detector"].unique().to_pylist()
    with_places = [name for name in detectors if get(name).finds_every_place]
    has_places = pl.col("detector").is_in(with_places)
    # What is found beside the scan has no tokens.
    start = pl.coalesce("question_start", "question_char_start")
    place = pl.when(has_places).then(start)
    frame = pl.DataFrame(matches).with_columns(
        place.alias("place"),
        *(pl.Series(name, values) for name, values in judged._asdict().items()),
        pl.Series("verdict", _by_text(matches["text_id"], verdict, pa.string())),
        pl.Series("is_judged_duplicate", _by_text(matches["text_id"], verdicts.judged, pa.bool_())),
        pl.Series("holds_to", highest).cast(pl.Float64),
    )
    if holds_to is not None:
        frame = frame.with_columns(pl.col("holds_to").max().over(_ITEM))
    best = _best_entries(_apply_verdicts(frame, verdicts))
    return best.select(ENTRIES.names).to_arrow().cast(ENTRIES)


def _apply_verdicts(frame: pl.DataFrame, verdicts: Verdicts) -> pl.DataFrame:
    """Add the class of each match (leak, no answer, review), and how its item scores.

    A verdict that clears a matched text clears it of all three. A judgement makes a leak of what is
    none by its score, nor a question without its answer, or clears what needs review.
    """
    import polars as pl

    if not verdicts:
        return frame.with_columns(
            pl.col("is_leak").alias("is_contaminated"),
            pl.lit(value=False).alias("is_confirmed"),
            pl.lit(value=False).alias("has_verdict"),
        )
    verdict = pl.col("verdict")
    is_confirmed, is_clearing = verdict == LEAK, verdict.is_in(verdicts.clears)
    best_cleared = pl.col("score").filter(is_clearing).max().over(_SAME_WORDS)
    is_cleared = is_clearing | (verdict.is_null() & (pl.col("score") <= best_cleared))
    is_open = ~is_cleared.fill_null(value=False)
    is_leak = is_confirmed.fill_null(value=False) | (pl.col("is_leak") & is_open)
    needs_review = pl.col("needs_review") & is_open
    judged = pl.col("is_judged_duplicate")
    is_duplicate = judged.fill_null(value=False) & is_open & ~pl.col("is_no_answer")
    if verdicts.judged_is == "leak":
        best_other = pl.col("score").filter(~judged).max().over(_SAME_WORDS)
        is_other = ~judged | (judged.is_null() & (pl.col("score") <= best_other))
        is_leak |= is_duplicate
        needs_review &= ~is_other.fill_null(value=False)
    else:
        needs_review |= is_duplicate
    return frame.with_columns(
        is_leak.alias("is_contaminated"),
        (pl.col("is_no_answer") & is_open & ~is_leak).alias("is_no_answer"),
        (needs_review & ~is_leak).alias("needs_review"),
        pl.col("is_by_score").max().over(_ITEM),
        is_confirmed.alias("is_confirmed"),
        verdict.is_not_null().alias("has_verdict"),
    )


def _best_entries(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the best match of each document, item and place."""
    import polars as pl

    best_first = (pl.col(name).fill_null(False) for name in _BEST_FIRST)
    is_descending = [name == "slot_kind" for name in _ITEM]  # visible text first
    descending = is_descending + [True] * len(_BEST_FIRST) + [False] * len(_TIE_BREAKERS)
    ordered = frame.sort([*_ITEM, *best_first, *_TIE_BREAKERS], descending=descending)
    return ordered.unique(_ITEM, keep="first", maintain_order=True)


def _by_text(text_ids: pa.ChunkedArray, said: Mapping[str, object], kind: pa.DataType) -> pa.Array:
    """Return the value of each matched text; null for a matched text without a value."""
    import pyarrow.compute as pc

    if not said:
        return pa.nulls(len(text_ids), kind)
    values = pa.array([*said.values()], kind)
    return values.take(pc.index_in(text_ids.combine_chunks(), pa.array(said, pa.string())))


def counts(
    entry: Mapping[str, Any], leaks: Leaks, calibration: Calibration = NO_CALIBRATION
) -> bool:
    """Return whether an entry counts as a leak, or lacks its answer and is treated like a leak."""
    return would_count(entry, leaks) and (
        not entry["needs_review"]
        or leaks.review == "remove"
        or is_probable(entry, leaks, calibration)
    )


def would_count(entry: Mapping[str, Any], leaks: Leaks) -> bool:
    """Return whether an entry counts if its score or verdict may act."""
    is_found = (
        entry["is_contaminated"]
        or entry["needs_review"]
        or (leaks.no_answer == "remove" and entry["is_no_answer"])
    )
    # What a reviewer called a leak counts with any score: it must not be removed from the leaks.
    is_said = entry["verdict"] == LEAK or entry["is_judged_duplicate"]
    least = None if is_said else leaks.least_score
    return bool(
        is_found
        and (not leaks.detectors or entry["detector"] in leaks.detectors)
        and leaks.needs(entry["benchmark"])
        and (not leaks.splits or entry["split"] in leaks.splits)
        and (not leaks.verdicts or entry["verdict"] in leaks.verdicts)
        and (least is None or entry["score"] >= least)
    )


def is_probable(entry: Mapping[str, Any], leaks: Leaks, calibration: Calibration) -> bool:
    """Return whether judged pairs of such a score are leaks often enough."""
    if leaks.min_probability is None:
        return False
    probability = probability_of(entry, leaks, calibration)
    return probability is not None and reaches(probability, leaks.min_probability)


def probability_of(
    entry: Mapping[str, Any], leaks: Leaks, calibration: Calibration
) -> float | None:
    """Return the probability of an entry's score; None if too little is known."""
    curve = curve_of(entry["detector"], entry["kind"])
    return calibration.probability(
        curve, entry["benchmark"], entry["score"], least=leaks.min_judged
    )
