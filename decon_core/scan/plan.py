"""Plans a scan: which shards lack scan results, and which of their blocks may contain a match.

This is how a scan resumes: shards with all scan results get no job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack, Shard
from decon_core.errors import MissingError, Problem
from decon_core.index.joined_index import build_search, open_search
from decon_core.index.parts import has_part, missing_part
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.scan.blocks import ShardJob, open_own_indexes
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
        self.sketch = None
        if sketch:
            from decon_core.scan.answers import SketchPlan

            self.sketch = SketchPlan(store, policy, sketch, index=self.index, scan=self.scan)
        self._fill_sketch = fill_sketch
        self._packs: dict[str, str] = {}  # pack of each shard

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
            remedy = "materialize the `index` asset for at least one benchmark"
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
        sketch = self.sketch
        lacking = sketch.shards_without(pack) if sketch else set()
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
            if sketch and lacks_sketch:
                job = sketch.with_new_sketch(job, pack)
            elif sketch:
                job = sketch.answered(job, pack, needed)
            yield job

    def shards_of(self, pack: Pack) -> list[Shard]:
        """Return the different shards of a pack, without those of an earlier pack of the scan."""
        shards = {shard.fingerprint: shard for shard in pack.shards}
        return [shard for name, shard in shards.items() if self._packs[name] == pack.name]


def build_search_files(
    store: Store, versions: tuple[Version, ...], policy: Policy, *, index: str, scan: str
) -> None:
    """Build the files that scanners map into memory, unless they exist."""
    build_search(store, versions, policy.at_floor, index=index, scan=scan)
    if policy.needs_texts:
        from decon_core.index.text_index import build_verbatim

        ids = open_search(store, versions, policy.at_floor, index=index, scan=scan).ids
        build_verbatim(store, versions, ids, policy, scan=scan)
    open_own_indexes(store, versions, policy, scan=scan)


def sort_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Sort by benchmark, so that the same versions in any order share one search index."""
    return tuple(sorted(versions, key=lambda version: version.benchmark))
