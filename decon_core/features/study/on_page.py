"""The section of the report page with the figures of the study, and its differences as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from decon_core.features.study.figures import TABLES, figures
from decon_core.features.study.page import Row, table
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.report.open import rows_of
from decon_core.wording import counted

_TRAINING_RUNS = (
    "Models trained on variants of the data are compared with the model of the training run "
    "“{baseline}”. Averages weight all benchmarks equally. "
    "study.md has the tables of effects, steps and doses. "
    "docs/studies/training-runs.md and docs/studies/time-and-dose.md explain the numbers."
)
_EFFECTS = (
    "An effect compares both models on the same items: items planted in the training run's blend "
    "(seen) or held back, and items leaked into the corpus or clean."
)
_BY_DOSE = (
    "The dose of a training run is the amount of test data in its training data. If several "
    "training runs have the same dose, the interval covers the differences between them."
)
_MOST_ROWS = 200

_HEADS = (
    "training run", "benchmark", "metric", "score", "baseline", "difference", "95 % interval", "p",
    "compared on",
)  # fmt: skip
_TEXTS = ("training run", "benchmark", "metric", "compared on")  # the others are formatted numbers


def section_of(database: Path) -> Section:
    """Return the figures of a study, and its differences as a table."""
    with duckdb.connect(str(database), read_only=True) as connection:
        (baseline,) = rows_of(
            connection, "SELECT training_run FROM training_runs WHERE is_baseline"
        )
        without = rows_of(connection, "FROM differences WHERE difference IS NULL AND remark <> ''")
        problems = rows_of(connection, "FROM problems")
        rows = {name: rows_of(connection, f"FROM {name}") for name in TABLES}
    words = [_TRAINING_RUNS.format(baseline=baseline["training_run"])]
    if without:
        n_scores = counted(len(without), "score")
        words.append(f"No comparison with the baseline for {n_scores}, listed in study.md.")
    if problems:
        n_problems = counted(len(problems), "problem")
        words.append(
            f"Some results could not be read or matched to an item: {n_problems}, "
            "listed in study.md."
        )
    words += [_BY_DOSE] if rows["by_dose"] else []
    words += [_EFFECTS] if rows["effects"] else []
    choices = [Choice(shown(what), [*charts.values()]) for what, charts in figures(rows).items()]
    differences = _table(rows["differences"])
    shown_tables = [differences] if differences.rows else []
    return Section("study", "Study", words, choices, shown_tables)


def _table(differences: Sequence[Row]) -> Table:
    """Return the differences as a table, those of averages first."""
    compared = [row for row in differences if row["difference"] is not None]
    compared.sort(key=lambda row: row["n_benchmarks"] is None)
    shown_rows = (
        {**row, "metric": ", ".join(filter(None, (row["metric"], row["filter"])))}
        for row in compared[:_MOST_ROWS]
    )
    _, cells = table(_HEADS, shown_rows)
    columns = [
        {"name": head, "kind": "short" if head in _TEXTS else "formatted"} for head in _HEADS
    ]
    title = "Differences from the baseline"
    if len(cells) < len(compared):
        title = f"{title}: {len(cells):,} of {counted(len(compared), 'row')}"
    return Table("differences", title, columns, cells, (), is_folded=False)
