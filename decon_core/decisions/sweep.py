"""Finds the highest threshold at which a match is still a leak, by score alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.policy import Policy
from decon_core.decisions.decide import by_detector, by_threshold

Floats = npt.NDArray[np.float64]


def highest_thresholds(matches: pa.Table, policy: Policy) -> Floats:
    """Return for each match the highest step at which it is a leak; nan if there is none.

    Steps are hundredths, starting at the detector's floor, and the current threshold. Where a
    threshold is a length, the result is the number of matched tokens.
    """
    highest = _highest(matches, replace(policy, benchmark={}))
    for rows, benchmark_policy in by_threshold(matches, policy):
        highest[rows] = _highest(matches.take(pa.array(rows)), benchmark_policy)
    return highest


def _highest(matches: pa.Table, policy: Policy) -> Floats:
    highest = np.full(matches.num_rows, np.nan)
    for one, rows, of_detector in by_detector(matches):
        highest[rows] = one.highest_thresholds(of_detector, policy)
    return highest
