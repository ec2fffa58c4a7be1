"""The command line: the whole pipeline, its state, and a look at recipes, without the UI."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decon_assets import (
    blend_command,
    compare_command,
    gap_command,
    mixture_command,
    publish_command,
    reference_command,
    report_command,
    review_command,
    scan_command,
    scorecard_command,
)
from decon_assets.bench import command as bench_command
from decon_assets.resources import CONFIG_VARIABLE, DEFAULT_CONFIG
from decon_core.config import Config, load_config
from decon_core.corpus import Pack
from decon_core.errors import DeconError
from decon_core.store import Store
from decon_core.verdicts import read_verdicts
from decon_core.workers import WORKERS_VARIABLE, usable_cores

_EPILOG = """\
examples:
  decon-assets run                          everything that is missing, from records to report
  decon-assets run --config my/decon.toml
  decon-assets report                       leak rates by benchmark and by source
  decon-assets status                       which cells of the grid are scanned
  decon-assets mixture verify               what is in the mixtures, scanned again
  decon-assets blend plan garlic            how often each source will be gone through
  decon-assets gap --results samples/       what a model scores without the leaked items
  decon-assets review                       look at what was found, and say what it is
  decon-assets check --max-rate 0.01        fail where more than one item in a hundred leaked
  decon-assets compare old.duckdb decon.toml    what only one of two reports calls a leak
  decon-assets card --out card              a section for a dataset's card
  decon-assets register && decon-assets dev show new benchmarks in the UI as missing columns
  decon-assets normalize evals.yaml         try recipes on their files
  decon-assets scan --evals evals.yaml --corpus shards/ --out found
                                            any folder, without Dagster
  decon-assets scorecard --out card         what each rule finds of leaks planted on purpose

Dagster's history is kept in $DAGSTER_HOME, or in .dagster beside the configuration. Exit codes: 0
done, 1 a stage failed or something is incomplete, 2 an input is wrong.
"""


_MOST_LISTED = 12
_STOPPED = "stopped; what was written is whole, and the same command begins where it can"


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `decon-assets`."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except DeconError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _fall_silent()  # `| head` had enough
        return 0
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(_STOPPED, file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decon-assets",
        description="Find benchmark leaks in training data, remove them, measure what they did.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    run = commands.add_parser(
        "run",
        help="register what is there and materialize what is missing",
        description="Register benchmarks and packs, then materialize records, idf snapshot, "
        "indexes, the missing cells of the scan, mixtures and the report. Running it again does "
        "only what is missing.",
    )
    run.add_argument(
        "--refreeze",
        action="store_true",
        help="count idf anew: every score changes, so everything is scanned again",
    )
    run.set_defaults(command=_run)

    status = commands.add_parser("status", help="what is scanned, and what is not; 1 if incomplete")
    status.set_defaults(command=_status)

    register = commands.add_parser(
        "register", help="only tell Dagster which benchmarks and packs there are"
    )
    register.set_defaults(command=_register)

    dev = commands.add_parser("dev", help="the Dagster UI on 127.0.0.1")
    dev.add_argument("--port", type=int, default=3000, choices=range(1, 65536), metavar="PORT")
    dev.set_defaults(command=_dev)

    report = commands.add_parser(
        "report",
        help="the report's headline tables, the answer to a query, or its page",
        description=report_command.DESCRIPTION,
        epilog=report_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report_command.add_arguments(report)
    report.set_defaults(command=_report)

    demo = commands.add_parser(
        "demo", help="run a world with a truth file and compare what was found with it"
    )
    demo.add_argument("--truth", type=Path, help="default: truth.jsonl beside the configuration")
    demo.set_defaults(command=_demo)

    mixture = commands.add_parser(
        "mixture",
        help="the declared variants of the corpus: list them, or hold them to their account",
        description=mixture_command.DESCRIPTION,
        epilog=mixture_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mixture_command.add_arguments(mixture)
    mixture.set_defaults(command=_mixture)

    blend = commands.add_parser(
        "blend",
        help="the declared streams: list them, plan one, or hold them to their account",
        description=blend_command.DESCRIPTION,
        epilog=blend_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    blend_command.add_arguments(blend)
    blend.set_defaults(command=_blend)

    gap = commands.add_parser(
        "gap",
        help="what models scored on the items that leaked, and without them",
        description=gap_command.DESCRIPTION,
        epilog=gap_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    gap_command.add_arguments(gap)
    gap.set_defaults(command=_gap)

    review = commands.add_parser(
        "review",
        help="look at what was found, say what it is, and measure precision by that",
        description=review_command.DESCRIPTION,
        epilog=review_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    review_command.add_arguments(review)
    review.set_defaults(command=_review)

    compare = commands.add_parser(
        "compare",
        help="two reports, or two policies: what only one of them calls a leak",
        description=compare_command.DESCRIPTION,
        epilog=compare_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare_command.add_arguments(compare)
    compare.set_defaults(command=_compare)

    reference = commands.add_parser(
        "reference",
        help="reports of AI2's decon: to a database, and from the pipeline",
        description=reference_command.DESCRIPTION,
        epilog=reference_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reference_command.add_arguments(reference, add_config=_add_config)
    reference.set_defaults(command=_reference)

    card = commands.add_parser(
        "card",
        help="the report as a section for a dataset's card, and as JSON",
        description=publish_command.CARD_DESCRIPTION,
        epilog=publish_command.CARD_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    publish_command.add_card_arguments(card)
    card.set_defaults(command=_card)

    check = commands.add_parser(
        "check",
        help="hold the report to limits: 1 when it is over one, for builds",
        description=publish_command.CHECK_DESCRIPTION,
        epilog=publish_command.CHECK_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    publish_command.add_check_arguments(check)
    check.set_defaults(command=_check)

    for command in (run, register):
        command.add_argument(
            "--retire",
            action="store_true",
            help="go on although most registered shards are gone: their packs and mixtures go, too",
        )
    for command in (run, dev, demo, mixture, blend):
        command.add_argument(
            "--workers",
            type=scan_command.positive,
            metavar="N",
            help="processes, or threads where there is little to do (default: "
            f"${WORKERS_VARIABLE}, else the cores that it may use: {usable_cores()} here)",
        )
    for command in (
        *(run, status, register, dev, report, demo, mixture, blend, gap),
        *(review, card, check),
    ):
        _add_config(command)

    scan = commands.add_parser(
        "scan",
        help="look for benchmarks in any folder, without Dagster",
        description=scan_command.DESCRIPTION,
        epilog=scan_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scan_command.add_arguments(scan)
    scan.set_defaults(command=_scan)

    bench = commands.add_parser(
        "bench",
        help="rate and memory by stage, and those of other tools",
        description=bench_command.DESCRIPTION,
        epilog=bench_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench_command.add_arguments(bench)
    bench.set_defaults(command=_bench)

    scorecard = commands.add_parser(
        "scorecard",
        help="what each rule finds of leaks planted on purpose",
        description=scorecard_command.DESCRIPTION,
        epilog=scorecard_command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scorecard_command.add_arguments(scorecard)
    scorecard.set_defaults(command=_scorecard)

    normalize = commands.add_parser(
        "normalize", help="try the recipes of a file, and show what comes out"
    )
    normalize.add_argument("recipes", type=Path, help="a recipe file (evals.yaml)")
    normalize.add_argument("--benchmark", action="append", help="only this one; may be repeated")
    normalize.add_argument("--limit", type=int, help="read only so many rows of each split")
    normalize.add_argument("--show", type=int, default=1, help="records to print (default 1)")
    normalize.set_defaults(command=_normalize)

    catalog = commands.add_parser(
        "catalog",
        help="the recipes that come with the package",
        description="List the shipped recipes, or print some as YAML to start your own file from.",
    )
    catalog.add_argument("names", nargs="*", metavar="name", help="print these as YAML")
    catalog.set_defaults(command=_catalog)
    return parser


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config",
        type=Path,
        default=Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG),
        help=f"the configuration (default: ${CONFIG_VARIABLE}, else ./{DEFAULT_CONFIG})",
    )


def _run(options: argparse.Namespace) -> int:
    import duckdb

    # Before a history is begun beside a file that is not there; nor should a day of scanning end at
    # a line of verdicts that cannot be read.
    read_verdicts(load_config(options.config).verdicts)
    _hand_down_workers(options)
    from decon_assets.instance import home_for, open_instance
    from decon_assets.pipeline import Pipeline, PipelineError

    with open_instance(home_for(options.config)) as instance:
        try:
            registered = Pipeline(options.config, instance, _say).run(
                refreeze=getattr(options, "refreeze", False),
                may_retire=getattr(options, "retire", False),
            )
        except PipelineError as error:
            print(error, file=sys.stderr)
            return 1
    with suppress(duckdb.Error):  # somebody may hold the new report open already
        _say_what_was_left_out(registered.store.report)
    print(f"\nreport: {registered.store.report}")
    print(f"page: {registered.store.report_page}")
    for mixture in registered.config.mixtures:
        print(f"mixture: {registered.store.mixtures(mixture.name)}")
    blends = [registered.store.blend(blend.name) for blend in registered.config.blends]
    if len(blends) > _MOST_LISTED:
        print(f"blends: {blends[0].parent} ({len(blends)} of them: decon-assets blend list)")
        return 0
    for folder in blends:
        print(f"blend: {folder}")
    return 0


def _hand_down_workers(options: argparse.Namespace) -> None:
    """To the assets, between which and this command stands Dagster."""
    if options.workers:
        os.environ[WORKERS_VARIABLE] = str(options.workers)


def _say_what_was_left_out(report: Path) -> None:
    import duckdb

    with duckdb.connect(str(report), read_only=True) as connection:
        (n_unreadable,) = connection.execute("SELECT count(*) FROM unreadable").fetchone() or (0,)
    if n_unreadable:
        print(
            f"\n{n_unreadable} rows could not be read and are in no mixture; which, and why: "
            'decon-assets report --query "FROM unreadable"'
        )


def _say(line: str) -> None:
    try:
        print(line, flush=True)  # progress is of no use in a buffer
    except BrokenPipeError:
        _fall_silent()  # nobody listens any more; the work goes on


def _fall_silent() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _scan(options: argparse.Namespace) -> int:
    return scan_command.scan(options, _say)


def _bench(options: argparse.Namespace) -> int:
    return bench_command.bench(options, _say)


def _scorecard(options: argparse.Namespace) -> int:
    return scorecard_command.scorecard(options, _say)


def _mixture(options: argparse.Namespace) -> int:
    return mixture_command.mixture(options, _say)


def _blend(options: argparse.Namespace) -> int:
    return blend_command.blend(options, _say)


def _gap(options: argparse.Namespace) -> int:
    return gap_command.gap(options, _say)


def _review(options: argparse.Namespace) -> int:
    return review_command.review(options, _say)


def _compare(options: argparse.Namespace) -> int:
    return compare_command.compare(options, _say)


def _reference(options: argparse.Namespace) -> int:
    return reference_command.reference(options, _say)


def _card(options: argparse.Namespace) -> int:
    return publish_command.card(options, _say)


def _check(options: argparse.Namespace) -> int:
    return publish_command.check(options, _say)


def _register(options: argparse.Namespace) -> int:
    load_config(options.config)
    from decon_assets.instance import home_for, open_instance
    from decon_assets.pipeline import register

    with open_instance(home_for(options.config)) as instance:
        registered = register(options.config, instance, may_retire=options.retire)
    print(f"benchmarks: {', '.join(registered.benchmarks)}")
    print(f"packs: {', '.join(pack.name for pack in registered.packs)}")
    return 0


def _status(options: argparse.Namespace) -> int:
    from decon_core.records import current_version
    from decon_core.registry import benchmarks_of, list_packs, plan, stale_benchmarks
    from decon_core.tiles import missing_tiles, scan_fingerprint

    config = load_config(options.config)
    store = Store(config.store)
    packs = list_packs(store)
    n_shards = sum(len(pack.shards) for pack in packs)
    print(f"{len(packs)} packs, {n_shards} shards registered")
    today = plan(config, store)
    for path in today.gone:
        print(f"  {path}: gone or changed since it was registered")
    for path in today.new:
        print(f"  {path}: not registered as it is")
    is_complete = bool(packs) and not today.new and not today.gone
    stale = stale_benchmarks(config, store)
    for name in benchmarks_of(config):
        if not store.current_records(name).is_file():
            print(f"  {name}: no records yet")
        elif name in stale:
            print(f"  {name}: recipe or files changed since it was normalized")
        elif not store.current_snapshot.is_file():
            print(f"  {name}: no idf snapshot yet")
        else:
            scan = scan_fingerprint(store, config.policy)
            version = current_version(store, name)
            n_missing = len(missing_tiles(store, packs, [version], scan))
            print(f"  {name}: {n_shards - n_missing} of {n_shards} shards scanned")
            is_complete &= n_missing == 0
            continue
        is_complete = False
    is_complete &= _status_of_products(config, store, packs)
    print("complete" if is_complete else "incomplete: `decon-assets run` does what is missing")
    return 0 if is_complete else 1


def _status_of_products(config: Config, store: Store, packs: Sequence[Pack]) -> bool:
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
        print(f"  {error}")
        return False
    for name, n_mixed in standing.items():
        print(f"  mixture {name}: {n_mixed} of {len(packs)} packs are today's")
    is_blended = [blender.stands(blend) for blend in blender.blends]
    if is_blended:
        print(f"  blends: {sum(is_blended)} of {len(is_blended)} are today's")
    is_reported = is_current(blender, config.showing)
    print(f"  report: {'today' if is_reported else 'not today'}'s")
    is_mixed = all(n_mixed == len(packs) for n_mixed in standing.values())
    return is_mixed and all(is_blended) and is_reported


def _dev(options: argparse.Namespace) -> int:
    from decon_assets.instance import HOME_VARIABLE, ensure_home, home_for

    os.environ[HOME_VARIABLE] = str(ensure_home(home_for(options.config)))
    os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    load_config(options.config)  # say what is wrong before the UI starts
    _hand_down_workers(options)
    program = Path(sys.executable).with_name("dagster")
    command = [
        str(program), "dev", "-m", "decon_assets.definitions",
        "-h", "127.0.0.1", "-p", str(options.port),
    ]  # fmt: skip
    print(f"http://127.0.0.1:{options.port}  (stop with Ctrl-C)", flush=True)
    os.execv(program, command)  # noqa: S606 - the UI takes over this process


def _report(options: argparse.Namespace) -> int:
    return report_command.report(options, _say)


def _demo(options: argparse.Namespace) -> int:
    from decon_assets.tables import truth_tables
    from decon_core.truth import compare

    started = time.monotonic()
    truth = options.truth or options.config.parent / "truth.jsonl"
    if not truth.is_file():
        print(f"{truth}: no such file; `run` does without a truth file", file=sys.stderr)
        return 2
    if code := _run(options):
        return code
    store = Store(load_config(options.config).store)
    benchmarks, phenomena = compare(store.report, truth)
    print(truth_tables(benchmarks, phenomena))
    print(f"report: {store.report}  (ask it with: decon-assets report, or duckdb)")
    print(f"page: {store.report_page}  (open it in any browser; it needs no network)")
    print(f"{time.monotonic() - started:.0f} s; `make dev` shows the runs in the Dagster UI")
    is_right = all(
        score.n_found == score.n_planted and not score.n_false_alarms for score in benchmarks
    )
    return 0 if is_right else 1


def _normalize(options: argparse.Namespace) -> int:
    from decon_core.evals import load_recipes, normalize

    recipes = load_recipes(options.recipes)
    for name in options.benchmark or recipes:
        if name not in recipes:
            print(f"{name}: not in {options.recipes}", file=sys.stderr)
            return 2
        table = normalize(recipes[name], base=options.recipes.parent, limit=options.limit)
        n_items = len(set(zip(*(table[key].to_pylist() for key in _ITEM), strict=True)))
        print(f"{name}: {n_items} items, {table.num_rows} records")
        for record in table.slice(0, options.show).to_pylist():
            for key, value in record.items():
                if value is not None:
                    print(f"    {key}: {value}")
    return 0


_ITEM = ("split", "instance_index")


def _catalog(options: argparse.Namespace) -> int:
    import yaml

    from decon_core.evals import CATALOG_PATH

    shipped = yaml.safe_load(CATALOG_PATH.read_text(encoding="utf-8"))["evals"]
    unknown = [name for name in options.names if name not in shipped]
    if unknown:
        print(f"not in the catalog: {', '.join(unknown)}", file=sys.stderr)
        return 2
    if options.names:
        chosen = {"evals": {name: shipped[name] for name in options.names}}
        print(yaml.safe_dump(chosen, sort_keys=False, allow_unicode=True), end="")
    else:
        for name, recipe in shipped.items():
            print(f"{name:40} {recipe.get('hf_path', '')} {recipe.get('hf_config', '')}".rstrip())
    return 0
