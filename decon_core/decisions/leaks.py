"""Reads tiles and decides which matches are leaks under the current settings: the entries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.config.detectors import Reads, names_where
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Shard
from decon_core.decisions.common_ngrams import current_common, places_of, without_common
from decon_core.decisions.decide import decide
from decon_core.decisions.thresholds import highest_thresholds
from decon_core.decisions.verdicts import Verdicts
from decon_core.index.parts import index_fingerprint, twins_of
from decon_core.schemas import ENTRIES, MATCHES
from decon_core.storage.store import Store, has_no_rows, no_rows, read_parquet, tiles_with_rows


def entries_of_shard(
    store: Store,
    shard: Shard,
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    *,
    source: str,
    verdicts: Verdicts,
) -> pa.Table:
    """Return the entries of a shard under the current thresholds and verdicts."""
    return entries_of_shards(
        store, [shard.fingerprint], versions, policy, scan, source=source, verdicts=verdicts
    )


def entries_of_shards(
    store: Store,
    shards: Sequence[str],
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    *,
    source: str,
    verdicts: Verdicts,
    is_swept: bool = False,
    lacking: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> pa.Table:
    """Return the entries of several shards of one source, given by their fingerprints.

    `is_swept`: also compute the highest threshold at which each entry would be a leak.
    `lacking`: benchmarks without a tile, by shard. Any other missing tile raises an error.
    """
    tiles = (
        (
            version,
            _read(
                [
                    store.tile(scan, shard, version.fingerprint)
                    for shard in shards
                    if version.benchmark not in lacking.get(shard, ())
                ]
            ),
        )
        for version in sorted(versions, key=lambda version: version.benchmark)
    )
    return entries_of(
        store, tiles, policy, scan, source=source, verdicts=verdicts, is_swept=is_swept
    )


def by_shard(entries: pa.Table) -> dict[str, pa.Table]:
    """Split entries, which are sorted by shard, into one table per shard."""
    counted = entries["shard"].value_counts()
    shards = counted.field("values").to_pylist()
    counts = counted.field("counts").to_pylist()
    firsts = accumulate(counts, initial=0)
    return {
        shard: entries.slice(first, n)
        for shard, first, n in zip(shards, firsts, counts, strict=False)
    }


def entries_of(
    store: Store,
    matches: Iterable[tuple[Version, pa.Table]],
    policy: Policy,
    scan: str,
    *,
    source: str,
    verdicts: Verdicts,
    is_swept: bool = False,
) -> pa.Table:
    """Return the entries of matches that are given by benchmark version."""
    with_rows = [(version, rows) for version, rows in matches if rows.num_rows]
    if not with_rows:
        return no_rows(ENTRIES)
    index = index_fingerprint(store, policy)
    common = {}
    if policy.leave_out_common:
        common = places_of(current_common(store, scan, policy)[1], source)
    tables = []
    for version, table in with_rows:
        rows = table
        if version.benchmark in common:
            places = common[version.benchmark]
            rows = without_common(table, places, store, version, policy, index=index)
        tables += [rows, _repeat_for_twins(rows, twins_of(store.root, version, index))]
    every = pa.concat_tables(tables)
    highest = highest_thresholds(every, policy) if is_swept else None
    return decide(every, policy, verdicts, holds_to=highest)


def pairs_of(store: Store, shard: Shard, version: Version, scan: str) -> set[str] | None:
    """Return the pairs of a benchmark that were found in a shard; None if it is not scanned."""
    path = store.tile(scan, shard.fingerprint, version.fingerprint)
    if not path.is_file():
        return None
    if has_no_rows(path, MATCHES):
        return set()
    return {*read_parquet(path, columns=["pair"])["pair"].to_pylist()}


def _read(tiles: list[Path]) -> pa.Table:
    """Read tiles into one table, in one call: one by one takes four times as long."""
    contents = tiles_with_rows(tiles, MATCHES)
    if not contents:
        return no_rows(MATCHES)
    return pl.scan_parquet(contents).collect().to_arrow().cast(MATCHES)


def _repeat_for_twins(matches: pa.Table, twins: Mapping[int, list[dict[str, Any]]]) -> pa.Table:
    """Repeat matches for records that the index left out as exact repeats of another record.

    Detectors that search texts look for all of them. The texts are equal, so the pair is the same.
    """
    by_index = names_where(lambda one: one.reads is Reads.INDEX)
    rows = [
        {**match, **twin}
        for match in (matches.to_pylist() if twins else [])
        for twin in twins.get(match["record"], ())
        if match["detector"] in by_index
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)
