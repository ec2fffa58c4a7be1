"""The command line: a table of commands, what they share, and how they end."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decon_assets import (
    backfill_command,
    blend_command,
    compare_command,
    daemon_command,
    gap_command,
    init_command,
    mixture_command,
    publish_command,
    recipes_command,
    reference_command,
    report_command,
    review_command,
    scan_command,
    scorecard_command,
    why_command,
    world_command,
)
from decon_assets.bench import command as bench_command
from decon_assets.resources import CONFIG_VARIABLE, DEFAULT_CONFIG
from decon_core.errors import DeconError
from decon_core.places import network_errors
from decon_core.workers import WORKERS_VARIABLE, usable_cores

_EPILOG = """\
examples:
  decon-assets init --corpus shards/ --evals benchmarks/    a decon.toml to start from
  decon-assets run                          everything that is missing, from records to report
  decon-assets run --config my/decon.toml
  decon-assets report                       leak rates by benchmark and by source
  decon-assets status                       which cells of the grid are scanned
  decon-assets why page-17                  which rule and item removed this document, in which run
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


_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STOPPED = "stopped; what was written is whole, and the same command begins where it can"

Say = Callable[[str], None]
AddArguments = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True)
class _Command:
    """One word behind `decon-assets`."""

    name: str
    help: str
    run: Callable[[argparse.Namespace, Say], int]
    arguments: tuple[AddArguments, ...] = ()
    description: str = ""
    epilog: str = ""


def _add_config(parser: argparse.ArgumentParser, *, is_second: bool = False) -> None:
    """`is_second`: behind the name of an action, where it may stand as well as before it."""
    default = Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    parser.add_argument(
        "--config",
        type=Path,
        default=argparse.SUPPRESS if is_second else default,
        help=f"the configuration (default: ${CONFIG_VARIABLE}, else ./{DEFAULT_CONFIG})",
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=scan_command.positive,
        metavar="N",
        help="processes, or threads where there is little to do (default: "
        f"${WORKERS_VARIABLE}, else the cores that it may use: {usable_cores()} here)",
    )


_COMMANDS = (
    _Command(
        "init",
        "write a decon.toml for a corpus and benchmarks, from looking at them",
        init_command.init,
        (init_command.add_arguments,),
        init_command.DESCRIPTION,
        init_command.EPILOG,
    ),
    _Command(
        "run",
        "register what is there and materialize what is missing",
        world_command.run,
        (world_command.add_run_arguments, world_command.add_retire, _add_workers, _add_config),
        world_command.RUN_DESCRIPTION,
    ),
    _Command(
        "status",
        "what is scanned, and what is not; 1 if incomplete",
        world_command.status,
        (_add_config,),
    ),
    _Command(
        "register",
        "only tell Dagster which benchmarks and packs there are",
        world_command.register,
        (world_command.add_retire, _add_config),
    ),
    _Command(
        "dev",
        "the Dagster UI on 127.0.0.1",
        world_command.dev,
        (world_command.add_dev_arguments, _add_workers, _add_config),
    ),
    _Command(
        "daemon",
        "what starts queued runs, backfills and sensors, on a server",
        daemon_command.daemon,
        (_add_workers, _add_config),
        daemon_command.DESCRIPTION,
    ),
    _Command(
        "backfill",
        "scan the cells that are missing, of some benchmarks and packs or of all",
        backfill_command.backfill,
        (backfill_command.add_arguments, _add_workers, _add_config),
        backfill_command.DESCRIPTION,
        backfill_command.EPILOG,
    ),
    _Command(
        "report",
        "the report's headline tables, the answer to a query, or its page",
        report_command.report,
        (report_command.add_arguments, _add_config),
        report_command.DESCRIPTION,
        report_command.EPILOG,
    ),
    _Command(
        "why",
        "what became of one document, by what, and in which runs",
        why_command.why,
        (why_command.add_arguments, _add_config),
        why_command.DESCRIPTION,
        why_command.EPILOG,
    ),
    _Command(
        "review",
        "look at what was found, say what it is, and measure precision by that",
        review_command.review,
        (partial(review_command.add_arguments, add_config=_add_config),),
        review_command.DESCRIPTION,
        review_command.EPILOG,
    ),
    _Command(
        "compare",
        "two reports, or two policies: what only one of them calls a leak",
        compare_command.compare,
        (compare_command.add_arguments,),
        compare_command.DESCRIPTION,
        compare_command.EPILOG,
    ),
    _Command(
        "check",
        "hold the report to limits: 1 when it is over one, for builds",
        publish_command.check,
        (publish_command.add_check_arguments, _add_config),
        publish_command.CHECK_DESCRIPTION,
        publish_command.CHECK_EPILOG,
    ),
    _Command(
        "card",
        "the report as a section for a dataset's card, and as JSON",
        publish_command.card,
        (publish_command.add_card_arguments, _add_config),
        publish_command.CARD_DESCRIPTION,
        publish_command.CARD_EPILOG,
    ),
    _Command(
        "gap",
        "what models scored on the items that leaked, and without them",
        gap_command.gap,
        (gap_command.add_arguments, _add_config),
        gap_command.DESCRIPTION,
        gap_command.EPILOG,
    ),
    _Command(
        "mixture",
        "the declared variants of the corpus: list them, or hold them to their account",
        mixture_command.mixture,
        (mixture_command.add_arguments, _add_workers, _add_config),
        mixture_command.DESCRIPTION,
        mixture_command.EPILOG,
    ),
    _Command(
        "blend",
        "the declared streams: list them, plan one, or hold them to their account",
        blend_command.blend,
        (blend_command.add_arguments, _add_workers, _add_config),
        blend_command.DESCRIPTION,
        blend_command.EPILOG,
    ),
    _Command(
        "reference",
        "reports of AI2's decon: to a database, and from the pipeline",
        reference_command.reference,
        (partial(reference_command.add_arguments, add_config=_add_config),),
        reference_command.DESCRIPTION,
        reference_command.EPILOG,
    ),
    _Command(
        "scan",
        "look for benchmarks in any folder, without Dagster",
        scan_command.scan,
        (scan_command.add_arguments,),
        scan_command.DESCRIPTION,
        scan_command.EPILOG,
    ),
    _Command(
        "scorecard",
        "what each rule finds of leaks planted on purpose",
        scorecard_command.scorecard,
        (scorecard_command.add_arguments,),
        scorecard_command.DESCRIPTION,
        scorecard_command.EPILOG,
    ),
    _Command(
        "normalize",
        "try the recipes of a file, and show what comes out",
        recipes_command.normalize,
        (recipes_command.add_normalize_arguments,),
    ),
    _Command(
        "catalog",
        "the recipes that come with the package",
        recipes_command.catalog,
        (recipes_command.add_catalog_arguments,),
        recipes_command.CATALOG_DESCRIPTION,
    ),
    _Command(
        "demo",
        "run a world with a truth file and compare what was found with it",
        world_command.demo,
        (world_command.add_demo_arguments, _add_workers, _add_config),
    ),
    _Command(
        "bench",
        "rate and memory by stage, and those of other tools",
        bench_command.bench,
        (bench_command.add_arguments,),
        bench_command.DESCRIPTION,
        bench_command.EPILOG,
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `decon-assets`."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options, _say))
    except DeconError as error:
        print(_inert(f"{type(error).__name__}: {error}"), file=sys.stderr)
        return 2
    except BrokenPipeError:
        _fall_silent()  # `| head` had enough
        return 0
    except OSError as error:
        return _give_up(error)
    except network_errors() as error:
        return _give_up(error)
    except KeyboardInterrupt:
        print(_STOPPED, file=sys.stderr)
        return 130


def _give_up(error: Exception) -> int:
    print(_inert(f"{type(error).__name__}: {error}"), file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decon-assets",
        description="Find benchmark leaks in training data, remove them, measure what they did.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in _COMMANDS:
        own = commands.add_parser(
            command.name,
            help=command.help,
            description=command.description or f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for add in command.arguments:
            add(own)
        own.set_defaults(command=command.run)
    return parser


def _say(line: str) -> None:
    try:
        print(_inert(line), flush=True)  # progress is of no use in a buffer
    except BrokenPipeError:
        _fall_silent()  # nobody listens any more; the work goes on


def _inert(text: str) -> str:
    """Without what a terminal obeys: names and texts of others may hold anything."""
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def _fall_silent() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
