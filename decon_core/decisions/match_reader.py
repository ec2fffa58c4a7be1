"""Reads the matches of a scan from its tiles and decides them under the current settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.leaks import by_shard, entries_of_shards
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.storage.store import Store

_SHARDS_AT_ONCE = 64  # whose matches are in memory at the same time


@dataclass(frozen=True)
class MatchReader:
    """Reads the tiles of shards and decides which matches are leaks."""

    store: Store
    versions: tuple[Version, ...]
    policy: Policy
    scan: str
    verdicts: Verdicts = NO_VERDICTS

    def needed_by(self, mixture: Mixture) -> list[Version]:
        """Return the benchmark versions that a shard must be scanned against for a mixture."""
        if not mixture.needs_leaks:
            return []
        return [version for version in self.versions if mixture.leaks.needs(version.benchmark)]

    def entries(self, shard: Shard, versions: Sequence[Version], *, source: str) -> pa.Table:
        """Return the entries of these benchmarks in a shard."""
        return self._entries([shard.fingerprint], versions, source=source)

    def iter_entries(
        self, packs: Iterable[Pack], versions: Sequence[Version]
    ) -> Iterator[tuple[Pack, Shard, pa.Table]]:
        """Yield the entries of every shard that has any, in the order of packs.

        Tiles of many shards are read in one call: one by one takes several times as long.
        """
        for source, group in groupby(packs, key=lambda pack: pack.source.name):
            shards = [(pack, shard) for pack in group for shard in pack.shards]
            for at in range(0, len(shards), _SHARDS_AT_ONCE):
                batch = shards[at : at + _SHARDS_AT_ONCE]
                fingerprints = [*dict.fromkeys(shard.fingerprint for _, shard in batch)]
                tables = by_shard(self._entries(fingerprints, versions, source=source))
                for pack, shard in batch:  # two shards may have the same content
                    if shard.fingerprint in tables:
                        yield pack, shard, tables[shard.fingerprint]

    def _entries(
        self, shards: Sequence[str], versions: Sequence[Version], *, source: str
    ) -> pa.Table:
        return entries_of_shards(
            self.store,
            shards,
            versions,
            self.policy,
            self.scan,
            source=source,
            verdicts=self.verdicts,
        )
