"""`decon-assets gap`: compare model scores on leaked and on clean items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.leak_rates import MOST_SUBSETS, say_rates
from decon_assets.terminal.options import ConfigPath, names_in, option, optional, repeatable
from decon_assets.terminal.output import say, say_filled, warn
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import format_problems
from decon_core.report.open import coverage_of
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.features.gap.account import ScoreGaps

_MOST_FILES = 20  # named on the terminal


def gap(
    *,
    results: list[Path] = option("result files, or folders of them", "PATH..."),
    report: Path | None = optional(
        "a report's database (default: the one that decon.toml configures)", "FILE"
    ),
    task: list[str] = repeatable(
        "assign a task to a benchmark if the task's name does not begin with the benchmark's name; "
        "* in NAME matches anything",
        "NAME=BENCHMARK[:SPLIT]",
    ),
    by: list[str] = repeatable(
        "group items by a column: config, split, a field that the recipe keeps, or a column of the "
        "results (default: config, if a benchmark has several configs)",
        "COLUMN,...",
    ),
    categories: list[str] = repeatable(
        "group items by category, as defined by a file that groups a column's values "
        "(docs/studies/categories.md), or by the built-in groups mmlu or hellaswag",
        "FILE",
    ),
    detector: list[str] = repeatable(
        "classify items as leaked or clean by this detector alone, not by the report's decisions",
        "NAME",
    ),
    beyond_one: list[str] = repeatable(
        "the scores of this task are on a scale of 0 to 100 even if none exceeds 1; needed if the "
        "command stops because it cannot tell the scale; * matches anything",
        "TASK",
    ),
    out: Path | None = optional(
        "write gap.json, gap.csv, averages.csv, rates.csv, gap.md and figures to this folder", "DIR"
    ),
    config: ConfigPath,
) -> int:
    """Compare the scores of models on leaked items with their scores on clean items.

    Results are files with one row per item, or folders of such files:
      lm-evaluation-harness  samples_*.jsonl, written with --log_samples
      OLMES                  task-*-predictions.jsonl, with ...-requests.jsonl
                             in the same folder
      lighteval              details_*.parquet, written with --save-details
      Inspect                logs: .eval or .json
      a table                .csv, .tsv or .jsonl with these columns:
                             - `benchmark` or `task`
                             - `index` (instance_index in the split), `id`
                               (fingerprint of a record) or `question`
                             - `score`
                             - optionally model, filter, metric, split

    Rows are joined to items by their texts, or by index if no text contradicts it and the results
    cover the whole split. Rows that could not be read or joined are counted and listed.

    With categories, micro averages weight all items equally, and macro averages weight all
    categories equally. Leak rates are shown for the same categories.

    Examples:
      decon-assets gap --results lm_eval_out/ --out gap
      decon-assets gap --results scores.csv --report contamination.duckdb
      decon-assets gap --results out/ --task "arc_c*=arc_challenge:test" --task gsm8k_cot=gsm8k
      decon-assets gap --results out/ --categories mmlu --out gap
      decon-assets gap --results out/ --by language,source_id --detector exact

    A gap is only a correlation: leaked items may be easier or better known than clean items.

    Exit codes: 0 done; 1 some results could not be read or joined with an item, no result is of the
    report's benchmarks, or the report is incomplete; 2 invalid input.
    """
    from decon_core.benchmarks.catalog import catalog
    from decon_core.benchmarks.parse import load_recipes
    from decon_core.features.gap.account import score_gap
    from decon_core.features.gap.page import WARNING, write
    from decon_core.report.categories.groupings import PARTS, parse_groupings

    recipes = dict(catalog())  # they read the raw rows that harnesses keep in their results
    for path in load_config(config).recipes if config.is_file() else ():
        recipes |= load_recipes(path)
    report = report or open_store(load_config(config)).report
    columns = [name for text in by for name in names_in(text)]
    groupings = parse_groupings(columns, categories) or (PARTS,)
    account = score_gap(
        results,
        report,
        tasks=task,
        recipes=recipes,
        groupings=groupings,
        detectors=[name for text in detector for name in names_in(text)],
        beyond_one=beyond_one,
    )
    _say_tables(account, has_categories=bool(columns or categories))
    for note in account.notes:
        say(f"\n{note}")
    if account.problems:
        warn(f"\nnot read, or not joined: {format_problems(account.problems)}")
    if account.earlier:
        warn(f"\nearlier runs, not counted: {', '.join(account.earlier)}")
    if account.others:
        rest = "" if len(account.others) <= _MOST_FILES else ", …"
        n_files = counted(len(account.others), "other file")
        warn(f"\n{n_files} without results: {', '.join(account.others[:_MOST_FILES])}{rest}")
    if out:
        write(account, out)
        say(f"\n{out / 'gap.md'}")
    say(f"\n{WARNING}")
    notice = coverage_of(report).notice
    if notice:
        warn(f"\n{notice}")
    is_joined = any(count.ways for count in account.joins)
    return 0 if is_joined and not notice and not account.problems else 1


def _say_tables(account: ScoreGaps, *, has_categories: bool) -> None:
    """Print the tables; parts of benchmarks only if they were asked for and are few."""
    from decon_core.features.gap import page

    n_subsets = sum(gap.subset is not None for gap in account.gaps)
    is_short = has_categories and n_subsets <= MOST_SUBSETS
    shown = [gap for gap in account.gaps if gap.subset is None or is_short]
    tables = page.tables(account, shown)
    say_filled(*tables["joins"])
    for name in ("groups", "gaps") if shown else ():
        say()
        say_filled(*tables[name])
    if len(shown) < len(account.gaps):
        how = (
            "--out writes them" if has_categories else "--by config prints them, --out writes them"
        )
        say(f"\n{n_subsets} rows for parts of benchmarks are not shown: {how} to gap.csv")
    if not has_categories:
        return
    if account.averages:
        say("\naverages over categories:")
        say_filled(*tables["averages"])
    if account.rates:
        say("\nleak rates by category:")
        say_rates(account.rates)
