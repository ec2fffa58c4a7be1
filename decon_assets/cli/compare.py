"""`decon-assets compare`: compare two reports, or one scan under two policies."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from decon_assets.cli.command import Command, Say
from decon_assets.cli.terminal.tables import text_table
from decon_core.errors import InputError, Problem
from decon_core.report.open import coverage_of
from decon_core.storage.store import atomic_path, write_plain_json

if TYPE_CHECKING:
    from decon_core.compare.differences import Comparison

DESCRIPTION = """\
Compare two reports: leaks (pairs of a document and an item) that only one of them has, or both with
different scores; items whose status changed; leak rates side by side; differences in settings and
inputs. Leaks in what the other report did not scan (another shard, another benchmark, an unreadable
row) are counted separately.

Each of the two is a report's database (contamination.duckdb), a decon.toml (its report), or a
folder that `decon-assets scan` wrote. With --policy, the scan of one decon.toml is evaluated with
its own policy and with another one; nothing is scanned again, and what was not scanned is listed.
"""

EPILOG = """\
examples:
  decon-assets compare old/contamination.duckdb .decon/report/contamination.duckdb
  decon-assets compare monday/decon.toml decon.toml --html compared.html
  decon-assets compare found-a found-b --json compared.json --exit-code
  decon-assets compare decon.toml --policy stricter.toml    a file with, for example,
                                                            contamination_score_threshold = 0.9

Exit codes: 0 done (with --exit-code: no difference), 1 the reports differ (with --exit-code), 2 an
input is wrong. Different settings that change no leak, item, shard or benchmark do not count.
"""

_MOST_WRITTEN = 10_000  # rows per table in a file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=Path, metavar="FIRST", help="a report")
    parser.add_argument("second", type=Path, nargs="?", metavar="SECOND", help="another report")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="instead of SECOND: compare with the scan of FIRST, a decon.toml, under this policy",
    )
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="rows per table to print (default 20)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help=f"write the comparison as JSON, up to {_MOST_WRITTEN:,} rows per table",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write the comparison as an HTML page"
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with code 1 if the reports differ"
    )


def compare(options: argparse.Namespace, say: Say) -> int:
    """Compare two reports; print tables and write the files that the options name."""
    from decon_core.compare.page import as_html, headline, sections

    if options.limit < 0:
        raise InputError(Problem("--limit", str(options.limit), "0 or more"))
    comparison = _compare(options)
    notes = "".join(f"{note}\n" for note in comparison["notes"])
    sides = f"first:  {comparison['first']}\nsecond: {comparison['second']}"
    say(f"{sides}\n{notes}\n{headline(comparison)}")
    for section in sections(comparison, most=options.limit):
        more = f"\n… and {section.n_more:,} more" if section.n_more else ""
        about = f"{section.about}\n" if section.about else ""
        say(f"\n{section.title}\n{about}\n{text_table(section.heads, section.rows)}{more}")
    if options.json:
        write_plain_json(options.json, comparison)
        say(f"\n{options.json}")
    if options.html:
        with atomic_path(options.html) as draft:
            draft.write_text(as_html(comparison, most=_MOST_WRITTEN), encoding="utf-8")
        say(f"\n{options.html}")
    return 1 if options.exit_code and not comparison["is_same"] else 0


def _compare(options: argparse.Namespace) -> Comparison:
    from decon_core.compare.differences import compare
    from decon_core.compare.sides import database_of, judge_twice

    if (options.second is None) == (options.policy is None):
        given = "neither" if options.second is None else "both"
        raise InputError(Problem("compare", given, "either SECOND or --policy"))
    named = {"first": str(options.first), "second": str(options.second or options.policy)}
    with TemporaryDirectory(prefix="decon-compare-") as folder:
        databases = [Path(folder) / f"{name}.duckdb" for name in named]
        notes: list[str] = []
        if options.policy:
            notes = judge_twice(options.first, options.policy, databases)
        else:
            sides = zip((options.first, options.second), databases, strict=True)
            databases = [database_of(side, database) for side, database in sides]
        comparison = compare(*databases, most=max(options.limit, _MOST_WRITTEN))
        for side, database in zip(named, databases, strict=True):
            if notice := coverage_of(database).notice:
                notes.append(f"{side}: {notice}")
    return {**named, "notes": notes, **comparison}


COMMAND = Command(compare, (add_arguments,), DESCRIPTION, EPILOG)
