"""Checks of the benchmarks: what records say, what an index holds, what can be found of them."""

from dagster import AssetCheckResult, asset_check

from decon_assets.assets.benchmarks import idf_snapshot, index, records
from decon_assets.assets.findings import result_of, result_of_inspection
from decon_assets.assets.metadata import preview
from decon_assets.resources import Decon
from decon_core.benchmarks.records import current_version
from decon_core.errors import Problem
from decon_core.index.idf import outdated_members
from decon_core.index.parts import has_part, index_fingerprint, open_part
from decon_core.inventory import benchmarks_of
from decon_core.quality.requirements import shortfalls, visibilities_of
from decon_core.quality.store_faults import changed_faults_of_records


@asset_check(asset=records, blocking=True)
def records_are_valid(decon: Decon) -> AssetCheckResult:
    """Records have the declared form, a text each, and the counts and content they were saved with.

    No number is that of two items.
    """
    with decon.writable_store() as (config, store):
        return result_of_inspection(changed_faults_of_records(store, [*benchmarks_of(config)]))


@asset_check(asset=idf_snapshot)
def snapshot_is_of_todays_versions(decon: Decon) -> AssetCheckResult:
    """The benchmarks that idf was counted over are in the versions that they had then.

    A snapshot that is not stays in force until it is frozen anew. Also checked with `records`.
    """
    _, store = decon.open_store()
    return result_of(outdated_members(store), is_warning=True)


@asset_check(asset=index, blocking=True)
def index_is_complete(decon: Decon) -> AssetCheckResult:
    """Every benchmark that has an index accounts for every record, and can see at least one."""
    config, store = decon.open_store()
    fingerprint = index_fingerprint(store, config.policy)
    problems, blind = [], []
    for name in benchmarks_of(config):
        if not store.current_records(name).is_file():
            continue
        version = current_version(store, name)
        if not has_part(store, version, fingerprint):
            continue
        entries = open_part(store, version, fingerprint).entries
        if entries.dropped.size != version.n_records:
            found = f"{entries.dropped.size} records"
            problems.append(Problem(name, found, str(version.n_records)))
        if not entries.records.size:
            blind.append(Problem(name, "no indexable record", "at least one"))
    # Lost records must not flow on. A benchmark that no rule can see is reported as such: nothing
    # of it is ever called clean.
    return result_of([*problems, *blind], is_warning=not problems)


@asset_check(asset=index, blocking=True)
def enough_is_indexable(decon: Decon) -> AssetCheckResult:
    """Every chosen rule can see as large a share of each required benchmark as is demanded.

    Of a benchmark that is not required, a smaller share is a warning.
    """
    config, store = decon.open_store()
    seen = visibilities_of(config, store, benchmarks_of(config))
    blocking = shortfalls(config, (one for one in seen if one.benchmark in config.required))
    others = shortfalls(config, (one for one in seen if one.benchmark not in config.required))
    rows = [one.as_row for one in sorted(seen, key=lambda one: one.share)]
    problems = [*blocking, *others]
    return result_of(problems, is_warning=not blocking, indexability=preview(rows))
