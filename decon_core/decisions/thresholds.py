"""How far the threshold could be raised until a match is no leak any more, by score alone.

Of decon the score itself moves with the threshold, by the length penalty: so every step is judged.
A stricter policy never adds a leak, and the last step that still calls one is the answer.
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
    """Of every match the highest step at which it counts as a leak; nan: none does.

    Steps are hundredths from the rule's floor on, and the threshold of today; of `ngram_any`, whose
    threshold is a length, the tokens that it found.
    """
    highest = _holds_to(matches, replace(policy, benchmark={}))
    for rows, own in by_threshold(matches, policy):
        highest[rows] = _holds_to(matches.take(pa.array(rows)), own)
    return highest


def _holds_to(matches: pa.Table, policy: Policy) -> Floats:
    highest = np.full(matches.num_rows, np.nan)
    detectors = matches["detector"].to_numpy(zero_copy_only=False)
    for rule in RULES:
        of_rule = np.flatnonzero(detectors == rule)
        if of_rule.size:
            highest[of_rule] = _of_rule(rule, matches.take(pa.array(of_rule)), policy)
    return highest


def _of_rule(rule: str, matches: pa.Table, policy: Policy) -> Floats:
    if rule == "ngram_any":
        return np.asarray(matches["n_matched"].to_numpy(), np.float64)
    if rule == "decon":
        return _of_decon(matches, policy)
    # longest_match asks for more than its threshold, the others for as much.
    is_leak_at = exceeds if rule == "longest_match" else reaches
    scores = matches["base_score"].to_numpy()
    highest = np.full(scores.size, np.nan)
    for step in _steps(0.0, policy.threshold_of(rule)).tolist():
        highest[is_leak_at(scores, step)] = step
    return highest


def _of_decon(matches: pa.Table, policy: Policy) -> Floats:
    highest = np.full(matches.num_rows, np.nan)
    for step in _steps(policy.evidence_floor, policy.contamination_score_threshold).tolist():
        judged = judge(matches, replace(policy, contamination_score_threshold=step))
        highest[judged.is_leak] = step
    return highest


def _steps(floor: float, threshold: float) -> Floats:
    hundredths = np.arange(1, _STEPS + 1) / _STEPS
    return np.unique([*hundredths[hundredths >= floor], floor or threshold, threshold])
