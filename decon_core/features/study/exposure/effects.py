"""Compare a training run with the baseline on the same items, by how they were exposed.

What training on an item does to its own score is the effect on seen items less that on items that
were held back: the second is what the training run learned about the benchmark in general.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from decon_core.decisions.statistics import (
    Floats,
    interval,
    p_value,
    paired_interval,
    paired_p_value,
)
from decon_core.features.study.exposure.labels import CONTRASTS, NOT_PLANTED, SEEN, ItemId, Label
from decon_core.features.study.translation.bootstrap import paired_draws, summarize
from decon_core.features.study.translation.metrics import CorpusMetric, Counts
from decon_core.features.study.translation.segments import score_of

LEAST_ITEMS = 10
ALL = "all benchmarks"

ItemScores = Mapping[ItemId, float]
_NO_LABEL = Label("")
_Groups = dict[tuple[str, Label], list[ItemId]]  # items by benchmark and label


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Scores of a training run and of the baseline on the same items, of one kind of exposure."""

    training_run: str
    benchmark: str = ""
    metric: str
    filter: str
    label: Label = _NO_LABEL
    n: int = 0
    score: float | None = None
    baseline: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    remark: str = ""

    @property
    def name(self) -> str:
        """The name that seeds the draws."""
        names = self.training_run, self.benchmark, self.metric, self.filter, *self.label
        return " | ".join(("exposure", *names))


@dataclass(frozen=True)
class _Compared:
    """An effect, and the differences that its contrasts are drawn from."""

    effect: Effect
    differences: Floats  # differences of the items; for a whole test set, of the sets drawn from it


def effects(
    blank: Effect, scores: ItemScores, baseline: ItemScores, labels: Mapping[ItemId, Label]
) -> Iterator[Effect]:
    """Yield the effects by benchmark and label, then the contrasts between labels.

    `blank`: an effect without numbers. Items without a label in a benchmark that has some are left
    out; those of benchmarks without any are `not planted`, if the labels are of plantings. Items
    that were planted in different ways are also counted together, and so are those of several
    benchmarks.
    """

    def compare(named: Effect, items: Sequence[ItemId]) -> _Compared:
        sides = (scores, baseline)
        own, other = (np.array([side[item] for item in items], np.float64) for side in sides)
        differences = own - other
        effect = replace(
            named,
            score=float(own.mean()),
            baseline=float(other.mean()),
            difference=float(differences.mean()),
        )
        if not effect.remark:
            ordered = np.sort(differences)
            low, high = paired_interval(ordered, effect.name)
            effect = replace(effect, low=low, high=high, p=paired_p_value(ordered, effect.name))
        return _Compared(effect, differences)

    def contrast(named: Effect, exposed: Floats, control: Floats) -> Effect:
        sides = np.sort(exposed), np.sort(control)
        low, high = interval(*sides, named.name)
        return replace(named, low=low, high=high, p=p_value(*sides, named.name))

    groups = _grouped(sorted(scores.keys() & baseline.keys()), labels)
    return _effects(blank, groups, compare, contrast)


def corpus_effects(
    blank: Effect,
    metric: CorpusMetric,
    counts: Mapping[ItemId, Counts],
    baseline: Mapping[ItemId, Counts],
    labels: Mapping[ItemId, Label],
) -> Iterator[Effect]:
    """Yield the effects on BLEU or chrF by benchmark and label, then the contrasts between labels.

    A score of a whole test set is no mean of scores of its segments, so each group is a test set.
    Segments of several benchmarks are not counted together: their languages differ.
    """

    def compare(named: Effect, items: Sequence[ItemId]) -> _Compared:
        sides = (counts, baseline)
        own, other = (
            np.array([side[item] for item in sorted(items)], np.float64) for side in sides
        )
        score, other_score = score_of(metric, own), score_of(metric, other)
        difference = score - other_score
        effect = replace(named, score=score, baseline=other_score, difference=difference)
        if effect.remark:
            return _Compared(effect, np.empty(0))
        draws = paired_draws(own, other, metric, effect.name)
        drawn = summarize(draws, difference)
        return _Compared(replace(effect, low=drawn.low, high=drawn.high, p=drawn.p), draws)

    def contrast(named: Effect, exposed: Floats, control: Floats) -> Effect:
        # The segments of both groups are drawn independently.
        drawn = summarize(exposed - control, named.difference or 0.0)
        return replace(named, low=drawn.low, high=drawn.high, p=drawn.p)

    groups = _grouped(sorted(counts.keys() & baseline.keys()), labels)
    groups = {key: items for key, items in groups.items() if key[0] != ALL}
    return _effects(blank, groups, compare, contrast)


def _grouped(items: Sequence[ItemId], labels: Mapping[ItemId, Label]) -> _Groups:
    """Return the items by benchmark and label, also those of several labels or benchmarks."""
    labelled = {item[0] for item in labels}
    is_planting = any(label.exposure == SEEN for label in labels.values())
    groups: defaultdict[tuple[str, Label], list[ItemId]] = defaultdict(list)
    for item in items:
        if item in labels:
            groups[item[0], labels[item]].append(item)
        elif is_planting and item[0] not in labelled:
            groups[item[0], Label(NOT_PLANTED)].append(item)
    ways: defaultdict[tuple[str, str], list[list[ItemId]]] = defaultdict(list)
    for (benchmark, label), part in sorted(groups.items()):
        ways[benchmark, label.exposure].append(part)
    benchmarks: defaultdict[str, list[list[ItemId]]] = defaultdict(list)
    for (benchmark, exposure), parts in ways.items():
        benchmarks[exposure].append([*chain.from_iterable(parts)])
        if len(parts) > 1:
            groups[benchmark, Label(exposure)] = benchmarks[exposure][-1]
    for exposure, parts in benchmarks.items():
        if len(parts) > 1:
            groups[ALL, Label(exposure)] = [*chain.from_iterable(parts)]
    return dict(groups)


def _effects(
    blank: Effect,
    groups: _Groups,
    compare: Callable[[Effect, Sequence[ItemId]], _Compared],
    contrast: Callable[[Effect, Floats, Floats], Effect],
) -> Iterator[Effect]:
    compared: dict[tuple[str, Label], _Compared] = {}
    # All benchmarks last, all ways of planting before single ones.
    for benchmark, label in sorted(groups, key=lambda key: (key[0] == ALL, *key)):
        items = groups[benchmark, label]
        remark = _remark_on(len(items))
        named = replace(blank, benchmark=benchmark, label=label, n=len(items), remark=remark)
        compared[benchmark, label] = compare(named, items)
        yield compared[benchmark, label].effect
    for (benchmark, label), exposed in compared.items():
        for exposure, other in CONTRASTS:
            control = compared.get((benchmark, Label(other)))
            if control is None or label.exposure != exposure:
                continue
            named = replace(
                blank,
                benchmark=benchmark,
                label=label._replace(exposure=f"{exposure} - {other}"),
                n=exposed.effect.n + control.effect.n,
                difference=(exposed.effect.difference or 0.0) - (control.effect.difference or 0.0),
                remark=_remark_on(min(exposed.effect.n, control.effect.n)),
            )
            if not named.remark:
                named = contrast(named, exposed.differences, control.differences)
            yield named


def _remark_on(n: int) -> str:
    return f"too few items: {n}" if n < LEAST_ITEMS else ""
