"""Compare BLEU and chrF of an arm and the baseline on the segments of each kind of exposure.

A score of a whole test set is no mean of scores of its segments, so each group is a test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from decon_core.features.study.exposure.effects import (
    ALL,
    LEAST_ITEMS,
    Effect,
    contrasts_of,
    groups_of,
    name_of,
    order_of,
)
from decon_core.features.study.exposure.labels import ItemId, Label
from decon_core.features.study.translation.bootstrap import paired_draws, summarize
from decon_core.features.study.translation.metrics import CorpusMetric, Counts, Floats
from decon_core.features.study.translation.segments import score_of


@dataclass(frozen=True)
class _Group:
    """A test set: its effect, and the differences of sets drawn from it."""

    effect: Effect
    draws: Floats


def corpus_effects(
    blank: Effect,
    metric: CorpusMetric,
    counts: Mapping[ItemId, Counts],
    baseline: Mapping[ItemId, Counts],
    labels: Mapping[ItemId, Label],
) -> Iterator[Effect]:
    """Yield the effects by benchmark and label, then the contrasts between labels.

    Segments of several benchmarks are not counted together: their languages differ.
    """
    groups = groups_of(sorted(counts.keys() & baseline.keys()), labels)
    found: dict[tuple[str, Label], _Group] = {}
    for benchmark, label in sorted(groups, key=order_of):
        if benchmark == ALL:
            continue
        items = sorted(groups[benchmark, label])
        sides = [np.array([of[item] for item in items], np.float64) for of in (counts, baseline)]
        named = replace(blank, benchmark=benchmark, label=label)
        found[benchmark, label] = _group(named, metric, *sides)
        yield found[benchmark, label].effect
    for benchmark, label, contrast, other in contrasts_of(found):
        exposed, control = found[benchmark, label], found[benchmark, other]
        yield _contrast(replace(blank, benchmark=benchmark, label=contrast), exposed, control)


def _group(named: Effect, metric: CorpusMetric, own: Floats, other: Floats) -> _Group:
    score, baseline = score_of(metric, own), score_of(metric, other)
    difference = score - baseline
    effect = replace(named, n=len(own), score=score, baseline=baseline, difference=difference)
    if len(own) < LEAST_ITEMS:
        return _Group(replace(effect, remark=f"too few items: {len(own)}"), np.empty(0))
    draws = paired_draws(own, other, metric, name_of(effect))
    drawn = summarize(draws, difference)
    return _Group(replace(effect, low=drawn.low, high=drawn.high, p=drawn.p), draws)


def _contrast(named: Effect, exposed: _Group, control: _Group) -> Effect:
    """Return the difference of two effects; their segments are drawn independently."""
    sizes = exposed.effect.n, control.effect.n
    difference = (exposed.effect.difference or 0.0) - (control.effect.difference or 0.0)
    found = replace(named, n=sum(sizes), difference=difference)
    if min(sizes) < LEAST_ITEMS:
        return replace(found, remark=f"too few items: {min(sizes)}")
    drawn = summarize(exposed.draws - control.draws, difference)
    return replace(found, low=drawn.low, high=drawn.high, p=drawn.p)
