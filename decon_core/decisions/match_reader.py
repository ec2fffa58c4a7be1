"""Reads tiles and decides which matches are leaks under the current settings: the entries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.records import Version
from decon_core.config.detector_registry import names_where
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.calibration import NO_CALIBRATION, Calibration
from decon_core.decisions.common_ngrams import current_common, places_of, without_common
from decon_core.decisions.decide import decide, highest_thresholds, is_never_candidate
from decon_core.decisions.nominations import Nominations
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import MissingError, Problem
from decon_core.index.parts import index_fingerprint, twins_of
from decon_core.scan.coverage import gaps_of
from decon_core.scan.tiles import Tiles
from decon_core.schemas import ENTRIES, MATCHES
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows

_SCAN_FIRST = "materialize `scan` for these cells first; a shard that was not scanned is not clean"
_SHARDS_AT_ONCE = 64  # whose matches are in memory at the same time
_ROWS_AT_ONCE = 200_000  # matches of shards that are read together for one of them


class _Kept:
    """What a reader keeps: which tiles exist, and the entries that it read last."""

    def __init__(self) -> None:
        self.tiles: Tiles | None = None
        self.what: object = None
        self.entries: Mapping[str, pa.Table] = {}  # by shard

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()  # another process reads for itself


@dataclass(frozen=True)
class MatchReader:
    """Reads the tiles of shards and decides which matches are leaks."""

    store: Store
    versions: tuple[Version, ...]
    policy: Policy
    scan: str
    verdicts: Verdicts = NO_VERDICTS
    calibration: Calibration = NO_CALIBRATION  # for mixtures that select by probability
    nominations: tuple[Nominations, ...] = ()  # what is found beside the scan
    _kept: _Kept = field(default_factory=_Kept, init=False, compare=False, repr=False)

    @property
    def tiles(self) -> Tiles:
        """The tiles of the scan, as they were when they were first needed."""
        if self._kept.tiles is None:
            self._kept.tiles = Tiles(self.store, self.scan)
        return self._kept.tiles

    def list_tiles_again(self) -> Tiles:
        self._kept.tiles = None
        return self.tiles

    def matches(
        self,
        shards: Collection[str],
        version: Version,
        *,
        columns: Sequence[str] = MATCHES.names,
    ) -> pa.Table:
        """Return the matches of scanned shards, and what is found in them beside the scan.

        Tiles are listed again if one is missing.
        """
        name = version.fingerprint
        try:
            found = self.tiles.matches(shards, name, columns=columns)
        except MissingError:
            found = self.list_tiles_again().matches(shards, name, columns=columns)
        return pa.concat_tables(
            [found, *(one.matches(shards, name, columns=columns) for one in self.nominations)]
        )

    def needed_by(self, mixture: Mixture) -> list[Version]:
        """Return the benchmark versions that a shard must be scanned against for a mixture."""
        if not mixture.needs_leaks:
            return []
        return [version for version in self.versions if mixture.leaks.needs(version.benchmark)]

    def ledger(self, shard: Shard) -> dict[str, Any]:
        """Return what was read of a scanned shard: counts, and the rows that were not readable."""
        ledger: dict[str, Any] = read_json(self.store.ledger(self.scan, shard.fingerprint))
        return ledger

    def entries(self, shard: Shard, versions: Sequence[Version], *, source: str) -> pa.Table:
        """Return the entries of these benchmarks in a shard.

        Their tiles are joined with those of other shards, so these are read as well, and kept: the
        next shard is likely to be one of them.
        """
        what = source, tuple(versions)
        kept = self._kept
        if kept.what != what or shard.fingerprint not in kept.entries:
            together = self._read_with(shard.fingerprint, versions)
            found = _by_shard(self.entries_of_shards(together, versions, source=source))
            kept.what = what
            kept.entries = {one: found.get(one, no_rows(ENTRIES)) for one in together}
        return kept.entries[shard.fingerprint]

    def _read_with(self, shard: str, versions: Sequence[Version]) -> Sequence[str]:
        """Return the shards whose tiles are in one folder with those of a shard."""
        names = [version.fingerprint for version in versions]
        wanted, tiles = frozenset(names), self.tiles
        if tiles.missing(shard, wanted):
            tiles = self.list_tiles_again()
        if not names or tiles.missing(shard, wanted):
            return [shard]  # to read nothing, or to fail for the missing tile
        folder = tiles.folder(shard, names[0])
        shards = [one for one in folder.shards if not tiles.missing(one, wanted)]
        n_rows = sum(tiles.n_matches(shards, name) for name in names)
        n = max(len(shards) * _ROWS_AT_ONCE // max(n_rows, 1), 1)
        first = shards.index(shard) // n * n
        return shards[first : first + n]

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
                entries = self.entries_of_shards(fingerprints, versions, source=source)
                tables = _by_shard(entries)
                for pack, shard in batch:  # two shards may have the same content
                    if shard.fingerprint in tables:
                        yield pack, shard, tables[shard.fingerprint]

    def entries_of_shards(
        self,
        shards: Sequence[str],
        versions: Sequence[Version],
        *,
        source: str,
        is_swept: bool = False,
        lacking: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> pa.Table:
        """Return the entries of several shards of one source, given by their fingerprints.

        `is_swept`: also compute the highest threshold at which each entry would be a leak.
        `lacking`: benchmarks without a tile, by shard. Any other missing tile raises an error.
        """
        read = (
            (version, [one for one in shards if version.benchmark not in lacking.get(one, ())])
            for version in sorted(versions, key=lambda version: version.benchmark)
        )
        matches = ((one, self.matches(of_version, one)) for one, of_version in read)
        return self.decide(matches, source=source, is_swept=is_swept)

    def decide(
        self, matches: Iterable[tuple[Version, pa.Table]], *, source: str, is_swept: bool = False
    ) -> pa.Table:
        """Return the entries of matches that are given by benchmark version."""
        store, policy = self.store, self.policy
        with_rows = [(version, rows) for version, rows in matches if rows.num_rows]
        if not with_rows:
            return no_rows(ENTRIES)
        index = index_fingerprint(store, policy)
        common = {}
        if policy.leave_out_common:
            common = places_of(current_common(store, self.scan, policy)[1], source)
        tables = []
        for version, table in with_rows:
            rows = table
            if version.benchmark in common:
                places = common[version.benchmark]
                rows = without_common(table, places, store, version, policy, index=index)
            tables += [rows, _repeat_for_twins(rows, twins_of(store.root, version, index))]
        every = pa.concat_tables(tables)
        highest = highest_thresholds(every, policy) if is_swept else None
        return decide(every, policy, self.verdicts, holds_to=highest)

    def decided_pairs(self, shards: Iterable[str], version: Version) -> dict[str, set[str]]:
        """Return the pairs of a benchmark by shard about which a verdict or a judgement may decide.

        No entry for a shard that is not scanned.
        """
        name = version.fingerprint
        pairs: dict[str, set[str]] = {one: set() for one in shards if self.tiles.has(one, name)}
        columns = ["shard", "pair", "detector", "looked_for"]
        matches = self.matches(pairs, version, columns=columns)
        never = is_never_candidate(matches)
        for kind in (True, False):
            wanted = pa.array(sorted(self.verdicts.may_decide(never_candidate=kind)), pa.string())
            is_wanted = pc.and_(pc.equal(never, kind), pc.is_in(matches["pair"], wanted))
            for row in matches.filter(is_wanted).select(["shard", "pair"]).to_pylist():
                pairs[row["shard"]].add(row["pair"])
        return pairs


def _by_shard(entries: pa.Table) -> dict[str, pa.Table]:
    """Split entries, which are sorted by shard, into one table per shard."""
    counted = entries["shard"].value_counts()
    shards, counts = (counted.field(name).to_pylist() for name in ("values", "counts"))
    firsts = accumulate(counts, initial=0)
    return {
        shard: entries.slice(first, n)
        for shard, first, n in zip(shards, firsts, counts, strict=False)
    }


def _repeat_for_twins(matches: pa.Table, twins: Mapping[int, list[dict[str, Any]]]) -> pa.Table:
    """Repeat matches for records that the index left out as exact repeats of another record.

    Detectors that search texts look for all of them. The texts are equal, so the pair is the same.
    """
    by_index = names_where(lambda one: one.uses_ngram_index)
    rows = [
        {**match, **twin}
        for match in (matches.to_pylist() if twins else [])
        for twin in twins.get(match["record"], ())
        if match["detector"] in by_index
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)


def require_scanned(reader: MatchReader, pack: Pack, versions: Sequence[Version]) -> None:
    """Raise `MissingError` unless every shard has a tile for every benchmark."""
    wanted = reader.store, [pack], versions, reader.scan
    gaps = gaps_of(*wanted, tiles=reader.tiles)
    if gaps:  # or tiles that were written since they were listed
        gaps = gaps_of(*wanted, tiles=reader.list_tiles_again())
    problems = []
    for gap in gaps:
        where = f"shard {gap.shard.name!r} of pack {gap.pack.name!r}"
        found = f"not scanned against {', '.join(gap.lacking)}" if gap.lacking else "not scanned"
        remedy = _SCAN_FIRST
        if gap.is_refused:
            found, remedy = f"{found} ({gap.reason})", gap.cause.remedy
        problems.append(Problem(where, found, "a tile for every benchmark", remedy))
    if problems:
        raise MissingError(problems)
