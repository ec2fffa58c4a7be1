"""Checks of the scan: it finds planted items and accounts for every row that it read."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.check_results import (
    inspect_ledgers,
    inspect_self_tests,
    result_of,
    result_of_inspection,
)
from decon_assets.assets.scanning import scan
from decon_assets.resources import Decon


@asset_check(asset=scan, blocking=True)
def self_tests_pass(decon: Decon) -> AssetCheckResult:
    """The scan finds benchmark items planted into synthetic shards, with every detector."""
    with decon.writable_store() as (config, store):
        return inspect_self_tests(config, store)


@asset_check(asset=scan, blocking=True)
def ledger_is_complete(decon: Decon) -> AssetCheckResult:
    """Every scanned shard's ledger accounts for all rows, and its scan results belong to it."""
    with decon.writable_store() as (config, store):
        return inspect_ledgers(config, store)


@asset_check(asset=scan, blocking=True)
def excluded_blocks_have_no_match(decon: Decon) -> AssetCheckResult:
    """There is no match in a random sample of the blocks that the sketch excludes."""
    from decon_core.planner import Plan
    from decon_core.quality.excluded_blocks import matches_in_excluded_blocks

    with decon.writable_store() as (config, store):
        plan = Plan(config, store)
        found, n = matches_in_excluded_blocks(
            store, plan.packs, plan.indexed_versions, config.policy
        )
        return result_of(found, blocks_scanned=n)


@asset_check(asset=scan)
def every_row_was_read(decon: Decon) -> AssetCheckResult:
    """All rows of the scanned shards could be read.

    Unreadable rows block the mixtures of their pack, unless the policy drops such rows.
    """
    from decon_core.corpus.registration import list_packs
    from decon_core.quality.store_faults import changed_rows
    from decon_core.scan.coverage import scan_fingerprint

    with decon.writable_store() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        inspection = changed_rows(store, list_packs(store), fingerprint, what="rows")
        return result_of_inspection(inspection, is_warning=config.policy.unreadable == "drop")


@asset_check(asset=scan)
def text_is_utf8(decon: Decon) -> AssetCheckResult:
    """All rows of the scanned shards are valid UTF-8; invalid bytes are scanned as U+FFFD."""
    from decon_core.corpus.registration import list_packs
    from decon_core.quality.store_faults import changed_rows
    from decon_core.scan.coverage import scan_fingerprint

    with decon.writable_store() as (config, store):
        fingerprint = scan_fingerprint(store, config.policy)
        inspection = changed_rows(store, list_packs(store), fingerprint, what="utf8")
        return result_of_inspection(inspection, is_warning=config.policy.invalid_utf8 != "block")
