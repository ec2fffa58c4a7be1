"""The command line: the list of commands, error handling and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from decon_assets.cli.options import PlainCommand, PlainGroup, command_texts
from decon_assets.cli.terminal.output import silence_stdout, warn
from decon_core.errors import DeconError, MissingError, StaleError
from decon_core.storage.paths import cause_of, library_errors, remedy_for

_HELP = "Find benchmark leaks in training data, remove them, and measure their effect."

_GROUPS = command_texts()["commands"]
_LOCATIONS = {name: where for group in _GROUPS.values() for name, (where, _) in group.items()}

# Commands that read what a run builds, and take --config.
_READING = frozenset(
    {"blend", "card", "check", "gap", "mixture", "report", "review", "status", "why"}
)

_STOPPED = "stopped; finished work is kept: run the command again to continue"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code_of(lambda: _run_command(given))


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
        return 2
    except BrokenPipeError:
        silence_stdout()  # the reader closed the pipe, as `| head` does
        return 0
    except OSError as error:
        return _report_failure(error)
    except library_errors() as error:
        return _report_failure(error)
    except KeyboardInterrupt:
        warn(_STOPPED)
        return 130


def _run_command(arguments: Sequence[str]) -> int:
    """Parse the arguments, and call the function of the command."""
    commands = _Commands(
        commands=dict.fromkeys(_LOCATIONS),  # type: ignore[arg-type] # names; loaded when called
        help=_HELP,
        rich_markup_mode=None,
        context_settings={"max_content_width": 100},
    )
    with commands.make_context("decon-assets", [*arguments]) as context:
        try:
            return int(commands.invoke(context))
        except (MissingError, StaleError) as error:
            if context.invoked_subcommand not in _READING or not _is_being_built(error, context):
                raise
            return 1


def _is_being_built(error: DeconError, context: Any) -> bool:
    """Return whether a run is building what the command needs, after printing so."""
    from decon_assets.runner.active_run import active_run

    run = active_run(context.meta["config"])
    if run:
        first = error.problems[0]
        warn(f"not built yet: {first.where}: {first.found}\n{run}")
    return run is not None


def _report_failure(error: Exception) -> int:
    """Print the cause of a system's or library's error in one line, with a remedy; return 1."""
    remedy = remedy_for(error)
    warn(f"{cause_of(error)}{f'. {remedy}' if remedy else ''}")
    return 1


class _Commands(PlainGroup):
    """All commands, in groups."""

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Import the command and build its parser."""
        if cmd_name not in _LOCATIONS:
            return None
        found = resolve_name(f"decon_assets.cli.{_LOCATIONS[cmd_name]}")
        if not isinstance(found, typer.Typer):
            function = found
            found = typer.Typer(add_completion=False, rich_markup_mode=None)
            found.command(cmd_name, cls=PlainCommand)(function)
        return get_command(found)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        for group, commands in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, about) for name, (_, about) in commands.items()], 10)
