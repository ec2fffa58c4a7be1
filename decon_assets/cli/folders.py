"""What `mixture` and `blend` share: products by name or by folder, and their problems."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from decon_assets.cli.terminal.output import say, warn
from decon_assets.runner.active_run import active_run
from decon_core.errors import ConfigError, Problem, format_problems
from decon_core.wording import counted

Product = TypeVar("Product")


def chosen_products(
    typed: Sequence[str] | None,
    declared: Sequence[Product],
    find: Callable[[Sequence[Product], str], Product],
    *,
    folder: Path,
    what: str,
) -> list[Product]:
    """Return the products given by name or by folder, a child of `folder`; all if none is given."""
    names = [_name_of(one, folder, what=what) for one in typed or ()]
    return [find(declared, name) for name in names] or list(declared)


def say_undeclared(folder: Path, known: Collection[str]) -> None:
    """Print a line for each product's folder that decon.toml no longer declares."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and path.name not in known:
            say(f"no longer declared in decon.toml, so not updated: {path}")


def state_of(problems: Sequence[Problem]) -> str:
    """Return whether a product matches its manifest, in words."""
    return counted(len(problems), "problem") if problems else "matches its manifest"


def exit_code_for(problems: Sequence[Problem], config: Path) -> int:
    """Print problems, and the run that may be mending them; return 1 if there are any."""
    if problems:
        warn(f"\n{format_problems(problems)}")
        if run := active_run(config):
            warn(run)
    return 1 if problems else 0


def _name_of(typed: str, folder: Path, *, what: str) -> str:
    path = Path(typed)
    if os.sep not in typed and not path.is_dir():
        return typed
    path = path.resolve()
    if path.parent != folder.resolve():
        raise ConfigError(
            Problem(typed, f"not the folder of a {what}", f"a folder in {folder.resolve()}")
        )
    return path.name
