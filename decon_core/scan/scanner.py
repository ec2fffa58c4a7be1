"""Documents and index parts to tiles: the matches of one shard with one benchmark version.

A tile that is present says "scanned"; an empty one says "scanned, nothing found"; an absent one
says nothing. So a scan looks up which tiles are missing, reads each shard that misses any exactly
once, for all benchmarks that it misses, and writes whole tiles. How the work was cut into runs,
and on how many processes, leaves no trace in them.
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
from decon_core.corpus.batches import Batch, Block, compile_reader, read_blocks
from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable
from decon_core.corpus.packs import Pack, Shard
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
from decon_core.storage.store import Store, growing_parquet, remove, write_json, write_tile
from decon_core.text.markup import compile_markup
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged

_log = logging.getLogger(__name__)

# Loading compiled kernels takes less; so when this has passed, they are being compiled.
_LOADING_SECONDS = 3.0
_FILES_PER_TILE = 2  # matches, and counts of n-grams


@dataclass(frozen=True)
class ShardJob:
    """One shard and the benchmark versions that it lacks tiles for.

    Holds paths and small values only, so that it runs in any process on any machine that sees the
    store and the corpus.
    """

    root: Path
    shard: Shard
    source: Source
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprints: of the index parts,
    scan: str  # and what the tiles and their union are named by
    threads: int = 1


@dataclass
class ShardScan:
    """What reading one shard came to."""

    shard: str
    n_documents: int = 0
    n_characters: int = 0
    n_too_short: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    invalid: list[InvalidUtf8] = field(default_factory=list)

    def add(self, block: _Scanned) -> None:
        self.n_documents += block.documents.num_rows
        self.n_characters += block.n_characters
        self.n_too_short += block.n_too_short
        self.unreadable += block.unreadable
        self.invalid += block.invalid

    def ledger(self) -> dict[str, Any]:
        """Nothing about benchmarks in it: every scan of a shard writes the same."""
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
            # Documents, unlike the rows above: scanned with replacement characters in their text.
            "invalid_utf8": [
                {"row": row.row, "offset": row.offset, "detail": row.detail} for row in self.invalid
            ],
        }


@dataclass
class ScanSummary:
    """What a scan did, and what it found already done."""

    n_shards_read: int = 0
    n_tiles_written: int = 0
    n_tiles_present: int = 0
    n_bytes: int = 0
    seconds: float = 0.0


# Shards done, of; bytes of their files that were read, of; seconds.
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
    """Write every tile that these packs and benchmark versions still lack.

    A shard that has to be read is scanned against versions `along`, too, as far as it lacks them:
    they will be asked for, and reading is what costs. One that cannot be read does not stop the
    others; all such are reported at the end.
    """
    todo = _jobs(store, packs, versions, policy, along)
    n_tiles = sum(len(pack.shards) for pack in packs) * len(versions)
    asked = set(versions)
    n_lacking = sum(version in asked for job in todo for version in job.versions)
    summary = ScanSummary(n_tiles_present=n_tiles - n_lacking)
    problems: list[Problem] = []
    n_files = sum(_FILES_PER_TILE * len(job.versions) for job in todo)
    n_workers = useful_workers(workers, [job.shard for job in todo], n_files=n_files)
    if n_workers <= 1:  # too little for processes, or a single shard: threads share its blocks
        todo = [replace(job, threads=max(workers, 1)) for job in todo]
    if todo:
        compile_kernels(todo[0])
    started = time.monotonic()
    n_done = 0
    n_bytes_in_all = sum(job.shard.n_bytes for job in todo)

    def report(n_bytes: int) -> None:
        summary.n_bytes = n_bytes
        summary.seconds = time.monotonic() - started
        if on_progress:
            on_progress(n_done, len(todo), n_bytes, n_bytes_in_all, summary.seconds)

    for job, future in run_jobs(scan_shard, todo, workers=n_workers, on_advance=report):
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
    """A job per shard that lacks a tile. Refuses when an index part that is needed is missing."""
    # The snapshot's pointer is read once: all shards of a scan are named and weighed by one.
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
    asked = set(versions)
    jobs = [
        ShardJob(store.root, shard, pack.source, sort_versions(lacking), policy, index, scan)
        for pack, shard, lacking in missing_tiles(store, packs, wanted, scan)
        if not asked.isdisjoint(lacking)
    ]
    for together in {job.versions for job in jobs}:
        build_search_files(store, together, policy, index=index, scan=scan)
    return jobs


def build_search_files(
    store: Store, versions: tuple[Version, ...], policy: Policy, *, index: str, scan: str
) -> None:
    """Have what scanners map to memory built, unless it is there."""
    build_search(store, versions, policy.at_floor, index=index, scan=scan)
    if policy.needs_texts:
        ids = open_search(store, versions, policy.at_floor, index=index, scan=scan).ids
        build_verbatim(store, versions, ids, policy, scan=scan)


def sort_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Any way to name the same versions is one search index."""
    return tuple(sorted(versions, key=lambda version: version.benchmark))


def compile_kernels(job: ShardJob) -> None:
    """Have all kernels compiled before workers start: once, or each of them would do it."""
    notice = Timer(
        _LOADING_SECONDS,
        lambda: _log.info("compiling the kernels: up to a minute, once on this machine"),
    )
    notice.start()
    try:
        scanner = _scanners_for(job)[0]
        tokens = scanner.compile_words()
        if is_new(word_stream.look_up) and not scanner.rules.is_ready_to_judge:
            with in_subprocess(_compile_judging, job) if usable_cores() > 1 else nullcontext():
                compile_reader(job.source)
                scanner.rules.compile_all_but_judging(tokens)
        compile_reader(job.source)
        scanner.rules.compile(_SOME, tokens, scanner.encoder)
    finally:
        notice.cancel()


def _compile_judging(job: ShardJob) -> None:
    """In a process beside the first one: half of all that has to be compiled."""
    tokens = Ragged(np.zeros(2, np.uint32), np.array([0, 2]))
    _scanners_for(job)[0].rules.compile_judging(tokens)


def scan_shard(job: ShardJob) -> ShardScan | None:
    """Read a shard once and write its tiles for these benchmark versions, then what was read.

    Nothing is read when another run wrote all of them in the meantime.
    """
    store = Store(job.root)
    with store.alone_on(job.scan, job.shard.fingerprint):
        if not missing_of_shard(store, job.shard, job.versions, job.scan):
            advance(job.shard.n_bytes)
            return None
        try:
            seen = _scan_alone(store, job)
        except CorpusError as error:
            write_refusal(store, job.shard, error)
            raise
        remove(store.refusal(job.shard.fingerprint))
        return seen


def _scan_alone(store: Store, job: ShardJob) -> ShardScan:
    seen = ShardScan(job.shard.fingerprint)
    found: list[Columns] = []
    position = 0
    scanners = _scanners_for(job)
    for each in scanners:
        each.take_counts()  # of a shard that broke off
    # Of every document a row: written while they are read, or memory would grow with the shard.
    documents = store.documents(job.scan, job.shard.fingerprint)
    with growing_parquet(documents, DOCUMENTS) as write:
        for scanned in _scanned(job):
            seen.add(scanned)
            write(scanned.documents)
            ahead = min(max(scanned.position, position), job.shard.n_bytes)
            advance(ahead - position)
            position = ahead
            found += scanned.matches
    scanner = scanners[0]
    counts = gram_counts([each.take_counts() for each in scanners], scanner.search, job.policy)
    for number, version in enumerate(job.versions):
        write_tile(
            store.gram_counts(job.scan, job.shard.fingerprint, version.fingerprint), counts[number]
        )
        path = store.tile(job.scan, job.shard.fingerprint, version.fingerprint)
        write_tile(path, scanner.tile(found, number, job.shard.fingerprint))
    # Last: where there is a ledger, there is all of it.
    write_json(store.ledger(job.scan, job.shard.fingerprint), seen.ledger())
    advance(job.shard.n_bytes - position)
    return seen


def _scanned(job: ShardJob) -> Iterator[_Scanned]:
    """The blocks of a shard in their order, each scanned in one of several threads."""
    blocks = read_blocks(job.shard, job.source)
    scanners = _scanners_for(job)
    if len(scanners) == 1:
        yield from (scanners[0].scan(block) for block in blocks)
        return
    free: Queue[Scanner] = Queue()
    for scanner in scanners:
        free.put(scanner)

    def scan(block: Block) -> _Scanned:
        scanner = free.get()
        try:
            return scanner.scan(block)
        finally:
            free.put(scanner)

    with ThreadPoolExecutor(len(scanners)) as pool:
        # Two blocks ahead for each thread: enough to keep it busy, and memory stays bounded.
        waiting: deque[Future[_Scanned]] = deque()
        for block in blocks:
            waiting.append(pool.submit(scan, block))
            if len(waiting) > 2 * len(scanners):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass
class _Scanned:
    """What one block came to."""

    position: int
    documents: pa.Table
    n_characters: int
    n_too_short: int
    unreadable: list[Unreadable]
    invalid: list[InvalidUtf8]
    matches: list[Columns]


_SOME = Batch(
    text=np.frombuffer(b"two words", np.uint8).copy(),
    starts=np.zeros(1, np.int64),
    stops=np.array([9]),
    rows=np.zeros(1, np.int64),
    n_characters=9,
    unreadable=[],
    reread=lambda row: Document(row=row, id=None, text="two words", raw=None),
)


class Scanner:
    """All that one thread needs: the index is shared, tables of words and scratch are its own."""

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
        self.rules = DetectorSet(self.search, verbatim, policy, tokenizer)
        self.encoder = Encoder(
            tokenizer,
            FixedVocabulary(self.search.ids),
            form=policy.form,
            table_mb=policy.word_table_mb,
        )
        self._labels: dict[int, pa.Table] = {}

    def scan(self, block: Block) -> _Scanned:
        batch = block.read()
        tokens = self.encoder.encode(batch.text, batch.starts, batch.stops)
        matches = self.rules.find(batch, tokens, self.encoder)
        n_too_short = int((tokens.lengths < 2 * self._ngram_size).sum())
        return _Scanned(
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
        return self.rules.take_counts()

    def compile_words(self) -> Ragged:
        """Have every kernel compiled that texts become tokens by; the tokens of a text."""
        tokens = self.encoder.encode(_SOME.text, _SOME.starts, _SOME.stops)
        self.encoder.places(0, "two words")
        if self._strips_markup:
            compile_markup()
        return tokens

    def tile(self, found: Sequence[Columns], number: int, shard: str) -> pa.Table:
        """All rows of one benchmark in a shard."""
        return tile_of(
            found,
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
    """Those of one union of benchmarks; a table of words is worth keeping between shards."""

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
    """Give up what is kept for a next scan: tables of words, above all."""
    _scanners.cache_clear()


def _scanners_for(job: ShardJob) -> list[Scanner]:
    return _scanners(job.root, job.versions, job.policy, job.index, job.scan).take(job.threads)
