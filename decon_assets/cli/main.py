"""The command line: the list of commands, the parser, error handling and exit codes."""

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
  decon-assets run                          build everything that is missing or out of date
  decon-assets run --config my/decon.toml
  decon-assets report                       leak rates by benchmark and by source
  decon-assets status                       which cells of the grid are scanned
  decon-assets why page-17                  which detector and item removed this document
  decon-assets mixture verify               check mixtures against their manifests, scan them again
  decon-assets blend plan garlic            how many passes over each source a blend needs
  decon-assets gap --results samples/       model scores on leaked and on clean items
  decon-assets review                       judge matches one by one
  decon-assets check --max-rate 0.01        fail when more than 1 % of a benchmark leaked
  decon-assets compare old.duckdb decon.toml    leaks that only one of two reports has
  decon-assets card --out card              a section for a dataset card
  decon-assets register && decon-assets dev show new benchmarks in the UI as missing partitions
  decon-assets normalize evals.yaml         try recipes on their files
  decon-assets scan --evals evals.yaml --corpus shards/ --out found
                                            scan a folder without Dagster
  decon-assets scorecard --out card         recall of each detector on planted leaks

Dagster's history is kept in $DAGSTER_HOME, or in .dagster beside the configuration.

Exit codes: 0 done; 1 a stage failed, something is incomplete, or a run is still building it; 2 an
input is wrong.
"""


# Commands that read what a run builds, and take --config.
_READING = frozenset(
    {"blend", "card", "check", "gap", "mixture", "report", "review", "status", "why"}
)

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STOPPED = "stopped; finished work is kept: run the command again to continue"

# By name: summary and location. Only the called command is imported: most import Dagster and half
# of the package.
_COMMANDS = {
    "init": ("inspect a corpus and benchmarks, and write a decon.toml for them", "init:COMMAND"),
    "run": ("register benchmarks and packs, and build everything that is missing", "world:RUN"),
    "status": ("show what is scanned and built; exit 1 if incomplete", "world:STATUS"),
    "register": ("register benchmarks and packs with Dagster, and nothing else", "world:REGISTER"),
    "dev": ("start the Dagster UI on 127.0.0.1", "world:DEV"),
    "daemon": ("start Dagster's daemon, on a server", "daemon:COMMAND"),
    "backfill": ("scan the missing cells of all or some benchmarks and packs", "backfill:COMMAND"),
    "report": ("print the report's main tables, run a query, or write its page", "report:COMMAND"),
    "why": ("explain what happened to one document, and in which runs", "why:COMMAND"),
    "review": ("judge matches by hand, and measure precision from the verdicts", "review:COMMAND"),
    "compare": ("compare two reports, or one scan under two policies", "compare:COMMAND"),
    "check": ("fail (exit 1) when the report exceeds a limit, for CI", "publish:CHECK"),
    "card": ("write the report as a section for a dataset card, and as JSON", "publish:CARD"),
    "gap": ("compare model scores on leaked and on clean items", "gap:COMMAND"),
    "mixture": ("list filtered variants of the corpus, or verify them", "mixture:COMMAND"),
    "blend": ("list weighted streams of documents, plan or verify them", "blend:COMMAND"),
    "reference": ("import and export reports of AI2's decon", "reference:COMMAND"),
    "scan": ("scan any folder for benchmark items, without Dagster", "scan:COMMAND"),
    "scorecard": (
        "plant leaks on purpose, and measure what each detector finds",
        "scorecard:COMMAND",
    ),
    "normalize": ("try the recipes of a file, and print some records", "recipes:NORMALIZE"),
    "catalog": ("list the recipes that come with the package", "recipes:CATALOG"),
    "demo": ("run a project that has a truth file, and compare the result with it", "world:DEMO"),
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
        _silence_stdout()  # the reader closed the pipe, as `| head` does
        return 0
    except OSError as error:
        return _report_failure(error)
    except library_errors() as error:
        return _report_failure(error)
    except KeyboardInterrupt:
        print(_STOPPED, file=sys.stderr)
        return 130


def _refuse(error: DeconError, called: str, options: argparse.Namespace) -> int:
    """Print the error; return 2, or 1 if an active run has not built the command's input yet."""
    if called in _READING and isinstance(error, MissingError | StaleError):
        from decon_assets.runner.active_run import active_run

        if run := active_run(options.config):
            first = error.problems[0]
            message = f"not built yet: {first.where}: {first.found}\n{run}"
            print(_without_control(message), file=sys.stderr)
            return 1
    print(_without_control(f"{type(error).__name__}: {error}"), file=sys.stderr)
    return 2


def _report_failure(error: Exception) -> int:
    """Print the cause of a system's or library's error in one line, with a remedy; return 1."""
    remedy = remedy_for(error)
    message = f"{cause_of(error)}{f'. {remedy}' if remedy else ''}"
    print(_without_control(message), file=sys.stderr)
    return 1


def _parser(called: str) -> argparse.ArgumentParser:
    """Build a parser with the options of the called command and the summaries of all commands."""
    parser = argparse.ArgumentParser(
        prog="decon-assets",
        description="Find benchmark leaks in training data, remove them, and measure their effect.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (summary, location) in _COMMANDS.items():
        subparser = commands.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == called:
            command: Command = resolve_name(f"decon_assets.cli.{location}")
            subparser.description = command.description or f"{summary[0].upper()}{summary[1:]}."
            subparser.epilog = command.epilog
            for add in command.arguments:
                add(subparser)
            subparser.set_defaults(command=command.run)
    return parser


def _say(line: str) -> None:
    try:
        print(_without_control(line), flush=True)  # show progress at once
    except BrokenPipeError:
        _silence_stdout()  # the reader is gone, but the work goes on


def _without_control(text: str) -> str:
    """Replace control characters: names and texts come from files and may hold any."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
