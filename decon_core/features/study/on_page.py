"""The section of the report page with the figures of the study, and its differences as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from decon_core.features.study.figures import TABLES, figures
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.report.open import rows_of
from decon_core.text_tables import interval, number, p_value, signed
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

# Averages first.
_DIFFERENCES = """
    SELECT training_run AS "training run", benchmark,
           concat_ws(', ', nullif(metric, ''), nullif(filter, '')) AS metric,
           score, baseline, difference, row(low, high) AS "95 % interval", p,
           concat_ws('; ', nullif(basis, ''), nullif(remark, '')) AS "compared on"
    FROM differences WHERE difference IS NOT NULL
    ORDER BY n_benchmarks IS NULL, rowid
"""
# How the columns of the table are formatted; the others are short texts.
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "score": number,
    "baseline": number,
    "difference": signed,
    "95 % interval": lambda ends: interval(*ends),
    "p": p_value,
}


def section_of(database: Path) -> Section:
    """Return the figures of a study, and its differences as a table."""
    with duckdb.connect(str(database), read_only=True) as connection:
        (baseline,) = rows_of(
            connection, "SELECT training_run FROM training_runs WHERE is_baseline"
        )
        table = _table(connection)
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
    return Section("study", "Study", words, choices, [table] if table.rows else [])


def _table(connection: duckdb.DuckDBPyConnection) -> Table:
    rows = rows_of(connection, _DIFFERENCES)
    heads = [*rows[0]] if rows else []
    columns = [{"name": head, "kind": "formatted" if head in _FORMS else "short"} for head in heads]
    cells = [
        tuple(_FORMS.get(head, str)(cell) for head, cell in row.items())
        for row in rows[:_MOST_ROWS]
    ]
    title = "Differences from the baseline"
    if len(cells) < len(rows):
        title = f"{title}: {len(cells):,} of {counted(len(rows), 'row')}"
    return Table("differences", title, columns, cells, (), is_folded=False)
