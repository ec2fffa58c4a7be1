"""Figures of a study: scores by step and by dose, differences by training run, effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from decon_core.features.study.differences import AVERAGE
from decon_core.features.study.exposure import ALL
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Named, Point, boxes, curves, intervals

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
    for what in _whats([*tables["by_step"], *tables["by_dose"]]):
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


def _whats(rows: Rows) -> list[str]:
    """Return all measures, averages first."""
    ordered = sorted(
        rows, key=lambda row: (row["n_benchmarks"] is None, row["benchmark"] != AVERAGE)
    )
    return [*dict.fromkeys(map(_what, ordered))]


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
