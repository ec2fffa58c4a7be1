"""Scans packs and writes scan results: the matches of one shard with one benchmark version.

A scan result exists only if the shard was scanned against that version; a scan result without rows
means that nothing was found. So a scan that was stopped resumes without a record of its progress:
`plan.py` looks up the missing scan results, and each shard that lacks some is read exactly once,
for all benchmarks it needs. The scan results of a pack are joined when all its shards are done.
With a sketch of the corpus only blocks that may contain a match are read. The content of scan
results does not depend on that, nor on how the work was split into runs and processes.

The way of a shard: `plan.py` makes a job of it, `blocks.py` reads and searches its blocks,
`shard_results.py` writes its scan results, `join.py` joins those of a pack.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import partial
from operator import add
from typing import TYPE_CHECKING

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack
from decon_core.errors import CorpusError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import (
    BYTES_PER_SHARD,
    Cost,
    run_jobs,
    runs_here,
    usable_cores,
    useful_workers,
)
from decon_core.execution.local import LOCAL
from decon_core.scan.blocks import ShardJob, compile_kernels
from decon_core.scan.coverage import write_refusal
from decon_core.scan.join import join_scan_results
from decon_core.scan.plan import Plan
from decon_core.scan.shard_results import scan_shard
from decon_core.storage.files import names_in
from decon_core.storage.store import Store

if TYPE_CHECKING:
    from decon_core.scan.node_store import UrlStore


@dataclass
class ScanSummary:
    """Counts of a scan: what it read and wrote, and which scan results existed before."""

    n_shards_read: int = 0
    n_scan_results_written: int = 0
    n_scan_results_present: int = 0
    n_bytes: int = 0  # bytes of shards that were read, about
    n_blocks_excluded: int = 0  # blocks that the sketch excluded
    n_blocks_read: int = 0  # blocks read of shards that were answered from the sketch
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
    engine: Engine = LOCAL,
    on_progress: Progress | None = None,
    along: Sequence[Version] = (),
    sketch: Sketch | None = None,
    fill_sketch: bool = False,
    costs: dict[str, Cost] | None = None,
) -> ScanSummary:
    """Write all missing scan results of these packs and benchmark versions.

    A shard that has to be read is also scanned against the versions in `along` for which it has no
    scan results: they will be needed later, and reading is the expensive part. With `sketch`, its
    sketch is written on the way, and packs that have one are read only where it does not exclude a
    match. With `fill_sketch`, shards without a sketch are read even if they have all scan results.
    A shard that cannot be read does not stop the others; a CorpusError at the end reports them all.
    What was spent on the shards of each pack is added to `costs`.
    """
    plan = Plan(store, policy, sketch, fill_sketch=fill_sketch)
    url_store = _fetch_from_url(plan, packs, store, policy, engine)
    jobs = plan.jobs(packs, versions, along)
    summary = _count_present(plan, jobs, packs, versions)
    jobs, n_workers = _divide(jobs, workers, engine)
    _compile(jobs, n_workers, engine)
    joining = _Joining(store, plan, packs, jobs, [*versions, *along], url_store)
    reporter = _Reporter(summary, jobs, on_progress)
    problems = _scan(jobs, n_workers, engine, joining, reporter, url_store, costs)
    if problems:
        raise CorpusError(sorted(problems, key=str))
    return summary


def _fetch_from_url(
    plan: Plan, packs: Sequence[Pack], store: Store, policy: Policy, engine: Engine
) -> UrlStore | None:
    """Fetch what other machines wrote and did not join, if nodes share no folder."""
    if engine.store_url is None:
        return None
    from decon_core.scan.node_store import UrlStore

    url_store = UrlStore(store, engine.store_url, plan.scan, plan.index, policy)
    url_store.fetch_unjoined([shard.fingerprint for pack in packs for shard in pack.shards])
    return url_store


def _count_present(
    plan: Plan, jobs: Sequence[ShardJob], packs: Sequence[Pack], versions: Sequence[Version]
) -> ScanSummary:
    n_scan_results, requested = sum(len(pack.shards) for pack in packs) * len(versions), {*versions}
    n_missing = sum(version in requested for job in jobs for version in job.versions)
    summary = ScanSummary(n_scan_results_present=n_scan_results - n_missing)
    if sketch := plan.sketch:
        summary.n_blocks_excluded = sketch.n_blocks_excluded
        summary.n_blocks_read = sketch.n_blocks_read
        summary.n_sketch_bytes = sketch.n_bytes_read
    return summary


def _divide(jobs: Sequence[ShardJob], workers: int, engine: Engine) -> tuple[list[ShardJob], int]:
    """Return the jobs with their number of threads, and the number of worker processes."""
    sizes = [job.n_bytes_to_read + BYTES_PER_SHARD for job in jobs]
    n_workers = useful_workers(workers, sizes, engine=engine)
    # Too little work, or one shard: threads of this process share the blocks of a shard.
    n_threads = max(workers, 1) if runs_here(n_workers, engine) else 1
    is_core_left = not engine.is_remote and max(n_workers, n_threads) < usable_cores()
    return [replace(job, threads=n_threads, is_read_ahead=is_core_left) for job in jobs], n_workers


def _compile(jobs: Sequence[ShardJob], n_workers: int, engine: Engine) -> None:
    """Compile the kernels once, before workers start; other processes read the cache of this."""
    if reading := [job for job in jobs if job.n_bytes_to_read]:
        n_bytes = sum(job.n_bytes_to_read for job in reading)
        compile_kernels(reading[0], n_bytes=n_bytes if runs_here(n_workers, engine) else None)


def _scan(
    jobs: Sequence[ShardJob],
    n_workers: int,
    engine: Engine,
    joining: _Joining,
    reporter: _Reporter,
    url_store: UrlStore | None,
    costs: dict[str, Cost] | None,
) -> list[Problem]:
    """Scan shards and join the results of each pack; return the problems of unreadable shards."""
    if url_store and not runs_here(n_workers, engine):
        scan_shards = url_store.scan_shards
    else:
        scan_shards = partial(
            run_jobs, scan_shard, prepare=compile_kernels, name_of=lambda job: job.shard.path
        )
    problems: list[Problem] = []
    with url_store or nullcontext():
        done = scan_shards(jobs, workers=n_workers, engine=engine, on_advance=reporter.report)
        for job, future in done:
            try:
                cost = future.result()
            except CorpusError as error:
                write_refusal(Store(job.root), job.shard, error)  # a dead worker could not
                problems += error.problems
                cost = None
            pack = joining.end(job)
            reporter.end(job, has_written=cost is not None)
            if costs is not None and cost:
                costs[pack] = costs.get(pack, Cost()) + cost
    return problems


class _Reporter:
    """Counts finished shards in a summary, and reports progress."""

    def __init__(
        self, summary: ScanSummary, jobs: Sequence[ShardJob], on_progress: Progress | None
    ) -> None:
        self._summary, self._on_progress = summary, on_progress
        self._n_jobs, self._n_done, self._is_last_reported = len(jobs), 0, False
        self._n_bytes_total = sum(job.n_bytes_to_read for job in jobs)
        self._started = time.monotonic()

    def end(self, job: ShardJob, *, has_written: bool) -> None:
        self._n_done += 1
        if has_written:
            self._summary.n_shards_read += job.n_bytes_to_read > 0
            self._summary.n_scan_results_written += len(job.versions)
        self.report(self._summary.n_bytes)

    def report(self, n_bytes: int) -> None:
        """Report the bytes that were read, unless all shards are done and were reported."""
        if self._is_last_reported:
            return
        self._is_last_reported = self._n_done == self._n_jobs
        self._summary.n_bytes = n_bytes
        self._summary.seconds = time.monotonic() - self._started
        if self._on_progress:
            seconds, n_total = self._summary.seconds, self._n_bytes_total
            self._on_progress(self._n_done, self._n_jobs, n_bytes, n_total, seconds)


class _Joining:
    """Joins the scan results of each pack when its last shard is done."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        packs: Sequence[Pack],
        jobs: Sequence[ShardJob],
        versions: Sequence[Version],
        url_store: UrlStore | None,
    ) -> None:
        self._store, self._scan, self._url_store = store, plan.scan, url_store
        self._versions = {version.fingerprint for version in versions}
        self._shards = {
            pack.name: [shard.fingerprint for shard in plan.shards_of(pack)] for pack in packs
        }
        self._pack_of = {shard: name for name, shards in self._shards.items() for shard in shards}
        self._n_left = Counter(self._pack_of[job.shard.fingerprint] for job in jobs)
        unjoined = names_in(store.unjoined(plan.scan))
        for name, shards in self._shards.items():
            # Left by a scan that was stopped.
            if not self._n_left[name] and not unjoined.isdisjoint(shards):
                self._join(name)

    def end(self, job: ShardJob) -> str:
        """Join the scan results of the pack of an ended job if it was the last; return its name."""
        name = self._pack_of[job.shard.fingerprint]
        self._n_left[name] -= 1
        if not self._n_left[name]:
            self._join(name)
        return name

    def _join(self, name: str) -> None:
        shards = self._shards[name]
        written = join_scan_results(self._store, self._scan, shards, self._versions)
        if self._url_store:
            self._url_store.publish(written, shards)
