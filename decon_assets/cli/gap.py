"""`decon-assets gap`: compare model scores on leaked and on clean items."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.cli.command import Command, Say, add_config
from decon_assets.cli.terminal.tables import text_table
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import format_problems
from decon_core.report.open import coverage_of

if TYPE_CHECKING:
    from decon_core.benchmarks import Recipe
    from decon_core.report.score_gap.account import ScoreGaps

DESCRIPTION = """\
Compare the scores of models on leaked items with their scores on the other items.

Results are files with one row per item, or folders of such files:
  lm-evaluation-harness   samples_*.jsonl, from --log_samples
  OLMES                   task-*-predictions.jsonl, and ...-requests.jsonl beside it
  lighteval               details_*.parquet, from --save-details
  a table                 .csv, .tsv or .jsonl with columns named `benchmark` or `task`; `index`
                          (instance_index in the split), `id` (fingerprint of a record) or
                          `question`; `score`; optionally model, filter, metric, split

Rows are joined to items by their texts, or by index if no text contradicts it and the results cover
the whole split. Rows that could not be read or joined are counted and listed.
"""

EPILOG = """\
examples:
  decon-assets gap --results lm_eval_out/ --out gap
  decon-assets gap --results scores.csv --report contamination.duckdb
  decon-assets gap --results out/ --task "arc_c*=arc_challenge:test" --task gsm8k_cot=gsm8k

A gap is a correlation: leaked items may be easier, or better known.

Exit codes: 0 done, 1 no row could be joined with the report or the report is incomplete, 2 an input
is wrong.
"""

_MOST_SUBSETS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        nargs="+",
        required=True,
        metavar="PATH",
        help="files of results, or folders of them",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="a report's database (default: contamination.duckdb of the configuration)",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="NAME=BENCHMARK[:SPLIT]",
        help="the benchmark of a task whose name does not begin with the benchmark's; * in NAME "
        "matches anything; may be repeated",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write gap.json, gap.csv, gap.md")


def gap(options: argparse.Namespace, say: Say) -> int:
    """Print tables with `say`, and what was left out to stderr; return the exit code."""
    from decon_core.report.score_gap.account import score_gap
    from decon_core.report.score_gap.page import WARNING, write

    report = options.report or open_store(load_config(options.config)).report
    account = score_gap(
        options.results, report, tasks=options.task, recipes=_recipes(options.config)
    )
    _say_tables(account, say)
    _print_left_out(account)
    if options.out:
        write(account, options.out)
        say(f"\n{options.out / 'gap.md'}")
    say(f"\n{WARNING}")
    notice = coverage_of(report).notice
    if notice:
        sys.stderr.write(f"\n{notice}\n")
    return 0 if not notice and any(count.ways for count in account.joins) else 1


def _recipes(config: Path) -> Mapping[str, Recipe]:
    """Return the recipes, which read the raw rows that harnesses keep in their results."""
    from decon_core.benchmarks import catalog, load_recipes

    recipes = dict(catalog())
    for path in load_config(config).recipes if config.is_file() else ():
        recipes |= load_recipes(path)
    return recipes


def _say_tables(account: ScoreGaps, say: Say) -> None:
    from decon_core.report.score_gap.page import (
        GROUP_HEADS,
        HEADS,
        JOIN_HEADS,
        group_line,
        join_line,
        line,
    )

    n_subsets = sum(one.subset is not None for one in account.gaps)
    shown = [one for one in account.gaps if one.subset is None or n_subsets <= _MOST_SUBSETS]
    say(_table(JOIN_HEADS, [join_line(count) for count in account.joins]))
    say("\n" + _table(GROUP_HEADS, [group_line(one) for one in shown]))
    say("\n" + _table(HEADS, [line(one) for one in shown]))
    if len(shown) < len(account.gaps):
        say(f"\n{n_subsets} rows for parts of benchmarks are in gap.csv (--out)")


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format a table without its empty columns."""
    kept = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    return text_table([heads[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _print_left_out(account: ScoreGaps) -> None:
    if account.problems:
        sys.stderr.write(f"\nnot read, or not joined: {format_problems(account.problems)}\n")
    if account.earlier:
        sys.stderr.write(f"\nignored, as repeated later: {', '.join(account.earlier)}\n")
    if account.others:
        sys.stderr.write(f"\nignored: {len(account.others)} other files of these folders\n")


COMMAND = Command(gap, (add_arguments, add_config), DESCRIPTION, EPILOG)
