"""`decon-assets report`: print the main tables, run a query, or write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from decon_assets.cli.command import Command, Say, add_config
from decon_assets.cli.terminal.tables import text_table
from decon_assets.freshness import REPORT_IS_STALE, is_report_current
from decon_assets.runner.active_run import active_run
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import StaleError
from decon_core.report.open import Coverage, coverage_of

DESCRIPTION = """\
Print leak rates by benchmark and by source, or the result of --query; with --page, write the report
as one HTML page. The database also opens in plain `duckdb`; every table and view has a comment.
"""

EPILOG = """\
examples:
  decon-assets report
  decon-assets report --query "FROM top_items LIMIT 5"
  decon-assets report --query "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
  decon-assets report --database other.duckdb --page other.html

`decon-assets run` writes the page of the current report beside the database. docs/report.md
describes the tables, and examples/queries.sql has twelve queries.

Exit codes: 0 done; 1 there is no report, or it is incomplete: some shards were not scanned (the
table `not_scanned` lists them); 2 an input is wrong.
"""

_MOST_LISTED = 20
_MAIN_TABLES = (
    """SELECT benchmark, split, n_items AS items, n_leaked AS leaked,
              n_question_only AS "question-only", n_not_indexable AS "not indexable",
              round(leak_rate, 4) AS share,
              printf('%.4f to %.4f', low, high) AS "95 % interval", n_leaks AS leaks
       FROM by_benchmark""",
    """SELECT source, n_documents AS documents, n_unreadable AS unreadable,
              n_contaminated_documents AS "with a leak", round(contaminated_share, 6) AS share,
              n_leaked_items AS "leaked items",
              n_question_only_documents AS "question-only",
              round(question_only_share, 6) AS "share of them"
       FROM by_source""",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", help="an SQL query, for example: FROM items LIMIT 5")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the HTML page to this file"
    )
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="a report's database (default: the report of the configuration)",
    )


def report(options: argparse.Namespace, say: Say) -> int:
    """Run the command and return its exit code."""
    path = options.database or open_store(load_config(options.config)).report
    if not path.is_file():
        run = None if options.database else active_run(options.config)
        sys.stderr.write(f"no report yet at {path}: {run or '`decon-assets run` builds it'}\n")
        return 1
    if not options.database and not is_report_current(load_config(options.config)):
        sys.stderr.write(f"note: {REPORT_IS_STALE}\n")
    coverage = _coverage(path)
    if coverage and (options.page or options.query):
        sys.stderr.write(f"{coverage.notice}\n")
    if options.page:
        code = _write_page(path, options.page, say)
    elif options.query:
        code = _query(path, [options.query], say)
    else:
        _say_not_scanned(coverage, say)
        code = _query(path, _MAIN_TABLES, say) or _say_documents(path, say)
    return code or (1 if coverage else 0)


def _say_documents(path: Path, say: Say) -> int:
    from decon_core.report.publish.summary import format_headline

    say(format_headline(path))
    return 0


def _coverage(path: Path) -> Coverage | None:
    """Return the coverage of an incomplete report; None for a complete one."""
    try:
        coverage = coverage_of(path)
    except StaleError:
        return None  # no report, or of an earlier version, which wrote complete reports only
    return None if coverage.is_complete else coverage


def _say_not_scanned(coverage: Coverage | None, say: Say) -> None:
    if coverage is None:
        return
    say(coverage.notice)
    for row in coverage.not_scanned[:_MOST_LISTED]:
        remedy = f". {row['remedy']}" if row["remedy"] else ""
        say(f"  {row['path']} (pack {row['pack']}): {row['reason']}{remedy}")
    if (more := len(coverage.not_scanned) - _MOST_LISTED) > 0:
        say(f'  … and {more} more: decon-assets report --query "FROM not_scanned"')
    say("")


def _write_page(path: Path, page: Path, say: Say) -> int:
    from decon_core.report.html.build import write_page

    write_page(path, page)
    say(str(page))
    return 0


def _query(path: Path, queries: list[str] | tuple[str, ...], say: Say) -> int:
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        sys.stderr.write(f"{path} cannot be opened, or another program has it open: {error}\n")
        return 1
    with connection:
        for query in queries:
            try:
                result = connection.execute(query)
            except duckdb.Error as error:
                sys.stderr.write(f"{error}\n")
                return 2
            heads = [column[0] for column in result.description or ()]
            say(f"{text_table(heads, result.fetchall())}\n")
    say(str(path))
    return 0


COMMAND = Command(report, (add_arguments, add_config), DESCRIPTION, EPILOG)
