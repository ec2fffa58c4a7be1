"""Write benchmarks without the items that leaked, as an alternative to filtering training data.

    <folder>/evals/<benchmark>.jsonl       the records of all other items, as normalized rows
    <folder>/parquet/<benchmark>.parquet   the same records, in a separate folder, because readers
                                           take all files of a folder of records
    <folder>/manifest.json                 which items were removed, and what was found of each

The training data stays unchanged. Scores on the remaining items are scores on unseen items, as far
as the detectors can see. Items of which only the question was found, without its answer, stay; the
manifest lists them (`no_answer`), so that they can be left out as well. So do all other items that
need review (`review`), and items that no chosen detector can find, of which nothing is known
(`not_checkable`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.detector_registry import get
from decon_core.config.policy import Policy
from decon_core.config.rounding import exceeds
from decon_core.corpus.packs import FILES, hashes_below
from decon_core.decisions.match_reader import require_scanned
from decon_core.decisions.visibility import BlindItems, blind_items, visibility_table
from decon_core.errors import IncompleteError, Problem, collecting
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.manifest import Built, current_manifest, fingerprint_of_json
from decon_core.mixtures.preconditions import require_read, require_readable, require_searched
from decon_core.scan.coverage import gaps_of
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.store import Store

EVALS_FOLDER = "evals"
TABLES_FOLDER = "parquet"
MANIFEST = "manifest.json"
_ITEM = ("split", "instance_index")

_COLUMNS = [
    "benchmark",
    "detector",
    "split",
    "instance_index",
    "row",
    "score",
    "is_contaminated",
    "question_overlap",
    "answer_overlap",
    "is_no_answer",
    "needs_review",
]

# Increase this when the same inputs give different files, so that they are rebuilt.
_FORMAT = 6

Item = tuple[str, str, int]
Best = dict[str, Any]  # the document in which most of an item was found, and the number of them


class LeakedItems:
    """What was found of every item, accumulated over shards."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.items: dict[Item, dict[str, Best]] = {}
        self.no_answer: dict[Item, Best] = {}
        self.for_review: dict[Item, Best] = {}

    def add(self, file: str, entries: pa.Table) -> None:
        """Add the entries of a shard. `file` is the name of the shard in the manifest."""
        for entry in entries.select(_COLUMNS).to_pylist():
            item = entry["benchmark"], entry["split"], entry["instance_index"]
            document = {"file": file, "row": entry["row"]}
            if entry["is_contaminated"]:
                best = self.items.setdefault(item, {}).setdefault(entry["detector"], {})
                _note(best, "score", entry["score"], document)
                if get(entry["detector"]).compares_fields:
                    self._note_parts(best, entry)
            elif entry["is_no_answer"]:
                best = self.no_answer.setdefault(item, {})
                _note(best, "question", entry["question_overlap"], document)
            elif entry["needs_review"]:
                best = self.for_review.setdefault(item, {})
                _note(best, "score", entry["score"], document)

    def _note_parts(self, best: Best, entry: Mapping[str, Any]) -> None:
        """Note which part of an item leaked: its question (source) or its answer (target)."""
        for name, overlap in (("source", "question"), ("target", "answer")):
            best[name] = max(best.get(name, 0.0), entry[f"{overlap}_overlap"] or 0.0)
        threshold = self._policy.for_benchmark(entry["benchmark"]).threshold_of(entry["detector"])
        if exceeds(min(best["source"], best["target"]), threshold):
            best["which"] = "both"
        else:
            best["which"] = "source only" if best["source"] > best["target"] else "target only"

    def leaked_items(self, benchmark: str) -> list[dict[str, Any]]:
        """Return the items of a benchmark that leaked, and why, in order."""
        leaked = []
        for (name, split, instance), by_detector in sorted(self.items.items()):
            if name == benchmark:
                because = {name: _without_last(best) for name, best in sorted(by_detector.items())}
                leaked.append({"split": split, "instance_index": instance, "because": because})
        return leaked

    def no_answer_items(self, benchmark: str) -> list[dict[str, Any]]:
        """Return the items of a benchmark that only questions were found of, in order."""
        return _listed(self.no_answer, benchmark, without=self.items.keys())

    def review_items(self, benchmark: str) -> list[dict[str, Any]]:
        """Return the other items of a benchmark that need review, in order."""
        without = self.items.keys() | self.no_answer.keys()
        return _listed(self.for_review, benchmark, without=without)


def _listed(
    items: Mapping[Item, Best], benchmark: str, without: Collection[Item]
) -> list[dict[str, Any]]:
    return [
        {"split": split, "instance_index": instance, **_without_last(best)}
        for (name, split, instance), best in sorted(items.items())
        if name == benchmark and (name, split, instance) not in without
    ]


def _note(best: Best, measure: str, value: float, document: Mapping[str, Any]) -> None:
    """Count a document, and keep the one with the highest value. Entries come by document."""
    if best.get("last") != document:
        best["n_documents"] = best.get("n_documents", 0) + 1
    best["last"] = document
    if value > best.get(measure, -1.0):
        best.update({measure: value, **document})


def _without_last(best: Best) -> Best:
    return {name: value for name, value in best.items() if name != "last"}


def write_clean_evals(
    folder: Path,
    store: Store,
    versions: Sequence[Version],
    leaked: LeakedItems,
    policy: Policy,
    blind: BlindItems,
    unseen: Mapping[str, Any],
) -> None:
    """Write the records and the manifest of all benchmarks to a folder, atomically.

    `blind`: the items that no detector can find. `unseen` is added to the manifest: rows that could
    not be read, and items that some detector cannot find.
    """
    with atomic_path(folder) as draft:
        draft.mkdir(parents=True)
        benchmarks = {
            version.benchmark: {
                "detectors": policy.for_benchmark(version.benchmark).thresholds,
                **_write_records(draft, store, version, leaked, blind.get(version.benchmark, ())),
            }
            for version in versions
        }
        manifest = {"detectors": policy.thresholds, **unseen, "benchmarks": benchmarks}
        write_json(draft / MANIFEST, {**manifest, FILES: hashes_below(draft)})


def _write_records(
    folder: Path,
    store: Store,
    version: Version,
    leaked: LeakedItems,
    blind: Collection[tuple[str, int]],
) -> dict[str, Any]:
    """Write the remaining records of a benchmark; return its part of the manifest."""
    evals, tables = folder / EVALS_FOLDER, folder / TABLES_FOLDER
    evals.mkdir(exist_ok=True)
    tables.mkdir(exist_ok=True)
    removed = leaked.leaked_items(version.benchmark)
    gone = {(item["split"], item["instance_index"]) for item in removed}
    records = load_records(store, version)
    columns = [records[name].to_pylist() for name in _ITEM]
    items = zip(*columns, strict=True)
    records = records.filter(pa.array([item not in gone for item in items], pa.bool_()))
    with (evals / f"{version.benchmark}.jsonl").open("wb") as file:
        for row in records.to_pylist():
            fields = {name: value for name, value in row.items() if value is not None}
            file.write(orjson.dumps(fields) + b"\n")
    pq.write_table(records, tables / f"{version.benchmark}.parquet", compression="zstd")
    blind = {*blind} - gone
    return {
        "version": version.fingerprint,
        "n_items": version.n_items,
        "n_items_left": version.n_items - len(removed),
        "n_items_not_checkable": len(blind),
        "removed": removed,
        "no_answer": leaked.no_answer_items(version.benchmark),
        "review": leaked.review_items(version.benchmark),
        "not_checkable": [
            {"split": split, "instance_index": instance} for split, instance in sorted(blind)
        ],
    }


def build_clean_benchmarks(builder: Builder, versions: Iterable[Version]) -> Iterator[Built]:
    """Write benchmarks without the items that leaked into any pack, unless they are current.

    Raises if a shard was not scanned against them or rows could not be read, as any shard or row
    may hold any item, and if there is no document.
    """
    n_unreadable, reader = None, builder.reader
    versions = [*versions]
    leaked = _LeakedOnce(builder, versions)
    for version in versions:
        if version.benchmark in leaked.lacking:
            require_scanned(reader, builder.packs, [version])
            leaked = _LeakedOnce(builder, versions)  # it was scanned meanwhile
        if n_unreadable is None:  # the same for all of them
            _require_all_read(builder)
            ledgers = [reader.ledger(shard) for _, shard in builder.shards]
            require_searched(ledgers)
            n_unreadable = sum(len(ledger["unreadable"]) for ledger in ledgers)
        if not (was_there := has_clean_benchmark(builder, version)):
            _build(builder, version, n_unreadable, leaked)
        folder = builder.store.clean_benchmark(version.benchmark)
        yield Built(folder, read_json(folder / MANIFEST), was_there)


def _require_all_read(builder: Builder) -> None:
    """Raise `IncompleteError` for all packs of which rows or text were not read."""
    problems: list[Problem] = []
    for pack in builder.packs:
        with collecting(problems, IncompleteError):
            require_readable(builder.reader, pack)
            require_read(builder.reader, pack, builder.unread)
    IncompleteError.raise_for(problems)


@dataclass(frozen=True)
class _LeakedOnce:
    """Leaked items of several benchmarks, read together when first needed, and blind items."""

    builder: Builder
    versions: Sequence[Version]

    @cached_property
    def lacking(self) -> set[str]:
        """The benchmarks for which a shard has no scan result."""
        gaps = gaps_of(self.builder.reader.scan_results, self.builder.packs, self.versions)
        return {name for gap in gaps for name in gap.lacking}

    @cached_property
    def items(self) -> LeakedItems:
        builder = self.builder
        scanned = [version for version in self.versions if version.benchmark not in self.lacking]
        versions = [version for version in scanned if not has_clean_benchmark(builder, version)]
        items = LeakedItems(builder.policy)
        for pack, shard, entries in builder.reader.iter_entries(builder.packs, versions):
            items.add(f"{pack.source.name}/{shard.name}", entries)
        return items

    @cached_property
    def blind(self) -> BlindItems:
        policy = self.builder.policy
        return blind_items(
            visibility_table(self.builder.store, self.builder.versions, policy), policy
        )


def _build(builder: Builder, version: Version, n_unreadable: int, leaked: _LeakedOnce) -> None:
    folder = builder.store.clean_benchmark(version.benchmark)
    with atomic_path(folder, drafts=builder.store.drafts) as draft:
        draft.mkdir(parents=True)
        blind = leaked.blind.get(version.benchmark, ())
        written = _write_records(draft, builder.store, version, leaked.items, blind)
        files = hashes_below(draft)
        manifest = {
            "fingerprint": _fingerprint(builder, version),
            "detectors": builder.policy.for_benchmark(version.benchmark).thresholds,
            "n_unreadable_rows": n_unreadable,
            **written,
            "sizes": {name: (draft / name).stat().st_size for name in files},
            FILES: files,
        }
        write_json(draft / MANIFEST, manifest)


def has_clean_benchmark(builder: Builder, version: Version) -> bool:
    """Return whether a clean benchmark exists, with all files, made from the current inputs."""
    folder = builder.store.clean_benchmark(version.benchmark)
    current = current_manifest(folder / MANIFEST, _fingerprint(builder, version), folder)
    return current is not None


def _fingerprint(builder: Builder, version: Version) -> str:
    settings = builder.settings([version], (shard for _, shard in builder.shards))
    before, after = json.dumps([_FORMAT, version.fingerprint]), json.dumps([settings])
    return fingerprint_of_json(f"{before[:-1]}, {builder.shards_as_json}, {after[1:]}")
