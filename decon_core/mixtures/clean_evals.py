"""Benchmarks without the items that leaked: the remedy on the side of the test.

    <folder>/evals/<benchmark>.jsonl       the records of all other items, as normalized rows
    <folder>/parquet/<benchmark>.parquet   the same, apart: a folder of records is read as a whole
    <folder>/manifest.json                 which items left, and what was found of each

The training data stays as it is. Scores on what is left are scores on unseen items, as far as the
chosen rules can see. Items of which only the question was found, without its answer, stay; the
manifest lists them (`question_only`), so that they can be left out as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy, exceeds
from decon_core.corpus.packs import FILES, hashes_below
from decon_core.errors import DeconError
from decon_core.mixtures.build import Builder
from decon_core.mixtures.preconditions import require_readable, require_scanned
from decon_core.storage.store import Store, atomic_path, read_json, write_json

EVALS_FOLDER = "evals"
TABLES_FOLDER = "parquet"
MANIFEST = "manifest.json"
_ITEM = ("split", "instance_index")

_COLUMNS = [
    *("benchmark", "detector", "split", "instance_index", "row", "score", "is_contaminated"),
    *("question_overlap", "answer_overlap", "is_question_only"),
]

# Counted up when the same inputs give other files: they are written again.
_FORMAT = 2

Item = tuple[str, str, int]


class Leaked:
    """What was found of every item, added up over shards."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.items: dict[Item, dict[str, dict[str, Any]]] = {}
        self._question_only: dict[Item, dict[str, Any]] = {}

    def add(self, file: str, entries: pa.Table) -> None:
        """The entries of one more shard."""
        for entry in entries.select(_COLUMNS).to_pylist():
            item = entry["benchmark"], entry["split"], entry["instance_index"]
            if entry["is_contaminated"]:
                self._note(self.items.setdefault(item, {}), file, entry)
            elif entry["is_question_only"]:
                self._note_question(item, file, entry)

    def _note_question(self, item: Item, file: str, entry: Mapping[str, Any]) -> None:
        told = self._question_only.setdefault(item, {"question": -1.0, "n_documents": 0})
        place = {"file": file, "row": entry["row"]}
        if told.get("last") != place:
            told["n_documents"] += 1
        told["last"] = place
        if entry["question_overlap"] > told["question"]:
            told |= {"question": entry["question_overlap"], **place}

    def _note(self, rules: dict[str, dict[str, Any]], file: str, entry: Mapping[str, Any]) -> None:
        told = rules.setdefault(entry["detector"], {"score": -1.0, "n_documents": 0})
        place = {"file": file, "row": entry["row"]}
        if told.get("last") != place:
            told["n_documents"] += 1
        told["last"] = place
        if entry["score"] > told["score"]:
            told |= {"score": entry["score"], **place}
        if entry["detector"] == "longest_match":
            for name, overlap in (("source", "question"), ("target", "answer")):
                score = entry[f"{overlap}_overlap"] or 0.0
                told[name] = max(told.get(name, 0.0), score)
            own = self._policy.for_benchmark(entry["benchmark"])
            told["which"] = _which(told["source"], told["target"], own.longest_match_threshold)

    def told(self, benchmark: str) -> list[dict[str, Any]]:
        """The items of a benchmark that leaked, and why, in order."""
        return [
            {
                "split": split,
                "instance_index": instance,
                "because": {
                    rule: {name: value for name, value in told.items() if name != "last"}
                    for rule, told in sorted(rules.items())
                },
            }
            for (name, split, instance), rules in sorted(self.items.items())
            if name == benchmark
        ]

    def question_only(self, benchmark: str) -> list[dict[str, Any]]:
        """The items of a benchmark of which questions were found and nothing leaked, in order."""
        return [
            {
                "split": split,
                "instance_index": instance,
                **{name: value for name, value in told.items() if name != "last"},
            }
            for (name, split, instance), told in sorted(self._question_only.items())
            if name == benchmark and (name, split, instance) not in self.items
        ]


def _which(source: float, target: float, threshold: float) -> str:
    if exceeds(min(source, target), threshold):
        return "both"
    return "source only" if source > target else "target only"


def write_clean_evals(
    folder: Path,
    store: Store,
    versions: Sequence[Version],
    leaked: Leaked,
    policy: Policy,
    *,
    unseen: Mapping[str, Any],
) -> None:
    """Write all of it; the folder is there whole or not at all.

    `unseen` is told with it: what could not be read, and items that a rule cannot see, are not
    clean but unknown.
    """
    with atomic_path(folder) as draft:
        draft.mkdir(parents=True)
        benchmarks = {
            version.benchmark: {
                "rules": policy.for_benchmark(version.benchmark).thresholds,
                **_written(draft, store, version, leaked),
            }
            for version in versions
        }
        manifest = {
            "rules": policy.thresholds,
            **unseen,
            "benchmarks": benchmarks,
            FILES: hashes_below(draft),
        }
        write_json(draft / MANIFEST, manifest)


def _written(folder: Path, store: Store, version: Version, leaked: Leaked) -> dict[str, Any]:
    """Write what is left of a benchmark; its part of the manifest."""
    evals, tables = folder / EVALS_FOLDER, folder / TABLES_FOLDER
    for one in (evals, tables):
        one.mkdir(exist_ok=True)
    gone = leaked.told(version.benchmark)
    records = _kept(load_records(store, version), gone)
    with (evals / f"{version.benchmark}.jsonl").open("wb") as file:
        for row in records.to_pylist():
            told = {name: value for name, value in row.items() if value is not None}
            file.write(orjson.dumps(told) + b"\n")
    pq.write_table(records, tables / f"{version.benchmark}.parquet", compression="zstd")
    return {
        "version": version.fingerprint,
        "n_items": version.n_items,
        "n_items_left": version.n_items - len(gone),
        "removed": gone,
        "question_only": leaked.question_only(version.benchmark),
    }


def _kept(records: pa.Table, gone: Sequence[Mapping[str, Any]]) -> pa.Table:
    items = {(item["split"], item["instance_index"]) for item in gone}
    names = zip(*(records[name].to_pylist() for name in _ITEM), strict=True)
    return records.filter(pa.array([name not in items for name in names], pa.bool_()))


# In a pipeline ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CleanSummary:
    """What is left of a benchmark."""

    benchmark: str
    n_items: int
    n_items_left: int
    n_question_only: int  # of those that are left
    folder: Path
    was_there: bool


def build_clean_benchmarks(builder: Builder, versions: Iterable[Version]) -> Iterator[CleanSummary]:
    """Write benchmarks without what leaked into any pack, unless they stand already.

    Refused while a shard was not scanned against them, or rows could not be read: any of them may
    hold any item.
    """
    n_unreadable = None
    for version in versions:
        for pack in builder.packs:
            require_scanned(builder.reader, pack, [version])
        if n_unreadable is None:  # the same for all of them
            for pack in builder.packs:
                require_readable(builder.reader, pack)
            n_unreadable = _n_unreadable(builder)
        if not (was_there := has_clean_benchmark(builder, version)):
            _build(builder, version, n_unreadable)
        folder = builder.store.clean_benchmark(version.benchmark)
        told = read_json(folder / MANIFEST)
        yield CleanSummary(
            version.benchmark,
            told["n_items"],
            told["n_items_left"],
            len(told["question_only"]),
            folder,
            was_there,
        )


def _build(builder: Builder, version: Version, n_unreadable: int) -> None:
    leaked = Leaked(builder.policy)
    for pack, shard, entries in builder.reader.iter_entries(builder.packs, [version]):
        leaked.add(f"{pack.source.name}/{shard.name}", entries)
    folder = builder.store.clean_benchmark(version.benchmark)
    with atomic_path(folder, drafts=builder.store.drafts) as draft:
        draft.mkdir(parents=True)
        manifest = {
            "fingerprint": _fingerprint(builder, version),
            "rules": builder.policy.for_benchmark(version.benchmark).thresholds,
            "n_unreadable_rows": n_unreadable,
            **_written(draft, builder.store, version, leaked),
            "sizes": _sizes(draft, version),
            FILES: hashes_below(draft),
        }
        write_json(draft / MANIFEST, manifest)


def has_clean_benchmark(builder: Builder, version: Version) -> bool:
    """Whether it is there, whole, made from today's inputs."""
    folder = builder.store.clean_benchmark(version.benchmark)
    try:
        manifest = read_json(folder / MANIFEST)
        is_whole = manifest["sizes"] == _sizes(folder, version)
        return bool(is_whole and manifest["fingerprint"] == _fingerprint(builder, version))
    except (DeconError, FileNotFoundError, KeyError, TypeError):
        return False  # damaged, or of an older form: it is written again


def _sizes(folder: Path, version: Version) -> dict[str, int]:
    names = (
        f"{EVALS_FOLDER}/{version.benchmark}.jsonl",
        f"{TABLES_FOLDER}/{version.benchmark}.parquet",
    )
    return {name: (folder / name).stat().st_size for name in names}


def _fingerprint(builder: Builder, version: Version) -> str:
    shards = sorted(
        (pack.source.name, shard.name, shard.fingerprint) for pack, shard in builder.shards
    )
    settings = builder.settings([version], [shard for _, shard in builder.shards])
    value = json.dumps([_FORMAT, version.fingerprint, shards, settings])
    return sha256(value.encode()).hexdigest()[:16]


def _n_unreadable(builder: Builder) -> int:
    reader = builder.reader
    ledgers = (reader.store.ledger(reader.scan, shard.fingerprint) for _, shard in builder.shards)
    return sum(len(read_json(ledger)["unreadable"]) for ledger in ledgers)
