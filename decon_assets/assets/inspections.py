"""The blocking checks of the scan, as functions that a failing scan calls as well.

Dagster skips the checks of a failed step. A scan that cannot read one shard fails, but its other
tiles are used, so the asset `scan` then reports these results itself.
"""

from dagster import AssetCheckResult

from decon_assets.assets.findings import result_of, result_of_inspection
from decon_assets.assets.metadata import preview
from decon_core.benchmarks.records import Version, current_version
from decon_core.config.load import Config
from decon_core.errors import DeconError, Problem
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.inventory import benchmarks_of, list_packs
from decon_core.quality.canaries import run_canaries
from decon_core.quality.store_faults import changed_faults_of_scan
from decon_core.scan.tiles import scan_fingerprint
from decon_core.scan.workers import wanted_workers
from decon_core.storage.store import Store


def inspect_canaries(config: Config, store: Store) -> AssetCheckResult:
    """Return the result of `canaries_are_found`."""
    try:
        versions = _indexed(config, store)
        canaries = run_canaries(store, versions, config.policy, workers=wanted_workers())
    except DeconError as error:
        return result_of(error.problems)
    problems = [*canaries.lost]
    if versions and not canaries.planted:
        found = "no item that any detector can find"
        problems.append(Problem("all benchmarks", found, "at least one item"))
    blind = [{"benchmark": name, "detector": detector} for name, detector in canaries.blind]
    return result_of(
        problems,
        planted=len(canaries.planted),
        documents=canaries.n_documents,
        nothing_to_plant=preview(blind),
    )


def inspect_ledgers(config: Config, store: Store) -> AssetCheckResult:
    """Return the result of `ledger_is_complete`."""
    fingerprint = scan_fingerprint(store, config.policy)
    versions = _indexed(config, store)
    return result_of_inspection(
        changed_faults_of_scan(store, list_packs(store), versions, fingerprint)
    )


def _indexed(config: Config, store: Store) -> list[Version]:
    """Return the current benchmark versions that have an index."""
    index = index_fingerprint(store, config.policy)
    names = [name for name in benchmarks_of(config) if store.current_records(name).is_file()]
    versions = [current_version(store, name) for name in names]
    return [version for version in versions if has_part(store, version, index)]
