"""`decon-assets report`: the headline tables, the answer to any question, or the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from decon_assets.command import Command, Say, add_config
from decon_assets.tables import text_table
from decon_assets.todays import NOT_TODAYS, is_report_todays
from decon_core.config import load_config
from decon_core.mirror import at_hand

DESCRIPTION = """\
Print leak rates by benchmark and by source, or the answer to --query; with --page write the report
as one page of HTML. The database opens in plain `duckdb`, too; every table and view has a comment.
"""

EPILOG = """\
examples:
  decon-assets report
  decon-assets report --query "FROM top_items LIMIT 5"
  decon-assets report --query "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
  decon-assets report --database other.duckdb --page other.html

`decon-assets run` writes the page of today's report beside the database; docs/report.md says what
stands where, and examples/queries.sql asks twelve questions.
"""

_HEADLINES = (
    """SELECT benchmark, split, n_items AS items, n_leaked AS leaked,
              n_not_indexable AS "not indexable", round(leak_rate, 4) AS share,
              printf('%.4f to %.4f', low, high) AS "95 % interval", n_leaks AS leaks
       FROM by_benchmark""",
    "FROM by_source",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", help="SQL, for example: FROM items LIMIT 5")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of HTML here")
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="another report than that of the configuration",
    )


def report(options: argparse.Namespace, say: Say) -> int:
    """Run the command."""
    path = options.database or at_hand(load_config(options.config)).report
    if not path.is_file():
        sys.stderr.write(f"no report yet at {path}: `decon-assets run` makes one\n")
        return 1
    if not options.database and not is_report_todays(load_config(options.config)):
        sys.stderr.write(f"note: {NOT_TODAYS}\n")
    if options.page:
        return _write_page(path, options.page, say)
    return _answer(path, [options.query] if options.query else _HEADLINES, say)


def _write_page(path: Path, page: Path, say: Say) -> int:
    from decon_core.page.build import write_page

    write_page(path, page)
    say(str(page))
    return 0


def _answer(path: Path, queries: list[str] | tuple[str, ...], say: Say) -> int:
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        sys.stderr.write(f"{path} cannot be opened, or is held open by another: {error}\n")
        return 1
    with connection:
        for query in queries:
            try:
                answer = connection.execute(query)
            except duckdb.Error as error:
                sys.stderr.write(f"{error}\n")
                return 2
            heads = [column[0] for column in answer.description or ()]
            say(f"{text_table(heads, answer.fetchall())}\n")
    say(str(path))
    return 0


COMMAND = Command(report, (add_arguments, add_config), DESCRIPTION, EPILOG)
