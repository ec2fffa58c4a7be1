"""Figures of planted items: their percentiles, and the share of them that a filter keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Point, boxes, curves

Rows = Sequence[Mapping[str, Any]]

_ENDS = ("amplification", "low", "high")
_BESIDE = 0.04  # from the place of a scorer to the next, so that intervals do not hide each other


def figures(places: Rows, cuts: Rows) -> dict[str, Chart]:
    """Return the figures by the names of their files, from the rows of the tables of these names.

    `places`: haystack.csv, `cuts`: amplification.csv.
    """
    return {"haystack": _percentiles(places, cuts), "amplification": _kept(places, cuts)}


def _percentiles(places: Rows, cuts: Rows) -> Chart:
    """Draw a box for each scorer and benchmark, and for each of its subjects in the tables."""
    groups: dict[str, list[float]] = {}
    for row in cuts:
        scorer, benchmark, subject = (row[name] for name in ("scorer", "benchmark", "subject"))
        if benchmark:
            name = f"{scorer}, {benchmark}" + (f": {subject}" if subject else "")
            groups[name] = [
                place["percentile"]
                for place in places
                if (place["scorer"], place["benchmark"]) == (scorer, benchmark)
                and (not subject or place["subject"] == subject)
            ]
    title = "Planted items among documents of the corpus, by scorer and benchmark"
    chart = boxes(title, groups, "documents with a lower score, in %")
    return replace(chart, layout={**chart.layout, "shapes": []})  # no line at 0


def _kept(places: Rows, cuts: Rows) -> Chart:
    """Draw the share of all planted items that a filter keeps, beside that of the documents."""
    n_ranked = {row["scorer"]: row["n_ranked"] for row in places}
    shares = sorted({row["cut"] for row in cuts})
    lines = {"documents": [Point(at, 100 * cut) for at, cut in enumerate(shares)]}
    for number, scorer in enumerate(n_ranked, start=1):
        lines[scorer] = [
            Point(
                shares.index(row["cut"]) + _BESIDE * number,
                *(100 * row["n_kept"] / n_ranked[scorer] * row[name] for name in _ENDS),
            )
            for row in cuts
            if row["scorer"] == scorer and not row["benchmark"]
        ]
    axes = "documents that a filter keeps, in % (not to scale)", "kept, in %"
    ticks = {float(at): f"{100 * cut:g}" for at, cut in enumerate(shares)}
    return curves("Planted items that a filter keeps", lines, axes, ticks=ticks)
