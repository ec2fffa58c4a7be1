"""Which items each detector can see, and why not the others, which are never reported as clean.

A detector sees a record if a document with the record's unchanged texts would count as a leak at
the current thresholds. It sees an item if it sees one of its records. Neither depends on the
documents or on the other benchmarks of a scan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.detectors.detector import detector
from decon_core.detectors.visibility import Integers, RecordTexts, TextUse, Unmet
from decon_core.index.parts import index_fingerprint, open_part
from decon_core.index.record_texts import NAMES
from decon_core.index.verbatim import Verbatim, open_verbatim
from decon_core.scan.tiles import scan_fingerprint
from decon_core.schemas import INDEXABILITY
from decon_core.storage.store import Store

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


def visible_items(
    store: Store, versions: Sequence[Version], policy: Policy
) -> dict[tuple[str, str], int]:
    """Return the number of visible items by benchmark and detector."""
    return {
        (one.benchmark, one.detector): one.n_visible
        for one in visibilities(store, versions, policy)
    }


@dataclass(frozen=True, eq=False)
class _Texts:
    """The text index, and the text of each of its uses."""

    verbatim: Verbatim
    of_use: Integers

    @staticmethod
    def of(verbatim: Verbatim) -> _Texts:
        n_uses = np.diff(verbatim.use_offsets)
        return _Texts(verbatim, np.repeat(np.arange(verbatim.n_rows), n_uses))

    def used_by(self, part: int, n_records: int) -> Mapping[int, TextUse]:
        """Return the texts of one benchmark's records, by kind of text."""
        return {kind: self._use(part, kind, n_records) for kind in range(len(NAMES))}

    def _use(self, part: int, kind: int, n_records: int) -> TextUse:
        verbatim = self.verbatim
        uses = np.flatnonzero((verbatim.use_part == part) & (verbatim.use_kind == kind))
        records = verbatim.use_record[uses]
        text = np.full(n_records, _ABSENT)
        text[records] = self.of_use[uses]
        weight = np.zeros(n_records)
        weight[records] = verbatim.use_weight[uses]
        # An absent text (-1) takes the last element, appended for it.
        return TextUse(
            has_text=text != _ABSENT,
            n_tokens=np.append(np.diff(verbatim.aligned.offsets), 0)[text],
            n_canonical=np.append(np.diff(verbatim.canonical.offsets), 0)[text],
            opens=np.append(verbatim.is_compared, np.False_)[text],
            is_whole=np.append(verbatim.is_whole, 0)[text].astype(np.bool_),
            weight=weight,
        )


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
    texts = None
    if policy.needs_texts and parts:
        ids = np.unique(np.concatenate([part.entries.ids for part in parts]))
        scan = scan_fingerprint(store, policy)
        texts = _Texts.of(open_verbatim(store, ordered, ids, policy, scan=scan))
    for number, (version, part) in enumerate(zip(ordered, parts, strict=True)):
        records = load_records(store, version, columns=[*_ITEM, "config", "fingerprint"])
        uses = texts.used_by(number, records.num_rows) if texts else {}
        yield _Benchmark(version.benchmark, _items(records), RecordTexts(records, part, uses))


def _items(records: pa.Table) -> Integers:
    numbers: dict[tuple[str, int], int] = {}
    names = zip(*(records[name].to_pylist() for name in _ITEM), strict=True)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


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
