"""What the commands of mixtures and blends share: leaks, verification, and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from decon_assets.instance.active_run import active_run
from decon_assets.terminal.output import say, warn
from decon_assets.terminal.progress import ShardProgress
from decon_core.config.mixtures import Leaks
from decon_core.config.validation import Named
from decon_core.errors import Problem, format_problems
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import wanted_workers
from decon_core.mixtures.verify import Verification
from decon_core.wording import counted

_MOST_NAMED = 8  # benchmarks in a description

Product = TypeVar("Product", bound=Named)
Result = TypeVar("Result", bound=Verification)


def say_undeclared(folder: Path, declared: Sequence[Named]) -> None:
    """Print a line for each product's folder that decon.toml no longer declares."""
    known = {product.name for product in declared}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and path.name not in known:
            say(f"no longer declared in decon.toml, so not updated: {path}")


def described(leaks: Leaks, known: Sequence[str]) -> str:
    """Describe leaks that count in one line. `known`: all benchmarks of the configuration."""
    names = [name for name in known if leaks.needs(name)]
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(names[:_MOST_NAMED]) + more or "no benchmark"
    n_of_all = f"{len(names):,} of {counted(len(known), 'benchmark')}"
    limits = [
        "all benchmarks" if len(names) == len(known) else n_of_all,
        f"splits {', '.join(leaks.splits)}" if leaks.splits else "",
        f"by {', '.join(leaks.detectors)}" if leaks.detectors else "",
        "" if leaks.least_score is None else f"score at least {leaks.least_score:g}",
        f"with the verdict {' or '.join(leaks.verdicts)}" if leaks.verdicts else "",
        ""
        if leaks.min_probability is None
        else f"probability at least {leaks.min_probability:g}, from {leaks.min_judged:,} or more "
        "judged pairs",
    ]
    return f"{listed} ({'; '.join(filter(None, limits))})"


def verify_each(
    chosen: Sequence[Product],
    verify: Callable[..., Result],
    describe: Callable[[Product, Result], str],
    workers: int | None,
    engine: Engine,
) -> list[Problem]:
    """Verify products, and print a line for each; return all problems."""
    problems: list[Problem] = []
    for product in chosen:
        with ShardProgress(sys.stderr, engine) as progress:
            n_workers = workers or wanted_workers()
            found = verify(product, workers=n_workers, engine=engine, on_progress=progress.update)
        n = len(found.problems)
        state = counted(n, "problem") if n else "matches its manifest"
        documents, tokens = counted(found.n_documents, "document"), counted(found.n_tokens, "token")
        say(f"{product.name}: {state}; {documents}, {tokens}, {describe(product, found)}")
        problems += found.problems
    return [*dict.fromkeys(problems)]  # an input that several mixtures lack is one problem


def exit_code_for(problems: Sequence[Problem], config: Path) -> int:
    """Print problems, and the run that may be mending them; return 1 if there are any."""
    if problems:
        warn(f"\n{format_problems(problems)}")
        if run := active_run(config):
            warn(run)
    return 1 if problems else 0
