"""Matches of a scan, read from its tiles and decided under today's settings."""

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

_SHARDS_AT_ONCE = 64  # of which what was found is in memory


@dataclass(frozen=True)
class MatchReader:
    """Reads the tiles of shards, and decides under today's settings what of them is a leak."""

    store: Store
    versions: tuple[Version, ...]
    policy: Policy
    scan: str
    verdicts: Verdicts = NO_VERDICTS

    def needed_by(self, mixture: Mixture) -> list[Version]:
        """The benchmark versions that a mixture cannot be told without."""
        if not mixture.needs_leaks:
            return []
        return [version for version in self.versions if mixture.leaks.needs(version.benchmark)]

    def entries(self, shard: Shard, versions: Sequence[Version], *, source: str) -> pa.Table:
        """What was found of these benchmarks in a shard, as it counts today."""
        return self._entries([shard.fingerprint], versions, source=source)

    def iter_entries(
        self, packs: Iterable[Pack], versions: Sequence[Version]
    ) -> Iterator[tuple[Pack, Shard, pa.Table]]:
        """The same of every shard in which something was found, in the order of packs.

        Tiles of many shards are read at once: one by one they take several times as long.
        """
        for source, group in groupby(packs, key=lambda pack: pack.source.name):
            shards = [(pack, shard) for pack in group for shard in pack.shards]
            for at in range(0, len(shards), _SHARDS_AT_ONCE):
                own = shards[at : at + _SHARDS_AT_ONCE]
                fingerprints = [*dict.fromkeys(shard.fingerprint for _, shard in own)]
                tables = by_shard(self._entries(fingerprints, versions, source=source))
                for pack, shard in own:  # of which two may hold the same bytes
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
