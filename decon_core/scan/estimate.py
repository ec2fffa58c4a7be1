"""Estimates what a scan with the sketch would read, from a sample of the packs.

Nothing is kept: benchmarks that have no index yet are indexed in a temporary store.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records, save_records
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch
from decon_core.detectors.detector import detector
from decon_core.index.joined_index import build_search
from decon_core.index.parts import build_part, index_fingerprint
from decon_core.index.term_weights import current_snapshot
from decon_core.scan.answers import Answer, answer
from decon_core.scan.coverage import scan_fingerprint
from decon_core.storage.files import draft_folder
from decon_core.storage.store import Store, linked_store

_PACKS_SAMPLED = 8
_MOST_ITEMS = 5
_NAMES = ("split", "instance_index")


class PossibleItem(NamedTuple):
    """An item of a benchmark, and the number of blocks that may contain a match."""

    benchmark: str
    split: str
    instance_index: int
    n_blocks: int


@dataclass(frozen=True)
class Estimate:
    """What a scan with the sketch would read: counts of a sample of packs, and totals from them."""

    n_packs: int  # packs that were looked up
    n_blocks: int  # blocks of these packs
    n_possible: int  # blocks that may contain a match
    n_items: int  # items that may match in some block; items with the same text count once
    most: Sequence[PossibleItem]  # those with the most blocks
    # Totals of all packs.
    n_bytes: int  # bytes on disk of the blocks to read and of packs without a sketch
    n_bytes_at_most: int  # if shards cannot be entered at these blocks, and are read whole
    n_sketch_bytes: int
    seconds: float  # time to look up

    def seconds_of_scan(self, bytes_per_second: float) -> tuple[float, float]:
        """Return how long the scan would take, at least and at most, at the rate of a full scan."""
        least = self.seconds + self.n_bytes / bytes_per_second
        # What is only decompressed takes a fifth of the time of a scan, or less (docs/sketch.md).
        return least, least + (self.n_bytes_at_most - self.n_bytes) / bytes_per_second / 5


def estimate(
    store: Store,
    sketch: str,
    packs: Sequence[Pack],
    shards: Collection[str],
    versions: Sequence[Version],
    policy: Policy,
    *,
    new: Mapping[str, Callable[[], pa.Table]],
) -> Estimate | None:
    """Look up benchmarks in a sample of the packs; None if no pack can be looked up.

    `shards` have to be scanned, by fingerprint. `versions` have an index; `new` returns the records
    of each benchmark that has none.
    """
    sketched = [pack for pack in packs if has_pack_sketch(store, sketch, pack)]
    if not sketched:
        return None
    sample = sketched[:: max(1, len(sketched) // _PACKS_SAMPLED)]
    index, scan = index_fingerprint(store, policy), scan_fingerprint(store, policy)
    with draft_folder(store.drafts, "estimate") as folder:
        scratch = linked_store(store, folder / "store", _shared(store, versions, index))
        added = [save_records(scratch, name, read()) for name, read in sorted(new.items())]
        for version in added:
            build_part(scratch, version, current_snapshot(scratch, policy), policy)
        versions = [*versions, *added]
        build_search(scratch, versions, policy.at_floor, index=index, scan=scan)
        answered, answers, seconds = [], [], []
        for pack in sample:
            started = time.monotonic()
            of_pack = answer(scratch, sketch, pack, versions, policy, index=index, scan=scan)
            if of_pack:
                answered.append(pack)
                answers.append(of_pack)
                seconds.append(time.monotonic() - started)
        if not answers:
            return None
        n_sketched = _n_bytes(sketched, shards)
        scale = n_sketched / max(_n_bytes(answered, shards), 1)
        n_unsketched = _n_bytes(packs, shards) - n_sketched
        n_possible, n_of_shards = _to_read(answered, answers, shards)
        return Estimate(
            n_packs=len(answers),
            n_blocks=sum(of_pack.is_possible.size for of_pack in answers),
            n_possible=sum(int(of_pack.is_possible.sum()) for of_pack in answers),
            **_items(scratch, [of_pack for of_pack in answers if of_pack.is_possible.size]),
            n_bytes=n_unsketched + round(scale * n_possible),
            n_bytes_at_most=n_unsketched + round(scale * n_of_shards),
            n_sketch_bytes=round(scale * sum(of_pack.sketch.n_bytes_read for of_pack in answers)),
            # The median: the first look-up may compile kernels.
            seconds=median(seconds) * len(sketched),
        )


def _shared(store: Store, versions: Sequence[Version], index: str) -> list[str]:
    """Return the folders of the store that an estimate reads."""
    folders = ["idf", "sketch"]
    for version in versions:
        records = store.records(version.benchmark, version.fingerprint)
        part = store.index_part(index, version.benchmark, version.fingerprint)
        folders += [str(path.parent.relative_to(store.root)) for path in (records, part)]
    return folders


def _n_bytes(packs: Sequence[Pack], shards: Collection[str]) -> int:
    """Return the size of those shards of packs that have to be scanned, each once."""
    sizes = {shard.fingerprint: shard.n_bytes for pack in packs for shard in pack.shards}
    return sum(size for shard, size in sizes.items() if shard in shards)


def _to_read(
    packs: Sequence[Pack], answers: Sequence[Answer], shards: Collection[str]
) -> tuple[int, int]:
    """Return about how many bytes of shards the possible blocks have, and these shards whole."""
    of_blocks, whole = dict[str, float](), dict[str, int]()
    for pack, of_pack in zip(packs, answers, strict=True):
        for shard in pack.shards:
            blocks, n_blocks = of_pack.blocks_of(shard.fingerprint)
            if blocks and shard.fingerprint in shards:
                of_blocks[shard.fingerprint] = shard.n_bytes * len(blocks) / n_blocks
                whole[shard.fingerprint] = shard.n_bytes
    return round(sum(of_blocks.values())), sum(whole.values())


def _items(store: Store, answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the fields of an estimate about items."""
    n_blocks: Counter[tuple[int, int]] = Counter()
    for name in answers[0].by_detector if answers else ():
        counts = np.sum(
            [of_pack.by_detector[name].n_blocks_of_texts() for of_pack in answers], axis=0
        )
        for text in np.flatnonzero(counts).tolist():
            record = detector(name).record_of(answers[0].indexes, text)
            n_blocks[record] = max(n_blocks[record], int(counts[text]))
    most = []
    ranked = sorted(n_blocks.items(), key=lambda pair: (-pair[1], pair[0]))
    for (part, row), n in ranked[:_MOST_ITEMS]:
        version = answers[0].indexes.grams.versions[part]
        (item,) = load_records(store, version, columns=_NAMES).slice(row, 1).to_pylist()
        most.append(PossibleItem(version.benchmark, **item, n_blocks=n))
    return {"n_items": len(n_blocks), "most": most}
