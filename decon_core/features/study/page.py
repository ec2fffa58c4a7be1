"""Format a study's tables as cells under readable heads, and as a section of the report page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from decon_core.features.study.figures import TABLES, amount, figures
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.report.open import rows_of
from decon_core.text_tables import NOTHING, interval, number, p_value, signed
from decon_core.wording import counted, percent

HEADS = (
    "training run", "benchmark", "metric", "filter", "items", "score", "baseline", "difference",
    "95 % interval", "p", "relative", "compared on",
)  # fmt: skip
CHANGE_HEADS = (
    "training run", "benchmark", "metric", "filter", "change", "steps", "at the first",
    "at the second", "difference", "95 % interval", "p", "compared on",
)  # fmt: skip
DOSE_HEADS = ("series", "dose", "training runs", *HEADS[1:])
EFFECT_HEADS = (
    "training run", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score",
    "baseline", "difference", "95 % interval", "p", "remark",
)  # fmt: skip

Row = Mapping[str, Any]
Cells = tuple[Sequence[str], Sequence[Sequence[str]]]  # heads and rows


def tables(rows: Mapping[str, Sequence[Row]], baseline: str) -> dict[str, Cells]:
    """Return scores by training run, differences, changes, differences by dose, and effects.

    Steps and doses have no rows if results have none. Of benchmarks, doses are left out if there
    are averages: by_dose.csv has them.
    """
    others = [row for row in rows["differences"] if row["training_run"] != baseline]
    averages = [row for row in rows["by_dose"] if row["n_benchmarks"] is not None]
    return {
        "wide": wide(rows["differences"]),
        "differences": table(HEADS, others),
        "by_step": wide(rows["by_step"], with_step=True),
        "changes": table(CHANGE_HEADS, rows["changes"]),
        "by_dose": table(DOSE_HEADS, averages or rows["by_dose"]),
        "effects": table(EFFECT_HEADS, rows["effects"]),
    }


def table(heads: Sequence[str], rows: Iterable[Row]) -> Cells:
    """Format rows. A head that `_CELLS` lacks shows the text of the column with its name."""
    return heads, [
        [_CELLS[head](row) if head in _CELLS else row[head.replace(" ", "_")] for head in heads]
        for row in rows
    ]


def _items(row: Row) -> str:
    if row.get("n_benchmarks") is not None:
        return counted(row["n_benchmarks"], "benchmark")
    return NOTHING if row["n"] is None else f"{row['n']:,}"


def _baseline(row: Row) -> str:
    """Format the score of the baseline; empty in its own row and for differences of two effects."""
    is_own = row["difference"] is None and not row["remark"]
    return "" if is_own or row["baseline"] is None else number(row["baseline"])


def _listed(row: Row, *names: str, by: str = ", ") -> str:
    return by.join(filter(None, (row[name] for name in names)))


_CELLS: Mapping[str, Callable[[Row], str]] = {
    "items": _items,
    "score": lambda row: "" if row["score"] is None else number(row["score"]),
    "baseline": _baseline,
    "difference": lambda row: signed(row["difference"]),
    "95 % interval": lambda row: interval(row["low"], row["high"]),
    "p": lambda row: p_value(row["p"]),
    "relative": lambda row: "" if row["relative"] is None else percent(row["relative"], sign="+"),
    "compared on": lambda row: _listed(row, "basis", "remark", by="; "),
    "steps": lambda row: f"{amount(row['step'])} - {amount(row['other_step'])}",
    "at the first": lambda row: signed(row["at_step"]),
    "at the second": lambda row: signed(row["at_other_step"]),
    "dose": lambda row: amount(row["dose"]),
    "training runs": lambda row: f"{row['n_training_runs']:,}",
    "planted as": lambda row: _listed(row, "form", "copies", "when"),
}


def wide(every: Sequence[Row], *, with_step: bool = False) -> Cells:
    """Return a table with a row for each training run, and columns for benchmarks and averages.

    `with_step`: with a row for each of its steps.
    """
    columns = [*dict.fromkeys(map(_what, every))]
    keys = [(row["training_run"], row["step"] if with_step else None) for row in every]
    scores = {(key, _what(row)): row["score"] for key, row in zip(keys, every, strict=True)}
    runs = [*dict.fromkeys(name for name, _ in keys)]
    rows = [
        [name, *(["" if step is None else amount(step)] if with_step else [])]
        + [number(scores.get(((name, step), column))) for column in columns]
        for name, step in sorted(dict.fromkeys(keys), key=lambda key: runs.index(key[0]))
    ]
    # A column is named by its benchmark, and by metric and filter where it has several.
    heads = ["training run", "step"] if with_step else ["training run"]
    for benchmark, metric, filter_name in columns:
        same = [column for column in columns if column[0] == benchmark]
        parts = [metric] if len({column[1] for column in same}) > 1 else []
        parts += [filter_name or "no filter"] if len({column[2] for column in same}) > 1 else []
        heads.append(f"{benchmark} ({', '.join(parts)})" if parts else benchmark)
    return heads, rows


def _what(row: Row) -> tuple[str, str, str]:
    return row["benchmark"], row["metric"], row["filter"]


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

_SHORT_HEADS = (
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
    _, cells = table(_SHORT_HEADS, shown_rows)
    columns = [
        {"name": head, "kind": "short" if head in _TEXTS else "formatted"} for head in _SHORT_HEADS
    ]
    title = "Differences from the baseline"
    if len(cells) < len(compared):
        title = f"{title}: {len(cells):,} of {counted(len(compared), 'row')}"
    return Table("differences", title, columns, cells, (), is_folded=False)
