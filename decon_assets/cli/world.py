"""What concerns a whole configuration: `run`, `register`, `status`, `dev`, `demo`."""

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

if TYPE_CHECKING:  # Dagster, which `status` does without
    from decon_assets.assets.registration import Registration

RUN_DESCRIPTION = """\
Register benchmarks and packs, then materialize records, idf snapshot, indexes, the missing cells of
the scan, mixtures, blends, the report and its page. Running it again does only what is missing.

A shard that cannot be read stops only what needs it: mixtures of its pack, controls of its source,
blends. The report is made of all others and marked as incomplete.

Exit codes: 0 all is made, 1 a stage failed or the report is incomplete, 2 an input is wrong.
"""


_NAME = "decon-assets"

# Dagster recommends `dg dev`, of a package for projects that `dg` has created. The command that it
# replaces there is the one that takes a module.
_NO_OTHER_PROGRAM = "ignore:Function `dev_command` is superseded:FutureWarning"


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refreeze",
        action="store_true",
        help="count idf anew: every score changes, so everything is scanned again",
    )
    _add_verify(parser, "read every file of the store first, and make again those that are damaged")


def add_status_arguments(parser: argparse.ArgumentParser) -> None:
    _add_verify(parser, "read every file of the store, and name those that are damaged")


def _add_verify(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--verify", action="store_true", help=what)


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="a line for each benchmark, share of a mixture and blend as well",
    )


def add_retire(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retire",
        action="store_true",
        help="go on although most registered shards are gone: their packs and mixtures go, too",
    )


def add_dev_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=3000, choices=range(1, 65536), metavar="PORT")


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--truth", type=Path, help="default: truth.jsonl beside the configuration")


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
    """Bring everything up to date; nothing where a stage failed, after saying why."""
    import duckdb

    # Before a history is begun beside a file that is not there; nor should a day of scanning end at
    # a line of verdicts that cannot be read.
    read_verdicts(load_config(options.config).verdicts)
    hand_down_workers(options)
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
            _complain(error)
            _say_what_is_incomplete(options.config, say)
            return None
    with suppress(duckdb.Error):  # somebody may hold the new report open already
        _say_what_was_left_out(registered.store.report, say)
    with suppress(StaleError, MissingError):  # another program may hold the new report open
        say(f"\n{format_headline(registered.store.report)}")
    return registered


def stage_lines(options: argparse.Namespace, say: Say) -> StageLines:
    """The progress of a pipeline: on a terminal it moves, in a log it is plain lines."""
    terminal = sys.stdout if sys.stdout.isatty() else None
    return StageLines(say, terminal=terminal, is_verbose=options.verbose)


def _say_products(registered: Registration, say: Say) -> None:
    """Where mixtures and blends are: a line for each kind, and the command that lists them."""
    config, store = registered.config, registered.store
    if config.kept:
        say(f"kept at {config.kept}; what follows are its copies here")
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
        if removed and config.kept is not None:  # some are whole behind the URL
            mirror = Mirror(config.store, config.kept)
            mirror.pull()
            fetched = {path for path in removed if path.exists()}
            damaged = remove_damaged(store, _damaged_files(store, say)) if fetched else []
            mirror.discard(to_remove(store, damaged))
            for path in sorted(fetched - {*damaged}):
                say(f"  fetched again: {path}")
            removed = [path for path in removed if path not in fetched or path in damaged]
    for path in removed:
        say(f"  removed: {path}{_made_again_by(store, path)}")


def _made_again_by(store: Store, path: Path) -> str:
    """The command that makes a removed file anew, for what `run` does not make."""
    kind = path.relative_to(store.root).parts[0]
    return "; `decon-assets scorecard` makes it" if kind == "scorecard" else ""


def _damaged_files(store: Store, say: Say) -> list[Problem]:
    """Read every file of a store; those that are damaged."""
    from decon_core.quality.integrity import verify_store

    found = [*verify_store(store)]
    problems = [problem for problem in found if problem]
    say(f"{counted(len(found), 'file')} of the store read, {len(problems)} damaged")
    for problem in problems:
        say(f"  {problem.where}: {problem.found}")
    return problems


def hand_down_workers(options: argparse.Namespace) -> None:
    """To the assets, between which and this command stands Dagster."""
    if options.workers:
        os.environ[WORKERS_VARIABLE] = str(options.workers)


def _say_what_was_left_out(report: Path, say: Say) -> None:
    import duckdb

    with duckdb.connect(str(report), read_only=True) as connection:
        (n_unreadable,) = connection.execute("SELECT count(*) FROM unreadable").fetchone() or (0,)
    if n_unreadable:
        say(
            f"\n{counted(n_unreadable, 'row')} could not be read and are in no mixture; which, "
            "and why: "
            'decon-assets report --query "FROM unreadable"'
        )


def _say_what_is_incomplete(config_path: Path, say: Say) -> None:
    """After a run that failed: where the report is of what was read, and what it lacks."""
    store = Store(load_config(config_path).store)
    with suppress(DeconError):  # there is no report, or one of another version
        coverage = coverage_of(store.report)
        if not coverage.is_complete:
            say(f"\n{coverage.notice}")
            say(f"report: {store.report}  (what it lacks, and why: decon-assets report)")
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
    today = plan_registration(config, store)
    for path in today.gone:
        say(f"  {path}: gone or changed since it was registered")
    for path in today.new:
        say(f"  {path}: not registered as it is")
    for old, new in today.renamed:
        say(f"  {old}: renamed to {new} since it was registered")
    if warning := grid_warning(config, today.current):
        say(f"warning: {warning}")
    is_complete = bool(packs) and not (today.new or today.gone or today.renamed)
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
    for line in _refused(store, packs):
        say(f"  {line}")
    run = active_run(options.config)
    is_complete &= _status_of_products(config, store, packs, say, is_at_work=run is not None)
    remedy = run or "`decon-assets run` does what is missing"
    say("complete" if is_complete else f"incomplete: {remedy}")
    return 0 if is_complete else 1


def _refused(store: Store, packs: Sequence[Pack]) -> Iterator[str]:
    """The shards that the last scan could not read, with the reason and what to do."""
    from decon_core.scan.tiles import refused

    for shard, problem in refused(store, packs):
        yield f"{shard.name} could not be scanned: {problem}"


def _status_of_products(
    config: Config, store: Store, packs: Sequence[Pack], say: Say, *, is_at_work: bool
) -> bool:
    """Print which mixtures, blends and report are up to date; return whether all are."""
    from decon_core.inventory import blender_of
    from decon_core.report.build import is_current
    from decon_core.scan.tiles import gaps_of

    try:
        blender = blender_of(config, store)
        builder = blender.builder
        standing = {
            mixture.name: sum(builder.is_current(mixture, pack) for pack in packs)
            for mixture in config.mixtures
        }
    except MissingError:
        say("  mixtures, blends, report: not built yet")
        return False
    except DeconError as error:
        say("  mixtures, blends, report: not built yet" if is_at_work else f"  {error}")
        return False
    for name, n_mixed in standing.items():
        say(f"  mixture {name}: {n_mixed} of {counted(len(packs), 'pack')} are up to date")
    is_blended = [blender.is_current(blend) for blend in blender.blends]
    if is_blended:
        say(f"  blends: {sum(is_blended)} of {len(is_blended)} are up to date")
    is_reported = is_current(blender, config.showing)
    is_whole = not gaps_of(store, packs, builder.versions, builder.reader.scan)
    coverage = "" if is_whole or not is_reported else ", incomplete: shards were not scanned"
    say(f"  report: {'up to date' if is_reported else 'out of date'}{coverage}")
    is_shown = store.report_page.is_file()
    if not is_shown:
        say("  page of the report: missing")
    is_mixed = all(n_mixed == len(packs) for n_mixed in standing.values())
    return is_mixed and all(is_blended) and is_reported and is_shown


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

    config = load_config(options.config)  # say what is wrong before the UI starts
    home = ensure_home(home_for(options.config))
    ensure_history(home)
    take_over(home, say)
    os.environ[HOME_VARIABLE] = str(home)
    os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    hand_down_workers(options)
    if URL_VARIABLE not in os.environ:
        folder = Store(config.store).report.parent
        os.environ[URL_VARIABLE] = serve_report(folder, port=options.port)
    command = [
        sys.executable, "-W", _NO_OTHER_PROGRAM, "-m", "dagster", "dev",
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
        _complain(f"{truth}: no such file; `run` does without a truth file")
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
    """The program as it was called, which may not be on the PATH."""
    called = sys.argv[0] if sys.argv else ""
    return called if Path(called).name == _NAME else _NAME


def _complain(what: object) -> None:
    sys.stderr.write(f"{what}\n")


RUN = Command(
    run,
    (add_run_arguments, add_retire, add_verbose, add_workers, add_config),
    RUN_DESCRIPTION,
)
STATUS = Command(status, (add_status_arguments, add_config))
REGISTER = Command(register, (add_retire, add_config))
DEV = Command(dev, (add_dev_arguments, add_workers, add_config))
DEMO = Command(demo, (add_demo_arguments, add_verbose, add_workers, add_config))
