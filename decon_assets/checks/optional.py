"""Checks of products that are made on request, and of clean benchmarks."""

from itertools import chain

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.check_results import result_of
from decon_assets.assets.products import clean_benchmark
from decon_assets.assets.sketching import sketch
from decon_assets.resources import Decon


@asset_check(asset=clean_benchmark, blocking=True)
def clean_benchmark_adds_up(decon: Decon) -> AssetCheckResult:
    """Items left and items removed are all items; none that leaked is left; no file was changed."""
    from decon_core.planner import Plan
    from decon_core.quality.product_faults import faults_of_clean_benchmark

    config, store = decon.open_store()
    names = [version.benchmark for version in Plan(config, store).current_versions]
    faults = (faults_of_clean_benchmark(store, name) for name in names)
    return result_of([*chain.from_iterable(faults)])


@asset_check(asset=sketch)
def sketch_is_whole(decon: Decon) -> AssetCheckResult:
    """The sketch of each pack can be opened and covers all of its shards."""
    from decon_core.planner import Plan
    from decon_core.quality.product_faults import faults_of_sketch

    plan = Plan(*decon.open_store())
    if not plan.sketch:
        return result_of([])
    return result_of([*faults_of_sketch(plan.store, plan.sketch, plan.packs)])
