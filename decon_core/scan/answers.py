"""Answers scans from the sketch: which blocks of a pack may contain a match.

All other blocks contain none, by the bounds of the detectors. A scan result that was answered is
the same as that of a full scan. What a full scan also counts, the documents with each n-gram, is
not known for it: beside the scan result there is a record of the blocks instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decon_core.benchmarks.records import Version
from decon_core.config.detector_registry import in_order
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.pack_sketch import (
    PackSketch,
    Possible,
    has_pack_sketch,
    open_pack_sketch,
    remove_pack_sketch,
)
from decon_core.corpus.sketch.shard_sketch import has_blocks, open_blocks
from decon_core.detectors.detector import Indexes, detector
from decon_core.errors import DamagedError
from decon_core.kernels.arrays import Bools
from decon_core.scan.blocks import open_indexes
from decon_core.storage.store import Store

_log = logging.getLogger(__name__)


def why_unbounded(policy: Policy) -> str | None:
    """Return why the sketch cannot answer a scan with this policy, or None."""
    unbounded = [
        name for name in in_order(policy.detectors) if not detector(name).is_bounded(policy)
    ]
    if unbounded:
        return f"the matches of {', '.join(unbounded)} cannot be bounded"
    if policy.leave_out_common:
        return "leave_out_common must count the documents that contain each n-gram"
    return None


@dataclass(frozen=True, eq=False)
class Answer:
    """What the sketch of a pack says about some benchmarks."""

    sketch: PackSketch
    indexes: Indexes
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
    return Answer(opened, indexes, is_possible, by_detector)
