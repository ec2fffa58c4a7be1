"""Writes the scan results of one shard, from all its blocks or those that a sketch left.

They are joined with those of its pack later (`join.py`).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from decon_core.corpus.batches import summed
from decon_core.corpus.documents import InvalidUtf8, Unreadable
from decon_core.corpus.origins import Origins, shortest, total
from decon_core.corpus.packs import Shard
from decon_core.errors import CorpusError
from decon_core.execution.jobs import Cost, cost_since
from decon_core.execution.progress import advance
from decon_core.index.joined_index import Search
from decon_core.kernels.arrays import Integers, Numbers
from decon_core.kernels.question_index import places_in_parts
from decon_core.scan.blocks import ScannedBlock, ShardJob, SomeBlocks, scan_blocks, scanners_for
from decon_core.scan.coverage import write_refusal
from decon_core.scan.join import is_read, unjoined_versions, write_unjoined
from decon_core.scan.matches import Columns
from decon_core.scan.scan_results import ScanResults
from decon_core.schemas import DOCUMENTS, MATCHES
from decon_core.storage.drafts import remove
from decon_core.storage.files import copy_file, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows, row_groups, write_tables

if TYPE_CHECKING:
    from decon_core.corpus.sketch.shard_sketch import ShardSketcher

# Sorted n-gram ids of a union of index parts, and the number of documents that contain each.
_GramCounts = tuple[Numbers, Integers]

_COUNTS_READ = ("n_rows", "n_documents", "n_characters", "n_bytes", "n_too_short", "n_without_text")
# Documents that are not in the sample, and those of them without text; rows with blank lines, which
# are in no other count.
_COUNTS_OF_SAMPLE = ("n_left_out", "n_left_out_without_text", "n_rows_with_blank")
_OF_UNREADABLE = ("row", "offset", "reason", "detail")


def scan_shard(job: ShardJob) -> Cost | None:
    """Read a shard once and write its ledger and its scan results for these benchmark versions.

    Returns what that cost; None, without reading, if another run has written all of them meanwhile.
    """
    started = time.process_time()
    store = Store(job.root)
    with store.locked_shard(job.scan, job.shard.fingerprint):
        shard, needs_counts = job.shard.fingerprint, job.policy.leave_out_common
        # Listed before those that are joined: another scan may join them in between.
        unjoined = unjoined_versions(store, job.scan, shard, needs_counts=needs_counts)
        results = ScanResults(store, job.scan)
        versions = frozenset(version.fingerprint for version in job.versions)
        left = results.missing(shard, versions, needs_counts=needs_counts) - unjoined
        job = replace(job, is_read=job.is_read or is_read(results, shard))
        if not left and not job.new_sketch and job.is_read:
            advance(job.n_bytes_to_read)
            return None
        try:
            if job.some:
                _answer_locked(store, job, job.some)
            else:
                _scan_locked(store, job, left - job.joined)
        except CorpusError as error:
            write_refusal(store, job.shard, error)
            raise
        remove(store.refusal(shard))
        return cost_since(started, job.n_bytes_to_read)


@dataclass
class _Reading:
    """What was read of a shard so far."""

    shard: Shard
    counts: Counter[str] = field(default_factory=Counter)
    unreadable: list[Unreadable] = field(default_factory=list)
    invalid: list[InvalidUtf8] = field(default_factory=list)
    unread: Mapping[str, Sequence[int]] = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    matches: list[Columns] = field(default_factory=list)
    position: int = 0

    def add(self, scanned: ScannedBlock) -> None:
        self.counts.update(scanned.counts)
        self.unread = summed([self.unread, scanned.unread])
        if scanned.origins:
            self.origins = shortest(total([self.origins, scanned.origins]))
        self.unreadable += scanned.unreadable
        self.invalid += scanned.invalid
        self.matches += scanned.matches
        ahead = min(max(scanned.position, self.position), self.shard.n_bytes)
        advance(ahead - self.position)
        self.position = ahead

    def ledger(self) -> dict[str, object]:
        """Return the ledger. It has nothing about benchmarks, so every scan writes the same ledger.

        `invalid_utf8` are documents, with replacement characters.
        """
        of_sample = _COUNTS_OF_SAMPLE if self.shard.sample else ()
        return {
            "shard": self.shard.fingerprint,
            **{name: self.counts[name] for name in (*_COUNTS_READ, *of_sample)},
            "unreadable": [
                {name: getattr(row, name) for name in _OF_UNREADABLE} for row in self.unreadable
            ],
            "invalid_utf8": [asdict(row) for row in self.invalid],
            "unread": [
                {"path": path, "n_values": n_values, "n_bytes": n_bytes}
                for path, (n_values, n_bytes) in sorted(self.unread.items())
            ],
            "origins": [{**row._asdict(), "n_rows": n} for row, n in self.origins.items()],
        }


def _scan_locked(store: Store, job: ShardJob, missing: Collection[str]) -> None:
    """Scan the shard, and write the scan results of the missing versions."""
    reading, scanners = _Reading(job.shard), scanners_for(job)
    for scanner in scanners:
        scanner.detectors.take_counts()  # drop the counts of a shard whose scan failed
    shard, new = job.shard.fingerprint, job.new_sketch
    documents = store.unjoined_documents(job.scan, shard)
    sketching: AbstractContextManager[ShardSketcher | None] = nullcontext()
    if new:
        from decon_core.corpus.sketch.shard_sketch import writing_sketch

        documents = store.sketch_documents(new.fingerprint, shard)
        sketching = writing_sketch(store, new.fingerprint, shard, bits=new.bits)
    with sketching as sketcher:
        # Written while reading, so that memory does not grow with the shard.
        tables = row_groups(_documents_read(job, reading, sketcher))
        if new or not job.is_read:
            write_tables(documents, DOCUMENTS, tables, is_synced=bool(new))
        else:
            deque(tables, maxlen=0)
        if new:
            write_json(store.sketch_ledger(new.fingerprint, shard), reading.ledger())
        if new and not job.is_read:
            _read_as_for_sketch(store, job, new.fingerprint)
        elif not job.is_read:
            path = store.unjoined_ledger(job.scan, shard)
            write_json(path, reading.ledger(), is_synced=False)
        _write_results(store, job, missing, reading.matches)
    if new and new.is_joined:
        from decon_core.corpus.sketch.shard_sketch import remove_filters

        remove_filters(store, new.fingerprint, shard)
    advance(job.shard.n_bytes - reading.position)


def _documents_read(
    job: ShardJob, reading: _Reading, sketcher: ShardSketcher | None
) -> Iterator[pa.Table]:
    """Scan the blocks of a shard and yield the documents of each."""
    for scanned in scan_blocks(job):
        reading.add(scanned)
        if sketcher and scanned.sketch:
            sketcher.add(scanned.sketch)
        yield scanned.documents


def _write_results(
    store: Store, job: ShardJob, missing: Collection[str], matches: Sequence[Columns]
) -> None:
    """Write the scan results of the missing versions last: with them, the scan is complete."""
    scanners = scanners_for(job)
    taken = [scanner.detectors.take_counts() for scanner in scanners]
    counts = _gram_counts(taken, scanners[0].search)
    written = zip(job.versions, _scan_results(job, matches), counts, strict=True)
    results = {
        version.fingerprint: (result, counts_of_version)
        for version, result, counts_of_version in written
        if version.fingerprint in missing
    }
    write_unjoined(store, job.scan, job.shard.fingerprint, results)


def _scan_results(job: ShardJob, matches: Sequence[Columns]) -> list[pa.Table]:
    """Return the scan result of each version of a job."""
    nothing = no_rows(MATCHES)
    with_matches = {number for columns in matches for number in columns["part"].tolist()}
    return [
        scanners_for(job)[0].scan_result(matches, number, job.shard.fingerprint)
        if number in with_matches
        else nothing
        for number in range(len(job.versions))
    ]


def _gram_counts(counts: Sequence[_GramCounts], search: Search) -> list[pa.Table]:
    """Add the counts of several threads and split them into one table per benchmark.

    An n-gram is identified by its first place in the concatenated questions of the benchmark's
    index part, which does not depend on the other benchmarks of the scan.
    """
    grams, where = np.unique(np.concatenate([grams for grams, _ in counts]), return_inverse=True)
    n_documents = np.zeros(grams.size, np.int64)
    np.add.at(n_documents, where, np.concatenate([n for _, n in counts]))
    n_parts = len(search.versions)
    offsets = search.index.posting_offsets
    n_postings = offsets[grams + np.uint32(1)] - offsets[grams]
    rows, parts, places = np.empty((3, int(np.minimum(n_postings, n_parts).sum())), np.int64)
    n = places_in_parts(grams, search.index, rows, parts, places)
    rows, parts, places = rows[:n], parts[:n], places[:n]
    order = np.lexsort((places, parts))
    columns = {"place": places[order], "n_documents": n_documents[rows[order]]}
    table = pa.table({name: pa.array(values, pa.uint32()) for name, values in columns.items()})
    edges = np.searchsorted(parts[order], np.arange(n_parts + 1)).tolist()
    return [table.slice(first, last - first) for first, last in pairwise(edges)]


def _answer_locked(store: Store, job: ShardJob, some: SomeBlocks) -> None:
    """Write the scan results of a shard of which only some blocks may contain a match."""
    matches: list[Columns] = []
    for scanned in scan_blocks(job) if some.blocks else ():
        matches += scanned.matches
    names = job.scan, job.shard.fingerprint
    if not job.is_read:
        _read_as_for_sketch(store, job, some.sketch)
    results = {
        version.fingerprint: (result, None)
        for version, result in zip(job.versions, _scan_results(job, matches), strict=True)
    }
    answer = {"sketch": some.sketch, "n_blocks": some.n_blocks, "blocks_read": some.blocks}
    write_unjoined(store, *names, results, answer=answer)
    advance(job.n_bytes_to_read)


def _read_as_for_sketch(store: Store, job: ShardJob, sketch: str) -> None:
    """Copy documents and ledger of a shard from its sketch."""
    shard = job.shard.fingerprint
    of_sketch = store.sketch_documents(sketch, shard), store.sketch_ledger(sketch, shard)
    of_scan = store.unjoined_documents(job.scan, shard), store.unjoined_ledger(job.scan, shard)
    for source, target in zip(of_sketch, of_scan, strict=True):
        copy_file(source, target, is_synced=False)
