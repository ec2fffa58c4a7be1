"""Checks of the scan: it finds planted items and accounts for every row that it read."""

from dagster import AssetCheckExecutionContext, AssetCheckResult, asset_check

from decon_assets.assets.check_results import (
    inspect_and_report,
    inspect_ledgers,
    inspect_rows,
    inspect_self_tests,
    inspect_utf8,
    result_of,
)
from decon_assets.assets.scanning import scan
from decon_assets.resources import Decon


@asset_check(asset=scan, blocking=True)
def self_tests_pass(context: AssetCheckExecutionContext, decon: Decon) -> AssetCheckResult:
    """The scan finds benchmark items planted into synthetic shards, with every detector."""
    return inspect_and_report(context, decon, inspect_self_tests)


@asset_check(asset=scan, blocking=True)
def ledger_is_complete(context: AssetCheckExecutionContext, decon: Decon) -> AssetCheckResult:
    """The ledger of each scanned shard accounts for all rows, and its scan results belong to it."""
    return inspect_and_report(context, decon, inspect_ledgers)


@asset_check(asset=scan, blocking=True)
def excluded_blocks_have_no_match(decon: Decon) -> AssetCheckResult:
    """There is no match in a random sample of the blocks that the sketch excludes."""
    from decon_core.planner import Plan
    from decon_core.quality.self_tests import matches_in_excluded_blocks

    with decon.writable_store() as (config, store):
        plan = Plan(config, store)
        found, n = matches_in_excluded_blocks(
            store, plan.packs, plan.indexed_versions, config.policy
        )
        return result_of(found, blocks_scanned=n)


@asset_check(asset=scan)
def every_row_was_read(context: AssetCheckExecutionContext, decon: Decon) -> AssetCheckResult:
    """All rows of the scanned shards could be read.

    Unreadable rows block the mixtures of their pack, unless the policy drops such rows.
    """
    return inspect_and_report(context, decon, inspect_rows)


@asset_check(asset=scan)
def text_is_utf8(context: AssetCheckExecutionContext, decon: Decon) -> AssetCheckResult:
    """All rows of the scanned shards are valid UTF-8; invalid bytes are scanned as U+FFFD."""
    return inspect_and_report(context, decon, inspect_utf8)
