"""Checks of the scan: that it finds what is there, and accounts for what it read."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.findings import result_of_inspection
from decon_assets.assets.inspections import inspect_canaries, inspect_ledgers
from decon_assets.assets.scanning import scan
from decon_assets.resources import Decon
from decon_core.inventory import list_packs
from decon_core.quality.store_faults import changed_invalid_rows, changed_unread_rows
from decon_core.scan.tiles import scan_fingerprint


@asset_check(asset=scan, blocking=True)
def canaries_are_found(decon: Decon) -> AssetCheckResult:
    """Items planted on purpose into shards of their own are found by the scan, by every rule."""
    with decon.writable_store() as (config, store):
        return inspect_canaries(config, store)


@asset_check(asset=scan, blocking=True)
def ledger_is_complete(decon: Decon) -> AssetCheckResult:
    """Of every shard with tiles all rows are accounted for, and the tiles are that shard's."""
    with decon.writable_store() as (config, store):
        return inspect_ledgers(config, store)


@asset_check(asset=scan)
def every_row_was_read(decon: Decon) -> AssetCheckResult:
    """No shard that was scanned has rows that could not be read. They block its mixture."""
    with decon.writable_store() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        found = changed_unread_rows(store, list_packs(store), fingerprint)
        return result_of_inspection(found, is_warning=config.policy.unreadable == "drop")


@asset_check(asset=scan)
def text_is_utf8(decon: Decon) -> AssetCheckResult:
    """No row of a scanned shard has bytes that are not UTF-8. They are scanned as U+FFFD."""
    with decon.writable_store() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        found = changed_invalid_rows(store, list_packs(store), fingerprint)
        return result_of_inspection(found, is_warning=config.policy.invalid_utf8 != "block")
