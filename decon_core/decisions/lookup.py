"""Looks up new texts or benchmark items, with a sketch only in blocks that it does not exclude.

The items are indexed beside the benchmarks of the store, with its term weights, and scanned like a
benchmark that is added later. Everything is temporary: nothing is registered, no result is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from decon_core.benchmarks.records import Version, save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, sketch_fingerprint
from decon_core.corpus.sketch.shard_sketch import open_blocks
from decon_core.decisions.match_reader import MatchReader
from decon_core.detectors.detector import detector
from decon_core.errors import InputError, MissingError, Problem
from decon_core.index.parts import build_part, index_fingerprint, open_part
from decon_core.index.term_weights import current_snapshot
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.schemas import ENTRIES
from decon_core.storage.files import draft_folder
from decon_core.storage.store import Store, linked_store

_SHARED = ("idf", "sketch")  # folders of the store that a lookup reads


@dataclass(frozen=True, eq=False)
class FoundItems:
    """What was found of looked-up items, and where nothing was searched."""

    entries: pa.Table  # matches with their decisions
    shards: Mapping[str, tuple[Pack, Shard]]  # keyed by fingerprint
    # Blocks that may contain a match, according to the sketch.
    blocks: Sequence[tuple[Pack, Shard, int]]
    n_blocks: int  # blocks of all sketched packs; 0 without a sketch
    not_sketched: Sequence[Pack]  # not searched
    n_items: int
    dropped: Mapping[str, int]  # items that are not indexed, by reason


def bounded(policy: Policy) -> Policy:
    """Return the policy with those detectors that a sketch can answer; `decon` if there is none."""
    names = tuple(name for name in policy.detectors if detector(name).is_bounded(policy))
    return replace(policy, detectors=names or ("decon",), leave_out_common=False)


def look_up(
    store: Store,
    packs: Sequence[Pack],
    tables: Mapping[str, pa.Table],
    policy: Policy,
    sketch: Sketch | None,
    *,
    workers: int = 1,
    before_scan: Callable[[], None] = lambda: None,
    on_progress: Progress | None = None,
) -> FoundItems:
    """Find records, given by benchmark, in the sketched packs; without a sketch, in all packs.

    Raises `MissingError` if there is nothing to search, and `InputError` if no record can be found.
    """
    name, searched = "", packs
    if sketch:
        policy = bounded(policy)
        name = sketch_fingerprint(policy, sketch)
        searched = [pack for pack in packs if has_pack_sketch(store, name, pack)]
    if not searched:
        failure = "no pack has a sketch" if packs else "no pack is registered"
        remedy = "`decon-assets run` registers packs and writes their sketches"
        raise MissingError(Problem("lookup", failure, remedy=remedy))
    with draft_folder(store.drafts, "lookup") as folder:
        scratch = linked_store(store, folder / "store", _SHARED)
        versions = [save_records(scratch, each, table) for each, table in sorted(tables.items())]
        snapshot = current_snapshot(scratch, policy)
        for version in versions:
            build_part(scratch, version, snapshot, policy)
        dropped = _dropped(scratch, versions, policy)
        _require_findable(dropped, sum(version.n_records for version in versions))
        before_scan()
        scan_packs(
            scratch,
            searched,
            versions,
            policy,
            workers=workers,
            on_progress=on_progress,
            sketch=sketch,
        )
        return _found(scratch, packs, searched, versions, policy, name, dropped)


def _dropped(store: Store, versions: Sequence[Version], policy: Policy) -> dict[str, int]:
    """Count the items that are not indexed, by reason."""
    dropped: Counter[str] = Counter()
    index = index_fingerprint(store, policy)
    for version in versions:
        dropped.update(filter(None, open_part(store, version, index).why_dropped))
    return dict(sorted(dropped.items()))


def _require_findable(dropped: Mapping[str, int], n_items: int) -> None:
    if sum(dropped.values()) == n_items:
        reasons = ", ".join(f"{n} with {reason}" for reason, n in dropped.items())
        found = f"no text can be searched for: {reasons}"
        remedy = "eval_min_token_length and eval_min_unique_word_count in [policy] set the minimum"
        raise InputError(Problem("lookup", found, remedy=remedy))


def _found(
    store: Store,
    packs: Sequence[Pack],
    searched: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    sketch: str,
    dropped: Mapping[str, int],
) -> FoundItems:
    scan = scan_fingerprint(store, policy)
    reader = MatchReader(store, tuple(versions), policy, scan)
    results = ScanResults(store, scan)
    blocks: set[tuple[str, str, int]] = set()
    n_blocks = 0
    places = {(pack.name, shard.name): (pack, shard) for pack in searched for shard in pack.shards}
    for pack, shard in places.values():
        n_of_shard = len(open_blocks(store, sketch, shard.fingerprint)) if sketch else 0
        n_blocks += n_of_shard
        for version in versions:
            answer = results.answer(shard.fingerprint, version.fingerprint)
            read = answer["blocks_read"] if answer else range(n_of_shard)  # else scanned in full
            blocks |= {(pack.name, shard.name, block) for block in read}
    tables = [ENTRIES.empty_table()]
    tables += [entries for _, _, entries in reader.iter_entries(searched, versions)]
    return FoundItems(
        entries=pa.concat_tables(tables),
        shards={shard.fingerprint: (pack, shard) for pack, shard in places.values()},
        blocks=[(*places[pack, shard], block) for pack, shard, block in sorted(blocks)],
        n_blocks=n_blocks,
        not_sketched=[pack for pack in packs if pack not in searched],
        n_items=sum(version.n_records for version in versions),
        dropped=dropped,
    )
