"""Format the results as a Markdown page of tables; `picture` draws them."""

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
