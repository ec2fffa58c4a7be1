"""`decon-assets reference`: reports of the reference implementation, read and written."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from decon_assets.cli.command import Command, Say, add_config
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import format_problems

DESCRIPTION = """\
Exchange findings with AI2's decon, the reference implementation, whose reports are JSONL files, one
per shard.

`read` makes a report's database of a folder of such files: then `report --query`, `compare`,
`check` and all else that reads one can be asked. Such files name what leaked and nothing else, so
shares of items or documents are not known. `write` makes such files from what the pipeline found.
"""

EPILOG = """\
examples:
  decon-assets reference read results/ --out reference.duckdb
  decon-assets compare reference.duckdb decon.toml
  decon-assets reference write --out reports/

Exit codes: 0 done, 2 an input is wrong: a line that cannot be read is, without --skip-bad.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(required=True, metavar="read|write", dest="what")
    read = what.add_parser("read", help="a folder of reports to a database")
    read.add_argument("folder", type=Path, metavar="FOLDER", help="or a single file")
    read.add_argument("--out", type=Path, required=True, metavar="FILE", help="the database")
    read.add_argument(
        "--skip-bad",
        action="store_true",
        help="go on without lines that cannot be read: they are counted, told, and in `unreadable`",
    )
    write = what.add_parser("write", help="what the pipeline found to a folder of reports")
    write.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    add_config(write)


def reference(options: argparse.Namespace, say: Say) -> int:
    """Read or write."""
    return _read(options, say) if options.what == "read" else _write(options, say)


def _read(options: argparse.Namespace, say: Say) -> int:
    from decon_core.interop.read import read_reports

    read = read_reports(options.folder, options.out, may_skip=options.skip_bad)
    say(f"{read.n_lines - read.n_bad:,} leaks from {read.n_files:,} reports: {options.out}")
    say("items that did not leak, documents and unreadable rows are not in such reports")
    if read.n_unclear:
        say(f"{read.n_unclear:,} texts hold brackets that may be marks or not: left as they are")
    if read.others:
        say(f"{len(read.others):,} other files, not looked at: {', '.join(read.others[:3])}")
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
    others = [rule for rule in config.policy.detectors if rule != "decon"]
    if others:
        say(f"only what decon calls a leak: the form has no place for {', '.join(others)}")
    return 0


COMMAND = Command(reference, (add_arguments,), DESCRIPTION, EPILOG)
