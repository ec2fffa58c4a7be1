"""`decon-assets reference`: read reports of AI2's decon."""

from __future__ import annotations

from pathlib import Path

from decon_assets.terminal.options import action, argument, command_group, flag, option
from decon_assets.terminal.output import say, warn
from decon_core.errors import format_problems

reference_group = command_group()


@reference_group.callback()
def reference() -> None:
    """Read reports of AI2's decon, the reference implementation.

    decon writes JSONL files, one per shard. They contain only leaks, so the share of leaked items
    or documents is unknown. `decon-assets scan --compat` also writes files in this format.

    Examples:
      decon-assets reference read results/ --out reference.duckdb
      decon-assets compare reference.duckdb decon.toml

    Exit codes: 0 done; 2 invalid input (without --skip-bad, this includes lines that cannot be
    read).
    """


@action(reference_group, "read")
def read(
    folder: Path = argument("a folder of reports, or a single file", "FOLDER"),
    *,
    out: Path = option("the database to write", "FILE"),
    skip_bad: bool = flag(
        "--skip-bad",
        "skip lines that cannot be read; print them, and store them in the `unreadable` table",
    ),
) -> int:
    """Convert a folder of reports to a database.

    The database works with `report --query`, `compare`, `check` and all other commands that read a
    report.

    Examples:
      decon-assets reference read results/ --out reference.duckdb
    """
    from decon_core.features.decon_reports.read import read_reports

    done = read_reports(folder, out, may_skip=skip_bad)
    say(f"{done.n_lines - done.n_bad:,} leaks from {done.n_files:,} reports: {out}")
    say("reports of decon contain only leaks: no other items, no documents and no unreadable rows")
    if done.n_unclear:
        say(f"{done.n_unclear:,} texts left unchanged, because their brackets may not mark a match")
    if done.others:
        say(f"{len(done.others):,} other files ignored: {', '.join(done.others[:3])}")
    if done.n_bad:
        warn(f"{done.n_bad:,} lines skipped: {format_problems(done.bad)}")
    return 0
