"""Histograms of match scores, to judge the effect of a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.config.rounding import TOLERANCE
from decon_core.corpus.packs import Pack
from decon_core.decisions.match_reader import MatchReader
from decon_core.schemas import ENTRIES

_BINS = 50  # steps of 0.02, and 1 in the last one, as in the report's view `score_histogram`


def score_bins(
    reader: MatchReader, packs: Iterable[Pack], versions: Sequence[Version]
) -> list[dict[str, Any]]:
    """Count matches by class, detector and score bin; empty bins are left out.

    Reads every scan result of these packs: use it for those of a run, not for a whole grid.
    """
    entries = [table for _, _, table in reader.iter_entries(packs, versions)]
    frame = pl.DataFrame(pa.concat_tables([ENTRIES.empty_table(), *entries]))
    number = (pl.col("score") * _BINS + TOLERANCE).floor().clip(upper_bound=_BINS - 1)
    grouped = frame.group_by("detector", number.cast(pl.Int64).alias("bin"))
    bins = grouped.agg(
        pl.len().alias("n_matches"),
        pl.col("is_contaminated").sum().alias("n_contaminated"),
        pl.col("is_no_answer").sum().alias("n_no_answer"),
        pl.col("needs_review").sum().alias("n_review"),
    )
    return bins.sort("detector", "bin").to_dicts()
