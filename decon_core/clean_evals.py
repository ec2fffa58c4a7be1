"""Benchmarks without the items that leaked: the remedy on the side of the test.

    <folder>/evals/<benchmark>.jsonl   the records of all other items, as normalized rows
    <folder>/manifest.json             which items left, and what was found of each

The training data stays as it is. Scores on what is left are scores on unseen items, as far as the
chosen rules can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from decon_core.policy import Policy
from decon_core.records import Version, load_records
from decon_core.store import Store, aside, write_json

EVALS_FOLDER = "evals"
MANIFEST = "manifest.json"

_COLUMNS = [
    *("benchmark", "detector", "split", "instance_index", "row", "score", "is_contaminated"),
    *("question_overlap", "answer_overlap"),
]

Item = tuple[str, str, int]


class Leaked:
    """What was found of every item, added up over shards."""

    def __init__(self, policy: Policy) -> None:
        self._threshold = policy.longest_match_threshold
        self.items: dict[Item, dict[str, dict[str, Any]]] = {}

    def add(self, file: str, entries: pa.Table) -> None:
        """The entries of one more shard."""
        for entry in entries.select(_COLUMNS).to_pylist():
            if entry["is_contaminated"]:
                item = entry["benchmark"], entry["split"], entry["instance_index"]
                self._note(self.items.setdefault(item, {}), file, entry)

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
            told["which"] = self._which(told["source"], told["target"])

    def _which(self, source: float, target: float) -> str:
        if min(source, target) > self._threshold:
            return "both"
        return "source only" if source > target else "target only"

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


def write_clean_evals(
    folder: Path,
    store: Store,
    versions: Sequence[Version],
    leaked: Leaked,
    policy: Policy,
    *,
    unseen: Mapping[str, Any],
) -> None:
    """Write both parts; the folder is there whole or not at all.

    `unseen` is told with them: what could not be read, and items that a rule cannot see, are not
    clean but unknown.
    """
    benchmarks = {}
    with aside(folder) as draft:
        (draft / EVALS_FOLDER).mkdir(parents=True)
        for version in versions:
            gone = leaked.told(version.benchmark)
            records = _kept(load_records(store, version), gone)
            with (draft / EVALS_FOLDER / f"{version.benchmark}.jsonl").open("wb") as file:
                file.writelines(orjson.dumps(row) + b"\n" for row in records)
            benchmarks[version.benchmark] = {
                "version": version.fingerprint,
                "n_items": version.n_items,
                "n_items_left": version.n_items - len(gone),
                "removed": gone,
            }
        write_json(
            draft / MANIFEST,
            {"rules": policy.thresholds, **unseen, "benchmarks": benchmarks},
        )


def _kept(records: pa.Table, gone: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    items = {(item["split"], item["instance_index"]) for item in gone}
    return [
        {name: value for name, value in record.items() if value is not None}
        for record in records.to_pylist()
        if (record["split"], record["instance_index"]) not in items
    ]
