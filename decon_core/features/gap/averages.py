"""Micro and macro averages of the scores and gaps of categories.

The micro average is over all items of the categories together, so that large categories count more.
The macro average is the mean of the categories' numbers, so that all count the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decon_core.decisions.statistics import Floats, mean_gap_interval, mean_interval
from decon_core.features.gap.gaps import (
    LEAST_ITEMS,
    Name,
    Scores,
    difference,
    remark_on,
    seed_of,
)
from decon_core.features.results.items import GROUPS

_MOST_LISTED = 3


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
    n_without_category: int  # rows that are in no average
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
        remarks.append(f"macro gap excludes {_listed(lacking)}: no leaked or no clean items")
    if unsure := [key for key, scores in all_scores.items() if not _has_interval(scores)]:
        reason = f"too few scores, or only identical ones, in {_listed(unsure)}"
        remarks.append(f"no interval for the macro score: {reason}")
    if unsure_gaps := [category for category, pair in with_both.items() if remark_on(*pair)]:
        remarks.append(f"no interval for the macro gap: none in {_listed(unsure_gaps)}")
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


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown


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
