"""Refuse to average or compare scores of 0 to 1 with scores on another scale, such as 0 to 100.

Certain is only that a score of a benchmark above 1 is none of 0 to 1, and neither is one of an item
far above 1. Scores of 1 or less are likely of 0 to 1, but may be low ones of 0 to 100: beside the
others, they are refused until somebody rescales them, or says that they are on the other scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from decon_core.errors import Problem
from decon_core.features.results.olmes import NO_SCORES

# Words in names of metrics of which less is better. On one scale, they can be below 1 and above it.
_ERRORS = frozenset(
    ("perplexity", "ppl", "bits", "nll", "loss", "brier", "error", "ter", "wer", "cer", "metricx")
)
_ROUNDED = 1.001  # a mean of ones, or a 1 in 16 bits, may be a little above 1
_MOST_OF_AN_ITEM = 2  # COMET and BLEURT have no bound, and give some items a little more than 1
_MOST_LISTED = 4


@dataclass(frozen=True, kw_only=True)
class Part:
    """Scores that are averaged or compared with others, by the highest of them."""

    task: str
    metric: str
    place: str
    highest: float
    is_of_items: bool = True  # not of a whole benchmark

    def __str__(self) -> str:
        return f"{self.metric} of {self.task}, up to {self.highest:g}, in {self.place}"

    def is_beyond_one(self, declared: Sequence[str]) -> bool:
        """Return whether these are scores on another scale than 0 to 1; `declared`: tasks."""
        if self.highest > (_MOST_OF_AN_ITEM if self.is_of_items else _ROUNDED):
            return True
        # 0 is the same on all scales.
        return self.highest > 0 and any(fnmatchcase(self.task, name) for name in declared)

    def is_up_to_one(self, declared: Sequence[str]) -> bool:
        return 0 < self.highest <= _ROUNDED and not self.is_beyond_one(declared)


def less_is_better(metric: str) -> bool:
    return not _ERRORS.isdisjoint(metric.lower().split("_"))


def _has_scale(metric: str) -> bool:
    """Return whether values above 1 tell another scale: errors, counts and differences have any."""
    is_difference = "diff" in metric.lower().split("_")  # TruthfulQA in lm-evaluation-harness
    return not (less_is_better(metric) or is_difference or NO_SCORES.fullmatch(metric))


def mix_of_scales(
    where: str, parts: Iterable[Part], declared: Sequence[str], remedy: str
) -> Problem | None:
    """Return a problem if parts that are averaged or compared are on different scales.

    `declared`: patterns of tasks whose scores are known to be on another scale than 0 to 1.
    """
    checked = [part for part in dict.fromkeys(parts) if _has_scale(part.metric)]
    beyond = [part for part in checked if part.is_beyond_one(declared)]
    up_to_one = [part for part in checked if part.is_up_to_one(declared)]
    if not beyond or not up_to_one:
        return None
    found = f"a scale beyond 1 ({_listed(beyond)}) and scores of 1 or less ({_listed(up_to_one)})"
    expected = "scores on one scale, because they are averaged or compared"
    return Problem(where, found, expected, remedy)


def _listed(parts: Sequence[Part]) -> str:
    more = len(parts) - _MOST_LISTED
    shown = "; ".join(map(str, parts[:_MOST_LISTED]))
    return f"{shown}; and {more} more" if more > 0 else shown
