"""`decon-assets compare`: compare two reports, or one scan under two policies."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from decon_assets.terminal.options import argument, flag, option, optional
from decon_assets.terminal.output import say, say_table
from decon_core.compare import differences
from decon_core.compare.differences import Comparison
from decon_core.compare.page import as_html, headline, sections
from decon_core.compare.sides import database_of, judge_twice
from decon_core.errors import InputError, Problem
from decon_core.report.open import coverage_of
from decon_core.storage.files import write_plain_json, write_text

# Columns that a narrow terminal leaves out, the least important first.
_SPARE = ("of checkable in first", "of checkable in second", "items")
_MOST_WRITTEN = 10_000  # rows per table in a file


def compare(
    first: Path = argument("a report", "FIRST"),
    second: Path | None = argument("another report", "SECOND", default=None),
    *,
    policy: Path | None = optional(
        "instead of SECOND: evaluate the scan of FIRST (a decon.toml) under this policy", "FILE"
    ),
    limit: int = option("rows to print per table (default 20)", "N", default=20),
    json: Path | None = optional(
        f"write the comparison as JSON, up to {_MOST_WRITTEN:,} rows per table", "FILE"
    ),
    html: Path | None = optional("write the comparison as an HTML page", "FILE"),
    exit_code: bool = flag("--exit-code", "exit with code 1 if the reports differ"),
) -> int:
    """Compare two reports, or one scan under two policies.

    The output lists leaks (pairs of a document and an item) that are in only one report or have
    different scores, items whose status differs, leak rates side by side, and differences in
    settings and inputs. Leaks in shards, rows or benchmarks that the other report does not cover
    are counted separately.

    FIRST and SECOND are each a report's database (contamination.duckdb), a decon.toml (for its
    report), or a folder written by `decon-assets scan`. With --policy, FIRST is a decon.toml, and
    its scan is evaluated under the policy in that file and under the given policy. Nothing is
    scanned again; inputs that were not scanned are listed.

    Examples:
      decon-assets compare old/contamination.duckdb .decon/report/contamination.duckdb
      decon-assets compare monday/decon.toml decon.toml --html compared.html
      decon-assets compare found-a found-b --json compared.json --exit-code
      decon-assets compare decon.toml --policy stricter.toml    a file with other policy settings

    Exit codes: 0 done (with --exit-code: no difference); 1 the reports differ (with --exit-code); 2
    invalid input. Settings that differ without changing any leak, item, shard or benchmark do not
    count as a difference.
    """
    if limit < 0:
        raise InputError(Problem("--limit", str(limit), "0 or more"))
    comparison = _compare(first, second, policy, most=max(limit, _MOST_WRITTEN))
    notes = "".join(f"{note}\n" for note in comparison["notes"])
    sides = f"first:  {comparison['first']}\nsecond: {comparison['second']}"
    say(f"{sides}\n{notes}\n{_filled(headline(comparison))}")
    for section in sections(comparison, most=limit):
        about = f"{_filled(section.about)}\n" if section.about else ""
        say(f"\n{section.title}\n{about}")
        say_table(section.heads, section.rows, spare=_SPARE)
        if section.n_more:
            say(f"… and {section.n_more:,} more")
    if json:
        write_plain_json(json, comparison)
        say(f"\n{json}")
    if html:
        write_text(html, as_html(comparison, most=_MOST_WRITTEN))
        say(f"\n{html}")
    return 1 if exit_code and not comparison["is_same"] else 0


def _filled(text: str) -> str:
    """Break a text into lines for a terminal."""
    if not sys.stdout.isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns)


def _compare(first: Path, second: Path | None, policy: Path | None, *, most: int) -> Comparison:
    if (second is None) == (policy is None):
        found = "only one report" if second is None else "SECOND and --policy"
        expected = "two reports (FIRST and SECOND), or a decon.toml and --policy FILE"
        raise InputError(Problem("compare", found, expected))
    named = {"first": str(first), "second": str(second or policy)}
    with TemporaryDirectory(prefix="decon-compare-") as folder:
        databases = [Path(folder) / f"{name}.duckdb" for name in named]
        notes: list[str] = []
        if policy:
            notes = judge_twice(first, policy, databases)
        elif second:
            databases = [database_of(side) for side in (first, second)]
        comparison = differences.compare(*databases, most=most)
        for side, database in zip(named, databases, strict=True):
            if notice := coverage_of(database).notice:
                notes.append(f"{side}: {notice}")
    return {**named, "notes": notes, **comparison}
