"""Which items each detector can see, and why not the others, which are never reported as clean.

A detector sees a record if a document with the record's unchanged texts would count as a leak at
the current thresholds. It sees an item if it sees one of its records. Neither depends on the
documents or on the other benchmarks of a scan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import StoredRecords, Version, current_version, load_records
from decon_core.config.load import Config
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.detector import detector
from decon_core.detectors.visibility import Integers, RecordTexts, TextUse, Unmet
from decon_core.errors import Problem
from decon_core.index.parts import has_part, index_fingerprint, open_part
from decon_core.index.record_texts import NAMES
from decon_core.index.text_index import Verbatim, open_verbatim
from decon_core.scan.coverage import scan_fingerprint
from decon_core.schemas import INDEXABILITY
from decon_core.storage.store import Store
from decon_core.wording import counted

_ITEM = ("split", "instance_index")
_ABSENT = -1


def indexability(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    """Return one row per item and chosen detector, with the reason if it cannot see the item."""
    tables = [_table(*one) for one in _unmet(store, versions, policy)]
    return pa.concat_tables([INDEXABILITY.empty_table(), *tables])


@dataclass(frozen=True)
class Visibility:
    """How many items of a benchmark one detector can see."""

    benchmark: str
    detector: str
    n_items: int
    n_visible: int
    why_not: Mapping[str, int]  # items by reason, most common first

    @property
    def share(self) -> float:
        """The share of visible items; 0 for a benchmark without items."""
        return self.n_visible / self.n_items if self.n_items else 0.0

    @property
    def as_row(self) -> dict[str, object]:
        """The row of a metadata table."""
        return {
            "benchmark": self.benchmark,
            "detector": self.detector,
            "items": self.n_items,
            "visible": self.n_visible,
            "why not": "; ".join(f"{reason}: {n}" for reason, n in self.why_not.items()),
            "share": self.share,
        }


def visibilities(store: Store, versions: Sequence[Version], policy: Policy) -> list[Visibility]:
    """Return the visibility of each benchmark to each chosen detector."""
    return [_visibility(*one) for one in _unmet(store, versions, policy)]


def required_shortfalls(config: Config, store: Store) -> list[Problem]:
    """Return the required benchmarks of which a detector sees too few items."""
    return shortfalls(config, visibilities_of(config, store, config.required))


def shortfalls(config: Config, seen: Iterable[Visibility]) -> list[Problem]:
    return [
        Problem(
            f"{one.benchmark}, {one.detector}",
            f"{one.n_visible} of {counted(one.n_items, 'item')} visible",
            f"a share of at least {config.least_indexable_share}",
        )
        for one in seen
        if not reaches(one.share, config.least_indexable_share)
    ]


def visibilities_of(config: Config, store: Store, names: Iterable[str]) -> list[Visibility]:
    """Return what each detector sees of those benchmarks that have an index."""
    index = index_fingerprint(store, config.policy)
    versions = [
        current_version(store, name) for name in names if store.current_records(name).is_file()
    ]
    with_index = [version for version in versions if has_part(store, version, index)]
    return visibilities(store, with_index, config.policy)


def _texts_of(
    verbatim: Verbatim, text_of_use: Integers, part: int, n_records: int
) -> Mapping[int, TextUse]:
    """Return the texts of one benchmark's records, by kind of text."""
    texts = {}
    for kind in range(len(NAMES)):
        uses = np.flatnonzero((verbatim.use_part == part) & (verbatim.use_kind == kind))
        records = verbatim.use_record[uses]
        text = np.full(n_records, _ABSENT)
        text[records] = text_of_use[uses]
        weight = np.zeros(n_records)
        weight[records] = verbatim.use_weight[uses]
        # An absent text (-1) takes the last element, appended for it.
        texts[kind] = TextUse(
            has_text=text != _ABSENT,
            n_tokens=np.append(np.diff(verbatim.aligned.offsets), 0)[text],
            n_canonical=np.append(np.diff(verbatim.canonical.offsets), 0)[text],
            opens=np.append(verbatim.is_compared, np.False_)[text],
            is_whole=np.append(verbatim.is_whole, 0)[text].astype(np.bool_),
            weight=weight,
        )
    return texts


@dataclass(frozen=True, eq=False)
class _Benchmark:
    """One benchmark version, its records and their items."""

    name: str
    item_of: Integers  # per record: its item, numbered in order of first occurrence
    texts: RecordTexts


def _unmet(
    store: Store, versions: Sequence[Version], policy: Policy
) -> Iterator[tuple[_Benchmark, str, Unmet]]:
    """Yield why the records of each benchmark are not visible to each chosen detector."""
    for benchmark in _benchmarks(store, versions, policy):
        of_benchmark = policy.for_benchmark(benchmark.name)
        for name in policy.detectors:
            yield benchmark, name, detector(name).visibility(benchmark.texts, of_benchmark)


def _benchmarks(store: Store, versions: Sequence[Version], policy: Policy) -> Iterator[_Benchmark]:
    index = index_fingerprint(store, policy)
    ordered = sorted(versions, key=lambda version: version.benchmark)  # the order in a scan of all
    parts = [open_part(store, version, index) for version in ordered]
    verbatim = None
    if policy.needs_texts and parts:
        ids = np.unique(np.concatenate([part.entries.ids for part in parts]))
        verbatim = open_verbatim(store, ordered, ids, policy, scan=scan_fingerprint(store, policy))
        text_of_use = np.repeat(np.arange(verbatim.n_rows), np.diff(verbatim.use_offsets))
    for number, (version, part) in enumerate(zip(ordered, parts, strict=True)):
        records = load_records(
            store, version, columns=[*_ITEM, "config", "fingerprint", "question"]
        )
        n = records.num_rows
        uses = _texts_of(verbatim, text_of_use, number, n) if verbatim else {}
        numbers: dict[tuple[str, int], int] = {}
        names = zip(*(records[name].to_pylist() for name in _ITEM), strict=True)
        item_of = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        texts = RecordTexts(records, part, uses, StoredRecords(store, version))
        yield _Benchmark(version.benchmark, item_of, texts)


def _visibility(benchmark: _Benchmark, name: str, unmet: Unmet) -> Visibility:
    places = unmet.places[_deciding_records(benchmark, unmet)]
    n_visible, *n_items = np.bincount(places, minlength=len(unmet.reasons)).tolist()
    reasons = zip(map(str, unmet.reasons[1:]), n_items, strict=True)
    why_not = Counter({reason: n for reason, n in reasons if n})
    return Visibility(benchmark.name, name, places.size, n_visible, dict(why_not.most_common()))


def _deciding_records(benchmark: _Benchmark, unmet: Unmet) -> Integers:
    """Return, per item, the record that decides its visibility and reason."""
    order = np.lexsort((unmet.places, benchmark.item_of))
    _, first = np.unique(benchmark.item_of[order], return_index=True)
    return np.asarray(order[first], np.int64)


def _table(benchmark: _Benchmark, name: str, unmet: Unmet) -> pa.Table:
    """Return one row per item, in the order of their first records."""
    n_records = np.bincount(benchmark.item_of)
    deciding = _deciding_records(benchmark, unmet)
    places = unmet.places[deciding]
    columns = {
        "benchmark": pa.repeat(pa.scalar(benchmark.name), n_records.size),
        "detector": pa.repeat(pa.scalar(name), n_records.size),
        "is_visible": pa.array(places == 0),
        "reason": pa.array(unmet.reasons, pa.string()).take(pa.array(places)),
        "n_records": pa.array(n_records),
        "detail": pa.array(unmet.details[deciding], pa.string()),
    }
    labels = benchmark.texts.records.take(pa.array(deciding))
    columns |= {name: labels[name] for name in ("config", *_ITEM)}
    return pa.table(columns).select(INDEXABILITY.names).cast(INDEXABILITY)
