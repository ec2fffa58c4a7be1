"""The commands of the whole pipeline: `run`, `register`, `status`, `dev`, `demo`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.cli.command import Command, Say, add_config, add_workers
from decon_assets.runner.active_run import active_run
from decon_assets.runner.stage_lines import StageLines
from decon_core.config.load import CONFIG_VARIABLE, Config, load_config
from decon_core.config.open_store import open_store, writable_store
from decon_core.corpus.packs import Pack
from decon_core.decisions.verdicts import read_verdicts
from decon_core.errors import DeconError, MissingError, Problem, StaleError
from decon_core.report.open import coverage_of
from decon_core.report.publish.summary import format_headline
from decon_core.scan.workers import WORKERS_VARIABLE
from decon_core.storage.checksums import REMEDY
from decon_core.storage.mirror import Mirror
from decon_core.storage.store import Store
from decon_core.wording import counted

if TYPE_CHECKING:  # imports Dagster, which `status` does not need
    from decon_assets.assets.registration import Registration

RUN_DESCRIPTION = """\
Register benchmarks and packs, then build records, idf snapshot, indexes, the missing cells of the
scan, mixtures, blends, the report and its page. A second run builds only what is missing or out of
date.

An unreadable shard blocks only what depends on it: mixtures of its pack, controls of its source,
and blends. The report covers all other shards, and is marked as incomplete.

Exit codes: 0 everything is built, 1 a stage failed or the report is incomplete, 2 an input is
wrong.
"""


_NAME = "decon-assets"

# Dagster recommends `dg dev` instead, which needs a project that `dg` created; `dagster dev` takes
# a module.
_IGNORE_DG_HINT = "ignore:Function `dev_command` is superseded:FutureWarning"


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refreeze",
        action="store_true",
        help="recompute the idf snapshot: every score changes, so everything is scanned again",
    )
    _add_verify(parser, "first read every file of the store, and rebuild the damaged ones")


def add_status_arguments(parser: argparse.ArgumentParser) -> None:
    _add_verify(parser, "read every file of the store, and list the damaged ones")


def _add_verify(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--verify", action="store_true", help=text)


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also print a line for each benchmark, pack of a mixture, and blend",
    )


def add_retire(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retire",
        action="store_true",
        help="continue even if most registered shards are gone, and drop their packs and mixtures",
    )


def add_dev_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=3000,
        choices=range(1, 65536),
        metavar="PORT",
        help="port of the UI (default 3000)",
    )


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="the truth file (default: truth.jsonl beside the configuration)",
    )


def run(options: argparse.Namespace, say: Say) -> int:
    registered = _run_pipeline(options, say)
    if registered is None:
        return 1
    say("")
    _say_products(registered, say)
    say(f"report: {registered.store.report}")
    say(f"page: {registered.store.report_page}")
    return 0


def _run_pipeline(options: argparse.Namespace, say: Say) -> Registration | None:
    """Build everything; return None if a stage failed, after printing the reason."""
    import duckdb

    # Fail before a history is created beside a missing file, and before a day of scanning that
    # would end at an unreadable verdict.
    read_verdicts(load_config(options.config).verdicts)
    export_workers(options)
    from decon_assets.everything import run_as_job
    from decon_assets.instance.home import home_for, open_instance
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    with open_instance(home_for(options.config)) as instance:
        if getattr(options, "verify", False):
            _remove_damaged(load_config(options.config), say)
        pipeline = Pipeline(options.config, instance, say, lines=stage_lines(options, say))
        try:
            registered = run_as_job(
                instance,
                lambda: pipeline.run(
                    refreeze=getattr(options, "refreeze", False),
                    may_retire=getattr(options, "retire", False),
                ),
            )
        except PipelineError as error:
            _print_error(error)
            _say_incomplete(options.config, say)
            return None
    with suppress(duckdb.Error):  # another program may have the new report open already
        _say_unreadable(registered.store.report, say)
    with suppress(StaleError, MissingError):  # for the same reason
        say(f"\n{format_headline(registered.store.report)}")
    return registered


def stage_lines(options: argparse.Namespace, say: Say) -> StageLines:
    """Return the progress output: a moving line on a terminal, plain lines in a log."""
    terminal = sys.stdout if sys.stdout.isatty() else None
    return StageLines(say, terminal=terminal, is_verbose=options.verbose)


def _say_products(registered: Registration, say: Say) -> None:
    """Print where mixtures and blends are, and the command that lists them."""
    config, store = registered.config, registered.store
    if config.kept:
        say(f"stored at {config.kept}; the local copies are:")
    for kind, folders in (
        ("mixture", [store.mixtures(mixture.name) for mixture in config.mixtures]),
        ("blend", [store.blend(blend.name) for blend in config.blends]),
    ):
        if len(folders) == 1:
            say(f"{kind}: {folders[0]}")
        elif folders:
            say(f"{kind}s: {folders[0].parent} ({len(folders)} of them: decon-assets {kind} list)")


def _remove_damaged(config: Config, say: Say) -> None:
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
    for path in removed:
        say(f"  removed: {path}{_rebuild_hint(store, path)}")


def _rebuild_hint(store: Store, path: Path) -> str:
    """Name the command that rebuilds a removed file, if it is not `run`."""
    kind = path.relative_to(store.root).parts[0]
    return "; `decon-assets scorecard` rebuilds it" if kind == "scorecard" else ""


def _damaged_files(store: Store, say: Say) -> list[Problem]:
    """Read every file of a store; print and return the problems of damaged files."""
    from decon_core.quality.integrity import verify_store

    results = [*verify_store(store)]  # one for each file
    problems = [problem for problem in results if problem]
    say(f"{counted(len(results), 'file')} of the store read, {len(problems)} damaged")
    for problem in problems:
        say(f"  {problem.where}: {problem.found}")
    return problems


def export_workers(options: argparse.Namespace) -> None:
    """Pass `--workers` to the assets by the environment, as Dagster runs them."""
    if options.workers:
        os.environ[WORKERS_VARIABLE] = str(options.workers)


def _say_unreadable(report: Path, say: Say) -> None:
    import duckdb

    with duckdb.connect(str(report), read_only=True) as connection:
        (n_unreadable,) = connection.execute("SELECT count(*) FROM unreadable").fetchone() or (0,)
    if n_unreadable:
        say(
            f"\n{counted(n_unreadable, 'row')} could not be read, so no mixture has them; for the "
            'list: decon-assets report --query "FROM unreadable"'
        )


def _say_incomplete(config_path: Path, say: Say) -> None:
    """Print where the incomplete report of a failed run is, if there is one."""
    store = Store(load_config(config_path).store)
    with suppress(DeconError):  # there is no report, or one of another version
        coverage = coverage_of(store.report)
        if not coverage.is_complete:
            say(f"\n{coverage.notice}")
            say(f"report: {store.report}  (what is missing, and why: decon-assets report)")
            say(f"page: {store.report_page}")


def register(options: argparse.Namespace, say: Say) -> int:
    load_config(options.config)
    from decon_assets.assets.registration import register_outside
    from decon_assets.instance.home import home_for, open_instance

    with open_instance(home_for(options.config)) as instance:
        registered = register_outside(options.config, instance, may_retire=options.retire)
    say(f"benchmarks: {', '.join(registered.benchmarks)}")
    say(f"packs: {', '.join(pack.name for pack in registered.packs)}")
    return 0


def status(options: argparse.Namespace, say: Say) -> int:
    from decon_core.benchmarks.records import current_version
    from decon_core.index.idf import outdated_members
    from decon_core.inventory import (
        benchmarks_of,
        grid_warning,
        list_packs,
        plan_registration,
        stale_benchmarks,
    )
    from decon_core.scan.tiles import missing_tiles, scan_fingerprint

    config = load_config(options.config)
    store = open_store(config)
    if options.verify and _damaged_files(store, say):
        say(REMEDY)
        return 1
    packs = list_packs(store)
    n_shards = sum(len(pack.shards) for pack in packs)
    say(f"{counted(len(packs), 'pack')}, {counted(n_shards, 'shard')} registered")
    plan = plan_registration(config, store)
    for path in plan.gone:
        say(f"  {path}: removed or changed since it was registered")
    for path in plan.new:
        say(f"  {path}: new or changed, not registered yet")
    for old, new in plan.renamed:
        say(f"  {old}: renamed to {new} since it was registered")
    if warning := grid_warning(config, plan.current):
        say(f"warning: {warning}")
    is_complete = bool(packs) and not (plan.new or plan.gone or plan.renamed)
    stale = stale_benchmarks(config, store)
    for name in benchmarks_of(config):
        if not store.current_records(name).is_file():
            say(f"  {name}: no records yet")
        elif name in stale:
            say(f"  {name}: recipe or files changed since it was normalized")
        elif not store.current_snapshot.is_file():
            say(f"  {name}: no idf snapshot yet")
        else:
            scan = scan_fingerprint(store, config.policy)
            version = current_version(store, name)
            n_missing = len(missing_tiles(store, packs, [version], scan))
            say(f"  {name}: {n_shards - n_missing} of {counted(n_shards, 'shard')} scanned")
            is_complete &= n_missing == 0
            continue
        is_complete = False
    if store.current_snapshot.is_file():
        for problem in outdated_members(store):
            say(f"  {problem}")
    for line in _unread_shards(store, packs):
        say(f"  {line}")
    run = active_run(options.config)
    is_complete &= _status_of_products(config, store, packs, say, is_running=run is not None)
    if is_complete:  # what has no line of its own above
        from decon_assets import graph
        from decon_assets.planning import missing_stages
        from decon_core.plan import Plan

        for name in missing_stages(Plan(config, store, tuple(packs)), graph.GRAPH):
            say(f"  {name}: missing or outdated")
            is_complete = False
    remedy = run or "`decon-assets run` builds what is missing"
    say("complete" if is_complete else f"incomplete: {remedy}")
    return 0 if is_complete else 1


def _unread_shards(store: Store, packs: Sequence[Pack]) -> Iterator[str]:
    """Yield a line for each shard that the last scan could not read, with reason and remedy."""
    from decon_core.scan.tiles import refused

    for shard, problem in refused(store, packs):
        yield f"{shard.name} could not be scanned: {problem}"


def _status_of_products(
    config: Config, store: Store, packs: Sequence[Pack], say: Say, *, is_running: bool
) -> bool:
    """Print which mixtures, blends and report are up to date; return whether all are."""
    from decon_core.inventory import blender_of
    from decon_core.report.build import is_current
    from decon_core.scan.tiles import gaps_of

    try:
        blender = blender_of(config, store)
        builder = blender.builder
        n_built_of = {
            mixture.name: sum(builder.is_current(mixture, pack) for pack in packs)
            for mixture in config.mixtures
        }
    except MissingError:
        say("  mixtures, blends, report: not built yet")
        return False
    except DeconError as error:
        say("  mixtures, blends, report: not built yet" if is_running else f"  {error}")
        return False
    for name, n_built in n_built_of.items():
        say(f"  mixture {name}: {n_built} of {counted(len(packs), 'pack')} up to date")
    are_blended = [blender.is_current(blend) for blend in blender.blends]
    if are_blended:
        say(f"  blends: {sum(are_blended)} of {len(are_blended)} up to date")
    is_reported = is_current(blender, config.showing)
    is_scanned = not gaps_of(store, packs, builder.versions, builder.reader.scan)
    coverage = "" if is_scanned or not is_reported else ", incomplete: shards were not scanned"
    say(f"  report: {'up to date' if is_reported else 'out of date'}{coverage}")
    has_page = store.report_page.is_file()
    if not has_page:
        say("  page of the report: missing")
    is_mixed = all(n_built == len(packs) for n_built in n_built_of.values())
    return is_mixed and all(are_blended) and is_reported and has_page


def dev(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.assets.report_server import URL_VARIABLE, serve_report
    from decon_assets.instance.home import (
        HOME_VARIABLE,
        LOCATION,
        ensure_history,
        ensure_home,
        home_for,
    )
    from decon_assets.runner.daemon import take_over
    from decon_assets.runner.supervisor import run_supervised

    config = load_config(options.config)  # report its errors before the UI starts
    home = ensure_home(home_for(options.config))
    ensure_history(home)
    take_over(home, say)
    os.environ[HOME_VARIABLE] = str(home)
    os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    export_workers(options)
    if URL_VARIABLE not in os.environ:
        folder = Store(config.store).report.parent
        os.environ[URL_VARIABLE] = serve_report(folder, port=options.port)
    command = [
        sys.executable, "-W", _IGNORE_DG_HINT, "-m", "dagster", "dev",
        "-m", LOCATION, "-h", "127.0.0.1", "-p", str(options.port),
    ]  # fmt: skip
    say(f"http://127.0.0.1:{options.port}  (stop with Ctrl-C)")
    return run_supervised(command)


def demo(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.cli.terminal.tables import truth_tables
    from decon_core.quality.truth import compare

    started = time.monotonic()
    truth = options.truth or options.config.parent / "truth.jsonl"
    if not truth.is_file():
        _print_error(f"{truth}: no such file; `decon-assets run` needs no truth file")
        return 2
    if _run_pipeline(options, say) is None:
        return 1
    store = open_store(load_config(options.config))
    benchmarks, phenomena = compare(store.report, truth)
    say(truth_tables(benchmarks, phenomena))
    typed = f"{_program()} report --config {options.config}"
    say(f"report: {store.report}  (print its tables: {typed})")
    say(f"page: {store.report_page}  (open it in any browser; it needs no network)")
    say(f"{time.monotonic() - started:.0f} s; `make dev` shows the runs in the Dagster UI")
    is_right = all(
        score.n_found == score.n_planted and not score.n_false_alarms for score in benchmarks
    )
    return 0 if is_right else 1


def _program() -> str:
    """Return the program as it was called: it may not be on the PATH."""
    called = sys.argv[0] if sys.argv else ""
    return called if Path(called).name == _NAME else _NAME


def _print_error(error: object) -> None:
    sys.stderr.write(f"{error}\n")


RUN = Command(
    run,
    (add_run_arguments, add_retire, add_verbose, add_workers, add_config),
    RUN_DESCRIPTION,
)
STATUS = Command(status, (add_status_arguments, add_config))
REGISTER = Command(register, (add_retire, add_config))
DEV = Command(dev, (add_dev_arguments, add_workers, add_config))
DEMO = Command(demo, (add_demo_arguments, add_verbose, add_workers, add_config))
