"""`decon-assets run`, `register`, `status` and `demo`: build the pipeline, and show its state."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from decon_assets.cli.serve import export_engine, export_workers
from decon_assets.instance.active_run import active_run
from decon_assets.runner.stage_lines import StageLines
from decon_assets.terminal.options import (
    AllowSkipped,
    ConfigPath,
    EngineOption,
    Retire,
    Verbose,
    Workers,
    flag,
    optional,
)
from decon_assets.terminal.output import Say, say, say_table, warn
from decon_core.config.load import Config, load_config
from decon_core.config.open_store import open_store, writable_store
from decon_core.decisions.verdicts import read_verdicts
from decon_core.errors import DeconError, MissingError, Problem, StaleError
from decon_core.execution.choice import require_engine
from decon_core.feature import feature_hooks, feature_partitions, feature_products, not_made_by_run
from decon_core.report.open import coverage_of
from decon_core.report.publish.summary import format_headline
from decon_core.storage.checksums import REMEDY
from decon_core.storage.listing import Skipped
from decon_core.storage.mirror import Mirror
from decon_core.storage.store import Store
from decon_core.wording import counted

if TYPE_CHECKING:  # imports Dagster, which `status` does not need
    from decon_assets.assets.registration import Registration
    from decon_core.planner import Plan
    from decon_core.report.truth import BenchmarkScore, PhenomenonScore

AllowUnread = flag(
    "--allow-unread", "do not exit with code 4 because of text in fields that no source reads"
)

_NAME = "decon-assets"
_MOST_SKIPPED_LISTED = 5
_BENCHMARK_LEGEND = """\
leaked: items with a leak; planted: leaks put into the corpus on purpose that should be found;
found: planted leaks that were found; false alarms: leaks that were not planted.
"""
_PHENOMENON_LEGEND = """\
n: places in the corpus; flagged: reported as a leak; expected: should be reported; wrong: not as
expected.
"""


def run(
    *,
    refreeze: bool = flag(
        "--refreeze",
        "recompute the idf snapshot: every score changes, so everything is scanned again",
    ),
    verify: bool = flag(
        "--verify",
        "first read every file of the store and every shard; rebuild what is damaged, and scan "
        "shards that changed",
    ),
    retire: Retire = False,
    allow_skipped: AllowSkipped = False,
    verbose: Verbose = False,
    workers: Workers = None,
    engine: EngineOption = None,
    allow_unread: bool = AllowUnread,
    config: ConfigPath,
) -> int:
    """Register benchmarks and packs, and build everything that is missing or out of date.

    This is records, idf snapshot, indexes, the missing cells of the scan, mixtures, blends, the
    report and its page. Run it again after any change of the corpus, the benchmarks or decon.toml:
    a second run builds only what is missing or out of date, and continues a stopped one.

    An unreadable shard blocks only what depends on it: mixtures of its pack, controls of its
    source, and blends. The report covers all other shards, and is marked as incomplete.

    Examples:
      decon-assets run
      decon-assets run --config my/decon.toml --workers 8
      decon-assets run --verify                 also rebuild damaged files

    What lies beside the shards and no source reads is listed in .decon/skipped.json, and named in
    the last lines.

    Exit codes: 0 everything is built, 1 a stage failed or the report is incomplete, 2 an input is
    wrong, 4 all shards are scanned, but something was not read, and the last lines name it: text
    in fields that a source does not read (its mixtures are refused; --allow-unread), or, where all
    else is built, what a source's pattern matches and is no shard (a file of another format, a link
    that leads nowhere, a fifo, a folder; --allow-skipped).
    """
    export_engine(engine)
    registered = _build(
        config, workers, verify=verify, refreeze=refreeze, may_retire=retire, is_verbose=verbose
    )
    code = 1
    if registered is not None:
        say()
        _say_products(registered)
        say(f"report: {registered.store.report}")
        say(f"page: {registered.store.report_page}")
        _say_skipped(registered.skipped, registered.store)
        code = _code_of(registered.skipped, allow_skipped=allow_skipped)
    with suppress(MissingError, StaleError):  # nothing was scanned yet
        return _exit_code(config, code, may_be_unread=allow_unread)
    return code


def _exit_code(config: Path, code: int, *, may_be_unread: bool) -> int:
    """Print which text was not read, and return the exit code of `run`; `code`: without that.

    Also warns of thresholds without effect, and of benchmarks in scripts that the tokenizer splits.
    """
    from decon_core.config.policy import without_effect
    from decon_core.decisions.scripts import split_scripts
    from decon_core.planner import Plan
    from decon_core.scan.coverage import gaps_of

    loaded = load_config(config)
    plan = Plan(loaded, open_store(loaded))
    versions = plan.current_versions
    splits = split_scripts(plan.store, versions, loaded.policy)
    for problem in (*without_effect(loaded.policy), *splits):
        warn(problem)
    is_unread, is_empty = _say_unread(plan)
    if gaps_of(plan.store, plan.packs, versions, plan.scan) or is_empty:
        return 1
    if is_unread and not may_be_unread:
        return 4
    return code


def _say_unread(plan: Plan) -> tuple[bool, bool]:
    """Print what was not read of the shards that were scanned.

    Returns whether unread text blocks, and whether a source has no text.
    """
    from decon_core.decisions.match_reader import MatchReader
    from decon_core.decisions.unread import ledgers_of, sources_without_text, unread_texts

    # Without verdicts, which may be damaged: the state of products says so.
    policy = plan.config.policy
    reader = MatchReader(plan.store, (), policy, plan.scan)
    ledgers = [*ledgers_of(reader, plan.packs)]
    empty = sources_without_text(ledgers)
    for problem in empty:
        warn(problem)
    if reasons := Counter(row["reason"] for _, ledger in ledgers for row in ledger["unreadable"]):
        named = ", ".join(f"{n:,} {reason}" for reason, n in reasons.most_common())
        say(f"\n{counted(reasons.total(), 'row')} could not be read: {named}")
        if policy.unreadable == "drop":
            say('mixtures leave them out: unreadable = "drop" in [policy]')
        else:
            say('mixtures of their packs are refused, without unreadable = "drop" in [policy]')
        say('the rows: decon-assets report --query "FROM unreadable"')
    unread = unread_texts(ledgers, plan.unread)
    for one in unread:
        say(f"\n{one.line()}")
        say(f"if it may stay unread, add to its [[corpus.source]]:  {one.setting}")
    return bool(unread) and plan.unread.is_blocking, bool(empty)


def register(
    *, retire: Retire = False, allow_skipped: AllowSkipped = False, config: ConfigPath
) -> int:
    """Register benchmarks and packs with Dagster, and build nothing.

    The UI then shows new benchmarks and packs as missing partitions. `run` and `backfill` register
    by themselves. What lies beside the shards is named; exit code 4 as of `run`.

    Examples:
      decon-assets register && decon-assets dev
    """
    load_config(config)
    from decon_assets.assets.registration import register_outside
    from decon_assets.instance.home import home_for, open_instance

    with open_instance(home_for(config)) as instance:
        registered = register_outside(config, instance, may_retire=retire)
    say(f"benchmarks: {', '.join(registered.benchmarks)}")
    say(f"packs: {', '.join(pack.name for pack in registered.packs)}")
    _say_skipped(registered.skipped, registered.store)
    return _code_of(registered.skipped, allow_skipped=allow_skipped)


def status(
    *,
    verify: bool = flag(
        "--verify", "read every file of the store and every shard; list what is damaged or changed"
    ),
    allow_unread: bool = AllowUnread,
    allow_skipped: AllowSkipped = False,
    config: ConfigPath,
) -> int:
    """Show what is scanned and built, and what changed on disk since.

    It changes nothing. `decon-assets run` builds what is missing. Everything beside the shards that
    no source reads is listed.

    Exit codes: 0 complete, 1 incomplete, 2 an input is wrong, 4 all shards are scanned, but
    something was not read: text in fields that a source does not read (its mixtures are refused;
    --allow-unread), or, where all else is complete, what a source's pattern matches and is no shard
    (--allow-skipped).

    Examples:
      decon-assets status
      decon-assets status --verify              also read every file of the store
    """
    loaded = load_config(config)
    store = open_store(loaded)
    if verify and (_damaged_files(store, say) or _changed_shards(store, say)):
        say(REMEDY)
        return 1
    from decon_core.planner import Plan

    running = active_run(config)
    plan = Plan(loaded, store)
    is_scanned = _status_of_scan(plan)
    is_complete = _status_of_products(plan, is_running=running is not None) and is_scanned
    if is_complete:  # what has no line of its own above
        from decon_assets import graph
        from decon_assets.run_requests import missing_stages

        for name in missing_stages(plan, graph.GRAPH):
            say(f"  {name}: missing or outdated")
            is_complete = False
    remedy = running or "`decon-assets run` builds what is missing"
    _say_skipped(plan.changes.skipped)
    is_unread, is_empty = _say_unread(plan) if store.current_snapshot.is_file() else (False, False)
    if is_unread and not running:
        remedy = "mixtures of sources with unread text are refused, see above; then `run` goes on"
    say("complete" if is_complete else f"incomplete: {remedy}")
    if is_unread and is_scanned and not (is_empty or allow_unread):
        return 4
    if is_empty or not is_complete:
        return 1
    return _code_of(plan.changes.skipped, allow_skipped=allow_skipped)


def demo(
    *,
    truth: Path | None = optional(
        "the truth file (default: truth.jsonl beside the configuration)", "FILE"
    ),
    verbose: Verbose = False,
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Run a project that has a truth file, and compare the result with it.

    The truth file lists leaks that were planted into the corpus, as for the sample data. The
    command fails if a planted leak was not found, or if there is a false alarm. It also prints leak
    rates by split, and solves and draws the contamination game with its default parameters.

    Examples:
      decon-assets demo --config data/decon.toml
    """
    from decon_assets.terminal.leak_rates import say_rates
    from decon_core.report.categories.groupings import parse_groupings
    from decon_core.report.categories.rates import leak_rates
    from decon_core.report.items import load_report_items
    from decon_core.report.truth import compare

    started = time.monotonic()
    truth = truth or config.parent / "truth.jsonl"
    if not truth.is_file():
        warn(
            f"{truth}: no such file; `decon-assets run` needs none. The sample data has one: it is "
            "in the folder data/ of the repository, not in the installed package"
        )
        return 2
    if _build(config, workers, is_verbose=verbose) is None:
        return 1
    store = open_store(load_config(config))
    benchmarks, phenomena = compare(store.report, truth)
    say_truth(benchmarks, phenomena)
    say_rates(leak_rates(load_report_items(store.report), parse_groupings(["split"], [])).rates)
    say()
    # The program as it was called: it may not be on the PATH.
    program = sys.argv[0] if Path(sys.argv[0]).name == _NAME else _NAME
    say(f"report: {store.report}  (print its tables: {program} report --config {config})")
    say(f"page: {store.report_page}  (open it in any browser; it needs no network)")
    for demonstrate in feature_hooks("demonstrate"):
        for line in demonstrate(store, program, config):
            say(line)
    say(f"UI with the runs: {program} dev --config {config}")
    say(f"{time.monotonic() - started:.0f} s")
    is_wrong = any(
        benchmark.n_found != benchmark.n_planted or benchmark.n_false_alarms
        for benchmark in benchmarks
    )
    return 1 if is_wrong else 0


def _build(
    config: Path,
    workers: int | None,
    *,
    verify: bool = False,
    refreeze: bool = False,
    may_retire: bool = False,
    is_verbose: bool = False,
) -> Registration | None:
    """Build everything; return None if a stage failed, after printing the reason."""
    # Fail before a history is created beside a missing file, and before a day of scanning that
    # would end at an unreadable verdict.
    settings = load_config(config)
    read_verdicts(settings.verdicts)
    require_engine(settings.tables)
    export_workers(workers)
    from decon_assets.everything_job import run_as_job
    from decon_assets.instance.home import home_for, open_instance
    from decon_assets.runner.interrupts import watch_interrupts
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    with watch_interrupts(), open_instance(home_for(config)) as instance:
        if verify:
            remove_damaged_files(load_config(config), say)
        pipeline = Pipeline(config, instance, say, lines=stage_lines(is_verbose=is_verbose))
        try:
            registered = run_as_job(
                instance, lambda: pipeline.run(refreeze=refreeze, may_retire=may_retire)
            )
        except PipelineError as error:
            warn(error)
            store = Store(load_config(config).store)
            with suppress(DeconError):  # there is no report, or one of another version
                coverage = coverage_of(store.report)
                if not coverage.is_complete:
                    say(f"\n{coverage.notice}")
                    say(f"report: {store.report}  (what is missing, and why: decon-assets report)")
                    say(f"page: {store.report_page}")
            return None
    with suppress(StaleError, MissingError):  # another program may have the new report open already
        say(f"\n{format_headline(registered.store.report)}")
    return registered


def stage_lines(*, is_verbose: bool) -> StageLines:
    """Return the progress output: a moving bar on a terminal, plain lines in a log."""
    return StageLines(say, is_terminal=sys.stdout.isatty(), is_verbose=is_verbose)


def _say_products(registered: Registration) -> None:
    """Print where mixtures and blends are, and the command that lists them."""
    config, store = registered.config, registered.store
    if config.kept:
        say(f"stored at {config.kept}; the local copies are:")
    names = {"mixture": [mixture.name for mixture in config.mixtures]}
    names |= {kind: names_of(config) for kind, names_of in feature_partitions().items()}
    for kind, folders in (
        (kind, [store.root / f"{kind}s" / name for name in some]) for kind, some in names.items()
    ):
        if len(folders) == 1:
            say(f"{kind}: {folders[0]}")
        elif folders:
            say(f"{kind}s: {folders[0].parent} ({len(folders)} of them: decon-assets {kind} list)")


def remove_damaged_files(config: Config, say: Say) -> None:
    """Remove the damaged files of the store, or fetch them again; have changed shards hashed."""
    from decon_core.corpus.registration import forget_stamps
    from decon_core.quality.integrity import remove_damaged, to_remove

    with writable_store(config) as store:
        removed = remove_damaged(store, _damaged_files(store, say))
        if removed and config.kept is not None:  # some may be intact behind the URL
            mirror = Mirror(config.store, config.kept)
            mirror.pull()
            fetched = {path for path in removed if path.exists()}
            damaged = remove_damaged(store, _damaged_files(store, say)) if fetched else []
            mirror.discard(to_remove(store, damaged))
            for path in sorted(fetched - {*damaged}):
                say(f"  fetched again: {path}")
            removed = [path for path in removed if path not in fetched or path in damaged]
        forget_stamps(store, {problem.where for problem in _changed_shards(store, say)})
    for path in removed:
        if path.exists():
            say(f"  restored from its copy: {path}")
            continue
        folder = path.relative_to(store.root).parts[0]
        remedy = f"; `decon-assets {folder}` rebuilds it" if folder in not_made_by_run() else ""
        say(f"  removed: {path}{remedy}")


def _damaged_files(store: Store, say: Say) -> list[Problem]:
    """Read every file of a store; print and return the problems of damaged files."""
    from decon_core.quality.integrity import verify_store

    return _say_problems(verify_store(store), "file", "of the store read, {} damaged", say)


def _changed_shards(store: Store, say: Say) -> list[Problem]:
    """Read every shard; print and return the problems of changed ones."""
    from decon_core.corpus.registration import changed_shards, list_packs

    found = changed_shards(list_packs(store))
    return _say_problems(found, "shard", "of the corpus read, {} changed", say)


def _say_problems(
    results: Iterable[Problem | None], noun: str, summary: str, say: Say
) -> list[Problem]:
    """Print how many files were read, and each problem; return the problems."""
    every = [*results]
    problems = [problem for problem in every if problem]
    say(f"{counted(len(every), noun)} {summary.format(len(problems))}")
    for problem in problems:
        say(f"  {problem.where}: {problem.found}")
    return problems


def _say_skipped(skipped: Sequence[Skipped], store: Store | None = None) -> None:
    """Print what lies beside the shards: all of it, or with a store a few and where the rest is."""
    for is_on_purpose, what in ((False, "not read"), (True, "not read, on purpose")):
        named = [one for one in skipped if one.is_on_purpose == is_on_purpose]
        for one in named[:_MOST_SKIPPED_LISTED] if store else named:
            say(f"{what}: {one}")
        if store and len(named) > _MOST_SKIPPED_LISTED:
            say(f"{what}: {len(named):,} files, folders and links; all are in {store.skipped}")


def _code_of(skipped: Sequence[Skipped], *, allow_skipped: bool) -> int:
    """Return the exit code of a complete result."""
    is_whole = allow_skipped or all(one.is_on_purpose for one in skipped)
    return 0 if is_whole else 4


def _status_of_scan(plan: Plan) -> bool:
    """Print what is registered and scanned; return whether all of it is up to date."""
    from decon_core.corpus.registration import grid_warning
    from decon_core.index.idf import outdated_members
    from decon_core.scan.coverage import refused

    store, packs, changes = plan.store, plan.packs, plan.changes
    say(f"{counted(len(packs), 'pack')}, {counted(plan.n_shards, 'shard')} registered")
    for path in changes.gone:
        say(f"  {path}: removed or changed since it was registered")
    for path in changes.new:
        say(f"  {path}: new or changed, not registered yet")
    for old, new in changes.renamed:
        say(f"  {old}: renamed to {new} since it was registered")
    if warning := grid_warning(changes.current, len(plan.benchmarks)):
        say(f"warning: {warning}")
    is_registered = bool(packs) and not (changes.new or changes.gone or changes.renamed)
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
    from decon_core.benchmarks.records import current_version
    from decon_core.scan.coverage import missing_tiles

    store = plan.store
    changed = "recipe or files changed since it was normalized"
    reasons = dict.fromkeys(plan.stale_benchmarks, changed)
    reasons |= {
        name: "no records yet"
        for name in plan.benchmarks
        if not store.current_records(name).is_file()
    }
    if not store.current_snapshot.is_file():
        reasons = dict.fromkeys(plan.benchmarks, "no idf snapshot yet") | reasons
    versions = [current_version(store, name) for name in plan.benchmarks if name not in reasons]
    n_missing: Counter[str] = Counter()
    if versions:
        for _, _, missing in missing_tiles(
            store, plan.packs, versions, plan.scan, tiles=plan.tiles
        ):
            n_missing.update(version.benchmark for version in missing)
    of_all = counted(plan.n_shards, "shard")
    for name in plan.benchmarks:
        if reason := reasons.get(name):
            yield name, reason, plan.n_shards
        else:
            yield name, f"{plan.n_shards - n_missing[name]} of {of_all} scanned", n_missing[name]


def _status_of_products(plan: Plan, *, is_running: bool) -> bool:
    """Print which mixtures and other products are up to date; return whether all are."""
    from decon_core.planner import missing_shares, needs_report
    from decon_core.scan.coverage import gaps_of

    n_packs = counted(len(plan.packs), "pack")
    try:
        unmixed = Counter(chain.from_iterable(missing_shares(plan).values()))
    except DeconError as error:
        if isinstance(error, MissingError) or is_running:
            is_built = plan.store.report.is_file() or plan.store.mixtures("any").parent.is_dir()
            say(f"  mixtures, report: {'out of date' if is_built else 'not built yet'}")
        else:
            say(f"  {error}")
        return False
    for mixture in plan.config.mixtures:
        n_built = len(plan.packs) - unmixed[mixture.name]
        say(f"  mixture {mixture.name}: {n_built} of {n_packs} up to date")
    partitions = feature_partitions()
    is_made = {}
    for name, missing_of in feature_products().items():
        if name not in plan.config.tables:
            continue
        absent = resolve_name(missing_of)(plan)
        is_made[name] = not absent
        if name in partitions:
            n = len(partitions[name](plan.config))
            say(f"  {name}s: {n - len(absent)} of {n} up to date")
        else:
            say(f"  {name}: {'missing or outdated' if absent else 'up to date'}")
    is_reported = not needs_report(plan)
    is_scanned = not gaps_of(
        plan.store, plan.packs, plan.builder.versions, plan.scan, tiles=plan.tiles
    )
    coverage = "" if is_scanned or not is_reported else ", incomplete: shards were not scanned"
    say(f"  report: {'up to date' if is_reported else 'out of date'}{coverage}")
    has_page = plan.store.report_page.is_file()
    if not has_page:
        say("  page of the report: missing")
    return not unmixed and all(is_made.values()) and is_reported and has_page


def say_truth(benchmarks: Sequence[BenchmarkScore], phenomena: Sequence[PhenomenonScore]) -> None:
    """Print planted and found leaks, by benchmark and by phenomenon."""
    say()
    heads = ("benchmark", "items", "leaked", "planted", "found", "false alarms")
    rows: list[tuple[object, ...]] = [
        (s.benchmark, s.n_items, s.n_leaked, s.n_planted, s.n_found, s.n_false_alarms)
        for s in benchmarks
    ]
    say_table(heads, rows)
    say(_BENCHMARK_LEGEND)
    heads = ("", "phenomenon", "n", "flagged", "expected", "wrong")
    rows = [
        (s.kind.replace("_", " "), s.phenomenon, s.n, s.n_flagged, s.n_expected, s.n_wrong)
        for s in phenomena
    ]
    say_table(heads, rows)
    say(_PHENOMENON_LEGEND)
