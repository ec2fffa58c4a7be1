"""The gap between the scores of leaked and of clean items, of one set of rows, and its averages.

The micro average is over all items of the categories together, so that large categories count more.
The macro average is the mean of the categories' numbers, so that all count the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from decon_core.decisions.statistics import (
    LEAST_ITEMS,
    Floats,
    interval,
    mean_gap_interval,
    mean_interval,
    p_value,
)
from decon_core.features.results.items import GROUPS, NEITHER
from decon_core.wording import first_of


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
    all: Group  # joined items
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
    moved: float | None  # `decontaminated` - score on all items
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
        moved=difference(unleaked, groups["all"]),
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


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; None if there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Average:
    """The averages of one model on one benchmark over its categories."""

    name: Name
    by: str
    n_categories: int
    n_items: int
    n_without_category: int  # items that are in no average
    micro_score: Estimate
    macro_score: Estimate
    micro_gap: Estimate
    macro_gap: Estimate
    n_in_macro_gap: int  # categories with leaked and with clean items
    remark: str


def average_of(
    name: Name, by: str, categories: Mapping[str, Scores], together: Scores, *, n_without: int
) -> Average:
    """Average over categories; `together`: the scores of all of them."""
    all_scores = {category: scores.of(GROUPS["all"]) for category, scores in categories.items()}
    sides = {category: scores.both_sides() for category, scores in categories.items()}
    with_both = {key: pair for key, pair in sides.items() if all(side.size for side in pair)}
    # What a macro average is without, and why it has no interval: a category has none.
    remarks = []
    if lacking := [category for category in sides if category not in with_both]:
        remarks.append(f"macro gap excludes {first_of(lacking)}: no leaked or no clean items")
    if unsure := [key for key, scores in all_scores.items() if not _has_interval(scores)]:
        reason = f"too few scores, or only identical ones, in {first_of(unsure)}"
        remarks.append(f"no interval for the macro score: {reason}")
    if unsure_gaps := [category for category, pair in with_both.items() if remark_on(*pair)]:
        remarks.append(f"no interval for the macro gap: none in {first_of(unsure_gaps)}")
    return Average(
        name=name,
        by=by,
        n_categories=len(categories),
        n_items=together.of(GROUPS["all"]).size,
        n_without_category=n_without,
        micro_score=_mean_of(name, {"": together.of(GROUPS["all"])}),
        macro_score=_mean_of(name, all_scores),
        micro_gap=_mean_gap_of(name, {"": together.both_sides()}),
        macro_gap=_mean_gap_of(name, with_both),
        n_in_macro_gap=len(with_both),
        remark="; ".join(remarks),
    )


def _has_interval(scores: Floats) -> bool:
    return scores.size >= LEAST_ITEMS and bool(scores[0] < scores[-1])


def _mean_of(name: Name, groups: Mapping[str, Floats]) -> Estimate:
    value = sum(float(scores.mean()) for scores in groups.values()) / len(groups)
    if not all(map(_has_interval, groups.values())):
        return Estimate(value)
    low, high = mean_interval({seed_of(name, group): groups[group] for group in groups})
    return Estimate(value, low, high)


def _mean_gap_of(name: Name, pairs: Mapping[str, tuple[Floats, Floats]]) -> Estimate:
    gaps = [gap for pair in pairs.values() if (gap := difference(*pair)) is not None]
    if not gaps:
        return Estimate(None)
    value = sum(gaps) / len(gaps)
    if any(remark_on(*pair) for pair in pairs.values()):
        return Estimate(value)
    low, high = mean_gap_interval({seed_of(name, group): pairs[group] for group in pairs})
    return Estimate(value, low, high)
