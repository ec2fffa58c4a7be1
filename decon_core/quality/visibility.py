"""Which items each rule can see at all, and why not the others: those are never called clean.

A rule sees a record when the record's texts, standing in a document as they are, would count as a
leak at today's thresholds. It sees an item when it sees one of its records. Neither depends on what
else is scanned, nor on any document.
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

# Of several records of an item that nobody sees, the one whose reason comes first speaks for it.
REASONS = (
    None,
    "not telling",  # by idf: what it consists of says too little about this item
    "only hot n-grams",
    "nothing to screen by",  # no word's beginning with twelve bytes from there on
    "question too short to count",  # a match is kept, below the threshold
    "question too short",
    "no field long enough",
    "empty question",
    *(reason for reason in WHY_DROPPED[1:] if reason not in ("empty question", EXACT_REPEAT)),
)
_PLACE = {reason: place for place, reason in enumerate(REASONS)}
_VISIBLE = _PLACE[None]
_UNTELLING = _PLACE["not telling"]
_HOT = _PLACE["only hot n-grams"]
_UNSCREENED = _PLACE["nothing to screen by"]
_UNCOUNTED = _PLACE["question too short to count"]
_SHORT = _PLACE["question too short"]
_SHORT_FIELDS = _PLACE["no field long enough"]
_EMPTY = _PLACE["empty question"]

_ITEM = ("split", "instance_index")
_ABSENT = -1


def indexability(store: Store, versions: Sequence[Version], policy: Policy) -> pa.Table:
    """One row per item and chosen rule, with the reason why the rule cannot see it."""
    tables = [
        _table(benchmark, rule, _see(rule, benchmark, _own(policy, benchmark)))
        for benchmark in _benchmarks(store, versions, policy)
        for rule in policy.detectors
    ]
    return pa.concat_tables([INDEXABILITY.empty_table(), *tables])


def _own(policy: Policy, benchmark: _Benchmark) -> Policy:
    return policy.for_benchmark(benchmark.version.benchmark)


@dataclass(frozen=True)
class Visibility:
    """How much of a benchmark one rule can see."""

    benchmark: str
    rule: str
    n_items: int
    n_visible: int
    why_not: Mapping[str, int]  # items by reason, the most common one first

    @property
    def share(self) -> float:
        """Of a benchmark without items nothing is seen."""
        return self.n_visible / self.n_items if self.n_items else 0.0

    @property
    def told(self) -> dict[str, object]:
        """As a row for people."""
        return {
            "benchmark": self.benchmark,
            "rule": self.rule,
            "items": self.n_items,
            "visible": self.n_visible,
            "why not": "; ".join(f"{reason}: {n}" for reason, n in self.why_not.items()),
            "share": self.share,
        }


def visibilities(store: Store, versions: Sequence[Version], policy: Policy) -> list[Visibility]:
    """Of each benchmark and each chosen rule."""
    return [
        _visibility(benchmark, rule, _see(rule, benchmark, _own(policy, benchmark)))
        for benchmark in _benchmarks(store, versions, policy)
        for rule in policy.detectors
    ]


def visible_items(
    store: Store, versions: Sequence[Version], policy: Policy
) -> dict[tuple[str, str], int]:
    """How many items of each benchmark each chosen rule can see."""
    return {
        (one.benchmark, one.rule): one.n_visible for one in visibilities(store, versions, policy)
    }


@dataclass(frozen=True, eq=False)
class _Sight:
    """Of each record: why a rule cannot see it, and what more there is to say."""

    reasons: Integers  # places in `REASONS`
    details: Details


@dataclass(frozen=True, eq=False)
class _Use:
    """Of each record: the text that it uses as one kind of text."""

    is_there: Flags
    n_tokens: Integers
    n_canonical: Integers  # of questions alone
    opens: Flags  # whether an n-gram of it opens a comparison
    is_whole: Flags  # whether it can be looked for as a whole
    weight: npt.NDArray[np.float64]  # how telling it is


@dataclass(frozen=True, eq=False)
class _Texts:
    """What is known of each text, and who uses it."""

    verbatim: Verbatim
    of_use: Integers

    @staticmethod
    def of(verbatim: Verbatim) -> _Texts:
        n_uses = np.diff(verbatim.use_offsets)
        return _Texts(verbatim, np.repeat(np.arange(verbatim.n_rows), n_uses))

    def used_by(self, part: int, n_records: int) -> Mapping[int, _Use]:
        """What the records of one benchmark use as each kind of text."""
        return {kind: self._use(part, kind, n_records) for kind in range(len(NAMES))}

    def _use(self, part: int, kind: int, n_records: int) -> _Use:
        verbatim = self.verbatim
        own = np.flatnonzero((verbatim.use_part == part) & (verbatim.use_kind == kind))
        records = verbatim.use_record[own]
        text = np.full(n_records, _ABSENT)
        text[records] = self.of_use[own]
        weight = np.zeros(n_records)
        weight[records] = verbatim.use_weight[own]
        # An absent text has the last place, which is that of nothing.
        return _Use(
            is_there=text != _ABSENT,
            n_tokens=np.append(np.diff(verbatim.aligned.offsets), 0)[text],
            n_canonical=np.append(np.diff(verbatim.canonical.offsets), 0)[text],
            opens=np.append(verbatim.is_compared, np.False_)[text],
            is_whole=np.append(verbatim.is_whole, 0)[text].astype(np.bool_),
            weight=weight,
        )


@dataclass(frozen=True, eq=False)
class _Benchmark:
    """The records of one benchmark version, and what is known of them."""

    version: Version
    records: pa.Table
    item_of: Integers  # of each record: its item, numbered as they first occur
    part: Part
    uses: Mapping[int, _Use]  # by kind of text; none when no rule asks for texts


def _benchmarks(store: Store, versions: Sequence[Version], policy: Policy) -> Iterator[_Benchmark]:
    index = index_fingerprint(store, policy)
    ordered = sorted(versions, key=lambda version: version.benchmark)  # as a scan of all has them
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


def _see(rule: str, benchmark: _Benchmark, policy: Policy) -> _Sight:
    uses = benchmark.uses
    if rule == "decon":
        return _see_decon(benchmark.part, benchmark.records, policy)
    if rule == "ratcliff":
        return _see_prompt(uses[QUESTION], policy)
    if rule == "longest_match":
        return _see_fields(uses[QUESTION], uses[ANSWER], policy)
    if rule == "exact":
        return _see_wholes(uses, policy)
    return _see_canonical(uses[QUESTION], policy)


def _visibility(benchmark: _Benchmark, rule: str, reader: _Sight) -> Visibility:
    of_items = reader.reasons[_speaking(benchmark, reader)]
    n_items = np.bincount(of_items, minlength=len(REASONS)).tolist()
    found = Counter({reason: n for reason, n in zip(REASONS, n_items, strict=True) if reason and n})
    name = benchmark.version.benchmark
    return Visibility(name, rule, of_items.size, n_items[_VISIBLE], dict(found.most_common()))


def _speaking(benchmark: _Benchmark, reader: _Sight) -> Integers:
    """Of each item: the record that says whether it is seen, or else why not."""
    order = np.lexsort((reader.reasons, benchmark.item_of))
    _, first = np.unique(benchmark.item_of[order], return_index=True)
    return np.asarray(order[first], np.int64)


def _table(benchmark: _Benchmark, rule: str, reader: _Sight) -> pa.Table:
    """One row per item, in the order of their first records."""
    n_records = np.bincount(benchmark.item_of)
    speaks = _speaking(benchmark, reader)
    reasons = reader.reasons[speaks]
    columns = {
        "benchmark": pa.repeat(pa.scalar(benchmark.version.benchmark), n_records.size),
        "rule": pa.repeat(pa.scalar(rule), n_records.size),
        "is_visible": pa.array(reasons == _VISIBLE),
        "reason": pa.array(REASONS, pa.string()).take(pa.array(reasons)),
        "n_records": pa.array(n_records),
        "detail": pa.array(reader.details[speaks], pa.string()),
    }
    labels = benchmark.records.take(pa.array(speaks))
    columns |= {name: labels[name] for name in ("config", *_ITEM)}
    return pa.table(columns).select(INDEXABILITY.names).cast(INDEXABILITY)


def _any_in_rows(flags: Flags, offsets: Integers) -> Flags:
    """Whether any flag of each row is set."""
    before = np.append(0, np.cumsum(flags))
    return before[offsets[1:]] > before[offsets[:-1]]


def _how_short(reasons: npt.NDArray[Any], n_tokens: Integers, least: Mapping[int, int]) -> Details:
    """For reasons that ask for so many tokens: how many there are."""
    details = np.full(reasons.size, None, object)
    for reason, n in least.items():
        for at in np.flatnonzero(reasons == reason).tolist():
            details[at] = f"{n_tokens[at]} of {n} tokens"
    return details


# Rules --------------------------------------------------------------------------------------------


def _see_decon(part: Part, records: pa.Table, policy: Policy) -> _Sight:
    """What was left out of the index, and questions from which no cluster comes to anything."""
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
        [_SHORT, _HOT, _UNTELLING],
        _VISIBLE,
    )[question.of_entry]
    n_tokens = np.zeros(records.num_rows, np.int64)
    n_tokens[entries.records] = question.texts.lengths[question.of_entry]
    repeats = np.flatnonzero(entries.dropped == WHY_DROPPED.index(EXACT_REPEAT))
    first = _first_alike(records)[repeats]
    reasons[repeats], n_tokens[repeats] = reasons[first], n_tokens[first]
    details = _how_short(reasons, n_tokens, {_SHORT: policy.ngram_size})
    names = records.select(["split", "instance_index"]).take(pa.array(first)).to_pylist()
    for at, name in zip(repeats.tolist(), names, strict=True):
        details[at] = f"{EXACT_REPEAT} of {name['split']} {name['instance_index']}"
    return _Sight(reasons, details)


def _first_alike(records: pa.Table) -> Integers:
    """Of each record: the first one with the same texts."""
    known = records["fingerprint"].combine_chunks().dictionary_encode()
    codes = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    _, first, number = np.unique(
        codes.indices.to_numpy(zero_copy_only=False), return_index=True, return_inverse=True
    )
    return np.asarray(first[number], np.int64)


def _see_prompt(question: _Use, policy: Policy) -> _Sight:
    reasons = np.select(
        [~question.is_there, question.n_tokens < policy.shared_ngram_size, ~question.opens],
        [_EMPTY, _SHORT, _UNSCREENED],
        _VISIBLE,
    )
    least = {_SHORT: policy.shared_ngram_size}
    return _Sight(reasons, _how_short(reasons, question.n_tokens, least))


def _see_fields(question: _Use, answer: _Use, policy: Policy) -> _Sight:
    """Either field will do. The detail names those that can be searched for."""
    is_long = [use.n_tokens >= policy.shared_ngram_size for use in (question, answer)]
    searched = [long & use.opens for long, use in zip(is_long, (question, answer), strict=True)]
    reasons = np.select(
        [
            searched[0] | searched[1],
            is_long[0] | is_long[1],
            question.is_there | answer.is_there,
        ],
        [_VISIBLE, _UNSCREENED, _SHORT_FIELDS],
        _EMPTY,
    )
    return _Sight(reasons, _named(searched, (NAMES[QUESTION], NAMES[ANSWER])))


def _see_wholes(uses: Mapping[int, _Use], policy: Policy) -> _Sight:
    """Any text will do. The detail names those that are looked for, and count."""
    kinds = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)
    wholes = [uses[kind].is_whole for kind in kinds]
    telling = [
        uses[kind].is_whole & reaches(uses[kind].weight, policy.exact_threshold) for kind in kinds
    ]
    reasons = np.select(
        [
            np.any(telling, axis=0),
            np.any(wholes, axis=0),
            np.any([uses[kind].is_there for kind in kinds], axis=0),
        ],
        [_VISIBLE, _UNTELLING, _UNSCREENED],
        _EMPTY,
    )
    return _Sight(reasons, _named(telling, [NAMES[kind] for kind in kinds]))


def _see_canonical(question: _Use, policy: Policy) -> _Sight:
    n_tokens = question.n_canonical
    reasons = np.select(
        [n_tokens == 0, n_tokens < policy.ngram_any_floor, n_tokens < policy.ngram_any_size],
        [_EMPTY, _SHORT, _UNCOUNTED],
        _VISIBLE,
    )
    least = {_SHORT: policy.ngram_any_floor, _UNCOUNTED: policy.ngram_any_size}
    return _Sight(reasons, _how_short(reasons, n_tokens, least))


def _named(flags: Sequence[Flags], names: Sequence[str]) -> Details:
    """The names whose flags are set, for every record."""
    told = [
        ", ".join(name for bit, name in enumerate(names) if number >> bit & 1) or None
        for number in range(1 << len(names))
    ]
    number = np.zeros(flags[0].size, np.int64)
    for bit, flag in enumerate(flags):
        number |= flag.astype(np.int64) << bit
    details: Details = np.array(told, object)[number]
    return details
