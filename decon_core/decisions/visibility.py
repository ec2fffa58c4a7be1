"""Which items each detector can see, and why not the others, which are never reported as clean.

A detector sees a record if a document with the record's unchanged texts would count as a leak at
the current thresholds. A question with several answers has a record for each, and a document may
hold any of the right ones: a detector sees a question if it sees all of its records but those of
wrong answers. It sees an item if it sees one of its questions, as a copy of the item has all of
them. None of this depends on the documents or on the other benchmarks of a scan.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from decon_core.benchmarks.records import StoredRecords, Version, current_version, load_records
from decon_core.config import detector_registry as registry
from decon_core.config.detector_registry import Reads
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.decisions.judging import may_prove
from decon_core.detectors.detector import detector
from decon_core.detectors.visibility import OwnIndex, RecordTexts, TextUse, Unmet
from decon_core.errors import DamagedError, Problem
from decon_core.index.joined_index import built_own_indexes, mark_used, search_name
from decon_core.index.ngram_counts import places_of
from decon_core.index.parts import Part, has_part, index_fingerprint, open_part
from decon_core.kernels.arrays import Bools, Integers, distinct
from decon_core.scan.coverage import scan_fingerprint
from decon_core.schemas import VISIBILITY
from decon_core.storage.store import Store
from decon_core.storage.tables import numbered, read_arrow, write_arrow
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.index.text_index import Verbatim

_ITEM = ("split", "instance_index")
_READING_TEXTS = (Reads.TEXTS, Reads.TOKENS, Reads.CANONICAL)
_ABSENT = -1
# Only the same release uses what is kept. In development, increase the number when a detector can
# find other items than before.
_KEPT_BY = [version_of("decon-assets"), 4]
_BY_OTHERS = pa.schema(
    [("benchmark", pa.string()), ("detector", pa.string()), ("n_items", pa.int64())]
)

# Of the detectors that search for texts, the one that finds only these texts.
_FEWEST_FALSE_ALARMS = "exact"
# Why an item cannot be found that is visible to no other detector than these.
ONLY_REVIEW = "found only as similar text, which needs review"

BlindItems = dict[str, set[tuple[str, int]]]  # split and instance_index, by benchmark


def visibility_table(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    """Return one row per item and chosen detector, with the reason if it cannot see the item."""
    return _kept("visible", _visible, store, versions, policy).cast(VISIBILITY)


def checkable_by_others(
    store: Store, versions: Sequence[Version], policy: Policy
) -> dict[str, dict[str, int]]:
    """Count, per benchmark, the items that no chosen detector can find and another one could.

    Asked is `exact`; if it is chosen, the other detectors that search for the texts of an item.
    """
    counts: dict[str, dict[str, int]] = {}
    for row in _kept("others", _by_others, store, versions, policy).to_pylist():
        counts.setdefault(row["benchmark"], {})[row["detector"]] = row["n_items"]
    return counts


def _kept(
    name: str,
    compute: Callable[[Store, Sequence[Version], Policy], pa.Table],
    store: Store,
    versions: Sequence[Version],
    policy: Policy,
) -> pa.Table:
    """Return a table of these benchmarks; it is kept, as it takes as long as building the index."""
    # The order in a scan of all.
    ordered = sorted(versions, key=lambda version: version.benchmark)
    settings = orjson.dumps([_KEPT_BY, asdict(policy)], option=orjson.OPT_SORT_KEYS)
    digest = sha256(settings).hexdigest()[:16]
    file = f"{name}-{search_name(ordered)}-{digest}"
    path = store.search(scan_fingerprint(store, policy), file)
    try:
        table = read_arrow(path)
    except (FileNotFoundError, DamagedError):
        table = compute(store, ordered, policy)
        with _unless_read_only():
            write_arrow(path, table)
        return table
    with _unless_read_only():
        mark_used(path)
    return table


@contextmanager
def _unless_read_only() -> Iterator[None]:
    """Go on if a file may not be written: readers of a read-only store compute again."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise


def _visible(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    index = index_fingerprint(store, policy)
    scan = scan_fingerprint(store, policy)
    verbatim = None
    if policy.needs_texts and versions:
        from decon_core.index.text_index import open_verbatim

        ids = _token_ids(store, versions, index)
        verbatim = open_verbatim(store, versions, ids, policy, scan=scan)
    own = built_own_indexes(store, versions, policy.detectors, scan=scan)
    texts_of = _texts_by_part(verbatim, len(versions))
    tables = [VISIBILITY.empty_table()]
    for number, version in enumerate(versions):
        part = open_part(store, version, index)
        benchmark = _benchmark(store, version, part, texts_of, number, own)
        own_policy = policy.for_benchmark(version.benchmark)
        for name in policy.detectors:
            unmet = detector(name).visibility(benchmark.texts, own_policy)
            tables.append(_table(benchmark, name, unmet))
    return pa.concat_tables(tables)


def _by_others(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    finders = registry.names_where(lambda finder: finder.reads in _READING_TEXTS)
    others = [name for name in finders if name not in policy.detectors]
    if _FEWEST_FALSE_ALARMS in others:
        others = [_FEWEST_FALSE_ALARMS]
    blind = blind_items(visibility_table(store, versions, policy), policy)
    ordered = [version for version in versions if version.benchmark in blind]
    if not others or not ordered:
        return _BY_OTHERS.empty_table()
    wide = replace(policy, detectors=(*policy.detectors, *others))
    index = index_fingerprint(store, policy)
    blind_records = {}
    for version in ordered:
        records = load_records(store, version, columns=[*_ITEM])
        blind_records[version] = _rows_of(records, blind[version.benchmark])
    from decon_core.index.text_index import verbatim_of_records

    texts_of = _texts_by_part(verbatim_of_records(store, blind_records, wide), len(ordered))
    counts = []
    for number, version in enumerate(ordered):
        part = open_part(store, version, index)
        benchmark = _benchmark(store, version, part, texts_of, number, {})
        own_policy = wide.for_benchmark(version.benchmark)
        for name in others:
            if not detector(name).acts(own_policy.leak):
                continue
            unmet = detector(name).visibility(benchmark.texts, own_policy)
            deciding = _deciding_records(benchmark, unmet, blind_records[version])
            if n := int((unmet.places[deciding] == 0).sum()):
                counts.append({"benchmark": version.benchmark, "detector": name, "n_items": n})
    return pa.Table.from_pylist(counts, _BY_OTHERS)


def _token_ids(store: Store, versions: Sequence[Version], index: str) -> Integers:
    """Return the token ids that occur in these benchmarks; their parts do not stay in memory."""
    return distinct(
        np.concatenate([open_part(store, version, index).entries.ids for version in versions])
    )


def _rows_of(records: pa.Table, items: set[tuple[str, int]]) -> Integers:
    """Return the rows of these items."""
    split, number = (records[name] for name in _ITEM)
    numbers = np.array([number for _, number in items], np.int64)
    rows = np.flatnonzero(np.isin(number.to_numpy(), numbers))
    names = zip(
        split.take(pa.array(rows)).to_pylist(), number.to_numpy()[rows].tolist(), strict=True
    )
    return rows[[name in items for name in names]]


def blind_items(visible: pa.Table, policy: Policy) -> BlindItems:
    """Return, per benchmark, the items that no chosen detector can find as a leak."""
    import polars as pl

    is_seen = (pl.col("is_visible") & may_prove(policy)).any()
    items = pl.DataFrame(visible).group_by("benchmark", *_ITEM).agg(is_seen=is_seen)
    blind: BlindItems = {}
    for benchmark, split, number, _ in items.filter(~pl.col("is_seen")).iter_rows():
        blind.setdefault(benchmark, set()).add((split, number))
    return blind


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
    table = visibility_table(store, versions, policy).select(["benchmark", "detector", "reason"])
    group_of = numbered(table, table.column_names)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(group_of), prepend=-1))
    groups = zip(*(column.to_pylist() for column in table.take(pa.array(first))), strict=True)
    n_items: dict[tuple[str, str], Counter[str | None]] = {}
    for (benchmark, name, reason), n in zip(groups, np.bincount(group_of).tolist(), strict=True):
        n_items.setdefault((benchmark, name), Counter())[reason] = n
    visible = []
    for benchmark in sorted(version.benchmark for version in versions):
        for name in policy.detectors:
            by_reason = n_items.get((benchmark, name), Counter())
            why_not = {reason: n for reason, n in by_reason.most_common() if reason is not None}
            n_all = by_reason.total()
            visible.append(Visibility(benchmark, name, n_all, by_reason[None], why_not))
    return visible


def required_shortfalls(config: Config, store: Store) -> list[Problem]:
    """Return the required benchmarks of which a detector sees too few items."""
    if not config.evals.required:
        return []
    return shortfalls(config, visibilities_of(config, store, config.evals.required))


def shortfalls(config: Config, seen: Iterable[Visibility]) -> list[Problem]:
    return [
        Problem(
            f"{each.benchmark}, {each.detector}",
            f"{each.n_visible} of {counted(each.n_items, 'item')} checkable",
            f"a share of at least {config.evals.least_checkable_share}",
        )
        for each in seen
        if not reaches(each.share, config.evals.least_checkable_share)
    ]


def visibilities_of(config: Config, store: Store, names: Iterable[str]) -> list[Visibility]:
    """Return what each detector sees of those benchmarks that have an index."""
    index = index_fingerprint(store, config.policy)
    versions = [
        current_version(store, name) for name in names if store.current_records(name).is_file()
    ]
    with_index = [version for version in versions if has_part(store, version, index)]
    return visibilities(store, with_index, config.policy)


# The texts of the records of one benchmark, given its number and how many it has.
_TextsOf = Callable[[int, int], Mapping[int, TextUse]]


def _texts_by_part(verbatim: Verbatim | None, n_parts: int) -> _TextsOf:
    """Return a function that returns the texts of one benchmark's records, by kind of text."""
    if verbatim is None:
        return lambda _part, _n_records: {}
    from decon_core.index.record_texts import NAMES

    text_of_use = np.repeat(np.arange(verbatim.n_rows), np.diff(verbatim.use_offsets))
    edges, in_order = places_of(verbatim.use_part.astype(np.uint32), n_parts)
    # An absent text (-1) takes the last element, appended for it.
    n_tokens = np.append(np.diff(verbatim.aligned.offsets), 0)
    n_canonical = np.append(np.diff(verbatim.canonical.offsets), 0)
    opens = np.append(verbatim.is_compared, np.False_)
    is_whole = np.append(verbatim.is_whole, 0).astype(np.bool_)

    def texts_of(part: int, n_records: int) -> dict[int, TextUse]:
        texts = {}
        of_part = in_order[edges[part] : edges[part + 1]]
        for kind in range(len(NAMES)):
            uses = of_part[verbatim.use_kind[of_part] == kind]
            records = verbatim.use_record[uses]
            text = np.full(n_records, _ABSENT)
            text[records] = text_of_use[uses]
            weight = np.zeros(n_records)
            weight[records] = verbatim.use_weight[uses]
            texts[kind] = TextUse(
                text != _ABSENT,
                n_tokens[text],
                n_canonical[text],
                opens[text],
                is_whole[text],
                weight,
            )
        return texts

    return texts_of


@dataclass(frozen=True, eq=False)
class _Benchmark:
    """One benchmark version, its records and their items."""

    name: str
    item_of: Integers  # per record: its item, numbered in order of first occurrence
    question_of: Integers  # per record: its question, numbered likewise
    is_counted: Bools  # per record: whether its question is seen only if it is
    texts: RecordTexts


def _benchmark(
    store: Store,
    version: Version,
    part: Part,
    texts_of: _TextsOf,
    number: int,
    own: Mapping[str, Mapping[str, Any]],
) -> _Benchmark:
    """Return a benchmark as it is indexed; `number` is its place in all indexes.

    `own`: the indexes of these benchmarks that detectors have of their own, if they are built.
    """
    columns = [*_ITEM, "config", "fingerprint"]
    records = load_records(store, version, columns=[*columns, "sub_index", "is_correct"])
    texts = RecordTexts(
        records.select(columns),
        part,
        texts_of(number, records.num_rows),
        StoredRecords(store, version),
        own={name: OwnIndex(arrays, number) for name, arrays in own.items()},
    )
    item_of = numbered(records, _ITEM)
    question_of = numbered(records, (*_ITEM, "sub_index"))
    may_be_right = np.asarray(records["is_correct"].fill_null(True).to_numpy())
    has_right = np.bincount(question_of, may_be_right) > 0
    is_counted = may_be_right | ~has_right[question_of]
    return _Benchmark(version.benchmark, item_of, question_of, is_counted, texts)


def _deciding_records(
    benchmark: _Benchmark, unmet: Unmet, records: Integers | None = None
) -> Integers:
    """Return, per item, the record that decides its visibility and reason.

    `records`: those of the items that are asked about; None: of all.
    """
    is_counted = benchmark.is_counted
    counted = np.flatnonzero(is_counted) if records is None else records[is_counted[records]]
    worst = _first_of_each(benchmark.question_of, -unmet.places, counted)
    return _first_of_each(benchmark.item_of, unmet.places, worst)


def _first_of_each(group_of: Integers, rank: Integers, records: Integers) -> Integers:
    """Return, of these records, the one with the lowest rank in each group."""
    ordered = records[np.lexsort((rank[records], group_of[records]))]
    return ordered[np.flatnonzero(np.diff(group_of[ordered], prepend=-1))]


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
    return pa.table(columns).select(VISIBILITY.names).cast(VISIBILITY)
