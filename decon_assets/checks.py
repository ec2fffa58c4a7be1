"""Asset checks: what must hold after a stage, said where the UI shows it.

Each looks at what lies on disk, for all partitions: in a run over a range a check has one result
for the whole range.
"""

from dagster import AssetCheckResult, AssetCheckSeverity, MetadataValue, asset_check

from decon_assets.assets.benchmarks import index
from decon_assets.assets.products import blend, mixture, report
from decon_assets.assets.scanning import scan
from decon_assets.provenance import preview
from decon_assets.resources import Decon
from decon_core.blending.build import blend_damage
from decon_core.config import Config
from decon_core.errors import DeconError, Problem
from decon_core.index import has_part, index_fingerprint, open_part
from decon_core.indexability import Visibility, visibilities
from decon_core.mixtures.build import MANIFEST, damage
from decon_core.mixtures.control import Matched
from decon_core.records import current_version
from decon_core.registry import benchmarks_of, current_versions, list_packs, plan
from decon_core.store import read_json
from decon_core.tiles import missing_tiles, scan_fingerprint


def _result(
    problems: list[Problem], *, is_warning: bool = False, **metadata: MetadataValue
) -> AssetCheckResult:
    rows = [
        {"where": problem.where, "found": problem.found, "expected": problem.expected}
        for problem in problems
    ]
    return AssetCheckResult(
        passed=not problems,
        severity=AssetCheckSeverity.WARN if is_warning else AssetCheckSeverity.ERROR,
        metadata={"problems": preview(rows), "n_problems": len(problems), **metadata},
    )


@asset_check(asset=index, blocking=True)
def index_is_complete(decon: Decon) -> AssetCheckResult:
    """Every benchmark that has an index accounts for every record, and can see at least one."""
    config, store = decon.at_hand()
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
    return _result([*problems, *blind], is_warning=not problems)


@asset_check(asset=index, blocking=True)
def enough_is_indexable(decon: Decon) -> AssetCheckResult:
    """Every chosen rule can see as large a share of each required benchmark as is demanded.

    Of a benchmark that is not required, a smaller share is a warning.
    """
    config, store = decon.at_hand()
    fingerprint = index_fingerprint(store, config.policy)
    names = benchmarks_of(config)
    unknown = [
        Problem(name, "required, but not among the benchmarks", "a benchmark")
        for name in config.required
        if name not in names
    ]
    versions = [
        current_version(store, name) for name in names if store.current_records(name).is_file()
    ]
    versions = [version for version in versions if has_part(store, version, fingerprint)]
    seen = visibilities(store, versions, config.policy)
    few = [one for one in seen if one.share < config.least_indexable_share]
    blocking = [*unknown, *(_few(one, config) for one in few if one.benchmark in config.required)]
    others = [_few(one, config) for one in few if one.benchmark not in config.required]
    rows = [
        {
            "benchmark": one.benchmark,
            "rule": one.rule,
            "items": one.n_items,
            "visible": one.n_visible,
            "why not": "; ".join(f"{reason}: {n}" for reason, n in one.why_not.items()),
        }
        for one in sorted(seen, key=lambda one: one.share)
    ]
    problems = [*blocking, *others]
    return _result(problems, is_warning=not blocking, indexability=preview(rows))


def _few(seen: Visibility, config: Config) -> Problem:
    return Problem(
        f"{seen.benchmark}, {seen.rule}",
        f"{seen.n_visible} of {seen.n_items} items visible",
        f"a share of {config.least_indexable_share}",
    )


@asset_check(asset=scan)
def every_row_was_read(decon: Decon) -> AssetCheckResult:
    """No shard that was scanned has rows that could not be read. They block its mixture."""
    config, store = decon.at_hand()
    fingerprint = scan_fingerprint(store, config.policy)
    problems = []
    for pack in list_packs(store):
        for shard in pack.shards:
            path = store.ledger(fingerprint, shard.fingerprint)
            rows = read_json(path)["unreadable"] if path.is_file() else []
            problems += [
                Problem(f"{shard.name}: row {row['row']}", row["reason"], "a document")
                for row in rows
            ]
    return _result(problems, is_warning=config.policy.unreadable == "drop")


@asset_check(asset=mixture, blocking=True)
def mixture_adds_up(decon: Decon) -> AssetCheckResult:
    """Documents in are documents out plus documents removed, and the bytes are those written."""
    config, store = decon.at_hand()
    folders = [
        store.mixture(declared.name, pack.name)
        for declared in config.mixtures
        for pack in list_packs(store)
    ]
    built = [folder for folder in folders if (folder / MANIFEST).is_file()]
    return _result([problem for folder in built for problem in damage(folder)])


@asset_check(asset=mixture)
def controls_match(decon: Decon) -> AssetCheckResult:
    """Every control loses as many documents as its treatment, and as many tokens to half a percent.

    Where leaks are longer than anything else in a source, that cannot be.
    """
    config, store = decon.at_hand()
    problems = {}
    for declared in config.mixtures:
        for pack in list_packs(store):
            path = store.mixture(declared.name, pack.name) / MANIFEST
            for told in (read_json(path)["control"] or ()) if path.is_file() else ():
                matched = Matched(**told)
                if not matched.is_near:  # all packs of a source say the same
                    problems[declared.name, matched.source] = Problem(
                        f"{declared.name}, {matched.source}",
                        f"{matched.n_drawn} documents, {matched.n_drawn_tokens} tokens",
                        f"{matched.n_documents} and {matched.n_tokens}",
                    )
    return _result([*problems.values()], is_warning=True)


@asset_check(asset=blend, blocking=True)
def blend_adds_up(decon: Decon) -> AssetCheckResult:
    """Texts written are documents drawn, less those replaced, plus test items; bytes as written."""
    config, store = decon.at_hand()
    folders = [store.blend(declared.name) for declared in config.blends]
    built = [folder for folder in folders if (folder / MANIFEST).is_file()]
    return _result([problem for folder in built for problem in blend_damage(folder)])


@asset_check(asset=report)
def coverage_is_complete(decon: Decon) -> AssetCheckResult:
    """All shards that are there today are registered and scanned against all benchmarks."""
    config, store = decon.at_hand()
    today = plan(config, store)
    problems = [Problem(path, "gone or changed", "as it was registered") for path in today.gone]
    problems += [Problem(path, "not registered", "a registered shard") for path in today.new]
    try:
        versions = current_versions(config, store)
        scan = scan_fingerprint(store, config.policy)
    except DeconError as error:
        return _result([*problems, *error.problems])
    problems += [
        Problem(
            f"{pack.name}: {shard.name}",
            "not scanned against " + ", ".join(version.benchmark for version in lacking),
            "a tile",
        )
        for pack, shard, lacking in missing_tiles(store, list_packs(store), versions, scan)
    ]
    return _result(problems)
