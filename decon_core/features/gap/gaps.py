"""The gap between the scores of leaked and of clean items, of one set of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from decon_core.decisions.statistics import Floats, interval, p_value
from decon_core.features.results.items import GROUPS, JOINED, NEITHER

# An interval of fewer items on either side means little: resampling ten items gives some
# thousand different means, resampling five about a hundred.
LEAST_ITEMS = 10


@dataclass(frozen=True, order=True)
class Name:
    """The key of a gap: scores with the same name are compared."""

    model: str
    benchmark: str
    split: str  # empty: several
    setting: str  # the task's name in the harness
    filter: str
    metric: str


@dataclass(frozen=True)
class Group:
    """The items with one verdict: their number and mean score."""

    n: int
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Scores of one model on one benchmark (or subset), by verdict of the items."""

    name: Name
    subset: str | None  # a category; None: the whole benchmark
    by: str  # the column or file of the category; empty: the whole benchmark
    all: Group
    clean: Group
    leaked: Group
    with_answer: Group  # leaked with at least half of the answer; included in `leaked`
    no_answer: Group  # neither leaked nor clean
    review: Group  # likewise: found by a detector whose score is no proof
    not_checkable: Group
    not_fully_scanned: Group  # no match, in a report that does not cover all shards
    not_joined: Group
    gap: float | None  # leaked - clean
    low: float | None
    high: float | None
    p: float | None
    no_answer_gap: float | None  # no answer - clean
    # The score on joined items that are neither leaked, nor `no answer`, nor to review.
    decontaminated: float | None
    moved: float | None  # `decontaminated` - score on all joined items
    remark: str


class Scores:
    """Scores by verdict of the item."""

    def __init__(self, rows: Iterable[tuple[str, float]]) -> None:
        self._by_verdict: dict[str, list[float]] = defaultdict(list)
        for verdict, score in rows:
            self._by_verdict[verdict].append(score)

    def of(self, verdicts: Iterable[str]) -> Floats:
        # Sorted: sums of floats and draws depend on the order, which must not be that of the rows.
        chosen = [self._by_verdict.get(verdict, ()) for verdict in verdicts]
        return np.sort(np.array([score for scores in chosen for score in scores], np.float64))

    def both_sides(self) -> tuple[Floats, Floats]:
        """Return the scores of leaked and of clean items."""
        return self.of(GROUPS["leaked"]), self.of(GROUPS["clean"])


def gap_of(name: Name, scores: Scores, *, subset: str | None = None, by: str = "") -> Gap:
    """Compute the gap of one set of rows, with its interval and p-value."""
    leaked, clean = scores.both_sides()
    unleaked = scores.of(NEITHER)
    text = seed_of(name, subset or "")
    remark = remark_on(leaked, clean)
    low, high = (None, None) if remark else interval(leaked, clean, text)
    has_p_value = min(leaked.size, clean.size) >= LEAST_ITEMS
    groups = {group: scores.of(verdicts) for group, verdicts in GROUPS.items()}
    return Gap(
        name=name,
        subset=subset,
        by=by,
        gap=difference(leaked, clean),
        low=low,
        high=high,
        p=p_value(leaked, clean, text) if has_p_value else None,
        no_answer_gap=difference(groups["no_answer"], clean),
        decontaminated=mean(unleaked),
        moved=difference(unleaked, scores.of(JOINED)),
        remark=remark,
        **{group: Group(values.size, mean(values)) for group, values in groups.items()},
    )


def seed_of(name: Name, text: str) -> str:
    """Return the text that seeds the draws of a line."""
    return " | ".join([*vars(name).values(), text])


def remark_on(leaked: Floats, clean: Floats) -> str:
    """Return why there is no interval; empty if there is an interval."""
    sides = (("leaked", leaked), ("clean", clean))
    few = [f"{scores.size} {name}" for name, scores in sides if scores.size < LEAST_ITEMS]
    if few:
        return f"too few items: {' and '.join(few)}"
    same = [f"{name} items" for name, scores in sides if scores[0] == scores[-1]]
    if same:
        return f"no interval: all {' and all '.join(same)} have the same score"
    return ""


def mean(scores: Floats) -> float | None:
    return float(scores.mean()) if scores.size else None


def difference(scores: Floats, other: Floats) -> float | None:
    """Return the difference of the means; None if either is unknown."""
    return float(scores.mean() - other.mean()) if scores.size and other.size else None
