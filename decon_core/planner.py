"""Compares a configuration with the files in its store, and lists what is missing or outdated.

One plan answers `run`, `status`, `backfill` and the sensor. Each asset names the function of the
plan that returns whether it is missing, or the keys of its missing partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from decon_core.benchmarks.benchmark import Benchmark
from decon_core.benchmarks.configured import benchmark_files, benchmarks_of, refused_of
from decon_core.benchmarks.records import Version, current_version, recorded_origin
from decon_core.config.load import Config
from decon_core.corpus.packs import Pack, Shard, list_source
from decon_core.corpus.registration import PackChanges, changes_of_packs, list_packs, skipped_in
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch, sketch_fingerprint
from decon_core.decisions.candidates import NO_EVIDENCE, Evidence
from decon_core.decisions.common_ngrams import common_made_from
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.decisions.not_read import Account, UnreadRule, account_of, ledgers_of
from decon_core.decisions.verdicts import read_verdicts
from decon_core.errors import Problem, StaleError
from decon_core.feature import feature_entries, feature_hooks
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.index.term_weights import (
    current_snapshot,
    outdated_members,
    require_counted_under,
    require_frozen_from,
)
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.clean_evals import has_clean_benchmark
from decon_core.report.build import is_current
from decon_core.report.page_additions import additions_of, additions_on_page, key_of
from decon_core.report.tables import ReportAddition
from decon_core.scan.coverage import gaps_of, missing_scan_results, scan_fingerprint, uncounted
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.listing import Skipped
from decon_core.storage.paths import stamp_or_none
from decon_core.storage.store import Store


@dataclass(frozen=True)
class Plan:
    """A configuration and its store; what is read of them is kept."""

    config: Config
    store: Store
    registered: tuple[Pack, ...] | None = None  # if they were read before

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        """The registered packs, sorted by name: products are fingerprints of them in order."""
        packs = list_packs(self.store) if self.registered is None else self.registered
        return tuple(sorted(packs, key=lambda pack: pack.name))

    @cached_property
    def n_shards(self) -> int:
        return sum(len(pack.shards) for pack in self.packs)

    @cached_property
    def changes(self) -> PackChanges:
        """How the registered packs differ from the corpus on disk."""
        return changes_of_packs(self.config, self.store, _files_without_shards(self.config))

    @cached_property
    def benchmarks(self) -> Mapping[str, Benchmark]:
        """The benchmarks that the configuration selects, by name."""
        return benchmarks_of(self.config)

    @cached_property
    def stale_benchmarks(self) -> list[str]:
        """The benchmarks never normalized, or whose recipe or files changed since then."""
        return [
            name
            for name, benchmark in self.benchmarks.items()
            if recorded_origin(self.store, name) != benchmark.origin()
        ]

    @cached_property
    def versions(self) -> list[Version]:
        """The versions of all benchmarks; MissingError if one has no records."""
        return [current_version(self.store, name) for name in self.benchmarks]

    @cached_property
    def current_versions(self) -> list[Version]:
        """The versions of all benchmarks; StaleError if a recipe, file or setting has changed."""
        versions = self.versions
        if self.store.current_snapshot.is_file():
            require_counted_under(self.store, self.config.policy)
            require_frozen_from(self.store, self.config.term_weights.benchmarks)
        if self.stale_benchmarks:
            raise StaleError(
                Problem(
                    f"benchmark {name!r}",
                    "its recipe or files changed since it was normalized",
                    remedy="materialize `records`, `index` and `scan` for it: `decon-assets run`",
                )
                for name in self.stale_benchmarks
            )
        return versions

    @cached_property
    def known_versions(self) -> list[Version]:
        """The versions of the benchmarks that have records, even if files changed since."""
        names = (name for name in self.benchmarks if self.store.current_records(name).is_file())
        return [current_version(self.store, name) for name in names]

    @cached_property
    def indexed_versions(self) -> list[Version]:
        """The versions of the benchmarks that have an index."""
        index = index_fingerprint(self.store, self.config.policy)
        return [version for version in self.known_versions if has_part(self.store, version, index)]

    @cached_property
    def sketch(self) -> str:
        """The fingerprint of the sketches that the configuration asks for; empty without any."""
        if self.config.sketch is None:
            return ""
        return sketch_fingerprint(self.config.policy, self.config.sketch)

    @cached_property
    def scan(self) -> str:
        return scan_fingerprint(self.store, self.config.policy)

    @cached_property
    def scan_results(self) -> ScanResults:
        return ScanResults(self.store, self.scan)

    @cached_property
    def unread(self) -> UnreadRule:
        """Which text may stay unread."""
        ignore = tuple((source.name, source.ignore) for source in self.config.corpus.sources)
        return UnreadRule(ignore, is_blocking=self.config.corpus.unread == "block")

    def not_read(self, skipped: Iterable[Skipped]) -> Account:
        """Return what was not read, before any setting of the policy accepts it."""
        # Without verdicts, which may be damaged: the state of products says so.
        reader = MatchReader(self.store, (), self.config.policy, self.scan)
        gaps = gaps_of(self.scan_results, self.packs, self.known_versions)
        gaps = [gap for gap in gaps if gap.is_refused and not gap.is_read]
        return account_of(ledgers_of(reader, self.packs), self.unread, skipped, gaps)

    @cached_property
    def builder(self) -> Builder:
        """The builder of mixtures for the current versions."""
        return self.builder_of(self.current_versions)

    def builder_of(self, versions: Iterable[Version]) -> Builder:
        """Return the builder of mixtures for these versions."""
        config, evidence = self.config, evidence_of(self.config)
        verdicts = read_verdicts(config.verdicts, clears=config.review.clears)
        return Builder(
            self.store,
            self.packs,
            tuple(versions),
            config.policy,
            config.mixtures,
            verdicts=verdicts.with_judgements(evidence.annotations, config.review.judged),
            evidence=evidence,
            nominations=self.nominations,
            unread=self.unread,
            not_covered=refused_of(config),
            skipped=skipped_in(self.store, config.folder),
        )

    @cached_property
    def nominations(self) -> tuple[NominatedPlaces, ...]:
        """What features found beside the scan."""
        hooks = map(resolve_name, feature_entries("nominations").values())
        return tuple(places for hook in hooks if (places := hook(self)))

    @cached_property
    def additions(self) -> list[ReportAddition]:
        """The tables that features add to the report."""
        return [tables for hook in feature_hooks("report") if (tables := hook(self))]


def evidence_of(config: Config) -> Evidence:
    """Return the evidence about pairs that features add to verdicts."""
    return next((hook(config) for hook in feature_hooks("evidence")), NO_EVIDENCE)


class InputFile(NamedTuple):
    """An input file, with a version that changes when its content does."""

    path: str
    n_bytes: int
    version: str  # modification time, or the tag of a remote store for the content


def input_files(config: Config) -> list[InputFile]:
    """List all files that a configuration reads, from itself to its shards.

    Fast enough to be called several times a minute: only recipes are opened, once per change.
    Missing files, and the files of a recipe that cannot be read, are left out; reading them later
    raises the error.
    """
    paths = _files_without_shards(config)
    stamps = {str(path): stamp for path in paths if (stamp := stamp_or_none(path))}
    for source in config.corpus.sources:
        # Stamps are strings: 100,000 `Path`s cost more than the listing.
        stamps.update(list_source(source, folder=config.folder).files)
    return sorted(
        InputFile(path, n_bytes, tag or str(modified_ns))
        for path, (n_bytes, modified_ns, tag) in stamps.items()
    )


def _files_without_shards(config: Config) -> set[Path]:
    """Return all files that a configuration reads, but its shards."""
    of_features = [path for hook in feature_hooks("files") for path in hook(config)]
    paths = [config.path, config.verdicts, *config.recipes, *of_features]
    return {*paths, *benchmark_files(config)}


def missing_records(plan: Plan) -> list[str]:
    return plan.stale_benchmarks


def needs_snapshot(plan: Plan) -> bool:
    return not plan.store.current_snapshot.is_file()


def outdated_in_snapshot(config: Config, store: Store) -> list[Problem]:
    """Return the benchmarks that changed since the term weights, which is kept on purpose.

    Raises StaleError if it was counted under other settings.
    """
    current_snapshot(store, config.policy)
    require_frozen_from(store, config.term_weights.benchmarks)
    return outdated_members(store)


def missing_index_parts(plan: Plan) -> list[str]:
    index = index_fingerprint(plan.store, plan.config.policy)
    return [
        version.benchmark
        for version in plan.current_versions
        if not has_part(plan.store, version, index)
    ]


def unscanned(plan: Plan) -> Iterator[tuple[str, str, Shard]]:
    """Yield names of a benchmark and a pack, and a shard of it without a scan result for it.

    A benchmark without a version in the plan was never scanned.
    """
    known = {version.benchmark for version in plan.versions}
    for name in plan.benchmarks:
        if name not in known:
            yield from ((name, pack.name, shard) for pack in plan.packs for shard in pack.shards)
    if not known:
        return
    for pack, shard, versions in missing_scan_results(
        plan.scan_results,
        plan.packs,
        plan.versions,
        needs_counts=plan.config.policy.leave_out_common,
    ):
        yield from ((version.benchmark, pack.name, shard) for version in versions)


def unscanned_benchmarks(plan: Plan) -> dict[str, set[str]]:
    """Return, for each pack, the benchmarks for which any of its shards has no scan result."""
    missing: dict[str, set[str]] = {}
    for benchmark, pack, _ in unscanned(plan):
        missing.setdefault(pack, set()).add(benchmark)
    return missing


def unsketched_packs(plan: Plan) -> list[str]:
    """Return the packs without a sketch, if the configuration asks for sketches."""
    if not plan.sketch:
        return []
    return [pack.name for pack in plan.packs if not has_pack_sketch(plan.store, plan.sketch, pack)]


def needs_common_ngrams(plan: Plan) -> bool:
    """Whether the list of common n-grams is missing and can be made.

    It cannot be made while a shard waits for its scan; shards whose scan failed are left out.
    """
    store, packs, versions, scan = plan.store, plan.packs, plan.versions, plan.scan
    if not all(gap.is_refused for gap in gaps_of(plan.scan_results, packs, versions)):
        return False
    left_out = uncounted(plan.scan_results, packs, versions)
    return not common_made_from(store, packs, versions, plan.config.policy, scan, left_out)


def missing_shares(plan: Plan) -> Mapping[str, set[str]]:
    """Return, for each pack, the mixtures whose share of it is missing or outdated."""
    current = {
        mixture.name: plan.builder.current_packs(mixture) for mixture in plan.builder.mixtures
    }
    return {
        pack.name: {name for name, packs in current.items() if pack.name not in packs}
        for pack in plan.packs
    }


def missing_clean_benchmarks(plan: Plan) -> list[str]:
    return [
        version.benchmark
        for version in plan.builder.versions
        if not has_clean_benchmark(plan.builder, version)
    ]


def needs_report(plan: Plan) -> bool:
    return not is_current(plan.builder, plan.config.report, additions=plan.additions)


def needs_page(plan: Plan) -> bool:
    """Whether there is a report without its derived files, or its page has other additions."""
    report, files = plan.store.report, plan.store.report_files
    if not report.is_file():
        return False
    if not all(path.is_file() for path in files):
        return True
    current = key_of(additions_of(plan.config, plan.store))
    return additions_on_page(plan.store.report_page) != current
