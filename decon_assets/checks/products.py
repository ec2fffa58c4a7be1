"""Checks of mixtures, clean benchmarks and the report."""

from itertools import chain, product

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.check_results import checks_by_part, inspect_mixtures, result_of
from decon_assets.assets.products import clean_benchmark, mixture, report
from decon_assets.freshness import changes_since_report
from decon_assets.resources import Decon
from decon_core.errors import DeconError, Problem, collecting
from decon_core.wording import counted

mixture_adds_up, mixtures_of_pack = checks_by_part(
    mixture, "mixture_adds_up", inspect_mixtures, blocking=True
)


@asset_check(asset=mixture)
def controls_match(decon: Decon) -> AssetCheckResult:
    """Every control leaves out as much as the mixture that it is compared with.

    The number of documents is the same, and the number of tokens is the same to within 0.5 %.

    The check fails if the leaked documents of a source are longer than all of its other documents.
    """
    from decon_core.corpus.registration import list_packs
    from decon_core.mixtures.control import Matched
    from decon_core.storage.files import read_json

    config, store = decon.open_store()
    problems = {}
    controls = [mixture.name for mixture in config.mixtures if mixture.take == "control"]
    for name, pack in product(controls, list_packs(store)):
        path = store.mixture_manifest(name, pack.name)
        for value in (read_json(path)["control"] or ()) if path.is_file() else ():
            matched = Matched(**value)
            if not matched.is_near:  # the same in all packs of a source
                n_tokens = counted(matched.n_drawn_tokens, "token")
                found = f"{counted(matched.n_drawn, 'document')}, {n_tokens}"
                where = f"{name}, {matched.source}"
                expected = f"{matched.n_documents:,} documents, {matched.n_tokens:,} tokens"
                problems[where] = Problem(where, found, expected)
    return result_of([*problems.values()], is_warning=True)


@asset_check(asset=clean_benchmark, blocking=True)
def clean_benchmark_adds_up(decon: Decon) -> AssetCheckResult:
    """Items left and removed add up, no leaked item is left, and no file was changed."""
    from decon_core.planner import Plan
    from decon_core.quality.store_faults import faults_of_clean_benchmark

    config, store = decon.open_store()
    names = [version.benchmark for version in Plan(config, store).current_versions]
    faults = (faults_of_clean_benchmark(store, name) for name in names)
    return result_of([*chain.from_iterable(faults)])


@asset_check(asset=report)
def coverage_is_complete(decon: Decon) -> AssetCheckResult:
    """All current shards are registered, scanned against all benchmarks, and in the report.

    The report also contains all items and all parts of mixtures, and its counts add up.
    """
    from decon_core.planner import Plan
    from decon_core.report.verify import faults_of_report
    from decon_core.scan.coverage import gaps_of

    plan = Plan(*decon.open_store())
    problems = [Problem(path, what) for path, what in plan.changes.by_shard]
    try:
        gaps = gaps_of(plan.scan_results, plan.packs, plan.current_versions)
    except DeconError as error:
        return result_of([*problems, *error.problems])
    for gap in gaps:
        where = f"{gap.pack.name}: {gap.shard.name}"
        found = f"not scanned against {', '.join(gap.lacking)} ({gap.reason})"
        problems.append(Problem(where, found, remedy=gap.cause.remedy))
    with collecting(problems):
        problems += [*faults_of_report(plan.builder)]
    return result_of(problems)


@asset_check(asset=report)
def report_is_todays(decon: Decon) -> AssetCheckResult:
    """The report was built from the current files, settings, verdicts and products.

    Its age does not matter: a report stays valid until one of these changes.
    """
    config, store = decon.open_store()
    return result_of(changes_since_report(config, store), is_warning=True)


@asset_check(asset=report)
def leak_rate_is_steady(decon: Decon) -> AssetCheckResult:
    """No benchmark's leak rate differs much from that in the previous report."""
    from decon_core.report.verify import drift_of

    config, store = decon.open_store()
    try:
        problems, n_compared = drift_of(store.report, config.report.drift)
    except DeconError as error:
        return result_of(error.problems, is_warning=True)
    compared = n_compared or "no previous report"
    return result_of(problems, is_warning=True, benchmarks_compared=compared)
