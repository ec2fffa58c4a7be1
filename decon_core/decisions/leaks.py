"""What was found in a shard, and what counts as a leak today: tiles and settings to entries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version
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
    """What was found in a shard, with today's threshold and verdicts."""
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
    """The same of several shards of one source, by their fingerprints.

    `is_swept`: with the highest threshold at which each entry would be a leak.
    `lacking`: for each shard, the benchmarks that it has no tile of. Any other absent tile raises.
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
    """Entries of several shards apart: they stand one shard after the other."""
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
    """The same for matches that are at hand, by benchmark."""
    with_rows = [(version, rows) for version, rows in matches if rows.num_rows]
    if not with_rows:
        return no_rows(ENTRIES)
    index = index_fingerprint(store, policy)
    common = {}
    if policy.leave_out_common:
        common = places_of(current_common(store, scan, policy)[1], source)
    tables = []
    for version, found in with_rows:
        rows = found
        if version.benchmark in common:
            places = common[version.benchmark]
            rows = without_common(found, places, store, version, policy, index=index)
        tables += [rows, _of_twins(rows, twins_of(store.root, version, index))]
    every = pa.concat_tables(tables)
    highest = highest_thresholds(every, policy) if is_swept else None
    return decide(every, policy, verdicts, holds_to=highest)


def pairs_of(store: Store, shard: Shard, version: Version, scan: str) -> set[str] | None:
    """The pairs of a benchmark that were found in a shard; None before it was scanned."""
    path = store.tile(scan, shard.fingerprint, version.fingerprint)
    if not path.is_file():
        return None
    if has_no_rows(path, MATCHES):
        return set()
    return {*read_parquet(path, columns=["pair"])["pair"].to_pylist()}


def _read(tiles: list[Path]) -> pa.Table:
    """Tiles one after the other. One by one they would take four times as long."""
    contents = tiles_with_rows(tiles, MATCHES)
    if not contents:
        return no_rows(MATCHES)
    return pl.scan_parquet(contents).collect().to_arrow().cast(MATCHES)


def _of_twins(matches: pa.Table, twins: Mapping[int, list[dict[str, Any]]]) -> pa.Table:
    """The same matches once more, for records that were left out of the index as repeats.

    Only `decon` leaves any out. Their texts are the same, so the pair is theirs as well.
    """
    rows = [
        {**match, **twin}
        for match in (matches.to_pylist() if twins else [])
        for twin in twins.get(match["record"], ())
        if match["detector"] == "decon"
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)
