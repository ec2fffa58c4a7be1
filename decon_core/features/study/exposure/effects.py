"""Compare an arm with the baseline on the same items, by how they were exposed.

What training on an item does to its own score is the effect on seen items less that on items that
were held back: the second is what the arm learned about the benchmark in general.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decon_core.decisions.statistics import (
    Floats,
    interval,
    p_value,
    paired_interval,
    paired_p_value,
)
from decon_core.features.study.exposure.labels import CONTRASTS, NOT_PLANTED, SEEN, ItemId, Label

LEAST_ITEMS = 10
ALL = "all benchmarks"

ItemScores = Mapping[ItemId, float]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Scores of an arm and of the baseline on the same items, of one kind of exposure."""

    arm: str
    benchmark: str
    metric: str
    filter: str
    label: Label
    n: int
    score: float | None
    baseline: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    remark: str = ""


def effects(
    arm: str,
    scores: ItemScores,
    baseline: ItemScores,
    labels: Mapping[ItemId, Label],
    *,
    metric: str = "score",
    filter: str = "",  # noqa: A002 - as harnesses name it
) -> list[Effect]:
    """Return the effects by benchmark and label, then the contrasts between labels.

    Items without a label in a benchmark that has some are left out; those of benchmarks without any
    are `not planted`, if the labels are of plantings. Items that were planted in different ways are
    also counted together, and so are those of several benchmarks.
    """
    groups = groups_of(sorted(scores.keys() & baseline.keys()), labels)
    blank = blank_effect(arm, metric=metric, filter=filter)
    found = []
    for benchmark, label in sorted(groups, key=order_of):
        items = groups[benchmark, label]
        found.append(
            _effect(replace(blank, benchmark=benchmark, label=label), items, scores, baseline)
        )
    differences = {
        key: _values(items, scores) - _values(items, baseline) for key, items in groups.items()
    }
    return [*found, *_contrasts(blank, differences)]


def blank_effect(arm: str, *, metric: str, filter: str) -> Effect:  # noqa: A002 - as harnesses name it
    """Return an effect without numbers."""
    return Effect(
        arm=arm, benchmark="", metric=metric, filter=filter, label=Label(""),
        n=0, score=None, baseline=None, difference=None,
    )  # fmt: skip


def groups_of(
    items: Sequence[ItemId], labels: Mapping[ItemId, Label]
) -> dict[tuple[str, Label], list[ItemId]]:
    """Return the items by benchmark and label."""
    labelled = {item[0] for item in labels}
    is_planting = any(label.exposure == SEEN for label in labels.values())
    groups: defaultdict[tuple[str, Label], list[ItemId]] = defaultdict(list)
    for item in items:
        if item in labels:
            groups[item[0], labels[item]].append(item)
        elif is_planting and item[0] not in labelled:
            groups[item[0], Label(NOT_PLANTED)].append(item)
    return {**groups, **dict(_together(groups))}


def _together(
    groups: Mapping[tuple[str, Label], list[ItemId]],
) -> Iterator[tuple[tuple[str, Label], list[ItemId]]]:
    """Yield the items of all ways of planting in a benchmark, and those of all benchmarks."""
    ways: defaultdict[tuple[str, str], list[list[ItemId]]] = defaultdict(list)
    benchmarks: defaultdict[str, dict[str, list[ItemId]]] = defaultdict(dict)
    for (benchmark, label), items in sorted(groups.items()):
        ways[benchmark, label.exposure].append(items)
        of_exposure = benchmarks[label.exposure]
        of_exposure[benchmark] = [*of_exposure.get(benchmark, ()), *items]
    for (benchmark, exposure), parts in ways.items():
        if len(parts) > 1:
            yield (benchmark, Label(exposure)), [item for part in parts for item in part]
    for exposure, of_exposure in benchmarks.items():
        if len(of_exposure) > 1:
            yield (ALL, Label(exposure)), [item for part in of_exposure.values() for item in part]


def order_of(key: tuple[str, Label]) -> tuple[bool, str, Label]:
    """Return the place of a group: all benchmarks last, all ways of planting before single ones."""
    return key[0] == ALL, *key


def _values(items: Iterable[ItemId], scores: ItemScores) -> Floats:
    return np.array([scores[item] for item in items], np.float64)


def _effect(
    blank: Effect, items: Sequence[ItemId], scores: ItemScores, baseline: ItemScores
) -> Effect:
    own, other = _values(items, scores), _values(items, baseline)
    found = replace(
        blank,
        n=len(items),
        score=float(own.mean()),
        baseline=float(other.mean()),
        difference=float((own - other).mean()),
    )
    if len(items) < LEAST_ITEMS:
        return replace(found, remark=f"too few items: {len(items)}")
    differences = np.sort(own - other)
    low, high = paired_interval(differences, name_of(found))
    return replace(found, low=low, high=high, p=paired_p_value(differences, name_of(found)))


def _contrasts(blank: Effect, differences: Mapping[tuple[str, Label], Floats]) -> Iterator[Effect]:
    """Yield, for each kind of planting, the effect on seen items less that on those held back."""
    for benchmark, label, named, control_label in contrasts_of(differences):
        exposed, control = differences[benchmark, label], differences[benchmark, control_label]
        found = replace(
            blank,
            benchmark=benchmark,
            label=named,
            n=exposed.size + control.size,
            difference=float(exposed.mean() - control.mean()),
        )
        small = min(exposed.size, control.size)
        if small < LEAST_ITEMS:
            yield replace(found, remark=f"too few items: {small}")
            continue
        sides = np.sort(exposed), np.sort(control)
        low, high = interval(*sides, name_of(found))
        yield replace(found, low=low, high=high, p=p_value(*sides, name_of(found)))


def contrasts_of(
    groups: Collection[tuple[str, Label]],
) -> Iterator[tuple[str, Label, Label, Label]]:
    """Yield benchmark, label, the contrast's label, and the label that it is compared with."""
    for benchmark, label in sorted(groups, key=order_of):
        for exposure, other in CONTRASTS:
            if label.exposure == exposure and (benchmark, Label(other)) in groups:
                named = label._replace(exposure=f"{exposure} - {other}")
                yield benchmark, label, named, Label(other)


def name_of(one: Effect) -> str:
    """Return the name that seeds the draws."""
    return " | ".join(("exposure", one.arm, one.benchmark, one.metric, one.filter, *one.label))
