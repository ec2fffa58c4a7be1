"""Scans packs and writes tiles: the matches of one shard with one benchmark version.

A tile exists only if the shard was scanned against that version; a tile without rows means that
nothing was found. A scan looks up the missing tiles, reads each shard with missing tiles exactly
once, for all benchmarks it needs, and writes complete tiles. Their content does not depend on how
the work was split into runs and processes.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from queue import Queue
from threading import Timer
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.load import Source
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch, Block
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable
from decon_core.corpus.formats.json_lines import compile_reader
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_blocks
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.index.parts import has_part, missing_part
from decon_core.index.union import build_search, open_search
from decon_core.index.verbatim import build_verbatim, open_verbatim
from decon_core.kernels import word_stream
from decon_core.kernels.jit import is_new
from decon_core.scan.detect import DetectorSet
from decon_core.scan.gram_counts import GramCounts, gram_counts
from decon_core.scan.matches import LABELS, Columns, tile_of
from decon_core.scan.tiles import missing_of_shard, missing_tiles, write_refusal
from decon_core.scan.workers import advance, in_subprocess, run_jobs, usable_cores, useful_workers
from decon_core.schemas import DOCUMENTS
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store, growing_parquet, write_json, write_tile
from decon_core.text.markup import compile_markup
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged

_log = logging.getLogger(__name__)

# Loading compiled kernels takes less time; after this they are being compiled.
_LOADING_SECONDS = 3.0
_FILES_PER_TILE = 2  # matches, and counts of n-grams


@dataclass(frozen=True)
class ShardJob:
    """One shard and the benchmark versions for which it has no tiles.

    Holds only paths and small values, so that it can run in any process on any machine that can
    read the store and the corpus.
    """

    root: Path
    shard: Shard
    source: Source
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprint of the index parts
    scan: str  # fingerprint that names the tiles and the union of index parts
    threads: int = 1


@dataclass
class ShardScan:
    """Counts and unreadable rows of one shard."""

    shard: str
    n_documents: int = 0
    n_characters: int = 0
    n_too_short: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    invalid: list[InvalidUtf8] = field(default_factory=list)

    def add(self, block: _ScannedBlock) -> None:
        self.n_documents += block.documents.num_rows
        self.n_characters += block.n_characters
        self.n_too_short += block.n_too_short
        self.unreadable += block.unreadable
        self.invalid += block.invalid

    def ledger(self) -> dict[str, Any]:
        """Return the ledger. It has nothing about benchmarks: every scan writes the same one."""
        return {
            "shard": self.shard,
            "n_rows": self.n_documents + len(self.unreadable),
            "n_documents": self.n_documents,
            "n_characters": self.n_characters,
            "n_too_short": self.n_too_short,
            "unreadable": [
                {"row": row.row, "offset": row.offset, "reason": row.reason, "detail": row.detail}
                for row in self.unreadable
            ],
            # Unlike the rows above, these are documents: scanned with replacement characters.
            "invalid_utf8": [
                {"row": row.row, "offset": row.offset, "detail": row.detail} for row in self.invalid
            ],
        }


@dataclass
class ScanSummary:
    """Counts of a scan: what it read and wrote, and which tiles existed before."""

    n_shards_read: int = 0
    n_tiles_written: int = 0
    n_tiles_present: int = 0
    n_bytes: int = 0
    seconds: float = 0.0


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
            if future.result() is not None:
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


def sort_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Sort by benchmark, so that the same versions in any order share one search index."""
    return tuple(sorted(versions, key=lambda version: version.benchmark))


def compile_kernels(job: ShardJob) -> None:
    """Compile all kernels before workers start; otherwise each worker would compile them."""
    notice = Timer(
        _LOADING_SECONDS,
        lambda: _log.info("compiling the kernels: up to a minute, once on this machine"),
    )
    notice.start()
    try:
        scanner = _scanners_for(job)[0]
        tokens = scanner.compile_words()
        if is_new(word_stream.look_up) and not scanner.detectors.is_ready_to_judge:
            with in_subprocess(_compile_judging, job) if usable_cores() > 1 else nullcontext():
                compile_reader(job.source)
                scanner.detectors.compile_all_but_judging(tokens)
        compile_reader(job.source)
        scanner.detectors.compile(_SAMPLE, tokens, scanner.encoder)
    finally:
        notice.cancel()


def _compile_judging(job: ShardJob) -> None:
    """Compile about half of the kernels, in a subprocess in parallel with the rest."""
    tokens = Ragged(np.zeros(2, np.uint32), np.array([0, 2]))
    _scanners_for(job)[0].detectors.compile_judging(tokens)


def scan_shard(job: ShardJob) -> ShardScan | None:
    """Read a shard once and write its tiles for these benchmark versions, then its ledger.

    Returns None without reading if another run has written all of them in the meantime.
    """
    store = Store(job.root)
    with store.locked_shard(job.scan, job.shard.fingerprint):
        if not missing_of_shard(store, job.shard, job.versions, job.scan):
            advance(job.shard.n_bytes)
            return None
        try:
            result = _scan_locked(store, job)
        except CorpusError as error:
            write_refusal(store, job.shard, error)
            raise
        remove(store.refusal(job.shard.fingerprint))
        return result


def _scan_locked(store: Store, job: ShardJob) -> ShardScan:
    result = ShardScan(job.shard.fingerprint)
    matches: list[Columns] = []
    position = 0
    scanners = _scanners_for(job)
    for each in scanners:
        each.take_counts()  # drop the counts of a shard whose scan failed
    # One row per document, written while reading, so that memory does not grow with the shard.
    documents = store.documents(job.scan, job.shard.fingerprint)
    with growing_parquet(documents, DOCUMENTS) as write:
        for scanned in _scan_blocks(job):
            result.add(scanned)
            write(scanned.documents)
            ahead = min(max(scanned.position, position), job.shard.n_bytes)
            advance(ahead - position)
            position = ahead
            matches += scanned.matches
    scanner = scanners[0]
    counts = gram_counts([each.take_counts() for each in scanners], scanner.search, job.policy)
    for number, version in enumerate(job.versions):
        write_tile(
            store.gram_counts(job.scan, job.shard.fingerprint, version.fingerprint), counts[number]
        )
        path = store.tile(job.scan, job.shard.fingerprint, version.fingerprint)
        write_tile(path, scanner.tile(matches, number, job.shard.fingerprint))
    # The ledger is written last: it marks a complete scan.
    write_json(store.ledger(job.scan, job.shard.fingerprint), result.ledger())
    advance(job.shard.n_bytes - position)
    return result


def _scan_blocks(job: ShardJob) -> Iterator[_ScannedBlock]:
    """Scan the blocks of a shard in several threads and yield the results in order."""
    blocks = read_blocks(job.shard, job.source)
    scanners = _scanners_for(job)
    if len(scanners) == 1:
        yield from (scanners[0].scan(block) for block in blocks)
        return
    free: Queue[Scanner] = Queue()
    for scanner in scanners:
        free.put(scanner)

    def scan(block: Block) -> _ScannedBlock:
        scanner = free.get()
        try:
            return scanner.scan(block)
        finally:
            free.put(scanner)

    with ThreadPoolExecutor(len(scanners)) as pool:
        # Two blocks ahead per thread keep the threads busy and memory bounded.
        waiting: deque[Future[_ScannedBlock]] = deque()
        for block in blocks:
            waiting.append(pool.submit(scan, block))
            if len(waiting) > 2 * len(scanners):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass
class _ScannedBlock:
    """Documents, matches and unreadable rows of one block."""

    position: int
    documents: pa.Table
    n_characters: int
    n_too_short: int
    unreadable: list[Unreadable]
    invalid: list[InvalidUtf8]
    matches: list[Columns]


_SAMPLE = Batch(
    text=np.frombuffer(b"two words", np.uint8).copy(),
    starts=np.zeros(1, np.int64),
    stops=np.array([9]),
    rows=np.zeros(1, np.int64),
    n_characters=9,
    unreadable=[],
    reread=lambda row: Document(row=row, id=None, text="two words", raw=None),
)


class Scanner:
    """Scans blocks in one thread; scanners share the index but not word tables and scratch."""

    def __init__(
        self, store: Store, versions: Sequence[Version], policy: Policy, index: str, scan: str
    ) -> None:
        self._store = store
        self._scan = scan
        self._ngram_size = policy.ngram_size
        self._strips_markup = policy.strip_markup
        self.search = open_search(store, versions, policy.at_floor, index=index, scan=scan)
        tokenizer = load_tokenizer(policy.tokenizer_str)
        verbatim = None
        if policy.needs_texts:
            verbatim = open_verbatim(store, versions, self.search.ids, policy, scan=scan)
        self.detectors = DetectorSet(self.search, verbatim, policy, tokenizer)
        self.encoder = Encoder(
            tokenizer,
            FixedVocabulary(self.search.ids),
            form=policy.form,
            table_mb=policy.word_table_mb,
        )
        self._labels: dict[int, pa.Table] = {}

    def scan(self, block: Block) -> _ScannedBlock:
        batch = block.read()
        tokens = self.encoder.encode(batch.text, batch.starts, batch.stops)
        matches = self.detectors.find(batch, tokens, self.encoder)
        n_too_short = int((tokens.lengths < 2 * self._ngram_size).sum())
        return _ScannedBlock(
            position=block.position,
            documents=pa.table(
                [batch.rows, batch.stops - batch.starts, tokens.lengths], schema=DOCUMENTS
            ),
            n_characters=batch.n_characters,
            n_too_short=n_too_short,
            unreadable=batch.unreadable,
            invalid=batch.invalid,
            matches=matches,
        )

    def take_counts(self) -> GramCounts:
        return self.detectors.take_counts()

    def compile_words(self) -> Ragged:
        """Compile the kernels that tokenize text, and return the tokens of a sample."""
        tokens = self.encoder.encode(_SAMPLE.text, _SAMPLE.starts, _SAMPLE.stops)
        self.encoder.places(0, "two words")
        if self._strips_markup:
            compile_markup()
        return tokens

    def tile(self, matches: Sequence[Columns], number: int, shard: str) -> pa.Table:
        """Return the tile of one benchmark, given by its number in the union, and a shard."""
        return tile_of(
            matches,
            number,
            labels=lambda: self._records(number),
            shard=shard,
            scan=self._scan,
        )

    def _records(self, number: int) -> pa.Table:
        if number not in self._labels:
            version = self.search.versions[number]
            self._labels[number] = load_records(self._store, version, columns=LABELS)
        return self._labels[number]


class _Scanners:
    """The scanners of one union of benchmarks, kept between shards for their word tables."""

    def __init__(
        self, root: Path, versions: tuple[Version, ...], policy: Policy, index: str, scan: str
    ) -> None:
        self._made: list[Scanner] = []
        self._arguments = (Store(root), versions, policy, index, scan)

    def take(self, n: int) -> list[Scanner]:
        while len(self._made) < n:
            self._made.append(Scanner(*self._arguments))
        return self._made[:n]


@lru_cache(maxsize=1)
def _scanners(
    root: Path, versions: tuple[Version, ...], policy: Policy, index: str, scan: str
) -> _Scanners:
    return _Scanners(root, versions, policy, index, scan)


def clear_scanners() -> None:
    """Clear the scanners kept for the next scan; their word tables take most of the memory."""
    _scanners.cache_clear()


def _scanners_for(job: ShardJob) -> list[Scanner]:
    return _scanners(job.root, job.versions, job.policy, job.index, job.scan).take(job.threads)
