"""The section of the report page with the tables of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from decon_core.features.study.figures import TABLES, amount, figures
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.report.open import queries_in, rows_of
from decon_core.text_tables import interval, number, p_value, signed
from decon_core.wording import counted

_TRAINING_RUNS = (
    "Models trained on variants of the data are compared with the model of the training run "
    "“{baseline}”. Averages weight all benchmarks equally. "
    "docs/studies/training-runs.md and docs/studies/time-and-dose.md explain the numbers."
)
_EFFECTS = (
    "An effect compares both models on the same items: items planted in the training run's blend "
    "(seen) or held back, and items leaked into the corpus or clean."
)
_CHANGES = (
    "A change compares the difference from the baseline at two steps of training. The peak is the "
    "step with the largest difference. Because it is chosen after the fact, its interval is wide "
    "enough for any step that might have been chosen."
)
_BY_DOSE = (
    "The dose of a training run is the amount of test data in its training data. If several "
    "training runs have the same dose, the interval covers the differences between them."
)
_MOST_ROWS = 200

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))
# How the columns of these queries are formatted; the others are short texts.
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "items": "{:,}".format,
    "score": number,
    "baseline": number,
    "difference": signed,
    "at the first": signed,
    "at the second": signed,
    "step": amount,
    "other step": amount,
    "dose": amount,
    "training runs": "{:,}".format,
    "95 % interval": lambda ends: interval(*ends[:2]) or ends[2],
    "p": p_value,
}


def section_of(database: Path) -> Section:
    """Return the tables of a study as a section."""
    with duckdb.connect(str(database), read_only=True) as connection:
        (baseline,) = rows_of(
            connection, "SELECT training_run FROM training_runs WHERE is_baseline"
        )
        tables = [_table(connection, "differences", "Differences from the baseline")]
        without = rows_of(connection, "FROM differences WHERE difference IS NULL AND remark <> ''")
        effects = _table(connection, "effects", "Effects by exposure")
        problems = rows_of(connection, "FROM problems")
        changes = _table(connection, "changes", "Changes between steps of training")
        by_dose = _table(connection, "by_dose", "Differences by dose")
        drawn = figures({name: rows_of(connection, f"FROM {name}") for name in TABLES})
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
    for table, sentence in ((changes, _CHANGES), (by_dose, _BY_DOSE), (effects, _EFFECTS)):
        if table.rows:
            words.append(sentence)
            tables.append(table)
    choices = [Choice(shown(what), [*charts.values()]) for what, charts in drawn.items()]
    return Section("study", "Study", words, choices, tables)


def _table(connection: duckdb.DuckDBPyConnection, name: str, title: str) -> Table:
    result = connection.execute(_QUERIES[name])
    heads = [column[0] for column in result.description or ()]
    columns = [{"name": head, "kind": "formatted" if head in _FORMS else "short"} for head in heads]
    rows = result.fetchall()
    cells = [
        tuple(_FORMS.get(head, str)(cell) for head, cell in zip(heads, row, strict=True))
        for row in rows[:_MOST_ROWS]
    ]
    if len(cells) < len(rows):
        title = f"{title}: {len(cells):,} of {counted(len(rows), 'row')}"
    return Table(name, title, columns, cells, (), is_folded=False)
