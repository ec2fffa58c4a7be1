"""The command line: a table of commands, what they share, and how they end."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pkgutil import resolve_name

from decon_assets.cli.command import Command
from decon_core.errors import DeconError, MissingError, StaleError
from decon_core.storage.paths import cause_of, library_errors, remedy_for

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
done, 1 a stage failed, something is incomplete, or a run is still making it, 2 an input is wrong.
"""


# Commands that read what a run makes, and take --config.
_READING = frozenset(
    {"blend", "card", "check", "gap", "mixture", "report", "review", "status", "why"}
)

_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STOPPED = "stopped; run it again to go on: what is finished is kept"

# Each word: what it does, and where. Only the one that is called is imported: most bring half of
# the package with them, and Dagster.
_COMMANDS = {
    "init": (
        "write a decon.toml for a corpus and benchmarks, from looking at them",
        "init:COMMAND",
    ),
    "run": ("register what is there and materialize what is missing", "world:RUN"),
    "status": ("what is scanned, and what is not; 1 if incomplete", "world:STATUS"),
    "register": (
        "only tell Dagster which benchmarks and packs there are",
        "world:REGISTER",
    ),
    "dev": ("the Dagster UI on 127.0.0.1", "world:DEV"),
    "daemon": (
        "what starts queued runs, backfills and sensors, on a server",
        "daemon:COMMAND",
    ),
    "backfill": (
        "scan the cells that are missing, of some benchmarks and packs or of all",
        "backfill:COMMAND",
    ),
    "report": (
        "the report's headline tables, the answer to a query, or its page",
        "report:COMMAND",
    ),
    "why": ("what became of one document, by what, and in which runs", "why:COMMAND"),
    "review": (
        "look at what was found, say what it is, and measure precision by that",
        "review:COMMAND",
    ),
    "compare": (
        "two reports, or two policies: what only one of them calls a leak",
        "compare:COMMAND",
    ),
    "check": (
        "hold the report to limits: 1 when it is over one, for builds",
        "publish:CHECK",
    ),
    "card": ("the report as a section for a dataset's card, and as JSON", "publish:CARD"),
    "gap": ("what models scored on the items that leaked, and without them", "gap:COMMAND"),
    "mixture": (
        "the declared variants of the corpus: list them, or hold them to their account",
        "mixture:COMMAND",
    ),
    "blend": (
        "the declared streams: list them, plan one, or hold them to their account",
        "blend:COMMAND",
    ),
    "reference": (
        "reports of AI2's decon: to a database, and from the pipeline",
        "reference:COMMAND",
    ),
    "scan": ("look for benchmarks in any folder, without Dagster", "scan:COMMAND"),
    "scorecard": ("what each rule finds of leaks planted on purpose", "scorecard:COMMAND"),
    "normalize": (
        "try the recipes of a file, and show what comes out",
        "recipes:NORMALIZE",
    ),
    "catalog": ("the recipes that come with the package", "recipes:CATALOG"),
    "demo": (
        "run a world with a truth file and compare what was found with it",
        "world:DEMO",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `decon-assets`."""
    given = sys.argv[1:] if arguments is None else arguments
    called = given[0] if given else ""
    return run(_parser(called), given, called)


def run(parser: argparse.ArgumentParser, arguments: Sequence[str], called: str = "") -> int:
    """Parse the arguments, run the command that the parser names, and return its exit code."""
    try:
        options = parser.parse_args(arguments)
        return int(options.command(options, _say))
    except DeconError as error:
        return _refuse(error, called, options)
    except BrokenPipeError:
        _fall_silent()  # `| head` had enough
        return 0
    except OSError as error:
        return _give_up(error)
    except library_errors() as error:
        return _give_up(error)
    except KeyboardInterrupt:
        print(_STOPPED, file=sys.stderr)
        return 130


def _refuse(error: DeconError, called: str, options: argparse.Namespace) -> int:
    """2; but 1 where a run that is at work has not made yet what a command reads."""
    if called in _READING and isinstance(error, MissingError | StaleError):
        from decon_assets.runner.active_run import active_run

        if run := active_run(options.config):
            first = error.problems[0]
            print(_inert(f"not there yet: {first.where}: {first.found}\n{run}"), file=sys.stderr)
            return 1
    print(_inert(f"{type(error).__name__}: {error}"), file=sys.stderr)
    return 2


def _give_up(error: Exception) -> int:
    """One line of what the system or a library says, whatever it wrote, and what to do."""
    remedy = remedy_for(error)
    print(_inert(f"{cause_of(error)}{f'. {remedy}' if remedy else ''}"), file=sys.stderr)
    return 1


def _parser(called: str) -> argparse.ArgumentParser:
    """A parser that knows the options of one command, and of the others what they are for."""
    parser = argparse.ArgumentParser(
        prog="decon-assets",
        description="Find benchmark leaks in training data, remove them, measure what they did.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (what, place) in _COMMANDS.items():
        own = commands.add_parser(
            name, help=what, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == called:
            command: Command = resolve_name(f"decon_assets.cli.{place}")
            own.description = command.description or f"{what[0].upper()}{what[1:]}."
            own.epilog = command.epilog
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
