"""Checks of benchmarks: records, the term weights, and index parts."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.benchmarks import index, records, term_weights
from decon_assets.assets.check_results import result_of, result_of_inspection
from decon_assets.assets.metadata import preview
from decon_assets.resources import Decon
from decon_core.errors import Problem


@asset_check(asset=records, blocking=True)
def records_are_valid(decon: Decon) -> AssetCheckResult:
    """Records have the declared schema, and each of them contains text.

    Their counts and content match the manifest, and no two items share a number.
    """
    from decon_core.benchmarks.configured import benchmarks_of
    from decon_core.quality.store_faults import changed_faults_of_records

    with decon.writable_store() as (config, store):
        return result_of_inspection(changed_faults_of_records(store, [*benchmarks_of(config)]))


@asset_check(asset=term_weights)
def snapshot_is_of_todays_versions(decon: Decon) -> AssetCheckResult:
    """The term weights were counted from the current benchmark versions.

    A snapshot of older versions stays in use until the weights are counted again. This check also
    runs when `records` is materialized.
    """
    from decon_core.index.term_weights import outdated_members

    _, store = decon.open_store()
    return result_of(outdated_members(store), is_warning=True)


@asset_check(asset=index, blocking=True)
def index_is_complete(decon: Decon) -> AssetCheckResult:
    """Every index accounts for all records of its benchmark, and contains at least one."""
    from decon_core.index.parts import index_fingerprint, open_part
    from decon_core.planner import Plan

    config, store = decon.open_store()
    fingerprint = index_fingerprint(store, config.policy)
    problems, blind = [], []
    for version in Plan(config, store).indexed_versions:
        name, entries = version.benchmark, open_part(store, version, fingerprint).entries
        if entries.dropped.size != version.n_records:
            found = f"{entries.dropped.size} records"
            problems.append(Problem(name, found, str(version.n_records)))
        if not entries.records.size:
            blind.append(Problem(name, "no record that can be checked", "at least one"))
    # Missing records are an error. A benchmark of which no record can be checked is only a
    # warning: the report says so, and never calls it clean.
    return result_of([*problems, *blind], is_warning=not problems)


@asset_check(asset=index, blocking=True)
def enough_can_be_checked(decon: Decon) -> AssetCheckResult:
    """Each detector can find at least the configured share of every required benchmark.

    For other benchmarks, a smaller share is only a warning.
    """
    from decon_core.benchmarks.configured import benchmarks_of
    from decon_core.decisions.visibility import shortfalls, visibilities_of

    config, store = decon.open_store()
    every = visibilities_of(config, store, benchmarks_of(config))
    required = config.evals.required
    blocking = shortfalls(config, (row for row in every if row.benchmark in required))
    others = shortfalls(config, (row for row in every if row.benchmark not in required))
    rows = [row.as_row for row in sorted(every, key=lambda row: row.share)]
    problems = [*blocking, *others]
    return result_of(problems, is_warning=not blocking, visibility=preview(rows))


@asset_check(asset=index)
def no_script_is_split(decon: Decon) -> AssetCheckResult:
    """No benchmark is in a script for which the tokenizer needs too many tokens.

    The check applies if a chosen detector compares tokens. With too many tokens, text that an item
    shares with a document in another language, such as a formula, is a small share of the item's
    tokens and may be missed. The warning names a better tokenizer.
    """
    from decon_core.decisions.scripts import split_scripts
    from decon_core.planner import Plan

    config, store = decon.open_store()
    found = split_scripts(store, Plan(config, store).indexed_versions, config.policy)
    return result_of(found, is_warning=True)
