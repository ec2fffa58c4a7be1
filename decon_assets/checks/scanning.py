"""Checks of the scan: that it finds what is there, and accounts for what it read."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.scanning import scan
from decon_assets.findings import finding, looked
from decon_assets.provenance import preview
from decon_assets.resources import Decon
from decon_core.canaries import Flight, fly
from decon_core.config import Config
from decon_core.errors import DeconError, Problem
from decon_core.faults import changed_faults_of_scan, changed_unread_rows
from decon_core.index import has_part, index_fingerprint
from decon_core.records import Version, current_version
from decon_core.registry import benchmarks_of, list_packs
from decon_core.store import Store
from decon_core.tiles import scan_fingerprint
from decon_core.workers import wanted_workers


@asset_check(asset=scan, blocking=True)
def canaries_are_found(decon: Decon) -> AssetCheckResult:
    """Items planted on purpose into shards of their own are found by the scan, by every rule."""
    with decon.at_work() as (config, store):
        try:
            versions = _indexed(config, store)
            flight = fly(store, versions, config.policy, workers=wanted_workers())
        except DeconError as error:
            return finding(error.problems)
        problems = [*flight.lost]
        if versions and not flight.planted:
            found = "no item that any rule can see"
            problems.append(Problem("all benchmarks", found, "some: else a scan finds nothing"))
        return finding(
            problems,
            planted=len(flight.planted),
            documents=flight.n_documents,
            nothing_to_plant=preview(_blind(flight)),
        )


def _indexed(config: Config, store: Store) -> list[Version]:
    """The versions that a scan can look for today."""
    index = index_fingerprint(store, config.policy)
    names = [name for name in benchmarks_of(config) if store.current_records(name).is_file()]
    versions = [current_version(store, name) for name in names]
    return [version for version in versions if has_part(store, version, index)]


def _blind(flight: Flight) -> list[dict[str, str]]:
    return [{"benchmark": name, "rule": rule} for name, rule in flight.blind]


@asset_check(asset=scan, blocking=True)
def ledger_is_complete(decon: Decon) -> AssetCheckResult:
    """Of every shard with tiles all rows are accounted for, and the tiles are that shard's."""
    with decon.at_work() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        versions = _indexed(config, store)
        return looked(changed_faults_of_scan(store, list_packs(store), versions, fingerprint))


@asset_check(asset=scan)
def every_row_was_read(decon: Decon) -> AssetCheckResult:
    """No shard that was scanned has rows that could not be read. They block its mixture."""
    with decon.at_work() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        found = changed_unread_rows(store, list_packs(store), fingerprint)
        return looked(found, is_warning=config.policy.unreadable == "drop")
