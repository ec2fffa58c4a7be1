"""How the items were exposed to a model: planted in its blend and how, held back, or leaked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from decon_core.features.blends.schemas import ITEMS_FILE
from decon_core.features.blends.settings import Blend, Contamination
from decon_core.features.results.items import Item
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
