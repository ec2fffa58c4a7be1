"""Verify that leaks are where files of positions and of masks say that they are.

The documents are read again, as layouts for trainers have them, and scanned again.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow.compute as pc

from decon_core.config.mixtures import Mixture
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack, Shard
from decon_core.errors import Problem
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.choice import Sizes, leaks_of
from decon_core.mixtures.dolma_attributes import TEXTS
from decon_core.mixtures.excise import Rescan
from decon_core.mixtures.layouts import rows_of
from decon_core.mixtures.manifest import REBUILD
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet

Entry = Mapping[str, Any]
_EDGES = [f"{text}_char_{edge}" for text in TEXTS for edge in ("start", "stop")]


def misplaced(
    rescan: Rescan, documents: Sequence[Document], entries: Mapping[int, Sequence[Entry]]
) -> Iterator[tuple[Document, Entry]]:
    """Yield the leaks that documents, in ascending order of rows, do not hold where they were."""
    names = ["row", "benchmark", *_EDGES]
    found, _ = rescan.scan(documents)
    held = {tuple(entry.values()) for entry in found.select(names).to_pylist()}
    for document in documents:
        for entry in entries[document.row]:
            if tuple(entry[name] for name in names) not in held:
                yield document, entry


def misplaced_problem(place: str, entry: Entry) -> Problem:
    """Describe a leak that a document does not hold where it was found."""
    item = f"{entry['benchmark']} {entry['split']} {entry['instance_index']}"
    start, stop = entry["question_char_start"], entry["question_char_stop"]
    found = f"no text of {item} at characters {start} to {stop} of the document"
    return Problem(place, found, "the leak that the scan found there", REBUILD)


def check_attributes(builder: Builder, mixture: Mixture, pack: Pack) -> Iterator[Problem]:
    """Compare the attributes of a pack with its documents and with the leaks in them."""
    reader = builder.reader_for(mixture)
    folder = builder.store.mixture(mixture.name, pack.name)
    removed = read_parquet(builder.store.removed(mixture.name, pack.name), columns=["shard", "row"])
    accounts = read_json(builder.store.mixture_manifest(mixture.name, pack.name))["shards"]
    rescan: Rescan | None = None  # made once, and only if there is a leak
    for shard, account in zip(pack.shards, accounts, strict=False):
        gone = removed.filter(pc.field("shard") == shard.name)["row"].to_pylist()
        rows = sorted({*Sizes.of(reader.documents(shard)).rows.tolist(), *gone})
        entries = leaks_of(reader, shard, mixture, source=pack.source.name)
        if not entries:
            continue
        by_row = _attributes(folder / account["file"], rows, entries)
        yield from _incomplete(account["file"], by_row, entries)
        rescan = rescan or Rescan(reader, reader.needed_by(mixture), source=pack.source.name)
        yield from _misplaced_in(account["file"], shard, pack, entries, rescan)


def _misplaced_in(
    file: str, shard: Shard, pack: Pack, entries: Mapping[int, Sequence[Entry]], rescan: Rescan
) -> Iterator[Problem]:
    documents = [row.document for row in rows_of(shard, pack.source, [*entries])]
    for document, entry in misplaced(rescan, documents, entries):
        yield misplaced_problem(f"{file}: row {document.row} of the shard", entry)


def _attributes(
    file: Path, rows: Sequence[int], wanted: Collection[int]
) -> dict[int, Mapping[str, Any]]:
    """Return the attributes of the wanted rows; `rows`: those of the lines of the file.

    If lines are missing, the leaks in their rows are reported as not listed.
    """
    with gzip.open(file) as lines:
        return {
            row: orjson.loads(line)["attributes"]
            for row, line in zip(rows, lines, strict=False)
            if row in wanted
        }


def _incomplete(
    file: str, by_row: Mapping[int, Mapping[str, Any]], entries: Mapping[int, Sequence[Entry]]
) -> Iterator[Problem]:
    """Yield the leaks whose positions are not in the attributes of their row."""
    for row, of_row in entries.items():
        spans = [span for listed in by_row.get(row, {}).values() for span in listed]
        covered = {(start, stop) for start, stop, _ in spans}
        for entry in of_row:
            edges = [(entry[f"{text}_char_start"], entry[f"{text}_char_stop"]) for text in TEXTS]
            if missing := {*edges} - covered - {(None, None)}:
                start, stop = min(missing)
                found = f"no attribute for characters {start} to {stop}"
                expected = f"one for each leak, here of {entry['benchmark']}"
                yield Problem(f"{file}: row {row} of the shard", found, expected, REBUILD)
