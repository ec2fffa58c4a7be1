"""`decon-assets report`: print the main tables, run a query, or write the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decon_assets.freshness import REPORT_IS_STALE, is_report_current
from decon_assets.instance.active_run import active_run
from decon_assets.terminal.leak_rates import say_rates
from decon_assets.terminal.options import (
    ConfigPath,
    ReportFile,
    flag,
    names_in,
    optional,
    repeatable,
)
from decon_assets.terminal.output import say, say_rows, say_table, warn
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.decisions.not_read import WORST_FIRST, Account
from decon_core.errors import format_problems, sentence
from decon_core.report.open import Coverage, connect, coverage_of, rows_of
from decon_core.wording import bounds, counted, of_checkable, percent

_MOST_LISTED = 20
# Columns that are left out if they say nothing, or have no room; the least important first.
_SPARE = ("leaks", "of all items", "no answer", "review", "of checkable")
_BYTES_READ = "SELECT source, sum(n_bytes)::BIGINT AS n_bytes FROM shards GROUP BY source"
_ALL = 'to list all: decon-assets report --query "FROM not_read WHERE accepted_by IS NULL"'
_BY_BENCHMARK = """SELECT *, leak_rate AS rate FROM by_benchmark
    ORDER BY leak_rate DESC NULLS LAST, n_leaked DESC, n_no_answer + n_review DESC,
             benchmark, split"""


def report(
    *,
    query: str | None = optional("run an SQL query, for example: FROM items LIMIT 5", "SQL"),
    allow_files: bool = flag(
        "--allow-files", "let the query and the database's views read and write other files"
    ),
    page: Path | None = optional("write the HTML page to this file", "FILE"),
    by: list[str] = repeatable(
        "print leak rates by an item column: config, split, or a field that a recipe keeps",
        "COLUMN,...",
    ),
    categories: list[str] = repeatable(
        "print leak rates by category, as defined by a file that groups a column's values "
        "(docs/studies/categories.md), or by the built-in groups mmlu or hellaswag",
        "FILE",
    ),
    detector: list[str] = repeatable(
        "compute leak rates by category from this detector's matches alone, not from the report's "
        "decisions",
        "NAME",
    ),
    rates: Path | None = optional("write the leak rates by category to this CSV file", "FILE"),
    database: ReportFile = None,
    config: ConfigPath,
) -> int:
    """Print leak rates by benchmark and by source, run a query, or write the report's page.

    Use it after `decon-assets run`, which also writes the page of the current report to the
    database's folder. You can also open the database with `duckdb`; every table and view has a
    comment.

    Examples:
      decon-assets report
      decon-assets report --query "FROM top_items LIMIT 5"
      decon-assets report --categories mmlu --rates rates.csv
      decon-assets report --query "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
      decon-assets report --database other.duckdb --page other.html

    Without --allow-files, a query can access only the database. With it, views in someone else's
    database could read your files.

    docs/report.md describes the tables, and examples/queries.sql contains twelve example queries.

    Exit codes: 0 done; 1 the report is missing, or incomplete because some shards were not scanned
    (the `not_scanned` table lists them); 2 invalid input.
    """
    grouped = [*by, *categories]
    if (rates or detector) and not grouped:
        warn("--rates and --detector require --by or --categories")
        return 2
    path = database or open_store(load_config(config)).report
    if not path.is_file():
        run = None if database else active_run(config)
        warn(f"no report yet at {path}: {run or '`decon-assets run` builds it'}")
        return 1
    if not database and not is_report_current(load_config(config)):
        warn(f"note: {REPORT_IS_STALE}")
    coverage = coverage_of(path)
    if not coverage.is_complete and (page or query or grouped):
        warn(coverage.notice)
    code = 0
    if page:
        from decon_core.report.html.build import write_page

        write_page(path, page)
        say(page)
    elif query:
        code = _query(path, query, may_use_files=allow_files)
    elif grouped:
        columns = [name for text in by for name in names_in(text)]
        detectors = [name for text in detector for name in names_in(text)]
        _say_rates(path, columns, categories, detectors, rates)
    else:
        _say_main_tables(path, coverage)
    return code or (0 if coverage.is_complete else 1)


def _say_rates(
    path: Path,
    columns: Sequence[str],
    categories: Sequence[str],
    detectors: Sequence[str],
    file: Path | None,
) -> None:
    from decon_core.report.categories.groupings import parse_groupings
    from decon_core.report.categories.rates import (
        HEADS,
        leak_rates,
        rate_row,
        require_groupings,
    )
    from decon_core.report.items import about_detectors, load_report_items
    from decon_core.storage.files import write_text
    from decon_core.text_tables import as_csv

    groupings = parse_groupings(columns, categories)
    items = load_report_items(path, detectors)
    require_groupings(items, groupings)
    found = leak_rates(items, groupings)
    say_rates(found.rates)
    for note in about_detectors(items, detectors):
        say(f"\n{note}")
    if found.problems:
        warn(f"\nwithout a category: {format_problems(found.problems)}")
    if file:
        write_text(file, as_csv([rate_row(rate) for rate in found.rates], HEADS))
        say(f"\n{file}")


def _benchmark_row(row: Mapping[str, Any]) -> Mapping[str, object]:
    rate, low, high = (percent(row[name]) for name in ("leak_rate", "low", "high"))
    of_all = bounds(row["at_least"], row["at_most"])
    n_items, n_checkable = row["n_items"], row["n_checkable"]
    return {
        "benchmark": row["benchmark"],
        "split": row["split"],
        "items": n_items,
        "leaked": row["n_leaked"],
        "of checkable": of_checkable(row["n_leaked_checkable"], n_checkable, n_items=n_items),
        "rate": rate,
        "95 % interval": f"{low} to {high}" if n_checkable else "",
        "of all items": "" if of_all == rate else of_all,
        "no answer": row["n_no_answer"],
        "review": row["n_review"],
        "leaks": row["n_leaks"],
    }


def _source_row(row: Mapping[str, Any]) -> Mapping[str, object]:
    return {
        "source": row["source"],
        "documents": row["n_documents"],
        "with a leak": row["n_contaminated_documents"],
        "share": percent(row["contaminated_share"]),
        "leaked items": row["n_leaked_items"],
        "no answer": row["n_no_answer_documents"],
        "review": row["n_review_documents"],
        "unreadable": row["n_unreadable"],
    }


def _say_main_tables(path: Path, coverage: Coverage) -> None:
    from decon_core.report.publish.summary import format_headline

    if not coverage.is_complete:
        say(coverage.notice)
        for row in coverage.not_scanned[:_MOST_LISTED]:
            remedy = f". {sentence(row['remedy'])}" if row["remedy"] else ""
            say(f"  {row['path']} (pack {row['pack']}): {row['reason']}{remedy}")
        if (more := len(coverage.not_scanned) - _MOST_LISTED) > 0:
            say(f'  … and {more} more: decon-assets report --query "FROM not_scanned"')
        say()
    with connect(path) as connection:
        benchmarks = [*rows_of(connection, _BY_BENCHMARK)]
        sources = [*rows_of(connection, "FROM by_source")]
        account = Account.stored(
            rows_of(connection, "FROM not_read WHERE what <> 'shard'"),
            rows_of(connection, _BYTES_READ),
        )
    if benchmarks:
        say_rows([*map(_benchmark_row, benchmarks)], spare=_SPARE)
        say()
    if sources:
        say_rows(
            [*map(_source_row, sources)],
            spare=("unreadable", "leaked items", "no answer", "review"),
        )
        say()
    say(format_headline(path))
    if lines := [*account.lines()]:
        worst = min(lines, key=lambda line: WORST_FIRST.index(line.what))
        n_places = counted(len(account.open()), "place")
        say(f"not read: {n_places}; the most serious: {worst.text}; {_ALL}")
    say(path)


def _query(path: Path, query: str, *, may_use_files: bool) -> int:
    """Print the result of a query; return the exit code."""
    import duckdb

    with connect(path, may_use_files=may_use_files) as connection:
        try:
            result = connection.execute(query)
        except duckdb.Error as error:
            warn(error)
            return 2
        heads = [column[0] for column in result.description or ()]
        say_table(heads, result.fetchall(), is_raw=True)
        say()
    say(path)
    return 0
