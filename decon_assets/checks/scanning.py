"""Checks of the scan: it finds planted items and accounts for every row that it read."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.check_results import (
    checks_by_part,
    inspect_ledgers,
    inspect_rows,
    inspect_self_tests,
    inspect_utf8,
    result_of,
)
from decon_assets.assets.scanning import scan, sketch
from decon_assets.resources import Decon

self_tests_pass, self_tests_of_benchmark = checks_by_part(
    scan, "self_tests_pass", inspect_self_tests, blocking=True
)
ledger_is_complete, ledger_of_pack = checks_by_part(
    scan, "ledger_is_complete", inspect_ledgers, blocking=True
)
every_row_was_read, rows_of_pack = checks_by_part(scan, "every_row_was_read", inspect_rows)
text_is_utf8, text_of_pack = checks_by_part(scan, "text_is_utf8", inspect_utf8)


@asset_check(asset=scan, blocking=True)
def excluded_blocks_have_no_match(decon: Decon) -> AssetCheckResult:
    """A random sample of the blocks that the sketch excludes contains no match."""
    from decon_core.planner import Plan
    from decon_core.quality.self_tests import matches_in_excluded_blocks

    with decon.writable_store() as (config, store):
        plan = Plan(config, store)
        found, n = matches_in_excluded_blocks(
            store, plan.packs, plan.indexed_versions, config.policy
        )
        return result_of(found, blocks_scanned=n)


@asset_check(asset=sketch)
def sketch_is_whole(decon: Decon) -> AssetCheckResult:
    """The sketch of each pack can be opened and covers all of its shards."""
    from decon_core.planner import Plan
    from decon_core.quality.store_faults import faults_of_sketch

    plan = Plan(*decon.open_store())
    if not plan.sketch:
        return result_of([])
    return result_of([*faults_of_sketch(plan.store, plan.sketch, plan.packs)])
