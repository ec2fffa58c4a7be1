"""`decon-assets gap`: what a model scored on the items that leaked, and without them."""

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
Compare what models scored on the items that leaked with what they scored on the others.

Results are files with a row for each item, or folders of such:
  lm-evaluation-harness   samples_*.jsonl, from --log_samples
  OLMES                   task-*-predictions.jsonl, and ...-requests.jsonl beside it
  lighteval               details_*.parquet, from --save-details
  a table                 .csv, .tsv or .jsonl with columns named `benchmark` or `task`; `index`
                          (instance_index in the split), `id` (fingerprint of a record) or
                          `question`; `score`; and, if you like, model, filter, metric, split

An item is found again by its texts; by its index only where texts do not say otherwise and
everything was asked. What could not be read or joined is counted and told.
"""

EPILOG = """\
examples:
  decon-assets gap --results lm_eval_out/ --out gap
  decon-assets gap --results scores.csv --report contamination.duckdb
  decon-assets gap --results out/ --task "arc_c*=arc_challenge:test" --task gsm8k_cot=gsm8k

A gap is a correlation: leaked items may be easier, or more popular. Exit codes: 0 done, 1 no row
was joined with the report or the report is incomplete, 2 an input is wrong.
"""

_MOST_SUBSETS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, nargs="+", required=True, metavar="PATH")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="contamination.duckdb (default: that of the configuration)",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="NAME=BENCHMARK[:SPLIT]",
        help="which benchmark a task is, where its name does not begin with that of the benchmark; "
        "* in NAME is anything; may be repeated",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write gap.json, gap.csv, gap.md")


def gap(options: argparse.Namespace, say: Say) -> int:
    """Run the command; `say` prints the tables, what was left out goes to stderr."""
    from decon_core.report.score_gap.account import score_gap
    from decon_core.report.score_gap.page import WARNING, write

    report = options.report or open_store(load_config(options.config)).report
    account = score_gap(
        options.results, report, tasks=options.task, recipes=_recipes(options.config)
    )
    _say_tables(account, say)
    _tell_what_is_left_out(account)
    if options.out:
        write(account, options.out)
        say(f"\n{options.out / 'gap.md'}")
    say(f"\n{WARNING}")
    notice = coverage_of(report).notice
    if notice:
        sys.stderr.write(f"\n{notice}\n")
    return 0 if not notice and any(count.ways for count in account.joins) else 1


def _recipes(config: Path) -> Mapping[str, Recipe]:
    """How the rows of each benchmark are read, for harnesses keep them as they are."""
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
    say(_lean(JOIN_HEADS, [join_line(count) for count in account.joins]))
    say("\n" + _lean(GROUP_HEADS, [group_line(one) for one in shown]))
    say("\n" + _lean(HEADS, [line(one) for one in shown]))
    if len(shown) < len(account.gaps):
        say(f"\n{n_subsets} lines for parts of benchmarks are in gap.csv (--out)")


def _lean(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table without the columns in which nothing stands."""
    kept = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    return text_table([heads[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _tell_what_is_left_out(account: ScoreGaps) -> None:
    if account.problems:
        sys.stderr.write(f"\nnot read, or not joined: {format_problems(account.problems)}\n")
    if account.earlier:
        sys.stderr.write(f"\nruns that were repeated later: {', '.join(account.earlier)}\n")
    if account.others:
        sys.stderr.write(f"\nno results in {len(account.others)} other files of these folders\n")


COMMAND = Command(gap, (add_arguments, add_config), DESCRIPTION, EPILOG)
