"""Finds out which shards were scanned against which benchmark versions, and why others were not.

A scan result holds the matches of one shard with one benchmark version under one scan fingerprint;
a ledger counts the rows that were read of the shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard
from decon_core.errors import DeconError, Problem
from decon_core.index.term_weights import current_snapshot_fingerprint
from decon_core.scan.join import unjoined_versions
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.text.tokenizers import load_tokenizer


def scan_fingerprint(store: Store, policy: Policy) -> str:
    """Return the fingerprint of scan results under the current policy, tokenizer and snapshot."""
    return policy.scan_fingerprint(
        tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint,
        snapshot=current_snapshot_fingerprint(store),
    )


def missing_scan_results(
    results: ScanResults,
    packs: Iterable[Pack],
    versions: Sequence[Version],
    *,
    needs_counts: bool = False,
) -> list[tuple[Pack, Shard, list[Version]]]:
    """Return the shards that are not scanned against all versions, each with the missing ones.

    With `needs_counts`, an answer from the sketch is not enough: it counts no documents.
    """
    return [
        (pack, shard, missing)
        for pack in packs
        for shard in pack.shards
        if (missing := _missing_of_shard(results, shard, versions, needs_counts=needs_counts))
    ]


def _missing_of_shard(
    results: ScanResults, shard: Shard, versions: Sequence[Version], *, needs_counts: bool = False
) -> list[Version]:
    """Return the versions that a shard is not scanned against."""
    if not results.is_read(shard.fingerprint):
        return list(versions)
    names = frozenset(version.fingerprint for version in versions)
    missing = results.missing(shard.fingerprint, names, needs_counts=needs_counts)
    return [version for version in versions if version.fingerprint in missing] if missing else []


def without_scan_result(
    results: ScanResults, shard: Shard, versions: Sequence[Version], *, needs_counts: bool
) -> list[Version]:
    """Return the versions for which a shard has no scan result, not even one to be joined."""
    names = frozenset(version.fingerprint for version in versions)
    missing = results.missing(shard.fingerprint, names, needs_counts=needs_counts)
    if missing:
        missing -= unjoined_versions(
            results.store, results.scan, shard.fingerprint, needs_counts=needs_counts
        )
    return [version for version in versions if version.fingerprint in missing]


def uncounted(
    results: ScanResults, packs: Iterable[Pack], versions: Sequence[Version]
) -> dict[str, frozenset[str]]:
    """Return, by fingerprint of the shard, the benchmarks whose n-grams were not counted in it."""
    return {
        shard.fingerprint: frozenset(version.benchmark for version in missing)
        for _, shard, missing in missing_scan_results(results, packs, versions, needs_counts=True)
    }


_NOT_TRIED = Problem(
    "", "not scanned yet", "a scan result for every benchmark", "`decon-assets run`"
)


@dataclass(frozen=True)
class Gap:
    """A shard that is not scanned against some benchmark versions, and the cause."""

    pack: Pack
    shard: Shard
    lacking: tuple[str, ...]  # names of the missing benchmarks
    is_read: bool  # whether the shard was scanned against other benchmarks
    cause: Problem
    is_scanned: bool = False  # whether it was scanned, and none of its rows could be read

    @property
    def is_refused(self) -> bool:
        """Whether a scan of the shard failed; if not, no scan was tried yet."""
        return self.cause != _NOT_TRIED

    @property
    def reason(self) -> str:
        """The cause as text, without the path of the shard."""
        place = self.cause.where.removeprefix(self.shard.path).lstrip(": ")
        return f"{place}: {self.cause.found}" if place else self.cause.found


def gaps_of(results: ScanResults, packs: Iterable[Pack], versions: Sequence[Version]) -> list[Gap]:
    """Return the shards that are not scanned against every version, with the known causes."""
    gaps = []
    for pack in packs:
        for shard in pack.shards:
            missing = _missing_of_shard(results, shard, versions)
            if missing or not (versions or results.is_read(shard.fingerprint)):
                names = tuple(version.benchmark for version in missing)
                is_read = len(missing) < len(versions)
                gaps.append(Gap(pack, shard, names, is_read, read_refusal(results.store, shard)))
    return gaps


def missing_by_shard(gaps: Iterable[Gap]) -> dict[str, frozenset[str]]:
    """Return the missing benchmarks by fingerprint of the shard."""
    return {gap.shard.fingerprint: frozenset(gap.lacking) for gap in gaps if not gap.is_scanned}


def write_refusal(store: Store, shard: Shard, error: DeconError) -> None:
    """Record why a shard could not be scanned. A later scan that succeeds removes the record."""
    write_json(store.refusal(shard.fingerprint), asdict(error.problems[0]))


def read_refusal(store: Store, shard: Shard) -> Problem:
    """Return why a shard has no scan results: the error of its last scan, or that none began."""
    path = store.refusal(shard.fingerprint)
    return Problem(**read_json(path)) if path.is_file() else _NOT_TRIED


def refused(store: Store, packs: Iterable[Pack]) -> Iterator[tuple[Shard, Problem]]:
    """Yield the shards whose last scan failed, with the cause."""
    for pack in packs:
        for shard in pack.shards:
            if store.refusal(shard.fingerprint).is_file():
                yield shard, read_refusal(store, shard)


def scanned_counts(pack: Pack, version: Version, results: ScanResults) -> dict[str, int]:
    """Read the counts of a pack and a benchmark from ledgers and scan results, as of all runs.

    Those of the sketch are left out if it answered for no shard.
    """
    shards = [shard.fingerprint for shard in pack.shards]
    ledgers = [results.ledger(shard) for shard in shards]
    counts = {
        "documents": sum(ledger["n_documents"] for ledger in ledgers),
        "unreadable_rows": sum(len(ledger["unreadable"]) for ledger in ledgers),
        "matches": results.matches(shards, version.fingerprint, columns=["shard"]).num_rows,
    }
    answers = [answer for shard in shards if (answer := results.answer(shard, version.fingerprint))]
    if not answers:
        return counts
    n_read = sum(len(answer["blocks_read"]) for answer in answers)
    return counts | {
        "shards_answered_from_sketch": len(answers),
        "blocks_excluded_by_sketch": sum(answer["n_blocks"] for answer in answers) - n_read,
        "blocks_read": n_read,
    }
