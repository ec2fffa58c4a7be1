"""What concerns a whole configuration: `run`, `register`, `status`, `dev`, `demo`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decon_assets.command import Command, Say, add_config, add_workers
from decon_core.config import CONFIG_VARIABLE, Config, load_config
from decon_core.corpus import Pack
from decon_core.errors import DeconError
from decon_core.mirror import at_hand
from decon_core.store import Store
from decon_core.verdicts import read_verdicts
from decon_core.workers import WORKERS_VARIABLE

RUN_DESCRIPTION = """\
Register benchmarks and packs, then materialize records, idf snapshot, indexes, the missing cells of
the scan, mixtures, blends, the report and its page. Running it again does only what is missing.
"""

_MOST_LISTED = 12


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refreeze",
        action="store_true",
        help="count idf anew: every score changes, so everything is scanned again",
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
    import duckdb

    # Before a history is begun beside a file that is not there; nor should a day of scanning end at
    # a line of verdicts that cannot be read.
    read_verdicts(load_config(options.config).verdicts)
    hand_down_workers(options)
    from decon_assets.instance import home_for, open_instance
    from decon_assets.pipeline import Pipeline, PipelineError

    with open_instance(home_for(options.config)) as instance:
        try:
            registered = Pipeline(options.config, instance, say).run(
                refreeze=getattr(options, "refreeze", False),
                may_retire=getattr(options, "retire", False),
            )
        except PipelineError as error:
            _complain(error)
            return 1
    with suppress(duckdb.Error):  # somebody may hold the new report open already
        _say_what_was_left_out(registered.store.report, say)
    if registered.config.kept:
        say(f"\nkept at {registered.config.kept}; what follows are its copies here")
    say(f"\nreport: {registered.store.report}")
    say(f"page: {registered.store.report_page}")
    for mixture in registered.config.mixtures:
        say(f"mixture: {registered.store.mixtures(mixture.name)}")
    blends = [registered.store.blend(blend.name) for blend in registered.config.blends]
    if len(blends) > _MOST_LISTED:
        say(f"blends: {blends[0].parent} ({len(blends)} of them: decon-assets blend list)")
        return 0
    for folder in blends:
        say(f"blend: {folder}")
    return 0


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
            f"\n{n_unreadable} rows could not be read and are in no mixture; which, and why: "
            'decon-assets report --query "FROM unreadable"'
        )


def register(options: argparse.Namespace, say: Say) -> int:
    load_config(options.config)
    from decon_assets.instance import home_for, open_instance
    from decon_assets.registration import register_outside

    with open_instance(home_for(options.config)) as instance:
        registered = register_outside(options.config, instance, may_retire=options.retire)
    say(f"benchmarks: {', '.join(registered.benchmarks)}")
    say(f"packs: {', '.join(pack.name for pack in registered.packs)}")
    return 0


def status(options: argparse.Namespace, say: Say) -> int:
    from decon_core.records import current_version
    from decon_core.registry import (
        benchmarks_of,
        grid_warning,
        list_packs,
        plan,
        stale_benchmarks,
    )
    from decon_core.tiles import missing_tiles, scan_fingerprint

    config = load_config(options.config)
    store = at_hand(config)
    packs = list_packs(store)
    n_shards = sum(len(pack.shards) for pack in packs)
    say(f"{len(packs)} packs, {n_shards} shards registered")
    today = plan(config, store)
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
            say(f"  {name}: {n_shards - n_missing} of {n_shards} shards scanned")
            is_complete &= n_missing == 0
            continue
        is_complete = False
    is_complete &= _status_of_products(config, store, packs, say)
    say("complete" if is_complete else "incomplete: `decon-assets run` does what is missing")
    return 0 if is_complete else 1


def _status_of_products(config: Config, store: Store, packs: Sequence[Pack], say: Say) -> bool:
    """Say which mixtures are today's, and whether the report is; whether all are."""
    from decon_core.registry import blender_of
    from decon_core.report.build import is_current

    try:
        blender = blender_of(config, store)
        builder = blender.builder
        standing = {
            mixture.name: sum(builder.stands(mixture, pack) for pack in packs)
            for mixture in config.mixtures
        }
    except DeconError as error:
        say(f"  {error}")
        return False
    for name, n_mixed in standing.items():
        say(f"  mixture {name}: {n_mixed} of {len(packs)} packs are today's")
    is_blended = [blender.stands(blend) for blend in blender.blends]
    if is_blended:
        say(f"  blends: {sum(is_blended)} of {len(is_blended)} are today's")
    is_reported = is_current(blender, config.showing)
    say(f"  report: {'today' if is_reported else 'not today'}'s")
    is_shown = store.report_page.is_file()
    if not is_shown:
        say("  page of the report: not there")
    is_mixed = all(n_mixed == len(packs) for n_mixed in standing.values())
    return is_mixed and all(is_blended) and is_reported and is_shown


def dev(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.daemon import take_over
    from decon_assets.instance import HOME_VARIABLE, ensure_home, home_for
    from decon_assets.report_server import URL_VARIABLE, serve_beside

    config = load_config(options.config)  # say what is wrong before the UI starts
    home = ensure_home(home_for(options.config))
    take_over(home, say)
    os.environ[HOME_VARIABLE] = str(home)
    os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    hand_down_workers(options)
    if URL_VARIABLE not in os.environ:
        folder = Store(config.store).report.parent
        os.environ[URL_VARIABLE] = serve_beside(folder, port=options.port)
    program = Path(sys.executable).with_name("dagster")
    command = [
        str(program), "dev", "-m", "decon_assets.definitions",
        "-h", "127.0.0.1", "-p", str(options.port),
    ]  # fmt: skip
    say(f"http://127.0.0.1:{options.port}  (stop with Ctrl-C)")
    os.execv(program, command)  # noqa: S606 - the UI takes over this process


def demo(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.tables import truth_tables
    from decon_core.truth import compare

    started = time.monotonic()
    truth = options.truth or options.config.parent / "truth.jsonl"
    if not truth.is_file():
        _complain(f"{truth}: no such file; `run` does without a truth file")
        return 2
    if code := run(options, say):
        return code
    store = at_hand(load_config(options.config))
    benchmarks, phenomena = compare(store.report, truth)
    say(truth_tables(benchmarks, phenomena))
    say(f"report: {store.report}  (ask it with: decon-assets report, or duckdb)")
    say(f"page: {store.report_page}  (open it in any browser; it needs no network)")
    say(f"{time.monotonic() - started:.0f} s; `make dev` shows the runs in the Dagster UI")
    is_right = all(
        score.n_found == score.n_planted and not score.n_false_alarms for score in benchmarks
    )
    return 0 if is_right else 1


def _complain(what: object) -> None:
    sys.stderr.write(f"{what}\n")


RUN = Command(run, (add_run_arguments, add_retire, add_workers, add_config), RUN_DESCRIPTION)
STATUS = Command(status, (add_config,))
REGISTER = Command(register, (add_retire, add_config))
DEV = Command(dev, (add_dev_arguments, add_workers, add_config))
DEMO = Command(demo, (add_demo_arguments, add_workers, add_config))
