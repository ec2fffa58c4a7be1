"""Compare a training run with the baseline on the same items, by how they were exposed.

An item was planted in the training run's blend and how, held back, or leaked into the corpus. What
training on an item does to its own score is the effect on seen items less that on items that were
held back: the second is what the training run learned about the benchmark in general.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from decon_core.decisions.statistics import (
    LEAST_ITEMS,
    Floats,
    interval,
    p_value,
    paired_interval,
    paired_p_value,
)
from decon_core.features.blends.schemas import ITEMS_FILE
from decon_core.features.blends.settings import Blend, Contamination
from decon_core.features.results.items import Item
from decon_core.features.study.differences import SAME_DIFFERENCES, is_constant
from decon_core.features.study.translation import (
    CorpusMetric,
    Counts,
    paired_draws,
    score_of,
    summarize,
)
from decon_core.report.items import CLEAN, LEAKED, WITH_ANSWER

SEEN = "seen"
HELD_BACK = "held back"
NOT_PLANTED = "not planted"

# Groups of items: pairs of those that a contrast compares.
CONTRASTS = ((SEEN, HELD_BACK), (LEAKED, CLEAN))

ItemId = tuple[str, str, int]  # benchmark, split, row


class Label(NamedTuple):
    """How an item was exposed."""

    exposure: str
    form: str = ""  # form of what was planted; the rest likewise
    copies: str = ""
    when: str = ""


def id_of(item: Item) -> ItemId:
    return item.benchmark, item.split, item.instance_index


def planted_labels(blend: Blend, folder: Path) -> dict[ItemId, Label]:
    """Return the labels of the items of all benchmarks that a blend plants or holds back."""
    table = pq.read_table(folder / ITEMS_FILE)
    plantings: defaultdict[ItemId, set[tuple[int, int]]] = defaultdict(set)
    for row in table.to_pylist():
        item = row["benchmark"], row["split"], row["instance_index"]
        plantings[item]
        if row["is_seen"] and row["n_copies"]:
            plantings[item].add((row["contamination"], row["n_copies"]))
    return {item: _label(blend, sorted(found)) for item, found in plantings.items()}


def _label(blend: Blend, plantings: Sequence[tuple[int, int]]) -> Label:
    """Return the label of an item: several plantings are joined with "+"."""
    if not plantings:
        return Label(HELD_BACK)
    declared = [(blend.contamination[number], n) for number, n in plantings]
    return Label(
        SEEN,
        form=_together(contamination.form for contamination, _ in declared),
        copies=_together(_copies(contamination, n) for contamination, n in declared),
        when=_together(_when(contamination) for contamination, _ in declared),
    )


def _together(values: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(values))


def _copies(contamination: Contamination, n: int) -> str:
    """Return the declared number of copies; without one, items differ in theirs."""
    if contamination.copies is None:
        return "once" if n == 1 else "several times"
    return "1 copy" if contamination.copies == 1 else f"{contamination.copies:,} copies"


def _when(contamination: Contamination) -> str:
    if contamination.window is None:
        return contamination.schedule
    start, stop = contamination.window
    return f"{start:.0%} to {stop:.0%}"


def leaked_labels(items: Sequence[Item]) -> dict[ItemId, Label]:
    """Return the labels of the items that leaked into the corpus, and of the clean ones."""
    names: Mapping[str, str] = {LEAKED: LEAKED, WITH_ANSWER: LEAKED, CLEAN: CLEAN}
    return {id_of(item): Label(names[item.verdict]) for item in items if item.verdict in names}


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
            effect = replace(effect, p=paired_p_value(ordered, effect.name))
            if is_constant(ordered):
                effect = replace(effect, remark=SAME_DIFFERENCES)
            else:
                low, high = paired_interval(ordered, effect.name)
                effect = replace(effect, low=low, high=high)
        return _Compared(effect, differences)

    def contrast(named: Effect, exposed: Floats, control: Floats) -> Effect:
        sides = np.sort(exposed), np.sort(control)
        named = replace(named, p=p_value(*sides, named.name))
        if any(map(is_constant, sides)):
            return replace(named, remark=f"{SAME_DIFFERENCES} on one side")
        low, high = interval(*sides, named.name)
        return replace(named, low=low, high=high)

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
        return _Compared(replace(effect, **summarize(draws, difference)), draws)

    def contrast(named: Effect, exposed: Floats, control: Floats) -> Effect:
        # The segments of both groups are drawn independently.
        return replace(named, **summarize(exposed - control, named.difference or 0.0))

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
