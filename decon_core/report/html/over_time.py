"""Leak rates of this report and of the earlier ones in the same place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import MOST_CURVES, Point, curves
from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, share, shown, whole_label
from decon_core.wording import counted

_MOST_TICKS = 5
_SETTINGS = itemgetter("scan_fingerprint", "policy", "version", "is_complete")


def over_time(rows: Rows, ranked: Rows) -> Chart:
    """Draw a line per benchmark, those with the highest rates now.

    `rows`: by benchmark and report. A point is open where another policy, scan or version of the
    benchmark was used than now, or where not all shards were scanned: its rate says little of the
    change of the data.
    """
    by_benchmark = {name: [*group] for name, group in groupby(rows, key=itemgetter("benchmark"))}
    has_rate = (row["benchmark"] for row in ranked if row["rate"] is not None)
    drawn = [name for name in has_rate if name in by_benchmark][:MOST_CURVES]
    dates = {row["report"]: _date(row["made_at"]) for row in rows}
    at = {report: number for number, report in enumerate(sorted(dates))}
    step = -(-len(at) // _MOST_TICKS)
    chart = curves(
        "Leak rates in this and earlier reports",
        {name: [_point(row, at) for row in by_benchmark[name]] for name in drawn},
        ("report, by creation time", "leak rate, in %"),
        ticks={at[report]: dates[report] for report in sorted(dates)[::-step][::-1]},
    )
    data = [
        {**trace, **_points(trace, by_benchmark[name])}
        for name, trace in zip(drawn, chart.data, strict=True)
    ]
    from_zero = chart.layout["yaxis"] | {"rangemode": "tozero"}
    return replace(chart, data=data, layout={**chart.layout, "yaxis": from_zero})


def _point(row: Row, at: Mapping[int, int]) -> Point:
    return Point(at[row["report"]], 100 * row["n_leaked_checkable"] / row["n_checkable"])


def _points(trace: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    """Return the symbols of the points, and what they say."""
    now, symbol = _SETTINGS(rows[-1]), trace["marker"]["symbol"]
    symbols = [symbol if _SETTINGS(row) == now else f"{symbol}-open" for row in rows]
    texts = [_text(row, _SETTINGS(row) == now) for row in rows]
    return {"marker": {**trace["marker"], "symbol": symbols}, "hovertext": texts}


def _text(row: Row, is_comparable: bool) -> str:
    n, n_checkable = row["n_leaked_checkable"], row["n_checkable"]
    text = (
        f"{whole_label(row['benchmark'])}, {_date(row['made_at'])}<br>"
        f"{share(n, n_checkable)}: {count(n)} of {counted(n_checkable, 'item')}"
    )
    other = "<br>made with different settings, another version of the benchmark, or fewer shards"
    return text if is_comparable else text + other


def _date(made_at: str | None) -> str:
    return shown(made_at)[:16].replace("T", " ") or "unknown"
