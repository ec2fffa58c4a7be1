"""Format the results as a Markdown page of tables, and draw them as SVG.

The picture shows recall by transformation as a heat map, and each detector's precision by recall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from decon_core.config.detector_registry import find, names_where
from decon_core.features.scorecard.edits import TRANSFORMATIONS
from decon_core.features.scorecard.marks import Marks
from decon_core.features.scorecard.negatives import HARD_NEGATIVES
from decon_core.features.scorecard.plan import Tally
from decon_core.wording import render

Row = dict[str, Any]


def markdown(
    marks: Marks,
    *,
    about: Mapping[str, str] | None = None,
    image: str | None = None,
    tallies: Sequence[Tally] = (),
) -> str:
    """Return the page. `about`: corpus, benchmarks, seed, command and the like."""
    sums = marks.found.group_by("detector", maintain_order=True).agg(pl.exclude("benchmark").sum())
    total = sums.with_columns(pl.lit("**all**").alias("benchmark")).select(marks.found.columns)
    return render(
        "features/scorecard/page.md.j2",
        about=about or {},
        image=image,
        advice=advice(marks.detectors),
        detectors=marks.detectors,
        has_intervals=True,
        totals=marks.totals.to_dicts(),
        recall=by_detector(marks.recall, "transformation", "grade"),
        negatives=by_detector(marks.negatives, "negative"),
        agreement=marks.agreement.to_dicts(),
        found=by_detector(pl.concat([marks.found, total]), "benchmark"),
        tallies=tallies,
        changes=_changes(tallies),
    )


def advice(names: Sequence[str]) -> str:
    """Return the advice on which detector to choose, in Markdown."""
    template = "features/scorecard/advice.md.j2"
    return render(template, names=names, detectors=[find(name) for name in names])


def recall_table(marks: Marks) -> str:
    """Return the recall of each detector by transformation as a Markdown table."""
    return render(
        "features/scorecard/recall.md.j2",
        detectors=marks.detectors,
        recall=by_detector(marks.recall, "transformation", "grade"),
        has_intervals=False,
    ).rstrip("\n")


def by_detector(frame: pl.DataFrame, *names: str) -> list[Row]:
    """Group rows by the named columns, in the order of the table.

    A group has the columns of its first row, its rows by detector (`by_detector`), and the row of
    the detector that finds no-answer items, or None (`no_answer`).
    """
    groups = frame.group_by(names, maintain_order=True)
    finders = names_where(lambda detector: bool(detector.needed_parts))
    return [
        {
            **rows[0],
            "by_detector": {row["detector"]: row for row in rows},
            "no_answer": next((row for row in rows if row["detector"] in finders), None),
        }
        for rows in (group.to_dicts() for _, group in groups)
    ]


def _changes(tallies: Sequence[Tally]) -> list[Row]:
    """Return what each transformation and hard negative does, and how often it was planted."""
    rows: dict[tuple[str, str], Row] = {}
    for edit in (*TRANSFORMATIONS, *HARD_NEGATIVES):
        names = {"name": edit.group, "grade": edit.grade, "meaning": edit.meaning}
        rows[edit.group, edit.grade] = {**names, "n_planted": 0, "n_not_applicable": 0}
    for tally in tallies:
        row = rows[tally.transformation, tally.grade]
        row["n_planted"] += tally.n_planted
        row["n_not_applicable"] += tally.n_not_applicable
    return [*rows.values()]


_PLACES = {
    "margin": 24,
    "top": 96,
    "row": 20,
    "grades": 24 + 156,
    "n": 24 + 156 + 170 + 12,
    "cells": 24 + 156 + 170 + 38,
    "cell": 100,
    "panel": 190,
    "panel_height": 150,
}
_GAP, _PANEL_GAP = 8, 62
_DARK = 0.8  # white text is more readable from here on
_FLOORS = (0.95, 0.9, 0.8, 0.5, 0.0)  # lower ends of the panels: spreads precise curves
_MAX_POINTS = 150  # points of a curve, about


def svg(marks: Marks, *, shown_width: int | None = None) -> str:
    """Draw the picture; `shown_width` scales it, for pages that do not fit pictures themselves."""
    at = _PLACES | {"panels": _PLACES["cells"] + len(marks.detectors) * _PLACES["cell"] + 64}
    groups = by_detector(marks.recall, "transformation", "grade")
    recall, y = _rows(marks, groups, "recall", at["top"], gap_between="transformation")
    y += 40 if marks.negatives.height else 0
    groups = by_detector(marks.negatives, "negative")
    negatives, y = _rows(marks, groups, "false_alarm_rate", y)
    lowest = float(marks.curves["precision"].min() or 0.0)  # type: ignore[arg-type] # a number
    floor = next(floor for floor in _FLOORS if floor <= lowest)
    panels = _panels(marks, at, floor)
    width = at["panels"] + at["panel"] + at["margin"]
    below_panels = at["top"] + len(panels) * (at["panel_height"] + _PANEL_GAP) - _PANEL_GAP + 40
    return render(
        "features/scorecard/picture.svg.j2",
        width=width,
        height=max(y, below_panels) + at["margin"],
        scale=shown_width / width if shown_width else 1.0,
        at=at,
        dark=_DARK,
        detectors=marks.detectors,
        totals=marks.totals.to_dicts(),
        recall=recall,
        negatives=negatives,
        floor=floor,
        panels=panels,
    )


def _rows(
    marks: Marks, groups: list[Row], share: str, y: int, *, gap_between: str = ""
) -> tuple[list[Row], int]:
    """Return the rows of a heat map from `y` on, and its lower end."""
    rows: list[Row] = []
    for group in groups:
        is_first = not rows or rows[-1].get(gap_between) != group.get(gap_between)
        y += _GAP if rows and is_first else 0
        values = [group["by_detector"][detector][share] for detector in marks.detectors]
        rows.append({**group, "y": y, "is_first": is_first, "values": values})
        y += _PLACES["row"]
    return rows, y


def _panels(marks: Marks, at: dict[str, int], floor: float) -> list[Row]:
    """Return a panel per detector with its curve, and the other curves faint behind it."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for detector in marks.detectors:
        curve = marks.curves.filter(detector=detector)
        every = list(zip(curve["recall"], curve["precision"], strict=True))
        step = max(1, len(every) // _MAX_POINTS)
        curves[detector] = [*every[:-1:step], *every[-1:]]

    def place(recall: float, precision: float, top: int) -> tuple[float, float]:
        down = (1 - precision) / (1 - floor)
        return at["panels"] + recall * at["panel"], top + down * at["panel_height"]

    def points(detector: str, top: int) -> str:
        places = (place(*point, top) for point in curves[detector])
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    panels = []
    for number, row in enumerate(marks.totals.iter_rows(named=True)):
        top = at["top"] + number * (at["panel_height"] + _PANEL_GAP)
        share = row["recall"], row["precision"]
        others = [points(other, top) for other in curves if other != row["detector"]]
        point = None if None in share else place(*share, top)
        own = {"curve": points(row["detector"], top), "others": others, "point": point}
        panels.append({**row, **own, "top": top})
    return panels
