"""Micro and macro averages of the scores and gaps of categories.

The micro average is over all items of the categories together, so that large categories count more.
The macro average is the mean of the categories' numbers, so that all count the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    all_scores = {one: scores.of(GROUPS["all"]) for one, scores in categories.items()}
    sides = {one: scores.both_sides() for one, scores in categories.items()}
    with_both = {one: pair for one, pair in sides.items() if all(side.size for side in pair)}
    lacking = [one for one in sides if one not in with_both]
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
        remark="; ".join(_remarks(all_scores, with_both, lacking)),
    )


def _remarks(
    scores: Mapping[str, Floats],
    sides: Mapping[str, tuple[Floats, Floats]],
    lacking: Sequence[str],
) -> Iterator[str]:
    """Say what a macro average is without, and why it has no interval: a category has none."""
    unsure = [one for one, found in scores.items() if not _has_interval(found)]
    unsure_gaps = [one for one, pair in sides.items() if remark_on(*pair)]
    if lacking:
        yield f"macro gap without {_listed(lacking)}: no leaked or no clean items"
    if unsure:
        yield f"no interval of the macro score: too few or equal scores in {_listed(unsure)}"
    if unsure_gaps:
        yield f"no interval of the macro gap: none in {_listed(unsure_gaps)}"


def _has_interval(scores: Floats) -> bool:
    return scores.size >= LEAST_ITEMS and bool(scores[0] < scores[-1])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown


def _mean_of(name: Name, groups: Mapping[str, Floats]) -> Estimate:
    value = sum(float(found.mean()) for found in groups.values()) / len(groups)
    if not all(map(_has_interval, groups.values())):
        return Estimate(value)
    return Estimate(
        value, *mean_interval({seed_of(name, group): groups[group] for group in groups})
    )


def _mean_gap_of(name: Name, pairs: Mapping[str, tuple[Floats, Floats]]) -> Estimate:
    gaps = [found for pair in pairs.values() if (found := difference(*pair)) is not None]
    if not gaps:
        return Estimate(None)
    value = sum(gaps) / len(gaps)
    if any(remark_on(*pair) for pair in pairs.values()):
        return Estimate(value)
    return Estimate(value, *mean_gap_interval({seed_of(name, one): pairs[one] for one in pairs}))
