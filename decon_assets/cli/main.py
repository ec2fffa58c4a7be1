"""The command line: the list of commands, error handling and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from decon_assets.terminal.options import PlainCommand, PlainGroup
from decon_assets.terminal.output import say, silence_stdout, warn
from decon_core.errors import DeconError, EngineError, MissingError, StaleError, sentence
from decon_core.feature import Command, all_features
from decon_core.storage.paths import cause_of, library_errors, remedy_for

_HELP = """\
Find benchmark leaks in training data, remove them, and measure their effect.

Examples:
  decon-assets scan shards/ --evals evals.yaml --out found    scan a folder without Dagster
  decon-assets init --corpus shards/ --evals benchmarks/      write a decon.toml to start from
  decon-assets run                          build everything that is missing or out of date
  decon-assets report                       print leak rates by benchmark and by source
  decon-assets why page-17                  explain why this document was kept, removed or cut
  decon-assets review                       judge matches one by one
  decon-assets check --max-rate 0.01        fail if more than 1 % of a benchmark leaked
{examples}
Dagster's history is stored in $DAGSTER_HOME, or in .dagster next to the configuration.

Exit codes: 0 done; 1 a stage failed, a result is incomplete, or a run is still in progress; 2
invalid input; 3 something leaked (`scan --fail-on-leak`); 4 some input was not read; 6 no chosen
detector can find some or all items; 130 stopped by Ctrl-C. For the options of a command, run
`decon-assets COMMAND --help`.
"""

# The commands of each group: name, function or Typer below `decon_assets.cli`, and summary.
# Only the called command is imported: most import Dagster and half of the package.
_OF_THE_CORE = {
    "Pipeline": {
        "init": ("init:init", "inspect a corpus and benchmarks, and write a decon.toml for them"),
        "settings": ("settings:settings", "list the settings of decon.toml, with their defaults"),
        "run": ("pipeline:run", "register benchmarks and packs, and build everything missing"),
        "status": ("status:status", "show what is scanned and built; exit 1 if incomplete"),
        "register": ("pipeline:register", "only register benchmarks and packs"),
        "dev": ("serve:dev", "start the Dagster UI on 127.0.0.1"),
        "daemon": ("serve:daemon", "start the Dagster daemon on a server"),
        "backfill": (
            "backfill:backfill",
            "scan packs against benchmarks where results are missing",
        ),
    },
    "Results": {
        "report": (
            "report:report",
            "print the report's main tables, run a query, or write its page",
        ),
        "why": ("why:why", "explain what happened to one document, and in which runs"),
        "lookup": ("lookup:lookup", "find a text or new items in the corpus"),
        "review": ("review.command:review_group", "judge matches by hand, and measure precision"),
        "compare": ("compare:compare", "compare two reports, or one scan under two policies"),
        "check": ("publish:check", "fail (exit code 1) if too much has leaked, for CI"),
        "card": ("publish:card", "write the report as a section for a dataset card"),
    },
    "Studies": {},
    "Corpora": {
        "mixture": (
            "mixture:mixture_group",
            "list filtered variants of the corpus, or verify them",
        ),
    },
    "Without Dagster": {
        "scan": ("scan:scan", "scan any folder for benchmark items"),
        "normalize": ("recipes:normalize", "try the recipes in a file, and print some records"),
        "catalog": ("recipes:catalog", "list the recipes that come with the package"),
        "warm": ("warm:warm", "compile the search kernels ahead of time, for images and nodes"),
    },
    "Demonstration": {
        "demo": (
            "pipeline:demo",
            "run a project with planted leaks, and check that they are found",
        ),
    },
}
# Commands of the core that read what a run builds, and take --config.
_READING = {"card", "check", "lookup", "mixture", "report", "review", "status", "why"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code_of(lambda: _run_command(given))


@cache
def _commands() -> Mapping[str, tuple[str, Command]]:
    """Return the location of each command, and what is declared of it, by name."""
    of_the_core = {
        name: (
            f"decon_assets.cli.{at}",
            Command(function=at, group=group, about=about, reads_store=name in _READING),
        )
        for group, listed in _OF_THE_CORE.items()
        for name, (at, about) in listed.items()
    }
    return of_the_core | {
        name: (feature.function(name), command)
        for feature in all_features()
        for name, command in feature.commands.items()
    }


def command_line() -> _Commands:
    """Return the parser of all commands. Each of them is imported when it is asked for."""
    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.callback()(_options)
    declared = [command for _, command in _commands().values()]
    examples = [f"  decon-assets {line}\n" for command in declared for line in command.examples]
    return _Commands(
        params=get_command(program).params,
        commands=dict.fromkeys(_commands()),  # type: ignore[arg-type] # names; loaded when called
        help=_HELP.format(examples="".join(examples)),
        rich_markup_mode=None,
        context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    )


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print its error in place of a traceback."""
    try:
        return command()
    except typer.Exit as done:
        return done.exit_code
    except TyperException as error:
        context: Any = getattr(error, "ctx", None)
        hint = f"\nTry `{context.command_path} --help`." if context else ""
        usage = f"{context.get_usage()}\n" if context else ""
        warn(f"{usage}{error.format_message()}{hint}")
        return 2
    except DeconError as error:
        warn(f"{type(error).__name__}: {error}")
        return 1 if isinstance(error, EngineError) else 2
    except BrokenPipeError:
        silence_stdout()  # the reader closed the pipe, as `| head` does
        return 0
    except OSError as error:
        return _report_failure(error)
    except library_errors() as error:
        return _report_failure(error)
    except KeyboardInterrupt:
        warn("stopped; finished work is kept: run the command again to continue")
        return 130


def _run_command(arguments: Sequence[str]) -> int:
    commands = command_line()
    with commands.make_context("decon-assets", [*arguments]) as context:
        try:
            return int(commands.invoke(context))
        except (MissingError, StaleError) as error:
            if not _commands()[str(context.invoked_subcommand)][1].reads_store:
                raise
            from decon_assets.instance.active_run import active_run

            run = active_run(context.meta["config"])
            if run is None:
                raise
            first = error.problems[0]
            warn(f"not built yet: {first.where}: {first.found}\n{run}")
            return 1
        except (DeconError, OSError, KeyboardInterrupt, TyperException, typer.Exit):
            raise
        except Exception as error:
            from decon_assets.instance.history_errors import plain_error
            from decon_assets.instance.home import home_for

            config = context.meta.get("config")
            reason = plain_error(error, home_for(config)) if config else None
            if reason is None:
                raise
            raise reason from error


def _report_failure(error: Exception) -> int:
    """Print the cause of a system's or library's error in one line, with a remedy; return 1."""
    # Kept, as Python does at its end: a half-made object of its frames would complain when freed.
    sys.last_value = error
    remedy = remedy_for(error)
    warn(f"{cause_of(error)}{f'. {sentence(remedy)}' if remedy else ''}")
    return 1


def _print_version(is_asked_for: bool) -> None:
    if is_asked_for:
        say(f"decon-assets {version('decon-assets')}")
        raise typer.Exit


def _options(
    _version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        expose_value=False,
        help="print the version and exit",
    ),
) -> None:
    """Declare the options of the program itself."""


class _Commands(PlainGroup):
    """All commands, in groups."""

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _commands():
            return None
        command = resolve_name(_commands()[cmd_name][0])
        if isinstance(command, typer.Typer):
            return get_command(command)
        group = typer.Typer(add_completion=False, rich_markup_mode=None)
        group.command(cmd_name, cls=PlainCommand)(command)
        return get_command(group)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        listed: dict[str, list[tuple[str, str]]] = {group: [] for group in _OF_THE_CORE}
        for name, (_, command) in _commands().items():
            listed.setdefault(command.group, []).append((name, command.about))
        for group in filter(listed.get, listed):  # all features of a group may have been removed
            with formatter.section(group):
                formatter.write_dl(listed[group], 10)
