"""`decon-assets reference`: read and write reports of AI2's decon."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from decon_assets.cli.command import Command, Say, add_config
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import format_problems

DESCRIPTION = """\
Exchange reports with AI2's decon, the reference implementation, which writes JSONL files, one per
shard.

`read` converts a folder of such files to a report's database, for `report --query`, `compare`,
`check` and the other commands that read one. The files contain only leaks, so the share of leaked
items or documents is unknown. `write` exports the leaks that the pipeline found as such files.
"""

EPILOG = """\
examples:
  decon-assets reference read results/ --out reference.duckdb
  decon-assets compare reference.duckdb decon.toml
  decon-assets reference write --out reports/

Exit codes: 0 done, 2 an input is wrong (without --skip-bad, also a line that cannot be read).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(required=True, metavar="read|write", dest="what")
    read = what.add_parser("read", help="convert a folder of reports to a database")
    read.add_argument("folder", type=Path, metavar="FOLDER", help="a folder, or a single file")
    read.add_argument("--out", type=Path, required=True, metavar="FILE", help="the database")
    read.add_argument(
        "--skip-bad",
        action="store_true",
        help="skip lines that cannot be read: they are listed, and are in the table `unreadable`",
    )
    write = what.add_parser("write", help="export the pipeline's leaks to a folder of reports")
    write.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="the output folder"
    )
    add_config(write)


def reference(options: argparse.Namespace, say: Say) -> int:
    """Read or write reports."""
    return _read(options, say) if options.what == "read" else _write(options, say)


def _read(options: argparse.Namespace, say: Say) -> int:
    from decon_core.interop.read import read_reports

    read = read_reports(options.folder, options.out, may_skip=options.skip_bad)
    say(f"{read.n_lines - read.n_bad:,} leaks from {read.n_files:,} reports: {options.out}")
    say("such reports have no items without a leak, no documents and no unreadable rows")
    if read.n_unclear:
        say(f"{read.n_unclear:,} texts have brackets that may or may not be marks: left unchanged")
    if read.others:
        say(f"{len(read.others):,} other files ignored: {', '.join(read.others[:3])}")
    if read.n_bad:
        sys.stderr.write(f"{read.n_bad:,} lines skipped: {format_problems(read.bad)}\n")
    return 0


def _write(options: argparse.Namespace, say: Say) -> int:
    from decon_core.interop.write import write_reports
    from decon_core.inventory import builder_of

    config = load_config(options.config)
    builder = builder_of(config, open_store(config))
    n_shards = write_reports(builder, options.out, on_shard=lambda _: None)
    say(f"{n_shards:,} reports: {options.out}")
    others = [name for name in config.policy.detectors if name != "decon"]
    if others:
        say(f"only leaks of the decon detector: the format cannot hold {', '.join(others)}")
    return 0


COMMAND = Command(reference, (add_arguments,), DESCRIPTION, EPILOG)
