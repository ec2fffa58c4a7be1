"""How commands are declared: their options, and help as plain text.

A command is a function whose parameters are its options. Its docstring is its help: from the line
"Examples:" on, it is printed below the options.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from decon_core.config import detector_registry as registry
from decon_core.errors import InputError, Problem
from decon_core.feature import engine_names

_Function = TypeVar("_Function", bound=Callable[..., Any])


def option(about: str, metavar: str | None = None, name: str = "", **settings: Any) -> Any:
    """Declare an option with its help; `name` is needed if the parameter is called otherwise."""
    if metavar == "DIR":
        settings["parser"] = _output_folder
    return typer.Option(
        settings.pop("default", ...),
        *filter(None, [name]),
        help=about,
        metavar=metavar,
        show_default=settings.pop("show_default", False),
        readable=False,  # the command says what is wrong with a file
        **settings,
    )


def optional(about: str, metavar: str | None = None, name: str = "", **settings: Any) -> Any:
    """Declare an option that may be left out: the value is then None."""
    return option(about, metavar, name, default=None, **settings)


def repeatable(about: str, metavar: str, **settings: Any) -> Any:
    """Declare an option that may be repeated; its values are a list."""
    return option(f"{about}; may be repeated", metavar, default_factory=list, **settings)


def flag(name: str, about: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(False, name, help=about)


def argument(about: str, metavar: str, **settings: Any) -> Any:
    """Declare a positional argument."""
    default = settings.pop("default", ...)
    return typer.Argument(
        default, help=about, metavar=metavar, show_default=False, readable=False, **settings
    )


def nonempty(text: str) -> str:
    """Return the text; refuse an empty one, as an unset shell variable gives."""
    if not text.strip():
        raise typer.BadParameter("must not be empty; use . for the current folder")
    return text


def nonempty_path(given: str | Path) -> Path:
    """Return the path, or the default; refuse an empty one, which would be the current folder."""
    return Path(nonempty(str(given)))


def _output_folder(given: str | Path) -> Path:
    """Return the path; refuse that of a file or device."""
    from decon_core.storage.files import require_folder

    path = nonempty_path(given)
    require_folder(path)
    return path


def share(text: str) -> float:
    """Return a share as a number; refuse other texts, such as 1%."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number; write 0.01 for 1 %") from None


def names_in(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [name for part in text.split(",") if (name := part.strip())]


def _default_config() -> Path:
    from decon_core.config import CONFIG_VARIABLE, DEFAULT_CONFIG

    return Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)


# Options of several commands.
ConfigPath = Annotated[
    Path,
    option(
        "the configuration file (default: $DECON_CONFIG, otherwise ./decon.toml)",
        "FILE",
        default_factory=_default_config,
    ),
]
Workers = Annotated[
    int | None,
    option(
        "number of processes, or threads for small inputs (default: $DECON_WORKERS, otherwise the "
        "number of usable cores)",
        "N",
        min=1,
    ),
]


def _known_engine(name: str | None) -> str | None:
    if name is not None and name not in engine_names():
        from decon_core.execution.choice import unknown_engine

        raise InputError(unknown_engine("--engine", name))
    return name


EngineOption = Annotated[
    str | None,
    option(
        "where to run jobs (docs/ten-terabytes.md); local: in processes on this machine "
        "(default: $DECON_ENGINE, otherwise [execution] in decon.toml, otherwise local)",
        "|".join(engine_names()),
        callback=_known_engine,
    ),
]
Verbose = Annotated[
    bool,
    option(
        "also print a line for each benchmark, each pack of a mixture, and each blend",
        name="--verbose",
    ),
]
Retire = Annotated[
    bool,
    option(
        "continue even if most registered shards are gone, and drop their packs and mixtures",
        name="--retire",
    ),
]
AllowSkipped = Annotated[
    bool,
    option(
        "do not exit with code 4 if files, folders, links or benchmarks were skipped",
        name="--allow-skipped",
    ),
]
PolicyFile = Annotated[
    Path | None,
    option(
        "TOML file with policy settings (docs/configuration.md), at the top level or in [policy]",
        "FILE",
    ),
]
ReportFile = Annotated[
    Path | None, option("a report's database (default: the one that decon.toml configures)", "FILE")
]
ReportPath = Annotated[
    Path | None,
    option(
        "a report's database, or the output folder of `decon-assets scan` (default: the one "
        "that decon.toml configures)",
        "PATH",
    ),
]


class _Plain:
    """Help as plain text; options with several values, or with one that may be left out."""

    help: str | None
    params: list[Any]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = _with_all_values(args, self.params)
        return super().parse_args(ctx, given)  # type: ignore[misc,no-any-return] # click's, mixed in

    def invoke(self, ctx: Any) -> Any:
        ctx.meta["config"] = ctx.params.get("config")
        return super().invoke(ctx)  # type: ignore[misc] # click's, mixed in

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc] # click's, mixed in
        return [piece.strip("{}") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for param in self.params:
            if param.param_type_name == "argument":  # a Python type would say nothing
                param.display_type_rich = lambda ctx: ""  # noqa: ARG005 - replaces a method
        super().format_options(ctx, formatter)  # type: ignore[misc] # click's, mixed in

    def format_help_text(self, _ctx: Any, formatter: Any) -> None:
        _write_paragraphs(formatter, (self.help or "").partition("\nExamples:")[0])

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        _, heading, examples = (self.help or "").partition("\nExamples:")
        _write_paragraphs(formatter, f"{heading}{examples}")


class PlainCommand(_Plain, TyperCommand):
    """A command, or an action of a command."""


class PlainGroup(_Plain, TyperGroup):
    """A command with actions. Its options are defaults of the options of its actions."""

    def invoke(self, ctx: Any) -> Any:
        ctx.default_map = dict.fromkeys(self.commands, ctx.params)
        return super().invoke(ctx)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        summaries = {
            name: (command.help or "").split("\n\n")[0] for name, command in self.commands.items()
        }
        with formatter.section("Actions"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in summaries.items()])


def command_group() -> typer.Typer:
    """Return a Typer for a command with actions, each added by `action(group, name)`."""
    return typer.Typer(cls=PlainGroup, add_completion=False, rich_markup_mode=None)


def action(group: typer.Typer, name: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds a function to a group as one of its actions."""
    return group.command(name, cls=PlainCommand)


def _with_all_values(args: Sequence[str], params: Sequence[Any]) -> list[str]:
    """Complete arguments to one value for each option, as the parser wants it.

    An option with the metavar `PATH...` takes all values up to the next option: `--corpus a b` is
    `--corpus a --corpus b`. One with `[table|json]` may have none, which means the first of these.
    """
    options = [param for param in params if param.param_type_name == "option"]
    metavars = {name: param.metavar or "" for param in options for name in param.opts}
    result: list[str] = []
    current, n_values = "", 0  # the option before, if it takes several
    for arg, following in zip(args, [*args[1:], ""], strict=False):
        metavar = metavars.get(arg, "")
        if arg.startswith("-"):
            current, n_values = arg if metavar.endswith("...") else "", 0
        elif current:
            n_values += 1
            result += [current] if n_values > 1 else []
        result.append(arg)
        if metavar.startswith("[") and following not in (values := metavar.strip("[]").split("|")):
            result.append(values[0])
    return result


def _write_paragraphs(formatter: Any, text: str) -> None:
    """Write text wrapped to the width; of a paragraph with an indented line, each line."""
    for paragraph in filter(None, text.strip("\n").split("\n\n")):
        formatter.write_paragraph()
        lines = paragraph.splitlines()
        if any(line.startswith(" ") for line in lines):
            lines = [part for line in lines for part in _fitted(line, formatter.width)]
        else:
            lines = textwrap.wrap(" ".join(lines), formatter.width, break_on_hyphens=False)
        formatter.write("".join(f"{line}\n" for line in lines))


_OPTION = re.compile(r"(--\S+) (?=[^-\s])")


def _fitted(line: str, width: int) -> Iterator[str]:
    """Yield a line that is too long as several: its remark below it, a command with backslashes."""
    if len(line) <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    command, _, remark = line.strip().partition("  ")
    if remark:
        yield from _fitted(" " * indent + command, width)
        space = " " * (indent + 6)
        yield from textwrap.wrap(
            remark.strip(),
            width,
            initial_indent=space,
            subsequent_indent=space,
            break_on_hyphens=False,
        )
        return
    is_command = command.startswith("decon-assets ")
    parts = textwrap.wrap(
        _OPTION.sub("\\1\N{NO-BREAK SPACE}", command),  # an option stays with its value
        width - 2 if is_command else width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
    *before, last = (part.replace("\N{NO-BREAK SPACE}", " ") for part in parts)
    yield from (f"{part} \\" if is_command else part for part in before)
    yield last


def detectors_in(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of detectors."""
    names = names_in(text)
    if {*names}.difference(registry.names()) or not names or len({*names}) < len(names):
        expected = f"a comma-separated list of {', '.join(registry.names())}, each at most once"
        raise InputError(Problem("--detectors", repr(text), expected))
    return tuple(names)
