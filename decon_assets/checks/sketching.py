"""Checks of the sketch."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.check_results import result_of
from decon_assets.assets.sketching import sketch
from decon_assets.resources import Decon


@asset_check(asset=sketch)
def sketch_is_whole(decon: Decon) -> AssetCheckResult:
    """The sketch of each pack can be opened and covers all of its shards."""
    from decon_core.planner import Plan
    from decon_core.quality.store_faults import faults_of_sketch

    plan = Plan(*decon.open_store())
    if not plan.sketch:
        return result_of([])
    return result_of([*faults_of_sketch(plan.store, plan.sketch, plan.packs)])
