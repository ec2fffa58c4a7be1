"""`decon-assets compare`: two reports, two scanned folders, or one scan under two policies."""

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
Compare two reports: leaks (a document and an item) that only one of them calls so, or both with
other scores; items whose status changed; leak rates side by side; what differs in settings and
inputs. A leak where the other one did not look (another shard, another benchmark, a row that it
could not read) is not a difference of calls: those are counted apart.

Each of the two is a report's database (contamination.duckdb), a decon.toml (its report), or a
folder that `decon-assets scan` wrote. With --policy, what was scanned for one decon.toml is judged
once by its own policy and once by the other one; nothing is scanned again, and what was not scanned
is left out and named.
"""

EPILOG = """\
examples:
  decon-assets compare old/contamination.duckdb .decon/report/contamination.duckdb
  decon-assets compare monday/decon.toml decon.toml --html compared.html
  decon-assets compare found-a found-b --json compared.json --exit-code
  decon-assets compare decon.toml --policy stricter.toml    a file with, say,
                                                            contamination_score_threshold = 0.9

Exit codes: 0 done (with --exit-code: and the same), 1 they differ (with --exit-code), 2 an input is
wrong. Settings that differ and change no call, item, shard or benchmark do not count.
"""

_MOST_WRITTEN = 10_000  # rows of a kind in a file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=Path, metavar="FIRST")
    parser.add_argument("second", type=Path, nargs="?", metavar="SECOND")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="instead of SECOND: judge what FIRST, a decon.toml, scanned by this policy as well",
    )
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="rows of a kind to print (default 20)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help=f"write it all, of a kind {_MOST_WRITTEN:,} rows"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as a page")
    parser.add_argument("--exit-code", action="store_true", help="end with 1 when they differ")


def compare(options: argparse.Namespace, say: Say) -> int:
    """Compare, print, and write what is asked for."""
    from decon_core.compare.page import as_html, headline, sections

    if options.limit < 0:
        raise InputError(Problem("--limit", str(options.limit), "0 or more"))
    found = _compared(options)
    notes = "".join(f"{note}\n" for note in found["notes"])
    say(f"first:  {found['first']}\nsecond: {found['second']}\n{notes}\n{headline(found)}")
    for one in sections(found, most=options.limit):
        more = f"\n… and {one.n_more:,} more" if one.n_more else ""
        about = f"{one.about}\n" if one.about else ""
        say(f"\n{one.title}\n{about}\n{text_table(one.heads, one.rows)}{more}")
    if options.json:
        write_plain_json(options.json, found)
        say(f"\n{options.json}")
    if options.html:
        with atomic_path(options.html) as draft:
            draft.write_text(as_html(found, most=_MOST_WRITTEN), encoding="utf-8")
        say(f"\n{options.html}")
    return 1 if options.exit_code and not found["is_same"] else 0


def _compared(options: argparse.Namespace) -> Comparison:
    from decon_core.compare.differences import compare
    from decon_core.compare.sides import database_of, judge_twice

    if (options.second is None) == (options.policy is None):
        given = "neither" if options.second is None else "both"
        raise InputError(Problem("compare", given, "either SECOND or --policy"))
    named = {"first": str(options.first), "second": str(options.second or options.policy)}
    with TemporaryDirectory(prefix="decon-compare-") as folder:
        works = [Path(folder) / f"{name}.duckdb" for name in named]
        notes: list[str] = []
        if options.policy:
            notes = judge_twice(options.first, options.policy, works)
        else:
            sides = zip((options.first, options.second), works, strict=True)
            works = [database_of(side, work) for side, work in sides]
        found = compare(*works, most=max(options.limit, _MOST_WRITTEN))
        for side, work in zip(named, works, strict=True):
            if notice := coverage_of(work).notice:
                notes.append(f"{side}: {notice}")
    return {**named, "notes": notes, **found}


COMMAND = Command(compare, (add_arguments,), DESCRIPTION, EPILOG)
