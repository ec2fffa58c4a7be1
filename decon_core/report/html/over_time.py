"""Leak rates of this report and of the earlier ones in the same place."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from decon_core.report.html import descriptions
from decon_core.report.html.charts import LAYOUTS, TRACES, Chart, frame
from decon_core.report.html.figures import MOST_CURVES, STYLES
from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, label, share, shown, whole_label
from decon_core.wording import counted

_MOST_TICKS = 8
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
    data = [
        _line(by_benchmark[name], at, *style) for name, style in zip(drawn, STYLES, strict=False)
    ]
    layout = frame(300) | LAYOUTS["legend"]
    step = -(-len(at) // _MOST_TICKS)
    ticks = sorted(dates)[::-step][::-1]
    layout["xaxis"] = {
        "title": {"text": "report, by creation time"},
        "tickvals": [at[report] for report in ticks],
        "ticktext": [dates[report] for report in ticks],
        "zeroline": False,
    }
    layout["yaxis"] = {"title": {"text": "leak rate, in %"}, "rangemode": "tozero"}
    description = descriptions.over_time({name: by_benchmark[name] for name in drawn}, len(at))
    return Chart("Leak rates in this and earlier reports", data, layout, description)


def _line(rows: Rows, at: dict[int, int], colour: str, symbol: str) -> Mapping[str, Any]:
    now = _SETTINGS(rows[-1])
    symbols = [symbol if _SETTINGS(row) == now else f"{symbol}-open" for row in rows]
    line: Mapping[str, Any] = {
        "mode": "lines+markers",
        "name": label(rows[0]["benchmark"]),
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": 9, "symbol": symbols},
        "x": [at[row["report"]] for row in rows],
        "y": [100 * row["n_leaked_checkable"] / row["n_checkable"] for row in rows],
        "hovertext": [_text(row, _SETTINGS(row) == now) for row in rows],
        "hoverinfo": "text",
        "hovertemplate": None,
    }
    return {**TRACES["steps"], **line}


def _text(row: Row, is_comparable: bool) -> str:
    n, n_checkable = row["n_leaked_checkable"], row["n_checkable"]
    text = (
        f"{whole_label(row['benchmark'])}, {_date(row['made_at']).replace('<br>', ' ')}<br>"
        f"{share(n, n_checkable)}: {count(n)} of {counted(n_checkable, 'item')}"
    )
    other = "<br>made with different settings, another version of the benchmark, or fewer shards"
    return text if is_comparable else text + other


def _date(made_at: str | None) -> str:
    """Return date and time on two lines."""
    return "<br>".join(shown(made_at)[:16].split("T")) or "unknown"
