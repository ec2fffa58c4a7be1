"""What a word behind `decon-assets` is made of, and the options that several of them share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decon_core.config.load import CONFIG_VARIABLE, DEFAULT_CONFIG
from decon_core.scan.workers import WORKERS_VARIABLE, usable_cores

Say = Callable[[str], None]
AddArguments = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True)
class Command:
    """How a command is run, what it takes, and what its `--help` teaches."""

    run: Callable[[argparse.Namespace, Say], int]
    arguments: tuple[AddArguments, ...] = ()
    description: str = ""  # instead of its line in the list of commands
    epilog: str = ""


def add_config(parser: argparse.ArgumentParser, *, is_second: bool = False) -> None:
    """`is_second`: behind the name of an action, where it may stand as well as before it."""
    default = Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    parser.add_argument(
        "--config",
        type=Path,
        default=argparse.SUPPRESS if is_second else default,
        help=f"the configuration (default: ${CONFIG_VARIABLE}, else ./{DEFAULT_CONFIG})",
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="processes, or threads where there is little to do (default: "
        f"${WORKERS_VARIABLE}, else the cores that it may use: {usable_cores()} here)",
    )


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def filled(text: str) -> str:
    """What a person typed, and not the nothing of a variable of the shell that is not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; the current folder is called .")
    return text


def filled_path(text: str) -> Path:
    """A path; an empty one would be the current folder."""
    return Path(filled(text))
