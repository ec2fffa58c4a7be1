"""Scans a sample of the blocks that the sketch excluded, in which there must be no match."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.seeding import shuffled
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.shard_sketch import has_blocks
from decon_core.errors import Problem, collecting
from decon_core.index.parts import index_fingerprint
from decon_core.scan.blocks import ShardJob, SomeBlocks, scan_blocks
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.plan import build_search_files
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.store import Store

N_SAMPLED = 3  # blocks; one takes about as long as 14 MB of a scan

_REMEDY = "report this as a bug; remove the table [sketch], delete `scan_results` and run again"


def matches_in_excluded_blocks(
    store: Store, packs: Sequence[Pack], versions: Sequence[Version], policy: Policy
) -> tuple[list[Problem], int]:
    """Scan a random sample of excluded blocks; return the problems and the number of blocks.

    The sample changes whenever scan results are added. Blocks of a sketch that was removed since
    are left out.
    """
    scan, index = scan_fingerprint(store, policy), index_fingerprint(store, policy)
    results = ScanResults(store, scan)
    with_answers = frozenset[str]().union(*(folder.answered for folder in results.folders))
    answered = [
        (pack, shard, version, answer)
        for pack in packs
        for shard in pack.shards
        for version in versions
        if version.fingerprint in with_answers
        and (answer := results.answer(shard.fingerprint, version.fingerprint))
    ]
    problems: list[Problem] = []
    n_sampled = 0
    for number in shuffled(f"excluded blocks of {len(answered)} results", len(answered)).tolist():
        if n_sampled == N_SAMPLED:
            break
        pack, shard, version, record = answered[number]
        excluded = sorted({*range(record["n_blocks"])} - {*record["blocks_read"]})
        # A sketch that was removed since does not say any more where its blocks lie.
        if not (excluded and has_blocks(store, record["sketch"], shard.fingerprint)):
            continue
        n_sampled += 1
        name = f"{shard.fingerprint} {version.fingerprint}"
        block = excluded[int(shuffled(name, len(excluded))[0])]
        sample = SomeBlocks(record["sketch"], (block,), record["n_blocks"])
        job = ShardJob(store.root, shard, pack.source, (version,), policy, index, scan, some=sample)
        build_search_files(store, job.versions, policy, index=index, scan=scan)
        n = 0
        with collecting(problems):
            n = sum(len(match["part"]) for scanned in scan_blocks(job) for match in scanned.matches)
        if n:
            where = f"{pack.name}: {shard.name}, block {block}"
            found = f"{n:,} matches of {version.benchmark}"
            problems.append(Problem(where, found, "none, because the sketch excludes it", _REMEDY))
    return problems, n_sampled
