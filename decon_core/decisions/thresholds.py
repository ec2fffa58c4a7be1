"""Finds the highest threshold at which a match is still a leak, by score alone.

The score of `decon` itself depends on the threshold through the length penalty, so every step is
evaluated. A stricter policy never adds a leak, so the last step with a leak is the result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.policy import RULES, Policy, exceeds, reaches
from decon_core.decisions.decide import by_threshold, judge

Floats = npt.NDArray[np.float64]

_STEPS = 100  # from 0 to 1


def highest_thresholds(matches: pa.Table, policy: Policy) -> Floats:
    """Return for each match the highest step at which it is a leak; nan if there is none.

    Steps are hundredths, starting at the detector's floor, and the current threshold. For
    `ngram_any`, whose threshold is a length, the result is the number of matched tokens.
    """
    highest = _highest(matches, replace(policy, benchmark={}))
    for rows, benchmark_policy in by_threshold(matches, policy):
        highest[rows] = _highest(matches.take(pa.array(rows)), benchmark_policy)
    return highest


def _highest(matches: pa.Table, policy: Policy) -> Floats:
    highest = np.full(matches.num_rows, np.nan)
    detectors = matches["detector"].to_numpy(zero_copy_only=False)
    for name in RULES:
        rows = np.flatnonzero(detectors == name)
        if rows.size:
            highest[rows] = _highest_of_detector(name, matches.take(pa.array(rows)), policy)
    return highest


def _highest_of_detector(detector: str, matches: pa.Table, policy: Policy) -> Floats:
    if detector == "ngram_any":
        return np.asarray(matches["n_matched"].to_numpy(), np.float64)
    if detector == "decon":
        return _highest_of_decon(matches, policy)
    # longest_match must exceed its threshold, the others must reach it.
    is_leak_at = exceeds if detector == "longest_match" else reaches
    scores = matches["base_score"].to_numpy()
    highest = np.full(scores.size, np.nan)
    for step in _steps(0.0, policy.threshold_of(detector)).tolist():
        highest[is_leak_at(scores, step)] = step
    return highest


def _highest_of_decon(matches: pa.Table, policy: Policy) -> Floats:
    highest = np.full(matches.num_rows, np.nan)
    for step in _steps(policy.evidence_floor, policy.contamination_score_threshold).tolist():
        judged = judge(matches, replace(policy, contamination_score_threshold=step))
        highest[judged.is_leak] = step
    return highest


def _steps(floor: float, threshold: float) -> Floats:
    hundredths = np.arange(1, _STEPS + 1) / _STEPS
    return np.unique([*hundredths[hundredths >= floor], floor or threshold, threshold])
