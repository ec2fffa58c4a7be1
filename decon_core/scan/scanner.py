"""Scans packs and writes tiles: the matches of one shard with one benchmark version.

A tile exists only if the shard was scanned against that version; a tile without rows means that
nothing was found. A scan looks up the missing tiles, reads each shard with missing tiles exactly
once, for all benchmarks it needs, and writes complete tiles. Their content does not depend on how
the work was split into runs and processes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from operator import add

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.documents import InvalidUtf8, Unreadable
from decon_core.corpus.packs import Pack
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.index.joined_index import build_search, open_search
from decon_core.index.parts import has_part, missing_part
from decon_core.index.text_index import build_verbatim
from decon_core.scan.blocks import (
    ShardJob,
    compile_kernels,
    open_own_indexes,
    scan_blocks,
    scanners_for,
)
from decon_core.scan.coverage import missing_of_shard, missing_tiles, write_refusal
from decon_core.scan.gram_counts import gram_counts
from decon_core.scan.matches import Columns
from decon_core.scan.workers import advance, run_jobs, useful_workers
from decon_core.schemas import DOCUMENTS
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store, growing_parquet, write_json, write_tile
from decon_core.text.tokenizers import load_tokenizer

_FILES_PER_TILE = 2  # matches, and counts of n-grams
_COUNTS_READ = ("n_rows", "n_documents", "n_characters", "n_too_short")
_OF_UNREADABLE = ("row", "offset", "reason", "detail")


@dataclass
class ScanSummary:
    """Counts of a scan: what it read and wrote, and which tiles existed before."""

    n_shards_read: int = 0
    n_tiles_written: int = 0
    n_tiles_present: int = 0
    n_bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: ScanSummary) -> ScanSummary:
        return ScanSummary(*map(add, astuple(self), astuple(other)))


# Shards done, all shards; bytes read, all bytes; seconds.
Progress = Callable[[int, int, int, int, float], None]


def scan_packs(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    *,
    workers: int = 1,
    on_progress: Progress | None = None,
    along: Sequence[Version] = (),
) -> ScanSummary:
    """Write all missing tiles of these packs and benchmark versions.

    A shard that has to be read is also scanned against the versions in `along` for which it has no
    tiles: they will be needed later, and reading is the expensive part. A shard that cannot be read
    does not stop the others; a CorpusError at the end reports all of them.
    """
    jobs = _jobs(store, packs, versions, policy, along)
    n_tiles = sum(len(pack.shards) for pack in packs) * len(versions)
    requested = set(versions)
    n_missing = sum(version in requested for job in jobs for version in job.versions)
    summary = ScanSummary(n_tiles_present=n_tiles - n_missing)
    problems: list[Problem] = []
    n_files = sum(_FILES_PER_TILE * len(job.versions) for job in jobs)
    n_workers = useful_workers(workers, [job.shard for job in jobs], n_files=n_files)
    if n_workers <= 1:  # too little work for processes, or one shard: threads share its blocks
        jobs = [replace(job, threads=max(workers, 1)) for job in jobs]
    if jobs:
        compile_kernels(jobs[0])
    started = time.monotonic()
    n_done = 0
    n_bytes_total = sum(job.shard.n_bytes for job in jobs)

    def report(n_bytes: int) -> None:
        summary.n_bytes = n_bytes
        summary.seconds = time.monotonic() - started
        if on_progress:
            on_progress(n_done, len(jobs), n_bytes, n_bytes_total, summary.seconds)

    for job, future in run_jobs(scan_shard, jobs, workers=n_workers, on_advance=report):
        n_done += 1
        try:
            if future.result():
                summary.n_shards_read += 1
                summary.n_tiles_written += len(job.versions)
        except CorpusError as error:
            problems += error.problems
        report(summary.n_bytes)
    if problems:
        raise CorpusError(sorted(problems, key=str))
    return summary


def _jobs(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    along: Sequence[Version],
) -> list[ShardJob]:
    """Return a job per shard with missing tiles; raise MissingError if an index part is missing."""
    # Read the pointer to the snapshot once, so that all shards of a scan use the same snapshot.
    snapshot = current_snapshot_fingerprint(store)
    tokenizer = load_tokenizer(policy.tokenizer_str).fingerprint
    index = policy.index_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
    scan = policy.scan_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
    absent = [version.benchmark for version in versions if not has_part(store, version, index)]
    if absent:
        raise MissingError(
            missing_part(name, str(store.index_part(index, name, "*"))) for name in absent
        )
    wanted = [*versions, *(v for v in along if v not in versions and has_part(store, v, index))]
    requested = set(versions)
    jobs = [
        ShardJob(store.root, shard, pack.source, sort_versions(missing), policy, index, scan)
        for pack, shard, missing in missing_tiles(store, packs, wanted, scan)
        if not requested.isdisjoint(missing)
    ]
    for together in {job.versions for job in jobs}:
        build_search_files(store, together, policy, index=index, scan=scan)
    return jobs


def build_search_files(
    store: Store, versions: tuple[Version, ...], policy: Policy, *, index: str, scan: str
) -> None:
    """Build the files that scanners map into memory, unless they exist."""
    build_search(store, versions, policy.at_floor, index=index, scan=scan)
    if policy.needs_texts:
        ids = open_search(store, versions, policy.at_floor, index=index, scan=scan).ids
        build_verbatim(store, versions, ids, policy, scan=scan)
    open_own_indexes(store, versions, policy, scan=scan)


def sort_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Sort by benchmark, so that the same versions in any order share one search index."""
    return tuple(sorted(versions, key=lambda version: version.benchmark))


def scan_shard(job: ShardJob) -> bool:
    """Read a shard once and write its tiles for these benchmark versions, then its ledger.

    Returns False without reading if another run has written all of them in the meantime.
    """
    store = Store(job.root)
    with store.locked_shard(job.scan, job.shard.fingerprint):
        if not missing_of_shard(store, job.shard, job.versions, job.scan):
            advance(job.shard.n_bytes)
            return False
        try:
            _scan_locked(store, job)
        except CorpusError as error:
            write_refusal(store, job.shard, error)
            raise
        remove(store.refusal(job.shard.fingerprint))
        return True


def _scan_locked(store: Store, job: ShardJob) -> None:
    read = Counter[str]()
    unreadable, invalid = list[Unreadable](), list[InvalidUtf8]()
    matches: list[Columns] = []
    position = 0
    scanners = scanners_for(job)
    for each in scanners:
        each.detectors.take_counts()  # drop the counts of a shard whose scan failed
    # One row per document, written while reading, so that memory does not grow with the shard.
    documents = store.documents(job.scan, job.shard.fingerprint)
    with growing_parquet(documents, DOCUMENTS) as write:
        for scanned in scan_blocks(job):
            n, n_unreadable = scanned.documents.num_rows, len(scanned.unreadable)
            read.update(n_rows=n + n_unreadable, n_documents=n)
            read.update(n_characters=scanned.n_characters, n_too_short=scanned.n_too_short)
            unreadable += scanned.unreadable
            invalid += scanned.invalid
            write(scanned.documents)
            ahead = min(max(scanned.position, position), job.shard.n_bytes)
            advance(ahead - position)
            position = ahead
            matches += scanned.matches
    scanner = scanners[0]
    taken = [each.detectors.take_counts() for each in scanners]
    counts = gram_counts(taken, scanner.search, job.policy)
    for number, version in enumerate(job.versions):
        names = job.scan, job.shard.fingerprint, version.fingerprint
        write_tile(store.gram_counts(*names), counts[number])
        write_tile(store.tile(*names), scanner.tile(matches, number, job.shard.fingerprint))
    # The ledger is written last: it marks a complete scan. It has nothing about benchmarks, so
    # every scan writes the same one. `invalid_utf8` are documents, with replacement characters.
    ledger = {
        "shard": job.shard.fingerprint,
        **{name: read[name] for name in _COUNTS_READ},
        "unreadable": [{name: getattr(row, name) for name in _OF_UNREADABLE} for row in unreadable],
        "invalid_utf8": [asdict(row) for row in invalid],
    }
    write_json(store.ledger(job.scan, job.shard.fingerprint), ledger)
    advance(job.shard.n_bytes - position)
