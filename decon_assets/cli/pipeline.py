"""`decon-assets run`, `register` and `demo`: build the pipeline."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.cli.serve import export_engine, export_workers
from decon_assets.cli.store_state import (
    AllowUnread,
    code_with,
    remove_damaged_files,
    say_not_read,
    say_skipped,
)
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
from decon_assets.terminal.output import say, say_next, say_table, warn
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.decisions.not_read import OPTIONS, account_of
from decon_core.decisions.verdicts import read_verdicts
from decon_core.errors import DeconError, MissingError, StaleError
from decon_core.execution.choice import require_engine
from decon_core.feature import feature_entries, feature_objects
from decon_core.report.open import Row, coverage_of
from decon_core.report.publish.summary import format_headline
from decon_core.storage.listing import Skipped
from decon_core.storage.store import Store

if TYPE_CHECKING:
    from decon_assets.assets.registration import Registration

_NAME = "decon-assets"
_BENCHMARK_LEGEND = """\
leaked: items with a leak; planted: leaks put into the corpus on purpose that
should be found; found: planted leaks that were found; false alarms: leaks that
were not planted.
"""
_PHENOMENON_LEGEND = """\
n: places in the corpus; flagged: reported as a leak; expected: should be
reported; wrong: reported although they should not be, or the reverse.
"""


def run(
    *,
    refreeze: bool = flag(
        "--new-term-weights",
        "recompute the term weights; this changes every score, so everything is scanned again",
    ),
    verify: bool = flag(
        "--verify",
        "first read every file in the store and every shard, to rebuild damaged files and scan "
        "changed shards again",
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

    The command builds records, term weights, indexes, scan results, mixtures, blends, the report
    and its page. Run it again after a change to the corpus, the benchmarks or decon.toml, or after
    a run that was stopped: it then builds only what is missing or out of date.

    An unreadable shard blocks only the outputs that depend on it: mixtures of its pack, control
    mixtures that include its source, and blends. The report covers all other shards and is marked
    as incomplete.

    Examples:
      decon-assets run
      decon-assets run --config my/decon.toml --workers 8
      decon-assets run --verify                 also rebuild damaged files

    Files in the shard folders that no source reads are listed in .decon/skipped.json and
    in the last lines of the output.

    Exit codes: 0 everything is built; 1 a stage failed or the report is incomplete; 2 invalid
    input; 4 all shards are scanned, but some input was not read (see the last lines):

      - some rows or some text were not read, so mixtures that depend on them
        were not built (if all mixtures were built, --allow-unread accepts
        unread text);
      - or a source's pattern matches something that is not a shard, such as a
        file of another format, a broken link, a fifo or a folder
        (--allow-skipped accepts this).
    """
    export_engine(engine)
    registered, is_held_back = _build(
        config, workers, verify=verify, refreeze=refreeze, may_retire=retire, is_verbose=verbose
    )
    code = 1
    if registered is not None:
        say()
        _say_products(registered)
        say(f"report: {registered.store.report}")
        say(f"page: {registered.store.report_page}")
        say_skipped(registered.skipped, registered.store)
        _say_next(registered, config)
        code = 0
    allowed = [*compress(OPTIONS, (False, allow_unread, allow_skipped))]
    skipped = registered.skipped if registered else ()
    with suppress(MissingError, StaleError):  # nothing was scanned yet
        return _exit_code(config, code, is_held_back, skipped, allowed)
    return code or account_of((), skipped=skipped).accepting(*allowed).exit_code


def _say_next(registered: Registration, config: Path) -> None:
    given = "" if config == Path("decon.toml") else f" --config {shlex.quote(str(config))}"
    say_next(
        f"open {shlex.quote(str(registered.store.report_page))} in a browser",
        f"decon-assets check --max-rate 0.01{given}  (fails a build above 1 %)",
    )


def _exit_code(
    config: Path, code: int, is_held_back: bool, skipped: Sequence[Skipped], allowed: Sequence[str]
) -> int:
    """Print what was not read, and return the exit code of `run`; `code`: without that.

    Also warns about thresholds that have no effect, about settings that name a field that rows do
    not have, and about benchmarks in writing systems whose words the tokenizer splits.
    """
    from decon_core.config.policy import without_effect
    from decon_core.corpus.absent_fields import absent_fields
    from decon_core.decisions.scripts import split_scripts
    from decon_core.planner import Plan
    from decon_core.scan.coverage import gaps_of

    loaded = load_config(config)
    plan = Plan(loaded, open_store(loaded))
    versions = plan.current_versions
    splits = split_scripts(plan.store, versions, loaded.policy)
    absent = absent_fields(plan.packs, plan.builder.mixtures)
    for problem in (*without_effect(loaded.policy), *absent, *splits):
        warn(problem)
    account = say_not_read(plan, skipped)
    if gaps_of(plan.scan_results, plan.packs, versions) or (code and not is_held_back):
        return 1
    return code_with(account, code, allowed)


def register(
    *, retire: Retire = False, allow_skipped: AllowSkipped = False, config: ConfigPath
) -> int:
    """Register benchmarks and packs with Dagster without building anything.

    The UI then shows new benchmarks and packs as missing partitions. `run` and `backfill` also
    register them. The command lists the files in the shard folders that are not shards. The exit
    code is 4 if files, folders, links or benchmarks were skipped.

    Examples:
      decon-assets register && decon-assets dev
    """
    load_config(config)
    from decon_assets.assets import registration
    from decon_assets.instance.home import home_for, open_instance

    with open_instance(home_for(config)) as instance:
        registered = registration.register(config, instance, may_retire=retire)
        registration.record_inventory(registered, instance)
    say(f"benchmarks: {', '.join(registered.benchmarks)}")
    say(f"packs: {', '.join(pack.name for pack in registered.packs)}")
    say_skipped(registered.skipped, registered.store)
    account = account_of((), skipped=registered.skipped)
    return account.accepting(*compress(OPTIONS, (False, False, allow_skipped))).exit_code


def demo(
    *,
    truth: Path | None = optional(
        "the truth file (default: truth.jsonl next to the configuration)", "FILE"
    ),
    verbose: Verbose = False,
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Run a project that has a truth file, and compare the results with that file.

    The truth file lists the leaks planted in the corpus; the sample data has such a file. The
    command fails if the scan misses a planted leak or raises a false alarm. It also prints leak
    rates by split, and solves and draws the contamination game (docs/studies/game.md) with its
    default parameters.

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
            f"{truth}: no such file; `decon-assets run` does not need one. The sample data has "
            "one: it is in the folder data/ of the repository, not in the installed package"
        )
        return 2
    registered, _ = _build(config, workers, is_verbose=verbose)
    if registered is None:
        return 1
    store = registered.store
    benchmarks, phenomena = compare(store.report, truth)
    say_truth(benchmarks, phenomena)
    say_rates(leak_rates(load_report_items(store.report), parse_groupings(["split"], [])).rates)
    say()
    # The program as it was called: it may not be on the PATH.
    program = sys.argv[0] if Path(sys.argv[0]).name == _NAME else _NAME
    say(f"report: {store.report}  (print its tables: {program} report --config {config})")
    say(f"page: {store.report_page}  (open it in any browser; it needs no network)")
    _say_products(registered)
    say(f"UI with the runs: {program} dev --config {config}")
    say(f"done in {time.monotonic() - started:.0f} s")
    is_wrong = any(
        benchmark["n_found"] != benchmark["n_planted"] or benchmark["n_false_alarms"]
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
) -> tuple[Registration | None, bool]:
    """Build everything; return None if a stage failed, after printing the reason.

    Also returns whether stages failed only as they need input that was not read.
    """
    # Fail before a history is created beside a missing file, and before a day of scanning that
    # would end at an unreadable verdict.
    settings = load_config(config)
    read_verdicts(settings.verdicts)
    require_engine(settings.tables)
    export_workers(workers)
    from decon_assets.everything_job import run_as_job
    from decon_assets.instance.cost import cost_line
    from decon_assets.instance.home import home_for, open_instance, tags_of_command
    from decon_assets.runner.interrupts import watch_interrupts
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    with watch_interrupts(), open_instance(home_for(config)) as instance:
        if verify:
            remove_damaged_files(load_config(config), say)
        command = "run --new-term-weights" if refreeze else "run"
        tags = tags_of_command(command, settings.policy)
        lines = stage_lines(is_verbose=is_verbose)
        pipeline = Pipeline(config, instance, say, lines=lines, tags=tags)
        try:
            registered = run_as_job(
                instance, lambda: pipeline.run(refreeze=refreeze, may_retire=may_retire), tags
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
            return None, error.is_held_back
        cost = cost_line(instance)
    say(f"\n{cost}")
    with suppress(StaleError, MissingError):  # another program may have the new report open already
        say(f"\n{format_headline(registered.store.report)}")
    return registered, False


def stage_lines(*, is_verbose: bool) -> StageLines:
    """Return the progress output: a moving bar on a terminal, plain lines in a log."""
    return StageLines(say, is_terminal=sys.stdout.isatty(), is_verbose=is_verbose)


def _say_products(registered: Registration) -> None:
    """Print where mixtures and the products of features are, and the command that lists them."""
    config, store = registered.config, registered.store
    if config.kept:
        say(f"stored at {config.kept}; the local copies are:")
    names = {"mixture": [mixture.name for mixture in config.mixtures]}
    names |= {kind: names_of(config) for kind, names_of in feature_objects("partitions").items()}
    for kind, names_of_kind in names.items():
        folders = [store.root / f"{kind}s" / name for name in names_of_kind]
        if len(folders) == 1:
            say(f"{kind}: {folders[0]}")
        elif folders:
            say(f"{kind}s: {folders[0].parent} ({len(folders)}; decon-assets {kind} list)")
    for name in feature_entries("products"):
        if name in config.tables and (store.root / name).is_dir():  # has no partitions
            say(f"{name}: {store.root / name}")


def say_truth(benchmarks: Sequence[Row], phenomena: Sequence[Row]) -> None:
    say()
    heads = ("benchmark", "items", "leaked", "planted", "found", "false alarms")
    say_table(heads, [(*row.values(),) for row in benchmarks])
    say(_BENCHMARK_LEGEND)
    heads = ("", "phenomenon", "n", "flagged", "expected", "wrong")
    rows = [{**row, "kind": row["kind"].replace("_", " ")} for row in phenomena]
    say_table(heads, [(*row.values(),) for row in rows])
    say(_PHENOMENON_LEGEND)
