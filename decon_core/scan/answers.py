"""Answers scans from the sketch: which blocks of a pack may contain a match.

All other blocks contain none, by the bounds of the detectors. A scan result that was answered is
the same as that of a full scan. What a full scan also counts, the documents with each n-gram, is
not known for it: beside the scan result there is a record of the blocks instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decon_core.benchmarks.records import Version
from decon_core.config.detector_registry import in_order
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.pack_sketch import (
    PackSketch,
    Possible,
    has_pack_sketch,
    open_pack_sketch,
    remove_pack_sketch,
    sketch_fingerprint,
)
from decon_core.corpus.sketch.shard_sketch import has_blocks, has_filters, open_blocks
from decon_core.detectors.detector import detector
from decon_core.errors import DamagedError
from decon_core.kernels.arrays import Bools
from decon_core.scan.blocks import NewSketch, ShardJob, SomeBlocks, open_indexes
from decon_core.scan.plan import build_search_files
from decon_core.storage.store import Store

_log = logging.getLogger(__name__)


def why_unbounded(policy: Policy) -> str | None:
    """Return why the sketch cannot answer a scan with this policy, or None."""
    unbounded = [
        name for name in in_order(policy.detectors) if not detector(name).is_bounded(policy)
    ]
    if unbounded:
        return f"a sketch cannot rule out matches of {', '.join(unbounded)}"
    if policy.leave_out_common:
        return "leave_out_common needs the number of documents that contain each n-gram"
    return None


@dataclass(frozen=True, eq=False)
class Answer:
    """What the sketch of a pack says about some benchmarks."""

    sketch: PackSketch
    is_possible: Bools  # per block of the pack
    by_detector: Mapping[str, Possible]

    def blocks_of(self, shard: str) -> tuple[tuple[int, ...], int]:
        """Return the blocks of a shard that have to be read, and the number of all."""
        return self.sketch.blocks_of(shard, self.is_possible)


def answer(
    store: Store,
    sketch: str,
    pack: Pack,
    versions: Sequence[Version],
    policy: Policy,
    *,
    index: str,
    scan: str,
) -> Answer | None:
    """Look up benchmarks in the sketch of a pack; None if there is none, or it is damaged.

    A damaged sketch is removed, so that it is made again.
    """
    if not has_pack_sketch(store, sketch, pack):
        return None
    indexes = open_indexes(store, versions, policy, index=index, scan=scan)
    try:
        opened = open_pack_sketch(store, sketch, pack)
        by_detector = {
            name: detector(name).possible_blocks(indexes, opened)
            for name in in_order(policy.detectors)
        }
        # Raises `DamagedError` if it cannot be read where the blocks of a shard lie.
        for shard in pack.shards:
            if has_blocks(store, sketch, shard.fingerprint):
                open_blocks(store, sketch, shard.fingerprint)
    except DamagedError as error:
        _log.warning("%s: removed; the pack is scanned without it", error.problems[0])
        remove_pack_sketch(store, sketch, pack)
        return None
    is_possible = np.any([possible.is_possible for possible in by_detector.values()], axis=0)
    return Answer(opened, is_possible, by_detector)


class SketchPlan:
    """Plans which blocks a scan reads of packs with a sketch, and which shards lack a sketch."""

    def __init__(
        self, store: Store, policy: Policy, sketch: Sketch, *, index: str, scan: str
    ) -> None:
        self._store, self._policy = store, policy
        self._names = {"index": index, "scan": scan}
        self._sketch = NewSketch(sketch_fingerprint(policy, sketch), sketch.bits)
        self._is_bounded = why_unbounded(policy) is None
        self._pack: Pack | None = None
        self._answers: dict[tuple[Version, ...], Answer | None] = {}  # answers for the current pack
        self.n_blocks_excluded = 0
        self.n_blocks_read = 0
        self.n_bytes_read = 0  # bytes of sketches

    def shards_without(self, pack: Pack) -> set[str]:
        """Return the shards whose sketch the scan has to write."""
        name = self._sketch.fingerprint
        has = has_blocks if has_pack_sketch(self._store, name, pack) else has_filters
        shards = (shard.fingerprint for shard in pack.shards)
        return {shard for shard in shards if not has(self._store, name, shard)}

    def with_new_sketch(self, job: ShardJob, pack: Pack) -> ShardJob:
        """Return a job that also writes the sketch of its shard."""
        has_pack = has_pack_sketch(self._store, self._sketch.fingerprint, pack)
        return replace(job, new_sketch=replace(self._sketch, is_joined=has_pack))

    def answered(self, job: ShardJob, pack: Pack, versions: tuple[Version, ...]) -> ShardJob:
        """Return a job for the blocks that may contain a match; the whole shard if all may."""
        of_pack = self._answer(pack, versions)
        if not of_pack:
            return job
        blocks, n_blocks = of_pack.blocks_of(job.shard.fingerprint)
        self.n_blocks_excluded += n_blocks - len(blocks)
        self.n_blocks_read += len(blocks)
        if len(blocks) == n_blocks:
            return job
        some = SomeBlocks(self._sketch.fingerprint, blocks, n_blocks)
        return replace(job, versions=versions, some=some)

    def _answer(self, pack: Pack, versions: tuple[Version, ...]) -> Answer | None:
        if not self._is_bounded:
            return None
        if pack is not self._pack:
            self._pack, self._answers = pack, {}
        if versions not in self._answers:
            store, policy, name = self._store, self._policy, self._sketch.fingerprint
            build_search_files(store, versions, policy, **self._names)
            of_pack = answer(store, name, pack, versions, policy, **self._names)
            self.n_bytes_read += of_pack.sketch.n_bytes_read if of_pack else 0
            self._answers[versions] = of_pack
        return self._answers[versions]
