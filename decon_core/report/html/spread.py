"""Figures of how leaks are spread: over the corpus, and over this report and earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from decon_core.report.html import descriptions
from decon_core.report.html.charts import MOST_LINES, TRACES, Chart, counts, frame, lines
from decon_core.report.html.figures import MOST_CURVES, Point, curves
from decon_core.report.html.gather import Facts, Row, Rows
from decon_core.report.html.labels import count, share, shown, whole_label, wrapped
from decon_core.wording import counted

_PARTS = 50  # the query `positions` divides a source into so many


def spread(facts: Facts) -> list[Chart]:
    """Return the figures.

    A report that was imported from another program may not list documents or items; then their
    figures are left out.
    """
    return [
        *_positions(facts["positions"]),
        *_documents_per_item(facts["documents_per_item"]),
        _concentration(facts["concentration"]),
    ]


def _positions(rows: Rows) -> Iterator[Chart]:
    """Yield squares for the documents with a leak: a line per source, from first to last."""
    of_source: Counter[str] = Counter()
    for row in rows:
        of_source[row["source"]] += row["n_documents"]
    if not of_source:
        return
    sources = [source for source, _ in of_source.most_common(MOST_LINES)]
    n = Counter({(row["source"], row["part"]): row["n_documents"] for row in rows})
    parts = range(_PARTS)
    step = 100 // _PARTS
    trace = TRACES["heat"] | {
        "x": [step * part + step / 2 for part in parts],
        "y": [*range(len(sources))],
        "z": [[n[source, part] or None for part in parts] for source in sources],
        "customdata": [[[source]] * _PARTS for source in sources],
        "texttemplate": "",
        "hovertext": [
            [
                f"{whole_label(source)}, {step * part} to {step * (part + 1)} %<br>"
                f"{counted(n[source, part], 'document')} with a leak"
                for part in parts
            ]
            for source in sources
        ],
        "zmax": max(n.values()),
        "colorbar": TRACES["heat"]["colorbar"]
        | {"ticksuffix": "", "tickformat": ",d", "title": {"text": "documents", "side": "top"}},
    }
    layout = lines([*map(wrapped, sources)])
    # The colour bar needs the height of five lines.
    layout["height"] = max(layout["height"], 230)
    title = {"text": "position in the source, in % of its documents"}
    layout["xaxis"] |= {"title": title, "range": [0, 100], "showgrid": False}
    layout["yaxis"] |= {"showgrid": False}
    (source, part), most = max(n.items(), key=lambda square: square[1])
    ends = range(step * part, step * (part + 1))
    description = descriptions.positions(of_source, most, source, ends)
    yield Chart("Positions of documents with a leak", [trace], layout, description, ("source",))


def _documents_per_item(rows: Rows) -> Iterator[Chart]:
    """Yield leaked items by the number of documents they are in; a bar has up to twice the last."""
    if not rows:
        return
    items: Counter[int] = Counter()
    for row in rows:
        items[(row["n_documents"] - 1).bit_length()] += row["n_items"]
    bars = {_range(power): items[power] for power in range(max(items) + 1)}
    trace = {
        "type": "bar",
        "x": [*bars],
        "y": [*bars.values()],
        "text": [count(n) if n else "" for n in bars.values()],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": "--c-both", "line": {"width": 1, "color": "--c-edge"}},
        "hovertemplate": "documents: %{x}<br>items: %{y:,}<extra></extra>",
    }
    layout = frame(260)
    layout["xaxis"] = {"title": {"text": "documents that contain the item"}, "type": "category"}
    layout["yaxis"] = counts("leaked items", max(bars.values()))
    description = descriptions.documents_per_item(bars)
    yield Chart("Documents per leaked item", [trace], layout, description)


def _range(power: int) -> str:
    """Return the numbers from above half of a power of two up to it: 1, 2, 3–4, 5–8."""
    first, last = 2**power // 2 + 1, 2**power
    return count(last) if power < 2 else f"{count(first)}–{count(last)}"


def _concentration(rows: Rows) -> Chart:
    """Draw the share of leaked items that the documents with the most of them hold."""
    n_all, n_documents = rows[0]["n_all"], rows[-1]["n_documents"]
    points = [(0, 0), *((row["n_documents"], row["n_items"]) for row in rows)]
    trace = TRACES["steps"] | {
        "mode": "lines",
        "line": {"shape": "hv", "color": "--c-both", "width": 2},
        "x": [documents for documents, _ in points],
        "y": [100 * items / n_all for _, items in points],
        "hovertext": [
            f"{counted(documents, 'document')}: {count(items)} of {counted(n_all, 'item')} "
            f"({share(items, n_all)})"
            for documents, items in points
        ],
        "hoverinfo": "text",
        "hovertemplate": None,
    }
    layout = frame(260)
    layout["xaxis"] = counts("documents, most leaked items first", n_documents)
    layout["yaxis"] = {"title": {"text": "leaked items, in %"}, "range": [0, 104]}
    half = next(row["n_documents"] for row in rows if 2 * row["n_items"] >= n_all)
    description = descriptions.concentration(half, n_documents, n_all)
    return Chart("Concentration of leaked items in documents", [trace], layout, description)


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
