"""Scans packs and writes tiles: the matches of one shard with one benchmark version.

A tile exists only if the shard was scanned against that version; a tile without rows means that
nothing was found. A scan looks up the missing tiles, reads each shard with missing tiles exactly
once, for all benchmarks it needs, and writes complete tiles; with a sketch of the corpus it reads
only blocks that may contain a match. The content of tiles does not depend on that, nor on how the
work was split into runs and processes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from operator import add

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.sketch import Sketch
from decon_core.corpus.documents import InvalidUtf8, Unreadable
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch
from decon_core.corpus.sketch.shard_sketch import has_blocks, has_filters, writing_sketch
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.index.idf import current_snapshot_fingerprint
from decon_core.index.joined_index import build_search, open_search
from decon_core.index.parts import has_part, missing_part
from decon_core.index.text_index import build_verbatim
from decon_core.scan.answers import Answer, answer, why_unbounded
from decon_core.scan.blocks import (
    ShardJob,
    compile_kernels,
    open_own_indexes,
    scan_blocks,
    scanners_for,
)
from decon_core.scan.coverage import missing_of_shard, write_refusal
from decon_core.scan.gram_counts import gram_counts
from decon_core.scan.matches import Columns
from decon_core.scan.workers import advance, run_jobs, useful_workers
from decon_core.schemas import DOCUMENTS, MATCHES
from decon_core.storage.drafts import remove
from decon_core.storage.store import (
    Store,
    copy_file,
    growing_parquet,
    no_rows,
    write_json,
    write_tile,
)
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
    n_bytes: int = 0  # of the shards
    n_blocks_excluded: int = 0  # by the sketch
    n_blocks_read: int = 0  # of shards that were answered from the sketch
    n_sketch_bytes: int = 0  # read of sketches
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
    sketch: Sketch | None = None,
    fill_sketch: bool = False,
) -> ScanSummary:
    """Write all missing tiles of these packs and benchmark versions.

    A shard that has to be read is also scanned against the versions in `along` for which it has no
    tiles: they will be needed later, and reading is the expensive part. With `sketch`, its sketch
    is written on the way, and packs that have one are read only where it does not exclude a match.
    With `fill_sketch`, shards without a sketch are read even if they have all tiles. A shard that
    cannot be read does not stop the others; a CorpusError at the end reports all of them.
    """
    plan = _Plan(store, policy, sketch, fill_sketch=fill_sketch)
    jobs = plan.jobs(packs, versions, along)
    n_tiles = sum(len(pack.shards) for pack in packs) * len(versions)
    requested = set(versions)
    n_missing = sum(version in requested for job in jobs for version in job.versions)
    summary = plan.summary
    summary.n_tiles_present = n_tiles - n_missing
    problems: list[Problem] = []
    n_files = sum(_FILES_PER_TILE * len(job.versions) for job in jobs)
    n_workers = useful_workers(workers, [job.n_bytes_to_read for job in jobs], n_files=n_files)
    if n_workers <= 1:  # too little work for processes, or one shard: threads share its blocks
        jobs = [replace(job, threads=max(workers, 1)) for job in jobs]
    if reading := [job for job in jobs if job.n_bytes_to_read]:
        compile_kernels(reading[0])
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
                summary.n_shards_read += job.n_bytes_to_read > 0
                summary.n_tiles_written += len(job.versions)
        except CorpusError as error:
            problems += error.problems
        report(summary.n_bytes)
    if problems:
        raise CorpusError(sorted(problems, key=str))
    return summary


class _Plan:
    """Decides what of which shard is read, and for which benchmarks."""

    def __init__(
        self, store: Store, policy: Policy, sketch: Sketch | None, *, fill_sketch: bool
    ) -> None:
        # Read the pointer to the snapshot once, so that all shards of a scan use the same snapshot.
        snapshot = current_snapshot_fingerprint(store)
        tokenizer = load_tokenizer(policy.tokenizer_str).fingerprint
        self._store, self._policy = store, policy
        self._index = policy.index_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
        self._scan = policy.scan_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
        self._sketch = sketch.fingerprint(policy, tokenizer=tokenizer) if sketch else ""
        self._bits = sketch.bits if sketch else 0
        self._fill_sketch = fill_sketch and sketch is not None
        self._is_bounded = bool(self._sketch) and why_unbounded(policy) is None
        self.summary = ScanSummary()

    def jobs(
        self, packs: Sequence[Pack], versions: Sequence[Version], along: Sequence[Version]
    ) -> list[ShardJob]:
        """Return a job per shard to read or answer; MissingError if an index part is missing."""
        store, index = self._store, self._index
        absent = [version.benchmark for version in versions if not has_part(store, version, index)]
        if absent:
            raise MissingError(
                missing_part(name, str(store.index_part(index, name, "*"))) for name in absent
            )
        extra = [v for v in along if v not in versions and has_part(store, v, index)]
        if not (versions or extra):
            remedy = "materialize the asset `index` for some benchmark"
            raise MissingError(Problem("scan", "no benchmark has an index", "one or more", remedy))
        jobs = [job for pack in packs for job in self._of_pack(pack, versions, extra)]
        for together in {job.versions for job in jobs}:
            build_search_files(store, together, self._policy, index=index, scan=self._scan)
        return jobs

    def _of_pack(
        self, pack: Pack, versions: Sequence[Version], extra: Sequence[Version]
    ) -> Iterator[ShardJob]:
        requested = set(versions)
        answers: dict[tuple[Version, ...], Answer | None] = {}
        lacking = self._without_sketch(pack)
        for shard in pack.shards:
            missing = self._missing(shard, [*versions, *extra])
            lacks_sketch = shard.fingerprint in lacking
            wanted = sort_versions([version for version in missing if version in requested])
            if not wanted and not (lacks_sketch and self._fill_sketch):
                continue
            # A shard that is only read for its sketch is scanned again: a scan needs a benchmark.
            scanned = sort_versions(missing or [*versions, *extra])
            job = ShardJob(
                *(self._store.root, shard, pack.source, scanned, self._policy),
                *(self._index, self._scan),
            )
            if lacks_sketch:
                yield replace(job, sketch=self._sketch, bits=self._bits)
                continue
            if wanted not in answers:
                answers[wanted] = self._answer(pack, wanted)
            yield self._answered(job, wanted, answers[wanted])

    def _without_sketch(self, pack: Pack) -> set[str]:
        """Return the shards whose sketch is wanted and missing."""
        if not self._sketch:
            return set()
        has = has_blocks if has_pack_sketch(self._store, self._sketch, pack) else has_filters
        shards = {shard.fingerprint for shard in pack.shards}
        return {shard for shard in shards if not has(self._store, self._sketch, shard)}

    def _missing(self, shard: Shard, versions: Sequence[Version]) -> list[Version]:
        needs_counts = self._policy.leave_out_common
        return missing_of_shard(self._store, shard, versions, self._scan, needs_counts=needs_counts)

    def _answer(self, pack: Pack, versions: tuple[Version, ...]) -> Answer | None:
        if not self._is_bounded:
            return None
        names = {"index": self._index, "scan": self._scan}
        build_search_files(self._store, versions, self._policy, **names)
        found = answer(self._store, self._sketch, pack, versions, self._policy, **names)
        if found:
            self.summary.n_sketch_bytes += found.sketch.n_bytes_read
        return found

    def _answered(
        self, job: ShardJob, versions: tuple[Version, ...], found: Answer | None
    ) -> ShardJob:
        """Return a job for the blocks that may contain a match; the whole shard if all may."""
        if found is None:
            return job
        blocks, n_blocks = found.blocks_of(job.shard.fingerprint)
        self.summary.n_blocks_excluded += n_blocks - len(blocks)
        self.summary.n_blocks_read += len(blocks)
        if len(blocks) == n_blocks:
            return job
        return replace(job, versions=versions, sketch=self._sketch, only=blocks, n_blocks=n_blocks)


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
        needs_counts = job.policy.leave_out_common
        missing = missing_of_shard(
            store, job.shard, job.versions, job.scan, needs_counts=needs_counts
        )
        if not missing and not job.is_sketching:
            advance(job.shard.n_bytes)
            return False
        try:
            if job.only is None:
                _scan_locked(store, job)
            else:
                _answer_locked(store, job)
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
    names = job.scan, job.shard.fingerprint
    sketching = (
        writing_sketch(store, job.sketch, job.shard.fingerprint, bits=job.bits)
        if job.is_sketching
        else nullcontext()
    )
    with sketching as sketcher:
        # One row per document, written while reading, so that memory does not grow with the shard.
        with growing_parquet(store.documents(*names), DOCUMENTS) as write:
            for scanned in scan_blocks(job):
                n, n_unreadable = scanned.documents.num_rows, len(scanned.unreadable)
                read.update(n_rows=n + n_unreadable, n_documents=n)
                read.update(n_characters=scanned.n_characters, n_too_short=scanned.n_too_short)
                unreadable += scanned.unreadable
                invalid += scanned.invalid
                write(scanned.documents)
                if sketcher and scanned.sketch:
                    sketcher.add(scanned.sketch)
                ahead = min(max(scanned.position, position), job.shard.n_bytes)
                advance(ahead - position)
                position = ahead
                matches += scanned.matches
        scanner = scanners[0]
        taken = [each.detectors.take_counts() for each in scanners]
        counts = gram_counts(taken, scanner.search, job.policy)
        for number, version in enumerate(job.versions):
            write_tile(store.gram_counts(*names, version.fingerprint), counts[number])
            tile = scanner.tile(matches, number, job.shard.fingerprint)
            write_tile(store.tile(*names, version.fingerprint), tile)
            remove(store.sketch_answer(*names, version.fingerprint))
        # It has nothing about benchmarks, so every scan writes the same one. `invalid_utf8` are
        # documents, with replacement characters.
        ledger = {
            "shard": job.shard.fingerprint,
            **{name: read[name] for name in _COUNTS_READ},
            "unreadable": [
                {name: getattr(row, name) for name in _OF_UNREADABLE} for row in unreadable
            ],
            "invalid_utf8": [asdict(row) for row in invalid],
        }
        if job.is_sketching:
            write_json(store.sketch_ledger(job.sketch, job.shard.fingerprint), ledger)
            kept = store.sketch_documents(job.sketch, job.shard.fingerprint)
            copy_file(store.documents(*names), kept)
    # The ledger is written last: it marks a complete scan.
    write_json(store.ledger(*names), ledger)
    advance(job.shard.n_bytes - position)


def _answer_locked(store: Store, job: ShardJob) -> None:
    """Write the tiles of a shard of which only some blocks may contain a match."""
    matches: list[Columns] = []
    for scanned in scan_blocks(job) if job.only else ():
        matches += scanned.matches
    names = job.scan, job.shard.fingerprint
    about = {"sketch": job.sketch, "n_blocks": job.n_blocks, "blocks_read": job.only}
    for number, version in enumerate(job.versions):
        if job.only:
            tile = scanners_for(job)[0].tile(matches, number, job.shard.fingerprint)
        else:
            tile = no_rows(MATCHES)
        write_json(store.sketch_answer(*names, version.fingerprint), about)
        write_tile(store.tile(*names, version.fingerprint), tile)
    if not store.documents(*names).is_file():
        kept = store.sketch_documents(job.sketch, job.shard.fingerprint)
        copy_file(kept, store.documents(*names))
    if not store.ledger(*names).is_file():
        copy_file(store.sketch_ledger(job.sketch, job.shard.fingerprint), store.ledger(*names))
    advance(job.shard.n_bytes)
