"""Join index parts into one index of many benchmarks, which a scan probes in one pass.

Built once for a set of benchmark versions and a scan fingerprint, and memory-mapped by every
worker. Weights are computed here, once, so all workers on all machines sum the same numbers. An
index that one detector makes for itself is stored beside the joined index.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import TELLING_ANSWER, Policy
from decon_core.config.rounding import TOLERANCE
from decon_core.errors import DamagedError, InputError, Problem
from decon_core.index.entries import joined
from decon_core.index.ngram_counts import KINDS, Grams, grams_of, inverted, pair_filter, places_of
from decon_core.index.parts import Part, open_part
from decon_core.kernels.arrays import (
    Flags,
    Floats,
    Int32s,
    Integers,
    alloc_array,
    distinct,
    read_only,
)
from decon_core.kernels.gram_runs import Hits, find_hits
from decon_core.kernels.question_index import Index, fill_table
from decon_core.kernels.scores import Thresholds
from decon_core.storage.store import Store
from decon_core.storage.tables import Array, map_arrays, write_arrays
from decon_core.text.word_cache import Ragged, edges_of

# Makes the arrays of a detector from the records of each benchmark.
Build = Callable[[Iterable[pa.Table]], Mapping[str, Array]]


# A filter with 12 bits per n-gram and two probes has about 2 % false positives.
_FILTER_BITS = 12
# Increase when the arrays change; otherwise old files would be read as new ones.
_LAYOUT = "8"
# Files of unions that are kept. Further files of a union have its texts, and the items that
# detectors can find.
_MAX_FILES = 24
_LEVELS = 256
_GRAMS_TOGETHER = 1 << 20
# An n-gram in more items than these, and than one record in so many, is of a template. A benchmark
# may have copies in other ones.
_FEWEST_OF_TEMPLATE, _SHARE_OF_TEMPLATE = 100, 50
_MOST_ROOM = 300  # tokens between a question and its answer, for the choices of its item
_LETTER = 4  # tokens before a choice, as of "(A)"
_OWN = "own_"  # begins the names of arrays in which templates weigh nothing


@dataclass(frozen=True, eq=False)
class Search:
    """The joined index of several benchmarks, ready to search."""

    versions: tuple[Version, ...]
    ids: Integers  # token ids that occur in them, ascending
    index: Index
    entry_part: Int32s  # per entry: number of the benchmark
    entry_record: Int32s  # per entry: row of its record
    entry_question: Int32s  # per entry: number of its question
    is_template: Flags  # per weight: whether its n-grams are those of a template
    # What differs, by field of `index`, where n-grams of a template, which many items share, weigh
    # nothing. Needs are those of a search for whole questions.
    without_templates: Mapping[str, Any]

    @property
    def n_questions(self) -> int:
        return self.index.question_total.size

    def hits(self, documents: Ragged) -> Hits:
        """Return the n-grams of the index in documents, whose tokens are numbered as in it."""
        places, grams = (alloc_array(documents.values.size, np.int64) for _ in range(2))
        hits = Hits(places, grams, np.zeros(len(documents) + 1, np.int64))
        find_hits(documents.values, documents.offsets, self.index, hits)
        return hits


def search_name(versions: Sequence[Version]) -> str:
    """Return the name of the union of these versions, within its scan fingerprint."""
    named = [_LAYOUT, *(f"{version.benchmark} {version.fingerprint}" for version in versions)]
    return sha256("\n".join(named).encode()).hexdigest()[:16]


def build_search(
    store: Store, versions: Sequence[Version], policy: Policy, *, index: str, scan: str
) -> None:
    """Join the parts of these versions and save the result, unless it exists."""
    path = store.search(scan, search_name(versions))
    if mark_used(path):
        return
    write_arrays(path, join([open_part(store, version, index) for version in versions], policy))
    # All but the latest files are deleted. A process that has one mapped can still read it.
    unions = []
    for union in path.parent.glob("*.arrow"):
        with suppress(FileNotFoundError):  # another process may delete it first
            unions.append((union.stat().st_mtime_ns, union))
    for _, union in sorted(unions)[:-_MAX_FILES]:
        union.unlink(missing_ok=True)


def mark_used(path: Path) -> bool:
    """Mark a file as recently used, as the oldest are deleted first; return whether it exists."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def map_or_build(path: Path, build: Callable[[], None]) -> tuple[dict[str, Any], dict[str, str]]:
    """Memory-map a file of arrays; build it first if it does not exist or is damaged."""
    for _ in range(2):  # another process may delete the file meanwhile
        try:
            return map_arrays(path)
        except (FileNotFoundError, DamagedError):
            path.unlink(missing_ok=True)
        build()
    return map_arrays(path)


def open_search(
    store: Store, versions: Sequence[Version], policy: Policy, *, index: str, scan: str
) -> Search:
    """Memory-map the union that `build_search` saved; build it again if it is gone or damaged."""
    build = partial(build_search, store, versions, policy, index=index, scan=scan)
    arrays, _ = map_or_build(store.search(scan, search_name(versions)), build)
    return search_from_arrays(arrays, versions, policy)


def open_own_index(
    store: Store,
    versions: Sequence[Version],
    detector: str,
    build: Build,
    *,
    columns: Sequence[str],
    scan: str,
) -> dict[str, Any]:
    """Memory-map the index of a detector; build it first if it does not exist or is damaged."""
    path = store.search(scan, f"{search_name(versions)}-{detector}")

    def write() -> None:
        records = (load_records(store, version, columns=columns) for version in versions)
        write_arrays(path, build(records))

    arrays, _ = map_or_build(path, write)
    mark_used(path)
    return arrays


def built_own_indexes(
    store: Store, versions: Sequence[Version], detectors: Sequence[str], *, scan: str
) -> dict[str, dict[str, Any]]:
    """Memory-map the indexes of detectors that exist; a damaged one counts as absent."""
    built = {}
    for detector in detectors:
        with suppress(FileNotFoundError, DamagedError):
            path = store.search(scan, f"{search_name(versions)}-{detector}")
            built[detector] = map_arrays(path)[0]
    return built


def search_from_arrays(
    arrays: Mapping[str, Any], versions: Sequence[Version], policy: Policy
) -> Search:
    values = {name: read_only(array) for name, array in arrays.items()}
    of_index = {name: values[name] for name in Index._fields if name in values}
    no_room = read_only(np.zeros(0, np.uint16))
    index = Index(**of_index, entry_room=no_room, policy=_thresholds_of(policy))
    own = {name: array for name, array in values.items() if name.startswith(_OWN)}
    rest = ("ids", "entry_part", "entry_record", "entry_question", "is_template")
    return Search(
        versions=tuple(versions),
        index=index,
        without_templates={name.removeprefix(_OWN): array for name, array in own.items()},
        **{name: values[name] for name in rest},
    )


def _thresholds_of(policy: Policy) -> Thresholds:
    """Return the policy's numbers for kernels."""
    return Thresholds(
        ngram_size=policy.ngram_size,
        answer_ngram_size=policy.answer_ngram_size,
        passage_ngram_size=policy.passage_ngram_size,
        sample_every=policy.sample_every_m_tokens,
        longest_gap=policy.question_max_consecutive_misses,
        short_answer=policy.short_answer_token_threshold,
        short_answer_window=policy.short_answer_window_length,
        long_answer_window=policy.min_long_answer_window,
        least_before=0,  # never
        passage_distance=policy.min_passage_distance,
        passage_longest_gap=policy.passage_max_consecutive_misses,
        decay_start=policy.perfect_match_decay_start,
        decay_end=policy.perfect_match_decay_end,
        threshold=float(policy.contamination_score_threshold),
        least_overlap=policy.least_question_overlap,
        keep_no_answer=policy.keep_no_answer,
        least_tokens=policy.eval_min_token_length,
        tolerance=TOLERANCE,
    )


def with_least_overlap(search: Search, overlap: float) -> Index:
    """Return the index for a search that needs this overlap of every question, and nothing else.

    N-grams of a template, which a family of items shares, do not count. A long answer may also be
    before its question. A passage may be edited, or have numbers before its lines, so it continues
    after words that do not belong to it.
    """
    index, without = search.index, search.without_templates
    return index._replace(
        **{**without, "need_levels": read_only(without["need_levels"] * overlap)},
        weights_of_questions=read_only(np.where(search.is_template, 0.0, index.weights)),
        question_need=read_only(_need_of(without["question_total"]) * overlap),
        is_hot=read_only(index.is_hot | search.is_template),
        policy=index.policy._replace(
            least_overlap=overlap,
            threshold=0.0,
            decay_start=0,
            decay_end=1,
            least_before=TELLING_ANSWER,
            passage_longest_gap=index.policy.passage_longest_gap + index.policy.passage_ngram_size,
        ),
    )


def with_room(index: Index, item_of_entry: Integers) -> Index:
    """Return the index for a search that leaves room for the lettered choices of items.

    An item with one answer has no choices.
    """
    answers = index.entry_answer.astype(np.int64)
    lengths = np.append(np.diff(index.answer_offsets) + _LETTER, 0)[answers]
    n_answers, n_tokens = (
        np.bincount(item_of_entry, counted) for counted in (answers >= 0, lengths)
    )
    room = np.minimum(n_tokens, _MOST_ROOM) * (n_answers > 1)
    return index._replace(entry_room=read_only(room[item_of_entry].astype(np.uint16)))


def join(parts: Sequence[Part], policy: Policy) -> dict[str, Array]:
    """Build all arrays of a `Search`."""
    whole = joined([part.entries for part in parts])
    texts = {kind: field.texts for kind, field in whole.fields.items()}
    weights, is_hot, is_template, weight_of = _weights(parts, policy)
    records = [part.entries.records for part in parts]
    part_offsets = edges_of([len(part.entries.fields["question"].texts) for part in parts])
    # All that is needed of the parts has been copied. Their files need no longer be in memory.
    del parts
    questions = texts["question"]
    _require_32_bit_positions(questions)
    grams = grams_of(questions, policy.ngram_size)
    total = grams.rows.sums(weights[weight_of["question"].values])
    # The share of its weight that a question of that length needs.
    overlap = policy.least_question_overlap
    gates = np.maximum(policy.decay(questions.lengths, overlap), overlap)
    need = total * np.maximum(gates - TOLERANCE, 0.0)
    of_entry = {kind: field.of_entry for kind, field in whole.fields.items()}
    question_of_entry = of_entry["question"].astype(np.uint32)  # every entry has a question
    entry_offsets, entries = places_of(question_of_entry, len(questions))
    posting_offsets, postings = inverted(grams.rows, len(grams))
    arrays: dict[str, Array] = {
        "ids": whole.ids,
        "entry_part": np.repeat(
            np.arange(len(records), dtype=np.int32), [each.size for each in records]
        ),
        "entry_record": np.concatenate(records).astype(np.int32),
        **_table(grams),
        **_bounds(grams, weight_of["question"], weights, need),
        "posting_offsets": posting_offsets.astype(np.uint32),
        "postings": postings,
        "part_offsets": part_offsets,
        "question_gram_offsets": grams.rows.offsets,
        "question_weights": weight_of["question"].values,
        "question_total": total,
        "question_need": need,
        "entry_offsets": entry_offsets,
        "entries": entries,
        "entry_question": of_entry["question"].astype(np.int32),
        "entry_answer": of_entry["answer"].astype(np.int32),
        "entry_passage": of_entry["passage"].astype(np.int32),
        "answer_different": texts["answer"].distinct().lengths,
        "weights": weights,
        "weights_of_questions": weights,
        "is_hot": is_hot,
        "is_template": is_template,
        **_without_templates(grams, weight_of["question"], weights, is_template),
    }
    for kind, rows in texts.items():
        # uint16 halves the memory for all but the largest vocabularies; the kernels accept both.
        arrays[f"{kind}_tokens"] = rows.values.astype(_narrowest(whole.ids.size + 1))
        arrays[f"{kind}_offsets"] = rows.offsets
        if kind != "question":
            arrays[f"{kind}_weights"] = weight_of[kind].values
            arrays[f"{kind}_weight_offsets"] = weight_of[kind].offsets
    return arrays


def _without_templates(
    grams: Grams, weight_of: Ragged, weights: Floats, is_template: Flags
) -> dict[str, Array]:
    """Return what differs where n-grams of a template weigh nothing."""
    own = np.where(is_template, 0.0, weights)
    total = grams.rows.sums(own[weight_of.values])
    arrays = {"question_total": total, **_bounds(grams, weight_of, own, _need_of(total))}
    return {f"{_OWN}{name}": array for name, array in arrays.items()}


def _need_of(total: Floats) -> Floats:
    """Return the weight of whole questions: more than there is where all of it is template."""
    return np.where(total > 0, total, np.inf)


def _require_32_bit_positions(questions: Ragged) -> None:
    """Raise `InputError` if token positions in the questions do not fit 32 bits."""
    if questions.values.size >= 1 << 32:
        found, expected = f"{questions.values.size:,} question tokens", "fewer than 4,294,967,296"
        remedy = "scan the benchmarks in two groups"
        raise InputError(Problem("benchmarks of one scan", found, expected, remedy))


def _stacked(parts: Sequence[Ragged]) -> Ragged:
    values = np.concatenate([part.values for part in parts])
    return Ragged(values, edges_of(np.concatenate([part.lengths for part in parts])))


def _weights(
    parts: Sequence[Part], policy: Policy
) -> tuple[Floats, Flags, Flags, dict[str, Ragged]]:
    """Return the distinct weights, which of them are hot and which of a template, and each
    n-gram's position among them."""
    weights: list[float] = []
    is_hot: list[bool] = []
    is_template: list[bool] = []
    # Distinct df for each pair of sizes, and the position of the first.
    distinct_of_n: dict[tuple[int, float], tuple[Integers, int]] = {}
    for n_records, n_per_item in sorted({part.sizes for part in parts}):
        dfs = [
            distinct(part.df[kind].values)
            for part in parts
            if part.sizes == (n_records, n_per_item)
            for kind in KINDS
        ]
        all_dfs = distinct(np.concatenate(dfs)).astype(np.int64)
        distinct_of_n[n_records, n_per_item] = (all_dfs, len(weights))
        limit = most_records_of_search(policy, n_records)
        weights += [math.log(n_records / df) for df in all_dfs.tolist()]
        is_hot += [df > limit for df in all_dfs.tolist()]
        most = most_records_of_own(n_records, n_per_item)
        is_template += [df > most for df in all_dfs.tolist()]
    position_type = _narrowest(len(weights))

    def places(part: Part, kind: str) -> Ragged:
        all_dfs, first = distinct_of_n[part.sizes]
        place_of = np.zeros(all_dfs.max(initial=0) + 1, position_type)
        place_of[all_dfs] = np.arange(first, first + all_dfs.size)
        return Ragged(place_of[part.df[kind].values], part.df[kind].offsets)

    return (
        np.array(weights, np.float64),
        np.array(is_hot, np.uint8),
        np.array(is_template, np.uint8),
        {kind: _stacked([places(part, kind) for part in parts]) for kind in KINDS},
    )


def most_records_of_search(policy: Policy, n_records: int) -> int:
    """Return in how many records of a benchmark an n-gram may be to start a cluster."""
    return max(policy.hot_ngram_records, 2 * math.isqrt(n_records))


def most_records_of_own(n_records: int, n_per_item: float) -> float:
    """Return in how many records an n-gram may be that is of no template."""
    return max(_FEWEST_OF_TEMPLATE * n_per_item, n_records / _SHARE_OF_TEMPLATE)


def _narrowest(n: int) -> type[np.unsignedinteger[Any]]:
    """Return the type for numbers below n. Not uint8: each further type needs compiling."""
    return np.uint16 if n <= 1 << 16 else np.uint32


def _table(grams: Grams) -> dict[str, Array]:
    in_filter = np.zeros(len(grams) * _FILTER_BITS // 64 + 1, np.uint64)
    pairs = pair_filter(len(grams))
    slots = np.zeros(len(grams) * 3 // 2 + 2, np.uint32)
    fill_table(grams.table.source, grams.table.first, grams.table.size, pairs, in_filter, slots)
    return {
        "pairs": pairs,
        "filter": in_filter,
        "slots": slots,
        "gram_at": grams.table.first.astype(np.uint32),
    }


def _bounds(grams: Grams, weight_of: Ragged, weights: Floats, need: Floats) -> dict[str, Array]:
    """Return the largest weight and the smallest need of each n-gram as codes, and their values.

    They are rounded so that they remain bounds.
    """
    largest = np.zeros(len(grams))
    minimum = np.full(len(grams), np.inf)
    rows = grams.rows
    np.maximum.at(largest, rows.values, weights[weight_of.values])
    np.minimum.at(minimum, rows.values, np.repeat(need, rows.lengths))
    weight_levels = np.linspace(0.0, largest.max(initial=0.0), _LEVELS)
    # Needs differ by factors, as lengths do. A question without weight needs 0.
    need_levels = np.zeros(_LEVELS)
    need_levels[1:] = np.geomspace(
        minimum.min(where=minimum > 0, initial=1.0),
        minimum.max(where=minimum < np.inf, initial=1.0),
        _LEVELS - 1,
    )
    gram_weight, gram_need = np.empty((2, len(grams)), np.uint8)
    for start in range(0, len(grams), _GRAMS_TOGETHER):  # places in levels take 8 bytes each
        some = slice(start, start + _GRAMS_TOGETHER)
        gram_weight[some] = np.searchsorted(weight_levels, largest[some])
        gram_need[some] = np.searchsorted(need_levels, minimum[some], side="right") - 1
    return {
        "gram_weight": gram_weight,
        "gram_need": gram_need,
        "weight_levels": weight_levels,
        "need_levels": need_levels,
    }
