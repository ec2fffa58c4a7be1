"""Reads scan results and decides which matches are leaks under current settings: the entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.detector_registry import names_where
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.calibration import NO_CALIBRATION, Calibration
from decon_core.decisions.common_ngrams import (
    MissingByShard,
    current_common,
    places_of,
    without_common,
)
from decon_core.decisions.decide import decide
from decon_core.decisions.judging import highest_thresholds, may_need_review
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import MissingError, Problem
from decon_core.index.parts import index_fingerprint, twins_of
from decon_core.scan.coverage import gaps_of
from decon_core.scan.matches import text_id_of
from decon_core.scan.scan_results import Ledger, ScanResults
from decon_core.schemas import ALIKE, ENTRIES, MATCHES
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows

One = TypeVar("One")

_NOTHING_MISSING: MissingByShard = MappingProxyType({})

_SCAN_FIRST = "materialize `scan` for these packs first; a shard that was not scanned is not clean"
_SHARDS_AT_ONCE = 64  # whose matches are in memory at the same time
_ROWS_AT_ONCE = 200_000  # matches of shards that are read together


class _Kept:
    """What a reader keeps: which scan results exist, and the entries that it read last."""

    def __init__(self) -> None:
        self.scan_results: ScanResults | None = None
        self.what: object = None
        self.entries: Mapping[str, pa.Table] = {}  # keyed by shard

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()  # another process reads for itself


@dataclass(frozen=True)
class MatchReader:
    """Reads the scan results of shards and decides which matches are leaks."""

    store: Store
    versions: tuple[Version, ...]
    policy: Policy
    scan: str
    verdicts: Verdicts = NO_VERDICTS
    calibration: Calibration = NO_CALIBRATION  # used by mixtures that select by probability
    nominations: tuple[NominatedPlaces, ...] = ()  # what is found beside the scan
    _kept: _Kept = field(default_factory=_Kept, init=False, compare=False, repr=False)

    @property
    def scan_results(self) -> ScanResults:
        """The scan results as they were when they were first needed."""
        if self._kept.scan_results is None:
            self._kept.scan_results = ScanResults(self.store, self.scan)
        return self._kept.scan_results

    def list_scan_results_again(self) -> ScanResults:
        self._kept.scan_results = None
        return self.scan_results

    def matches(
        self, shards: Collection[str], version: Version, *, columns: Sequence[str] = MATCHES.names
    ) -> pa.Table:
        """Return the matches of scanned shards, and what is found in them beside the scan."""
        name = version.fingerprint
        tables = [
            self._read_results(lambda results: results.matches(shards, name, columns=columns))
        ]
        tables += [each.matches(shards, name, columns=columns) for each in self.nominations]
        return pa.concat_tables(tables)

    def _read_results(self, read: Callable[[ScanResults], One]) -> One:
        """Return what is read of scan results, which are listed again if one is missing."""
        try:
            return read(self.scan_results)
        except MissingError:
            return read(self.list_scan_results_again())

    def needed_by(self, mixture: Mixture) -> list[Version]:
        """Return the benchmark versions that a shard must be scanned against for a mixture."""
        if not mixture.needs_leaks:
            return []
        return [version for version in self.versions if mixture.leaks.needs(version.benchmark)]

    def ledger(self, shard: Shard) -> Ledger:
        """Return what was read of a scanned shard: counts, and the rows that were not readable."""
        return self._read_results(lambda results: results.ledger(shard.fingerprint))

    def documents(self, shard: Shard) -> pa.Table:
        """Return the documents of a scanned shard."""
        return self._read_results(lambda results: results.documents(shard.fingerprint))

    def entries(self, shard: Shard, versions: Sequence[Version], *, source: str) -> pa.Table:
        """Return the entries of these benchmarks in a shard.

        Their scan results are joined with those of other shards, so these are read as well, and
        kept: the next shard is likely to be one of them.
        """
        what = source, tuple(versions)
        kept = self._kept
        if kept.what != what or shard.fingerprint not in kept.entries:
            together = self._read_with(shard.fingerprint, versions)
            entries = _by_shard(self.entries_of_shards(together, versions, source=source))
            kept.what = what
            kept.entries = {name: entries.get(name, no_rows(ENTRIES)) for name in together}
        return kept.entries[shard.fingerprint]

    def _read_with(self, shard: str, versions: Sequence[Version]) -> Sequence[str]:
        """Return the shards whose scan results are in one folder with those of a shard."""
        names = frozenset(version.fingerprint for version in versions)
        results = self.scan_results
        if results.missing(shard, names):
            results = self.list_scan_results_again()
        if not names or results.missing(shard, names):
            return [shard]  # reading it gives nothing, or fails for the missing scan result
        folder = results.folder(shard, versions[0].fingerprint)
        shards = [other for other in folder.shards if not results.missing(other, names)]
        n = self.n_shards_at_once(shards, versions)
        first = shards.index(shard) // n * n
        return shards[first : first + n]

    def n_shards_at_once(
        self,
        shards: Sequence[str],
        versions: Sequence[Version],
        lacking: MissingByShard = _NOTHING_MISSING,
    ) -> int:
        """Return how many of these shards to read together, to have few enough rows in memory."""
        n_rows = self._read_results(
            lambda results: sum(
                results.n_matches(_scanned(shards, version, lacking), version.fingerprint)
                for version in versions
            )
        )
        return max(len(shards) * _ROWS_AT_ONCE // max(n_rows, 1), 1)

    def iter_entries(
        self, packs: Iterable[Pack], versions: Sequence[Version]
    ) -> Iterator[tuple[Pack, Shard, pa.Table]]:
        """Yield the entries of every shard that has any, in the order of packs."""
        for shards, entries in self.entry_batches(packs, versions):
            tables = _by_shard(entries)
            for pack, shard in shards:  # two shards may have the same content
                if shard.fingerprint in tables:
                    yield pack, shard, tables[shard.fingerprint]

    def entry_batches(
        self,
        packs: Iterable[Pack],
        versions: Sequence[Version],
        lacking: MissingByShard = _NOTHING_MISSING,
    ) -> Iterator[tuple[Sequence[tuple[Pack, Shard]], pa.Table]]:
        """Yield many shards of a source at a time, with their entries, in the order of packs.

        Scan results of many shards are read in one call: one by one takes several times as long.
        """
        for source, group in groupby(packs, key=lambda pack: pack.source.name):
            shards = [(pack, shard) for pack in group for shard in pack.shards]
            names = [*dict.fromkeys(shard.fingerprint for _, shard in shards)]
            n = max(self.n_shards_at_once(names, versions, lacking), _SHARDS_AT_ONCE)
            for at in range(0, len(shards), n):
                batch = shards[at : at + n]
                names = [*dict.fromkeys(shard.fingerprint for _, shard in batch)]
                yield batch, self.entries_of_shards(names, versions, source=source, lacking=lacking)

    def entries_of_shards(
        self,
        shards: Sequence[str],
        versions: Sequence[Version],
        *,
        source: str,
        is_swept: bool = False,
        lacking: MissingByShard = _NOTHING_MISSING,
    ) -> pa.Table:
        """Return the entries of several shards of one source, given by their fingerprints.

        `is_swept`: also compute the highest threshold at which each entry would be a leak.
        `lacking`: benchmarks without a scan result, by shard. Another missing one raises an error.
        """
        matches = (
            (version, self.matches(_scanned(shards, version, lacking), version))
            for version in sorted(versions, key=lambda version: version.benchmark)
        )
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
            tables.append(self._alike_with_verdicts(rows, version))
        every = pa.concat_tables(tables)
        highest = highest_thresholds(every, policy) if is_swept else None
        return decide(every, policy, self.verdicts, holds_to=highest)

    def decided_texts(self, shards: Iterable[str], version: Version) -> dict[str, set[str]]:
        """Return the matched texts by shard about which a verdict or a judgement may decide.

        No entry for a shard that is not scanned.
        """
        import pyarrow.compute as pc

        text_ids: dict[str, set[str]] = {
            shard: set() for shard in shards if self.scan_results.has(shard, version.fingerprint)
        }
        columns = ["shard", "text_id", "record", "detector", "kind", *ALIKE.names]
        rows = self.matches(text_ids, version, columns=columns)
        matches = pa.concat_tables([rows, self._alike_with_verdicts(rows, version)])
        never = pc.invert(may_need_review(matches, self.policy))
        for kind in (True, False):
            deciding = pa.array(
                sorted(self.verdicts.may_decide(never_for_review=kind)), pa.string()
            )
            is_decided = pc.and_(pc.equal(never, kind), pc.is_in(matches["text_id"], deciding))
            for row in matches.filter(is_decided).select(["shard", "text_id"]).to_pylist():
                text_ids[row["shard"]].add(row["text_id"])
        return text_ids

    def _alike_with_verdicts(self, matches: pa.Table, version: Version) -> pa.Table:
        """Return matches of records with a verdict that share the match of another record."""
        import pyarrow.compute as pc

        known = {verdict.fingerprint for verdict in self.verdicts.by_text.values()}
        shared = matches.filter(pc.is_valid(matches["n_alike"])) if known else matches.slice(0, 0)
        if not shared.num_rows:
            return shared
        records = load_records(self.store, version, columns=["fingerprint", "is_correct"])
        is_known = pc.is_in(records["fingerprint"], pa.array([*known], pa.string()))
        known_records = np.flatnonzero(is_known.to_numpy())
        first = shared["first_record"].to_numpy()
        edges = np.searchsorted(known_records, [first, first + shared["n_alike"].to_numpy()])
        rows = []
        for at in np.flatnonzero(edges[1] > edges[0]).tolist():
            match = shared.slice(at, 1).to_pylist()[0]
            for record in known_records[slice(*edges[:, at])].tolist():
                if record == match["record"]:
                    continue
                values = records.slice(record, 1).to_pylist()[0]
                text_id = text_id_of(values["fingerprint"], match["words"])
                rows.append({**match, **values, "record": record, "text_id": text_id})
        return pa.Table.from_pylist(rows, schema=matches.schema)


def _scanned(shards: Iterable[str], version: Version, lacking: MissingByShard) -> list[str]:
    """Return the shards that do not lack a scan result of a benchmark."""
    return [shard for shard in shards if version.benchmark not in lacking.get(shard, ())]


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

    Detectors that search texts look for all of them. The texts are equal, so `text_id` is the same.
    """
    import pyarrow.compute as pc

    by_index = names_where(lambda each: each.uses_ngram_index)
    is_repeated = (pc.field("detector").isin([*by_index])) & pc.field("record").isin([*twins])
    rows = [
        {**match, **twin}
        for match in (matches.filter(is_repeated).to_pylist() if twins else [])
        for twin in twins[match["record"]]
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)


def require_scanned(
    reader: MatchReader, packs: Sequence[Pack], versions: Sequence[Version]
) -> None:
    """Raise `MissingError` unless every shard has a scan result for every benchmark."""
    gaps = gaps_of(reader.scan_results, packs, versions)
    if gaps:  # or scan results that were written since they were listed
        gaps = gaps_of(reader.list_scan_results_again(), packs, versions)
    problems = []
    for gap in gaps:
        where = f"shard {gap.shard.name!r} of pack {gap.pack.name!r}"
        found = f"no scan result for {', '.join(gap.lacking)}" if gap.lacking else "no scan result"
        remedy = _SCAN_FIRST
        if gap.is_refused:
            found, remedy = f"{found} ({gap.reason})", gap.cause.remedy
        problems.append(Problem(where, found, remedy=remedy))
    MissingError.raise_for(problems)
