"""Index parts to what a scan searches: the union of many benchmarks, probed in one pass.

Made once for a set of benchmark versions under one scan fingerprint, and mapped into memory by
every worker. Weights are computed here, once, so all workers on all machines sum the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.benchmarks.records import Version
from decon_core.config.policy import TOLERANCE, Policy
from decon_core.errors import DamagedError, InputError, Problem
from decon_core.index.entries import NOTHING
from decon_core.index.ngram_counts import KINDS, Grams, grams_of, renumbered
from decon_core.index.parts import Part, open_part
from decon_core.kernels import clusters
from decon_core.kernels import grams as kernels
from decon_core.storage.store import Array, Store, map_arrays, write_arrays
from decon_core.text.word_cache import Ragged

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int32]

# At 12 bits for an n-gram and two probes, about 2 % of all strangers get past the filter.
_FILTER_BITS = 12
# Counted up when the arrays change, or an old file would be taken for a new one.
_LAYOUT = "3"
_MOST_UNIONS = 16
_LEVELS = 256
_PAIR_BITS = 4
_MOST_PAIR_WORDS = 17  # log2: a megabyte


@dataclass(frozen=True, eq=False)
class Search:
    """Benchmarks ready to be searched for."""

    versions: tuple[Version, ...]
    ids: Integers  # the tokenizer's ids that occur in them, ascending
    index: clusters.Index
    entry_part: Whole  # of each entry: which benchmark
    entry_record: Whole  # the row of its record
    entry_question: Whole

    @property
    def n_questions(self) -> int:
        return self.index.question_total.size


def search_name(versions: Sequence[Version]) -> str:
    """What a union of these versions is named by, besides the scan fingerprint."""
    named = [_LAYOUT, *(f"{one.benchmark} {one.fingerprint}" for one in versions)]
    return sha256("\n".join(named).encode()).hexdigest()[:16]


def build_search(
    store: Store, versions: Sequence[Version], policy: Policy, *, index: str, scan: str
) -> None:
    """Join the parts of these versions, unless that was done before."""
    path = store.search(scan, search_name(versions))
    if path.is_file():
        with suppress(FileNotFoundError):
            path.touch()  # in use again: others are forgotten first
        return
    parts = [open_part(store, version, index) for version in versions]
    write_arrays(path, join(parts, policy))
    _forget_old(path.parent)


def _forget_old(folder: Path) -> None:
    """A union can always be made again; whoever has one mapped keeps what was mapped."""
    made = []
    for path in folder.glob("*.arrow"):
        with suppress(FileNotFoundError):  # another process forgets as well
            made.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(made)[:-_MOST_UNIONS]:
        path.unlink(missing_ok=True)


def open_search(
    store: Store, versions: Sequence[Version], policy: Policy, *, index: str, scan: str
) -> Search:
    """What `build_search` makes, mapped into memory; made once more if it was forgotten since."""
    path = store.search(scan, search_name(versions))
    try:
        arrays, _ = map_arrays(path)
    except (FileNotFoundError, DamagedError):
        path.unlink(missing_ok=True)
        build_search(store, versions, policy, index=index, scan=scan)
        arrays, _ = map_arrays(path)
    return search_of(arrays, versions)


def search_of(arrays: Mapping[str, Any], versions: Sequence[Version]) -> Search:
    values = {name: _read_only(array) for name, array in arrays.items()}
    index = clusters.Index(**{name: values[name] for name in clusters.Index._fields})
    of_entry = [values[f"entry_{name}"] for name in ("part", "record", "question")]
    return Search(tuple(versions), values["ids"], index, *of_entry)


def _read_only(array: Any) -> Any:
    """As a mapped array is: a kernel is compiled once for each kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def rules_of(policy: Policy) -> clusters.Thresholds:
    """A policy's numbers, down to the evidence floor: the threshold is applied later."""
    return clusters.Thresholds(
        ngram_size=policy.ngram_size,
        answer_ngram_size=policy.answer_ngram_size,
        passage_ngram_size=policy.passage_ngram_size,
        sample_every=policy.sample_every_m_tokens,
        longest_gap=policy.question_max_consecutive_misses,
        short_answer=policy.short_answer_token_threshold,
        short_answer_window=policy.short_answer_window_length,
        long_answer_window=policy.min_long_answer_window,
        passage_distance=policy.min_passage_distance,
        passage_longest_gap=policy.passage_max_consecutive_misses,
        decay_start=policy.perfect_match_decay_start,
        decay_end=policy.perfect_match_decay_end,
        threshold=float(policy.contamination_score_threshold),
        least_overlap=policy.least_question_overlap,
        keep_question_only=policy.keep_question_only,
        least_tokens=policy.eval_min_token_length,
        tolerance=TOLERANCE,
    )


def join(parts: Sequence[Part], policy: Policy) -> dict[str, Array]:
    """All arrays of a `Search`."""
    ids = np.unique(np.concatenate([part.entries.ids for part in parts]))
    texts = {kind: _stacked([_texts(part, kind, ids) for part in parts]) for kind in KINDS}
    weights, is_hot, weight_of = _weights(parts, policy)
    questions = texts["question"]
    _require_room(questions)
    grams = grams_of(questions, policy.ngram_size)
    total = np.zeros(len(questions))
    kernels.sum_in_order(weights, weight_of["question"].values, grams.rows.offsets, total)
    need = total * _gate(questions.lengths, policy)
    of_entry = {kind: _entry_texts(parts, kind) for kind in KINDS}
    asked = of_entry["question"].astype(np.uint32)  # every entry has a question
    entry_offsets, entries = _inverted(Ragged(asked, np.arange(asked.size + 1)), len(questions))
    posting_offsets, postings = _inverted(grams.rows, len(grams))
    arrays: dict[str, Array] = {
        "ids": ids,
        "entry_part": np.repeat(
            np.arange(len(parts), dtype=np.int32), [part.entries.records.size for part in parts]
        ),
        "entry_record": np.concatenate([part.entries.records for part in parts]).astype(np.int32),
        **_table(grams),
        **_bounds(grams, weight_of["question"], weights, need),
        "posting_offsets": posting_offsets.astype(np.uint32),
        "postings": postings,
        "part_offsets": _edges([len(part.entries.fields["question"].texts) for part in parts]),
        "question_gram_offsets": grams.rows.offsets,
        "question_weights": weight_of["question"].values,
        "question_total": total,
        "question_need": need,
        "entry_offsets": entry_offsets,
        "entries": entries,
        "entry_question": of_entry["question"].astype(np.int32),
        "entry_answer": of_entry["answer"].astype(np.int32),
        "entry_passage": of_entry["passage"].astype(np.int32),
        "answer_different": grams_of(texts["answer"], 1).rows.lengths,
        "weights": weights,
        "is_hot": is_hot,
    }
    for kind, rows in texts.items():
        # Half the memory for any but the largest vocabularies; the kernels take either.
        arrays[f"{kind}_tokens"] = rows.values.astype(_narrowest(ids.size + 1))
        arrays[f"{kind}_offsets"] = rows.offsets
        if kind != "question":
            arrays[f"{kind}_weights"] = weight_of[kind].values
            arrays[f"{kind}_weight_offsets"] = weight_of[kind].offsets
    return arrays


def _require_room(questions: Ragged) -> None:
    """Places in the questions are numbers of 32 bits."""
    if questions.values.size >= 1 << 32:
        raise InputError(
            Problem(
                "benchmarks of one scan",
                f"{questions.values.size:,} tokens in their questions",
                "fewer than 4,294,967,296",
                "scan them in two groups",
            )
        )


def _edges(lengths: Sequence[int] | Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _texts(part: Part, kind: str, ids: Integers) -> Ragged:
    texts = part.entries.fields[kind].texts
    return Ragged(renumbered(texts.values, part.entries.ids, ids), texts.offsets)


def _stacked(parts: Sequence[Ragged]) -> Ragged:
    values = np.concatenate([part.values for part in parts])
    return Ragged(values, _edges(np.concatenate([part.lengths for part in parts])))


def _entry_texts(parts: Sequence[Part], kind: str) -> Integers:
    """The text of each entry, numbered through all parts."""
    numbered = []
    n_before = 0
    for part in parts:
        field = part.entries.fields[kind]
        numbered.append(np.where(field.of_entry >= 0, field.of_entry + n_before, NOTHING))
        n_before += len(field.texts)
    return np.concatenate(numbered)


def _weights(
    parts: Sequence[Part], policy: Policy
) -> tuple[Floats, npt.NDArray[np.uint8], dict[str, Ragged]]:
    """Every different weight once; and for each n-gram of each text the place of its weight."""
    weights: list[float] = []
    is_hot: list[bool] = []
    known: dict[int, tuple[Integers, int]] = {}  # by N: the different df, and the first's place
    for n_records in sorted({part.n_records for part in parts}):
        found = [
            np.unique(part.df[kind].values)
            for part in parts
            if part.n_records == n_records
            for kind in KINDS
        ]
        different = np.unique(np.concatenate(found)).astype(np.int64)
        known[n_records] = (different, len(weights))
        limit = max(policy.hot_ngram_records, 2 * math.isqrt(n_records))
        weights += [math.log(n_records / df) for df in different.tolist()]
        is_hot += [df > limit for df in different.tolist()]
    kind_of_place = _narrowest(len(weights))

    def places(part: Part, kind: str) -> Ragged:
        different, first = known[part.n_records]
        place = np.searchsorted(different, part.df[kind].values) + first
        return Ragged(place.astype(kind_of_place), part.df[kind].offsets)

    return (
        np.array(weights, np.float64),
        np.array(is_hot, np.uint8),
        {kind: _stacked([places(part, kind) for part in parts]) for kind in KINDS},
    )


def _narrowest(n: int) -> type[np.unsignedinteger[Any]]:
    """What holds the numbers below n. Not a byte: every further kind is compiled by itself."""
    return np.uint16 if n <= 1 << 16 else np.uint32


def _gate(lengths: Integers, policy: Policy) -> Floats:
    """The share of its weight from which on a question of so many tokens passes the gates."""
    least = policy.least_question_overlap
    return np.maximum(np.maximum(least, policy.decay(lengths, least)) - TOLERANCE, 0.0)


def _table(grams: Grams) -> dict[str, Array]:
    in_filter = np.zeros(len(grams) * _FILTER_BITS // 64 + 1, np.uint64)
    pairs = np.zeros(1 << _log2_of_pairs(len(grams)), np.uint64)
    slots = np.zeros(len(grams) * 3 // 2 + 2, np.uint32)
    clusters.fill_table(grams.source, grams.first, grams.size, pairs, in_filter, slots)
    return {
        "pairs": pairs,
        "filter": in_filter,
        "slots": slots,
        "gram_at": grams.first.astype(np.uint32),
    }


def _log2_of_pairs(n_grams: int) -> int:
    """Words of 64 bits for the pairs: some bits for each, but no more than the caches hold."""
    return min(max((n_grams * _PAIR_BITS // 64).bit_length(), 1), _MOST_PAIR_WORDS)


def _bounds(grams: Grams, weight_of: Ragged, weights: Floats, need: Floats) -> dict[str, Array]:
    """Bounds of each n-gram in a byte, rounded to the side on which they still are bounds."""
    largest = np.zeros(len(grams))
    least = np.full(len(grams), np.inf)
    rows = grams.rows
    clusters.bound_grams(rows.values, weight_of.values, rows.offsets, weights, need, largest, least)
    weight_levels = np.linspace(0.0, largest.max(initial=0.0), _LEVELS)
    # Needs differ as lengths do: by factors. Those of questions without any weight are 0.
    some = least[least > 0]
    need_levels = np.zeros(_LEVELS)
    need_levels[1:] = np.geomspace(some.min(initial=1.0), some.max(initial=1.0), _LEVELS - 1)
    return {
        "gram_weight": np.searchsorted(weight_levels, largest).astype(np.uint8),
        "gram_need": (np.searchsorted(need_levels, least, side="right") - 1).astype(np.uint8),
        "weight_levels": weight_levels,
        "need_levels": need_levels,
    }


def _inverted(rows: Ragged, n: int) -> tuple[Integers, npt.NDArray[np.uint32]]:
    """The rows that hold each number, in order."""
    offsets = _edges(np.bincount(rows.values, minlength=n))
    holders = np.empty(rows.values.size, np.uint32)
    kernels.invert(rows.values, rows.offsets, offsets[:-1].copy(), holders)
    return offsets, holders
