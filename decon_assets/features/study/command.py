"""`decon-assets study`: models compared with a baseline."""

from __future__ import annotations

from pathlib import Path

from decon_assets.terminal.options import ConfigPath, optional
from decon_assets.terminal.output import say, say_filled, say_table, warn
from decon_core.config.load import load_config
from decon_core.config.open_store import writable_store
from decon_core.errors import format_problems
from decon_core.features.study.product import study_folder, study_inputs
from decon_core.features.study.settings import Study


def study_command(
    *,
    out: Path | None = optional("also copy the study's files to this folder", "DIR"),
    config: ConfigPath,
) -> int:
    """Compare the scores of models trained on variants of the data with those of a baseline.

    Declare the baseline, and the training runs with their result files, in decon.toml:

      [study]
      baseline = "clean"

      [[study.training_run]]
      name = "clean"
      of = "decontaminated"         the mixture or blend that it was trained on
      results = ["results/clean/"]

    Results are either scores by item, in the formats that `decon-assets gap` reads, or scores of
    whole benchmarks: results*.json from lm-evaluation-harness and lighteval, task-*-metrics.json
    from OLMES, or a table with `benchmark`, `score`, and optionally `metric`, `stderr` and `n`.

    The command prints the scores of all training runs, their differences from the baseline and, for
    results by item, the differences by exposure: on items that were planted in the training run's
    blend (seen) or held back, and on items that leaked into the corpus or are clean.
    `decon-assets run` builds the same tables as the `study` asset. docs/studies/training-runs.md
    explains the numbers.

    More tables need more input: training steps ({step} in the path of the results, or a column
    `step`) and doses (docs/studies/time-and-dose.md), or translations with their references
    ([study.translation], docs/studies/translation.md).

    Examples:
      decon-assets study --config data/decon.toml
      decon-assets study --out tables

    Exit codes: 0 done; 1 some results could not be read or joined with an item, or no score could
    be compared with the baseline; 2 invalid input.
    """
    from decon_core.features.study.build import PAGE, build_study, copy_study, rows_of
    from decon_core.features.study.differences import left_out
    from decon_core.features.study.page import tables

    loaded = load_config(config)
    settings = loaded.table(Study)
    if settings is None:
        warn(f"{config}: no [study] table; `decon-assets study --help` has an example")
        return 2
    with writable_store(loaded) as store:
        inputs = study_inputs(loaded, store)
        if inputs is None:
            return 2
        found = build_study(inputs)
        if out:
            copy_study(store, out)
    shown = tables(rows_of(settings, found), settings.baseline)
    say_table(*shown["wide"])
    for name in ("differences", "by_step", "changes", "by_dose", "effects"):
        heads, rows = shown[name]
        if rows:
            say()
            say_filled(heads, rows)
    for sentence in left_out(found.training_runs):
        say(f"\n{sentence}")
    if len(shown["by_dose"][1]) < len(found.by_dose):
        say("\nDifferences by dose of single benchmarks are in by_dose.csv.")
    if not found.effects and not store.report.is_file():
        say("\nno effects by exposure: there is no report yet; `decon-assets run` builds it")
    say(f"\n{(out or study_folder(store)) / PAGE}")
    if found.problems:
        warn(f"\nnot read, or not joined: {format_problems(found.problems)}")
    is_compared = any(row.difference is not None for row in found.comparison.all)
    if not is_compared:
        warn("\nno score could be compared with one of the baseline")
    return 0 if is_compared and not found.problems else 1
