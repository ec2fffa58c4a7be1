"""`decon-assets status`: show what is scanned and built, and what changed on disk since."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, compress
from pkgutil import resolve_name

from decon_assets.cli.store_state import (
    AllowUnread,
    changed_shards_of,
    code_with,
    damaged_files,
    say_not_read,
    say_skipped,
)
from decon_assets.instance.active_run import active_run
from decon_assets.terminal.options import AllowSkipped, ConfigPath, flag
from decon_assets.terminal.output import say
from decon_core.benchmarks.records import current_version
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.corpus.registration import grid_warning
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.not_read import OPTIONS, Account, account_of, gaps_without_rows
from decon_core.errors import DeconError, MissingError
from decon_core.feature import feature_entries, feature_objects
from decon_core.index.term_weights import outdated_members
from decon_core.planner import Plan, missing_clean_benchmarks, missing_shares, needs_report
from decon_core.report.verify import moved_since_report
from decon_core.scan.coverage import gaps_of, missing_scan_results, refused
from decon_core.scan.join import unjoined_versions
from decon_core.storage.checksums import REMEDY
from decon_core.wording import counted

_MOST_CHANGES_LISTED = 10


def status(
    *,
    verify: bool = flag(
        "--verify",
        "read every file in the store and every shard; list damaged files and changed shards",
    ),
    allow_unread: bool = AllowUnread,
    allow_skipped: AllowSkipped = False,
    config: ConfigPath,
) -> int:
    """Show what has been scanned and built, and what has changed on disk since.

    The command changes nothing; `decon-assets run` builds what is missing. It also lists everything
    in the shard folders that no source reads.

    Exit codes: 0 complete; 1 incomplete; 2 invalid input; 4 all shards are scanned, but some input
    was not read:

      - some rows or some text were not read, so mixtures that depend on them
        are not built (if all mixtures are built, --allow-unread accepts unread
        text);
      - or a source's pattern matches something that is not a shard
        (--allow-skipped accepts this).

    Examples:
      decon-assets status
      decon-assets status --verify              also read every file of the store
    """
    loaded = load_config(config)
    store = open_store(loaded)
    if verify and (damaged_files(store, say) or changed_shards_of(store, say)):
        say(REMEDY)
        return 1

    running = active_run(config)
    plan = Plan(loaded, store)
    is_scanned = _status_of_scan(plan)
    is_complete = _status_of_products(plan, is_running=running is not None) and is_scanned
    if is_complete:  # stages that have no line above
        from decon_assets import graph
        from decon_assets.run_requests import missing_stages

        for name in missing_stages(plan, graph.GRAPH):
            say(f"  {name}: missing or outdated")
            is_complete = False
    remedy = running or "`decon-assets run` builds what is missing"
    say_skipped(plan.changes.skipped)
    account = account_of((), skipped=plan.changes.skipped)
    if store.current_snapshot.is_file():
        account = say_not_read(plan, plan.changes.skipped)
    if account.open("text", "no text") and not running:
        remedy = (
            "no mixture is built from a source with unread text: read or ignore the text, then run "
            "again"
        )
    elif account.open("row") and not running:
        remedy = (
            "no mixture is built from packs with unreadable rows: repair or drop the rows, then "
            "run again"
        )
    elif not running and any(
        shard.path not in plan.changes.gone for shard, _ in refused(store, plan.packs)
    ):
        remedy = "replace the shards that could not be scanned, then run again"
    is_empty = bool(account.open("short"))
    if is_empty:
        remedy = "a source without text to search cannot be called clean"
    if is_complete and not is_empty:
        say("complete", tone="good")
    else:
        say(f"incomplete: {remedy}", tone="open")
    allowed = compress(OPTIONS, (False, allow_unread, allow_skipped))
    is_explained = is_scanned and (is_complete or _is_held_back(plan, account))
    return code_with(account, int(not is_complete), allowed) if is_explained else 1


def _is_held_back(plan: Plan, account: Account) -> bool:
    """Return whether something is missing because of what was not read.

    Mixtures of its packs are; if no mixture is missing, the clean benchmarks are, which depend on
    all packs.
    """
    rows = account.open("row", "text", "no text")
    not_read = {(row.source, row.place) for row in rows}
    packs = {
        pack.name
        for pack in plan.packs
        if not not_read.isdisjoint((pack.source.name, shard.name) for shard in pack.shards)
    }
    try:
        missing = {name for name, mixtures in missing_shares(plan).items() if mixtures}
        is_clean_missing = bool(missing_clean_benchmarks(plan))
    except DeconError:
        return bool(packs)
    return not packs.isdisjoint(missing) or (bool(packs) and not missing and is_clean_missing)


def _status_of_scan(plan: Plan) -> bool:
    """Print what is registered and scanned; return whether all of it is up to date."""
    store, packs, changes = plan.store, plan.packs, plan.changes
    say(f"{counted(len(packs), 'pack')}, {counted(plan.n_shards, 'shard')} registered")
    for path, what in changes.by_shard:
        say(f"  {path}: {what}")
    if warning := grid_warning(changes.current, len(plan.benchmarks)):
        say(f"warning: {warning}")
    is_registered = bool(packs) and not changes.by_shard
    n_unscanned = 0
    for name, state, n_missing in _states_of_benchmarks(plan):
        say(f"  {name}: {state}")
        n_unscanned += n_missing
    has_snapshot = store.current_snapshot.is_file()
    for problem in outdated_members(store) if has_snapshot else ():
        say(f"  {problem}")
    for shard, problem in refused(store, packs):
        say(f"  {shard.name} could not be scanned: {problem}")
    return is_registered and n_unscanned == 0


def _states_of_benchmarks(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """Yield each benchmark with its state and its number of unscanned shards."""
    store = plan.store
    changed = "recipe or files changed since it was normalized"
    reasons = dict.fromkeys(plan.stale_benchmarks, changed)
    reasons |= {
        name: "no records yet"
        for name in plan.benchmarks
        if not store.current_records(name).is_file()
    }
    if not store.current_snapshot.is_file():
        reasons = dict.fromkeys(plan.benchmarks, "no term weights yet") | reasons
    versions = [current_version(store, name) for name in plan.benchmarks if name not in reasons]
    lacking: dict[str, set[tuple[str, str]]] = defaultdict(set)
    n_unjoined = Counter[str]()
    without_rows = set()
    if versions:
        scan = plan.scan_results.scan
        for pack, shard, missing in missing_scan_results(plan.scan_results, plan.packs, versions):
            unjoined = unjoined_versions(
                store, scan, shard.fingerprint, needs_counts=False, removes_damaged=False
            )
            for version in missing:
                lacking[version.benchmark].add((pack.name, shard.name))
                n_unjoined[version.benchmark] += version.fingerprint in unjoined
        reader = MatchReader(store, tuple(versions), plan.config.policy, scan)
        gaps = gaps_without_rows(reader, plan.packs)
        without_rows = {(gap.pack.name, gap.shard.name) for gap in gaps}
    of_all = counted(plan.n_shards, "shard")
    for name in plan.benchmarks:
        if reason := reasons.get(name):
            yield name, reason, plan.n_shards
        else:
            n_scanned = plan.n_shards - len(lacking[name] | without_rows)
            n_more = n_unjoined[name]
            more = f", {n_more:,} more not yet joined with their pack" if n_more else ""
            yield name, f"{n_scanned} of {of_all} scanned{more}", len(lacking[name])


def _status_of_products(plan: Plan, *, is_running: bool) -> bool:
    """Print which mixtures and other products are up to date; return whether all are."""
    n_packs, mixtures = counted(len(plan.packs), "pack"), plan.config.mixtures
    gone, new = {*plan.changes.gone}, plan.changes.new
    try:
        missing = missing_shares(plan)
        n_unlisted = {
            mixture.name: len(plan.builder.built_packs(mixture, not_current))
            for mixture in mixtures
            if (not_current := [p for p in plan.packs if mixture.name in missing[p.name]])
        }
    except DeconError as error:
        if isinstance(error, MissingError) or is_running:
            is_built = plan.store.report.is_file() or plan.store.mixtures("any").parent.is_dir()
            say(f"  mixtures, report: {'out of date' if is_built else 'not built yet'}")
        else:
            say(f"  {error}")
        return False
    effective = [plan.builder.effective(mixture) for mixture in mixtures]
    changed = {
        pack.name: {one.name for one in effective if one.has_source(pack.source.name)}
        for pack in plan.packs
        if any(shard.path in gone for shard in pack.shards)
    }
    names = (missing[pack.name] | changed.get(pack.name, set()) for pack in plan.packs)
    unmixed = Counter(chain.from_iterable(names))
    for mixture in mixtures:
        n_built = len(plan.packs) - unmixed[mixture.name]
        n_more = n_unlisted.get(mixture.name, 0)
        more = f", {n_more:,} more not yet listed in its README.md" if n_more else ""
        say(f"  mixture {mixture.name}: {n_built} of {n_packs} up to date{more}")
    partitions = feature_objects("partitions")
    is_made = {}
    for name, missing_of in feature_entries("products").items():
        if name not in plan.config.tables:
            continue
        absent = resolve_name(missing_of)(plan)
        is_made[name] = not absent
        if name in partitions:
            n = len(partitions[name](plan.config))
            say(f"  {name}s: {n - len(absent)} of {n} up to date")
        else:
            say(f"  {name}: {'missing or outdated' if absent else 'up to date'}")
    is_reported = not (gone or new or needs_report(plan))
    is_partial = is_reported and gaps_of(plan.scan_results, plan.packs, plan.builder.versions)
    coverage = ", incomplete: some shards were not scanned" if is_partial else ""
    is_there = plan.store.report.is_file()
    state = "up to date" if is_reported else "out of date" if is_there else "not built yet"
    say(f"  report: {state}{coverage}")
    if is_there and not is_reported:
        _say_changes(plan)
    has_page = plan.store.report_page.is_file()
    if not has_page:
        say("  report page: missing")
    return not unmixed and all(is_made.values()) and is_reported and has_page


def _say_changes(plan: Plan) -> None:
    """Print what changed since the report was built."""
    try:
        changes = [*moved_since_report(plan.builder, plan.config.report, additions=plan.additions)]
    except DeconError as error:  # the report is damaged, or of another version
        changes = [*error.problems]
    for change in changes[:_MOST_CHANGES_LISTED]:
        say(f"    {replace(change, remedy='')}")
    if n := len(changes[_MOST_CHANGES_LISTED:]):
        say(f"    … and {n:,} more")
