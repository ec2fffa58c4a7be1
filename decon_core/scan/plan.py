"""Plans a scan: which shards lack scan results, and which of their blocks may contain a match.

This is how a scan resumes: shards with all scan results get no job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, sketch_fingerprint
from decon_core.corpus.sketch.shard_sketch import has_blocks, has_filters
from decon_core.errors import MissingError, Problem
from decon_core.index.joined_index import build_search, open_search
from decon_core.index.parts import has_part, missing_part
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.index.text_index import build_verbatim
from decon_core.scan.answers import Answer, answer, why_unbounded
from decon_core.scan.blocks import NewSketch, ShardJob, SomeBlocks, open_own_indexes
from decon_core.scan.coverage import without_scan_result
from decon_core.scan.join import is_read
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.store import Store
from decon_core.text.tokenizers import load_tokenizer


class Plan:
    """The jobs of a scan: what of which shard is read, and for which benchmarks."""

    def __init__(
        self, store: Store, policy: Policy, sketch: Sketch | None, *, fill_sketch: bool
    ) -> None:
        # Read the pointer to the snapshot once, so that all shards of a scan use the same snapshot.
        snapshot = current_snapshot_fingerprint(store)
        tokenizer = load_tokenizer(policy.tokenizer_str).fingerprint
        self._store, self._policy = store, policy
        self.index = policy.index_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
        self.scan = policy.scan_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
        self._sketch = None
        if sketch:
            name = sketch_fingerprint(policy, sketch)
            self._sketch = NewSketch(name, sketch.bits)
        self._fill_sketch = fill_sketch
        self._packs: dict[str, str] = {}  # pack of each shard
        self._is_bounded = why_unbounded(policy) is None
        self.n_blocks_excluded = 0
        self.n_blocks_read = 0
        self.n_sketch_bytes = 0

    def jobs(
        self, packs: Sequence[Pack], versions: Sequence[Version], along: Sequence[Version]
    ) -> list[ShardJob]:
        """Return a job per shard to read or answer; MissingError if an index part is missing."""
        for pack in packs:
            for shard in pack.shards:
                self._packs.setdefault(shard.fingerprint, pack.name)
        store, index = self._store, self.index
        absent = [version.benchmark for version in versions if not has_part(store, version, index)]
        if absent:
            raise MissingError(
                missing_part(name, str(store.index_part(index, name, "*"))) for name in absent
            )
        extra = [v for v in along if v not in versions and has_part(store, v, index)]
        if not (versions or extra):
            remedy = "materialize the asset `index` for at least one benchmark"
            raise MissingError(Problem("scan", "no benchmark has an index", "one or more", remedy))
        results = ScanResults(store, self.scan)
        jobs = [job for pack in packs for job in self._of_pack(pack, versions, extra, results)]
        for together in {job.versions for job in jobs}:
            build_search_files(store, together, self._policy, index=index, scan=self.scan)
        return jobs

    def _of_pack(
        self,
        pack: Pack,
        versions: Sequence[Version],
        extra: Sequence[Version],
        results: ScanResults,
    ) -> Iterator[ShardJob]:
        requested = set(versions)
        answers: dict[tuple[Version, ...], Answer | None] = {}
        lacking = self._without_sketch(pack)
        for shard in self.shards_of(pack):
            missing = [*versions, *extra]
            if is_read_before := is_read(results, shard.fingerprint):
                needs_counts = self._policy.leave_out_common
                missing = without_scan_result(results, shard, missing, needs_counts=needs_counts)
            lacks_sketch = shard.fingerprint in lacking
            needed = sort_versions([version for version in missing if version in requested])
            if not needed and not (lacks_sketch and self._fill_sketch):
                continue
            # A shard that is only read for its sketch is scanned again: a scan needs a benchmark.
            scanned = sort_versions(missing or [*versions, *extra])
            job = ShardJob(
                self._store.root,
                shard,
                pack.source,
                scanned,
                self._policy,
                self.index,
                self.scan,
                is_read=is_read_before,
            )
            if self._sketch and lacks_sketch:
                has_pack = has_pack_sketch(self._store, self._sketch.fingerprint, pack)
                yield replace(job, new_sketch=replace(self._sketch, is_joined=has_pack))
                continue
            if needed not in answers:
                answers[needed] = self._answer(pack, needed)
            yield self._answered(job, needed, answers[needed])

    def shards_of(self, pack: Pack) -> list[Shard]:
        """Return the different shards of a pack, without those of an earlier pack of the scan."""
        shards = {shard.fingerprint: shard for shard in pack.shards}
        return [shard for name, shard in shards.items() if self._packs[name] == pack.name]

    def _without_sketch(self, pack: Pack) -> set[str]:
        """Return the shards whose sketch the scan has to write."""
        if not self._sketch:
            return set()
        name = self._sketch.fingerprint
        has = has_blocks if has_pack_sketch(self._store, name, pack) else has_filters
        shards = (shard.fingerprint for shard in pack.shards)
        return {shard for shard in shards if not has(self._store, name, shard)}

    def _answer(self, pack: Pack, versions: tuple[Version, ...]) -> Answer | None:
        if not (self._sketch and self._is_bounded):
            return None
        names = {"index": self.index, "scan": self.scan}
        build_search_files(self._store, versions, self._policy, **names)
        sketch = self._sketch.fingerprint
        answered = answer(self._store, sketch, pack, versions, self._policy, **names)
        if answered:
            self.n_sketch_bytes += answered.sketch.n_bytes_read
        return answered

    def _answered(
        self, job: ShardJob, versions: tuple[Version, ...], answered: Answer | None
    ) -> ShardJob:
        """Return a job for the blocks that may contain a match; the whole shard if all may."""
        if not (self._sketch and answered):
            return job
        blocks, n_blocks = answered.blocks_of(job.shard.fingerprint)
        self.n_blocks_excluded += n_blocks - len(blocks)
        self.n_blocks_read += len(blocks)
        if len(blocks) == n_blocks:
            return job
        some = SomeBlocks(self._sketch.fingerprint, blocks, n_blocks)
        return replace(job, versions=versions, some=some)


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
