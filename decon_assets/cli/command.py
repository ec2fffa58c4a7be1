"""The description of a command, and options that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decon_core.config.location import CONFIG_VARIABLE, DEFAULT_CONFIG
from decon_core.scan.workers import WORKERS_VARIABLE, usable_cores

Say = Callable[[str], None]  # prints a line
AddArguments = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True)
class Command:
    """A command: its function, its options and its help texts."""

    run: Callable[[argparse.Namespace, Say], int]
    arguments: tuple[AddArguments, ...] = ()
    description: str = ""  # default: its summary in the list of commands
    epilog: str = ""


def add_config(parser: argparse.ArgumentParser, *, is_second: bool = False) -> None:
    """Add `--config`; with `is_second`, to an action of a command that already has it."""
    default = Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    parser.add_argument(
        "--config",
        type=Path,
        default=argparse.SUPPRESS if is_second else default,
        help=f"the configuration file (default: ${CONFIG_VARIABLE}, else ./{DEFAULT_CONFIG})",
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="number of processes, or of threads for small inputs (default: "
        f"${WORKERS_VARIABLE}, else the usable cores: {usable_cores()} here)",
    )


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def nonempty(text: str) -> str:
    """Return the text; refuse an empty one, as an unset shell variable gives."""
    if not text.strip():
        raise argparse.ArgumentTypeError("empty; write . for the current folder")
    return text


def nonempty_path(text: str) -> Path:
    """Return the path; refuse an empty one, which would be the current folder."""
    return Path(nonempty(text))
