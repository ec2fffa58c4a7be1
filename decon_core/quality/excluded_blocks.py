"""Scans a sample of the blocks that the sketch excluded, in which there must be no match."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.seeding import shuffled
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.shard_sketch import has_blocks
from decon_core.errors import DeconError, Problem
from decon_core.index.parts import index_fingerprint
from decon_core.scan.blocks import ShardJob, SomeBlocks, scan_blocks
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.plan import build_search_files
from decon_core.scan.tiles import Tiles
from decon_core.storage.store import Store

N_SAMPLED = 3  # blocks; one takes about as long as 14 MB of a scan

_REMEDY = "report this as a fault; without the table [sketch], delete `tiles` and run again"


def matches_in_excluded_blocks(
    store: Store, packs: Sequence[Pack], versions: Sequence[Version], policy: Policy
) -> tuple[list[Problem], int]:
    """Scan a random sample of excluded blocks; return the problems and the number of blocks.

    The sample is another one whenever cells were added. Blocks of a sketch that was removed since
    are left out.
    """
    scan = scan_fingerprint(store, policy)
    tiles = Tiles(store, scan)
    answered = [
        (pack, shard, version, found)
        for pack in packs
        for shard in pack.shards
        for version in versions
        if (found := tiles.answer(shard.fingerprint, version.fingerprint))
    ]
    problems: list[Problem] = []
    n = 0
    for number in shuffled(f"excluded blocks of {len(answered)} cells", len(answered)).tolist():
        if n == N_SAMPLED:
            break
        pack, shard, version, record = answered[number]
        excluded = sorted({*range(record["n_blocks"])} - {*record["blocks_read"]})
        # A sketch that was removed since does not say any more where its blocks lie.
        if not (excluded and has_blocks(store, record["sketch"], shard.fingerprint)):
            continue
        name = f"{shard.fingerprint} {version.fingerprint}"
        block = excluded[int(shuffled(name, len(excluded))[0])]
        job = ShardJob(
            store.root,
            shard,
            pack.source,
            (version,),
            policy,
            index_fingerprint(store, policy),
            scan,
            some=SomeBlocks(record["sketch"], (block,), record["n_blocks"]),
        )
        problems += _problems(store, job, f"{pack.name}: {shard.name}, block {block}")
        n += 1
    return problems, n


def _problems(store: Store, job: ShardJob, where: str) -> list[Problem]:
    """Scan a block; return a problem if there is a match in it, or it cannot be read."""
    build_search_files(store, job.versions, job.policy, index=job.index, scan=job.scan)
    try:
        n = sum(len(one["part"]) for scanned in scan_blocks(job) for one in scanned.matches)
    except DeconError as error:
        return [*error.problems]
    found = f"{n:,} matches of {job.versions[0].benchmark}"
    return [Problem(where, found, "none: the sketch excludes them", _REMEDY)] if n else []
