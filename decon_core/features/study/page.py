"""A study for readers: figures, tables as cells under readable heads, and a section of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from decon_core.features.study.differences import AVERAGE
from decon_core.features.study.exposure import ALL
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Named, Point, boxes, curves, intervals
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.report.open import rows_of
from decon_core.text_tables import NOTHING, interval, number, p_value, signed
from decon_core.wording import counted, percent

Row = Mapping[str, Any]
Rows = Sequence[Row]

TABLES = ("differences", "by_step", "by_dose", "effects")  # those that are drawn
_MOST_FILES = 4  # averages or benchmarks with files of their own; the page has all
_LEAST_OF_BOX = 3  # benchmarks


def figures(tables: Mapping[str, Rows]) -> dict[str, dict[str, Chart]]:
    """Return the figures by what they show, each by its name.

    What they show is an average or a benchmark, averages first; then all benchmarks together.
    """
    found: dict[str, dict[str, Chart]] = {}
    rows = [*tables["by_step"], *tables["by_dose"]]
    rows.sort(key=lambda row: (row["n_benchmarks"] is None, row["benchmark"] != AVERAGE))
    for what in dict.fromkeys(map(_what, rows)):
        steps, doses = (
            [row for row in tables[name] if _what(row) == what] for name in ("by_step", "by_dose")
        )
        found[what] = {**_by_step(what, steps), **_by_dose(what, doses)}
    together = {**_by_training_run(tables["differences"]), **_of_effects(tables["effects"])}
    return {**found, ALL: together} if together else found


def files_of(drawn: Mapping[str, Mapping[str, Chart]]) -> Iterator[tuple[str, Chart]]:
    """Yield the figures that are files, with their names."""
    whats = [what for what in drawn if what != ALL][:_MOST_FILES]
    counts: Counter[str] = Counter()
    for what in [*whats, *(what for what in drawn if what == ALL)]:
        for name, chart in drawn[what].items():
            counts[name] += 1
            yield name if counts[name] == 1 else f"{name}_{counts[name]}", chart


def amount(number: float) -> str:
    """Format a step or a dose with all its digits."""
    return f"{number:,.15g}"


def _what(row: Row) -> str:
    """Return the name of a measure, as one text."""
    return ", ".join(filter(None, (row["benchmark"], row["metric"], row["filter"])))


def _by_step(what: str, rows: Rows) -> dict[str, Chart]:
    """Draw scores, and differences from the baseline with their intervals."""
    runs = [*dict.fromkeys(row["training_run"] for row in rows)]
    scores = {run: _points(rows, run, "step", "score") for run in runs}
    compared = [row for row in rows if row["difference"] is not None]
    differences = {run: _points(compared, run, "step", "difference") for run in runs}
    charts = {}
    if scores:
        charts["score_by_step"] = curves(f"Score by step: {what}", scores, ("step", "score"))
    if compared:
        axes = "step", "difference from the baseline"
        charts["difference_by_step"] = curves(f"Difference by step: {what}", differences, axes)
    return charts


def _points(rows: Rows, run: str, at: str, value: str) -> list[Point]:
    is_difference = value == "difference"
    return [
        Point(
            row[at],
            row[value],
            low=row["low"] if is_difference else None,
            high=row["high"] if is_difference else None,
        )
        for row in rows
        if row["training_run"] == run
    ]


def _by_dose(what: str, rows: Rows) -> dict[str, Chart]:
    """Draw the differences of each series: doses are at equal distances, after none."""
    compared = [row for row in rows if row["difference"] is not None]
    if not compared:
        return {}
    doses = [0.0, *sorted({row["dose"] for row in compared})]
    places = {dose: at for at, dose in enumerate(doses)}
    by_series: dict[str, list[Point]] = {}
    for row in compared:
        points = by_series.setdefault(row["series"] or "all training runs", [Point(0, 0.0)])
        points.append(Point(places[row["dose"]], row["difference"], row["low"], row["high"]))
    axes = "dose (not to scale)", "difference from the baseline"
    ticks = {float(at): amount(dose) for dose, at in places.items()}
    return {
        "difference_by_dose": curves(f"Difference by dose: {what}", by_series, axes, ticks=ticks)
    }


def _by_training_run(differences: Rows) -> dict[str, Chart]:
    """Draw the differences of all benchmarks, a box for each training run and metric."""
    charts: dict[str, Chart] = {}
    for metric, rows in _by_metric(differences):
        groups: dict[str, list[float]] = {}
        for row in rows:
            if row["n_benchmarks"] is None and row["difference"] is not None:
                groups.setdefault(row["training_run"], []).append(row["difference"])
        if max(map(len, groups.values()), default=0) >= _LEAST_OF_BOX:
            title, axis = f"Differences over benchmarks: {metric}", "difference from the baseline"
            charts[_file("by_training_run", charts)] = boxes(title, groups, axis)
    return charts


def _of_effects(effects: Rows) -> dict[str, Chart]:
    """Draw the effects by exposure with their intervals; not those of ways of planting."""
    charts: dict[str, Chart] = {}
    for metric, of_metric in _by_metric(effects):
        rows = [
            Named(
                f"{row['training_run']}, {row['benchmark']}: {row['exposure']}",
                row["difference"],
                row["low"],
                row["high"],
            )
            for row in sorted(of_metric, key=lambda row: row["benchmark"] != ALL)
            if row["difference"] is not None and not (row["form"] or row["copies"] or row["when"])
        ]
        if rows:
            title, axis = f"Effects by exposure: {metric}", "difference from the baseline"
            charts[_file("effects", charts)] = intervals(title, rows, axis)
    return charts


def _by_metric(rows: Rows) -> Iterator[tuple[str, Rows]]:
    """Yield rows by metric and filter: others may be on another scale."""
    names = dict.fromkeys((row["metric"], row["filter"]) for row in rows)
    for name in names:
        same = [row for row in rows if (row["metric"], row["filter"]) == name]
        yield ", ".join(filter(None, name)), same


def _file(name: str, others: Iterable[str]) -> str:
    n = len([*others])
    return f"{name}_{n + 1}" if n else name


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
    columns = [*dict.fromkeys(map(_column_of, every))]
    keys = [(row["training_run"], row["step"] if with_step else None) for row in every]
    scores = {(key, _column_of(row)): row["score"] for key, row in zip(keys, every, strict=True)}
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


def _column_of(row: Row) -> tuple[str, str, str]:
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
