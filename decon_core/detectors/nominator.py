"""What stands for a detector where places are found beside the scan: no score of it is a proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.config.detector_registry import Threshold
from decon_core.config.policy import Policy
from decon_core.detectors.detector import Detector, Floats, Judged, column

if TYPE_CHECKING:
    import pyarrow as pa

FOR_REVIEW = "near in meaning"  # `looked_for` of a place that waits for a person or a judge


class Nominator(Detector):
    """Says only that a place may be an item; a person or a judge says what it is."""

    summary = "a place that was found beside the scan"
    threshold = Threshold(setting="")  # none: no score of it decides
    acts_on_score = False
    finds_every_place = True

    def judge(self, matches: pa.Table, policy: Policy) -> Judged:
        del policy  # it has no threshold
        no = np.zeros(matches.num_rows, np.bool_)
        kinds = matches["looked_for"].to_numpy(zero_copy_only=False)
        return Judged(column(matches, "base_score"), no, no.copy(), kinds == FOR_REVIEW)

    def highest_thresholds(self, matches: pa.Table, policy: Policy) -> Floats:
        del policy
        return np.full(matches.num_rows, np.nan)

    def score_threshold(self, policy: Any) -> float:
        del policy
        return 1.0

    def missing(
        self, entry: Mapping[str, Any], policy: Policy, record: Mapping[str, Any]
    ) -> Iterator[str]:
        del entry, policy, record
        yield "no score of it is a proof; a person or a judge decides"


@cache
def nominator(name: str) -> Nominator:
    """Return what stands for a detector of this name."""
    kind: type[Nominator] = type("Nominator", (Nominator,), {"name": name})
    return kind()
