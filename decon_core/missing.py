"""What the store of a configuration holds today, and what is missing or outdated in it.

One plan answers `run`, `status`, `backfill` and the sensor. Each asset names the function that
returns whether it is missing, or the keys of its missing partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from decon_core.benchmarks.records import Version, current_version
from decon_core.config.load import Config
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sketch.pack_sketch import has_pack_sketch
from decon_core.decisions.common_ngrams import has_common
from decon_core.errors import Problem
from decon_core.feature import feature_hooks
from decon_core.index.idf import current_snapshot, outdated_members, require_frozen_from
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.inventory import (
    benchmarks_of,
    builder_of,
    current_versions,
    sketch_fingerprint,
    stale_benchmarks,
)
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.clean_evals import has_clean_benchmark
from decon_core.report.additions import ReportAddition
from decon_core.report.build import is_current
from decon_core.scan.coverage import gaps_of, missing_tiles, scan_fingerprint, uncounted
from decon_core.scan.tiles import Tiles
from decon_core.storage.store import Store


@dataclass(frozen=True)
class Plan:
    """A configuration with its registered packs and its store; what is read is kept."""

    config: Config
    store: Store
    packs: tuple[Pack, ...]

    @cached_property
    def n_shards(self) -> int:
        return sum(len(pack.shards) for pack in self.packs)

    @cached_property
    def benchmarks(self) -> tuple[str, ...]:
        return tuple(benchmarks_of(self.config))

    @cached_property
    def versions(self) -> list[Version]:
        return [current_version(self.store, name) for name in self.benchmarks]

    @cached_property
    def scan(self) -> str:
        return scan_fingerprint(self.store, self.config.policy)

    @cached_property
    def tiles(self) -> Tiles:
        return Tiles(self.store, self.scan)

    @cached_property
    def builder(self) -> Builder:
        return builder_of(self.config, self.store)

    @cached_property
    def additions(self) -> list[ReportAddition]:
        """The tables that features add to the report."""
        added = (hook(self) for hook in feature_hooks("report"))
        return [addition for addition in added if addition]


def missing_records(plan: Plan) -> list[str]:
    return stale_benchmarks(plan.config, plan.store)


def needs_snapshot(plan: Plan) -> bool:
    return not plan.store.current_snapshot.is_file()


def outdated_in_snapshot(config: Config, store: Store) -> list[Problem]:
    """Return the benchmarks that changed since the idf snapshot, which is kept on purpose.

    Raises StaleError if it was counted under other settings.
    """
    current_snapshot(store, config.policy)
    require_frozen_from(store, config.snapshot)
    return outdated_members(store)


def missing_index_parts(plan: Plan) -> list[str]:
    index = index_fingerprint(plan.store, plan.config.policy)
    return [
        version.benchmark
        for version in current_versions(plan.config, plan.store)
        if not has_part(plan.store, version, index)
    ]


def unscanned(plan: Plan) -> Iterator[tuple[str, str, Shard]]:
    """Yield each shard without a tile for a benchmark, after the names of benchmark and pack.

    A benchmark without a version in the plan was never scanned.
    """
    known = {version.benchmark for version in plan.versions}
    for name in (name for name in plan.benchmarks if name not in known):
        yield from ((name, pack.name, shard) for pack in plan.packs for shard in pack.shards)
    if known:
        needs_counts = plan.config.policy.leave_out_common
        for pack, shard, absent in missing_tiles(
            *(plan.store, plan.packs, plan.versions, plan.scan),
            needs_counts=needs_counts,
            tiles=plan.tiles,
        ):
            yield from ((version.benchmark, pack.name, shard) for version in absent)


def missing_cells(plan: Plan) -> dict[str, set[str]]:
    """Return, for each pack, the benchmarks for which any of its shards has no tile."""
    missing: dict[str, set[str]] = {}
    for benchmark, pack, _ in unscanned(plan):
        missing.setdefault(pack, set()).add(benchmark)
    return missing


def unsketched_packs(plan: Plan) -> list[str]:
    """Return the packs without a sketch, if one is wanted."""
    if plan.config.sketch is None:
        return []
    name = sketch_fingerprint(plan.config)
    return [pack.name for pack in plan.packs if not has_pack_sketch(plan.store, name, pack)]


def needs_common_ngrams(plan: Plan) -> bool:
    """Whether the list of common n-grams is missing and can be made.

    It cannot be made while a shard waits for its scan; shards whose scan failed are left out.
    """
    wanted = plan.store, plan.packs, plan.versions, plan.scan
    gaps = gaps_of(*wanted, tiles=plan.tiles)
    return all(gap.is_refused for gap in gaps) and not has_common(
        *(plan.store, plan.packs, plan.versions, plan.config.policy, plan.scan),
        uncounted(*wanted, tiles=plan.tiles),
    )


def missing_shares(plan: Plan) -> Mapping[str, set[str]]:
    """Return, for each pack, the mixtures whose share of it is missing or outdated."""
    builder = plan.builder
    return {
        pack.name: {one.name for one in builder.mixtures if not builder.is_current(one, pack)}
        for pack in plan.packs
    }


def missing_clean_benchmarks(plan: Plan) -> list[str]:
    builder = plan.builder
    return [one.benchmark for one in builder.versions if not has_clean_benchmark(builder, one)]


def needs_report(plan: Plan) -> bool:
    return not is_current(plan.builder, plan.config.showing, additions=plan.additions)


def needs_page(plan: Plan) -> bool:
    """Whether there is a report without its derived files, or its page has other additions."""
    report, files = plan.store.report, plan.store.report_files
    if not report.is_file():
        return False
    if not all(path.is_file() for path in files):
        return True
    from decon_core.report.html.build import additions_of, additions_on_page, key_of

    wanted = key_of(additions_of(plan.config, plan.store))
    return additions_on_page(plan.store.report_page) != wanted
