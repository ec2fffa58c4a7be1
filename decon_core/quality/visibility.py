"""Which items each detector can see, and why not the others, which are never reported as clean.

A detector sees a record if a document with the record's unchanged texts would count as a leak at
the current thresholds. It sees an item if it sees one of its records. Neither depends on the
documents or on the other benchmarks of a scan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy, reaches
from decon_core.index.entries import EXACT_REPEAT
from decon_core.index.entries import REASONS as WHY_DROPPED
from decon_core.index.parts import Part, index_fingerprint, open_part
from decon_core.index.verbatim import (
    ANSWER,
    CONTINUATION,
    NAMES,
    QUESTION,
    QUESTION_AND_ANSWER,
    Verbatim,
    open_verbatim,
)
from decon_core.scan.tiles import scan_fingerprint
from decon_core.schemas import INDEXABILITY
from decon_core.storage.store import Store

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Details = npt.NDArray[np.object_]

# An item without a visible record gets the first reason, in this order, of its records.
REASONS = (
    None,
    "not telling",  # its n-grams are not informative by idf
    "only hot n-grams",
    "nothing to screen by",  # no start of a word that twelve bytes follow
    "question too short to count",  # a match is stored, but below the threshold
    "question too short",
    "no field long enough",
    "empty question",
    *(reason for reason in WHY_DROPPED[1:] if reason not in ("empty question", EXACT_REPEAT)),
)
_PLACE = {reason: place for place, reason in enumerate(REASONS)}
_VISIBLE = _PLACE[None]
_NOT_INFORMATIVE = _PLACE["not telling"]
_HOT = _PLACE["only hot n-grams"]
_UNSCREENED = _PLACE["nothing to screen by"]
_BELOW_THRESHOLD = _PLACE["question too short to count"]
_SHORT = _PLACE["question too short"]
_SHORT_FIELDS = _PLACE["no field long enough"]
_EMPTY = _PLACE["empty question"]

_ITEM = ("split", "instance_index")
_ABSENT = -1


def indexability(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    """Return one row per item and chosen detector, with the reason if it cannot see the item."""
    tables = [
        _table(benchmark, detector, _reasons(detector, benchmark, _policy_for(policy, benchmark)))
        for benchmark in _benchmarks(store, versions, policy)
        for detector in policy.detectors
    ]
    return pa.concat_tables([INDEXABILITY.empty_table(), *tables])


def _policy_for(policy: Policy, benchmark: _Benchmark) -> Policy:
    return policy.for_benchmark(benchmark.version.benchmark)


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
            "rule": self.detector,
            "items": self.n_items,
            "visible": self.n_visible,
            "why not": "; ".join(f"{reason}: {n}" for reason, n in self.why_not.items()),
            "share": self.share,
        }


def visibilities(store: Store, versions: Sequence[Version], policy: Policy) -> list[Visibility]:
    """Return the visibility of each benchmark to each chosen detector."""
    return [
        _visibility(
            benchmark, detector, _reasons(detector, benchmark, _policy_for(policy, benchmark))
        )
        for benchmark in _benchmarks(store, versions, policy)
        for detector in policy.detectors
    ]


def visible_items(
    store: Store, versions: Sequence[Version], policy: Policy
) -> dict[tuple[str, str], int]:
    """Return the number of visible items by benchmark and detector."""
    return {
        (one.benchmark, one.detector): one.n_visible
        for one in visibilities(store, versions, policy)
    }


@dataclass(frozen=True, eq=False)
class _RecordReasons:
    """Per record: why a detector cannot see it, and a detail."""

    reasons: Integers  # positions in `REASONS`
    details: Details


@dataclass(frozen=True, eq=False)
class _Use:
    """Per record: the text that it uses as one kind of text."""

    has_text: Flags
    n_tokens: Integers
    n_canonical: Integers  # canonical tokens; questions only
    opens: Flags  # whether an n-gram of it opens a comparison
    is_whole: Flags  # whether it can be found as a whole text
    weight: npt.NDArray[np.float64]  # informativeness by idf


@dataclass(frozen=True, eq=False)
class _Texts:
    """The text index, and the text of each of its uses."""

    verbatim: Verbatim
    of_use: Integers

    @staticmethod
    def of(verbatim: Verbatim) -> _Texts:
        n_uses = np.diff(verbatim.use_offsets)
        return _Texts(verbatim, np.repeat(np.arange(verbatim.n_rows), n_uses))

    def used_by(self, part: int, n_records: int) -> Mapping[int, _Use]:
        """Return the texts of one benchmark's records, by kind of text."""
        return {kind: self._use(part, kind, n_records) for kind in range(len(NAMES))}

    def _use(self, part: int, kind: int, n_records: int) -> _Use:
        verbatim = self.verbatim
        uses = np.flatnonzero((verbatim.use_part == part) & (verbatim.use_kind == kind))
        records = verbatim.use_record[uses]
        text = np.full(n_records, _ABSENT)
        text[records] = self.of_use[uses]
        weight = np.zeros(n_records)
        weight[records] = verbatim.use_weight[uses]
        # An absent text (-1) takes the last element, appended for it.
        return _Use(
            has_text=text != _ABSENT,
            n_tokens=np.append(np.diff(verbatim.aligned.offsets), 0)[text],
            n_canonical=np.append(np.diff(verbatim.canonical.offsets), 0)[text],
            opens=np.append(verbatim.is_compared, np.False_)[text],
            is_whole=np.append(verbatim.is_whole, 0)[text].astype(np.bool_),
            weight=weight,
        )


@dataclass(frozen=True, eq=False)
class _Benchmark:
    """The records of one benchmark version, their index part and their texts."""

    version: Version
    records: pa.Table
    item_of: Integers  # per record: its item, numbered in order of first occurrence
    part: Part
    uses: Mapping[int, _Use]  # by kind of text; empty if no detector needs texts


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
        yield _Benchmark(version, records, _items(records), part, uses)


def _items(records: pa.Table) -> Integers:
    numbers: dict[tuple[str, int], int] = {}
    names = zip(*(records[name].to_pylist() for name in _ITEM), strict=True)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def _reasons(detector: str, benchmark: _Benchmark, policy: Policy) -> _RecordReasons:
    uses = benchmark.uses
    if detector == "decon":
        return _decon_reasons(benchmark.part, benchmark.records, policy)
    if detector == "ratcliff":
        return _ratcliff_reasons(uses[QUESTION], policy)
    if detector == "longest_match":
        return _longest_match_reasons(uses[QUESTION], uses[ANSWER], policy)
    if detector == "exact":
        return _exact_reasons(uses, policy)
    return _ngram_any_reasons(uses[QUESTION], policy)


def _visibility(benchmark: _Benchmark, detector: str, found: _RecordReasons) -> Visibility:
    of_items = found.reasons[_deciding_records(benchmark, found)]
    n_items = np.bincount(of_items, minlength=len(REASONS)).tolist()
    why_not = Counter(
        {reason: n for reason, n in zip(REASONS, n_items, strict=True) if reason and n}
    )
    name = benchmark.version.benchmark
    return Visibility(name, detector, of_items.size, n_items[_VISIBLE], dict(why_not.most_common()))


def _deciding_records(benchmark: _Benchmark, found: _RecordReasons) -> Integers:
    """Return, per item, the record that decides its visibility and reason."""
    order = np.lexsort((found.reasons, benchmark.item_of))
    _, first = np.unique(benchmark.item_of[order], return_index=True)
    return np.asarray(order[first], np.int64)


def _table(benchmark: _Benchmark, detector: str, found: _RecordReasons) -> pa.Table:
    """Return one row per item, in the order of their first records."""
    n_records = np.bincount(benchmark.item_of)
    deciding = _deciding_records(benchmark, found)
    reasons = found.reasons[deciding]
    columns = {
        "benchmark": pa.repeat(pa.scalar(benchmark.version.benchmark), n_records.size),
        "rule": pa.repeat(pa.scalar(detector), n_records.size),
        "is_visible": pa.array(reasons == _VISIBLE),
        "reason": pa.array(REASONS, pa.string()).take(pa.array(reasons)),
        "n_records": pa.array(n_records),
        "detail": pa.array(found.details[deciding], pa.string()),
    }
    labels = benchmark.records.take(pa.array(deciding))
    columns |= {name: labels[name] for name in ("config", *_ITEM)}
    return pa.table(columns).select(INDEXABILITY.names).cast(INDEXABILITY)


def _any_in_rows(flags: Flags, offsets: Integers) -> Flags:
    """Return, per row, whether any of its flags is set."""
    before = np.append(0, np.cumsum(flags))
    return before[offsets[1:]] > before[offsets[:-1]]


def _token_details(
    reasons: npt.NDArray[Any], n_tokens: Integers, min_tokens: Mapping[int, int]
) -> Details:
    """Return details such as "3 of 8 tokens" for the reasons in `min_tokens`."""
    details = np.full(reasons.size, None, object)
    for reason, n in min_tokens.items():
        for at in np.flatnonzero(reasons == reason).tolist():
            details[at] = f"{n_tokens[at]} of {n} tokens"
    return details


# Detectors ----------------------------------------------------------------------------------------


def _decon_reasons(part: Part, records: pa.Table, policy: Policy) -> _RecordReasons:
    """Records dropped from the index, and questions without informative n-grams, are invisible."""
    entries, df = part.entries, part.df["question"]
    of_reason = np.array([_PLACE.get(reason, _VISIBLE) for reason in WHY_DROPPED])
    reasons = of_reason[entries.dropped]
    question = entries.fields["question"]
    limit = max(policy.hot_ngram_records, 2 * math.isqrt(part.n_records))
    reasons[entries.records] = np.select(
        [
            df.lengths == 0,
            ~_any_in_rows(df.values <= limit, df.offsets),
            ~_any_in_rows(df.values < part.n_records, df.offsets),
        ],
        [_SHORT, _HOT, _NOT_INFORMATIVE],
        _VISIBLE,
    )[question.of_entry]
    n_tokens = np.zeros(records.num_rows, np.int64)
    n_tokens[entries.records] = question.texts.lengths[question.of_entry]
    repeats = np.flatnonzero(entries.dropped == WHY_DROPPED.index(EXACT_REPEAT))
    first = _first_alike(records)[repeats]
    reasons[repeats], n_tokens[repeats] = reasons[first], n_tokens[first]
    details = _token_details(reasons, n_tokens, {_SHORT: policy.ngram_size})
    names = records.select(["split", "instance_index"]).take(pa.array(first)).to_pylist()
    for at, name in zip(repeats.tolist(), names, strict=True):
        details[at] = f"{EXACT_REPEAT} of {name['split']} {name['instance_index']}"
    return _RecordReasons(reasons, details)


def _first_alike(records: pa.Table) -> Integers:
    """Return, per record, the first record with the same texts."""
    known = records["fingerprint"].combine_chunks().dictionary_encode()
    codes = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    _, first, number = np.unique(
        codes.indices.to_numpy(zero_copy_only=False), return_index=True, return_inverse=True
    )
    return np.asarray(first[number], np.int64)


def _ratcliff_reasons(question: _Use, policy: Policy) -> _RecordReasons:
    reasons = np.select(
        [~question.has_text, question.n_tokens < policy.shared_ngram_size, ~question.opens],
        [_EMPTY, _SHORT, _UNSCREENED],
        _VISIBLE,
    )
    min_tokens = {_SHORT: policy.shared_ngram_size}
    return _RecordReasons(reasons, _token_details(reasons, question.n_tokens, min_tokens))


def _longest_match_reasons(question: _Use, answer: _Use, policy: Policy) -> _RecordReasons:
    """One searchable field is enough. The detail names the searchable fields."""
    is_long = [use.n_tokens >= policy.shared_ngram_size for use in (question, answer)]
    searched = [long & use.opens for long, use in zip(is_long, (question, answer), strict=True)]
    reasons = np.select(
        [
            searched[0] | searched[1],
            is_long[0] | is_long[1],
            question.has_text | answer.has_text,
        ],
        [_VISIBLE, _UNSCREENED, _SHORT_FIELDS],
        _EMPTY,
    )
    return _RecordReasons(reasons, _joined_names(searched, (NAMES[QUESTION], NAMES[ANSWER])))


def _exact_reasons(uses: Mapping[int, _Use], policy: Policy) -> _RecordReasons:
    """One informative text is enough. The detail names the texts that count."""
    kinds = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)
    wholes = [uses[kind].is_whole for kind in kinds]
    informative = [
        uses[kind].is_whole & reaches(uses[kind].weight, policy.exact_threshold) for kind in kinds
    ]
    reasons = np.select(
        [
            np.any(informative, axis=0),
            np.any(wholes, axis=0),
            np.any([uses[kind].has_text for kind in kinds], axis=0),
        ],
        [_VISIBLE, _NOT_INFORMATIVE, _UNSCREENED],
        _EMPTY,
    )
    return _RecordReasons(reasons, _joined_names(informative, [NAMES[kind] for kind in kinds]))


def _ngram_any_reasons(question: _Use, policy: Policy) -> _RecordReasons:
    n_tokens = question.n_canonical
    reasons = np.select(
        [n_tokens == 0, n_tokens < policy.ngram_any_floor, n_tokens < policy.ngram_any_size],
        [_EMPTY, _SHORT, _BELOW_THRESHOLD],
        _VISIBLE,
    )
    min_tokens = {_SHORT: policy.ngram_any_floor, _BELOW_THRESHOLD: policy.ngram_any_size}
    return _RecordReasons(reasons, _token_details(reasons, n_tokens, min_tokens))


def _joined_names(flags: Sequence[Flags], names: Sequence[str]) -> Details:
    """Return, per record, the names whose flags are set."""
    labels_of_bits = [
        ", ".join(name for bit, name in enumerate(names) if number >> bit & 1) or None
        for number in range(1 << len(names))
    ]
    number = np.zeros(flags[0].size, np.int64)
    for bit, flag in enumerate(flags):
        number |= flag.astype(np.int64) << bit
    details: Details = np.array(labels_of_bits, object)[number]
    return details
