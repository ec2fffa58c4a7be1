"""Draw a figure of the page as SVG, for files and for Dagster: points, lines and intervals."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import cos, floor, log10, pi, sin
from pathlib import Path
from typing import Any

from decon_core.report.html.charts import Chart
from decon_core.wording import render

_WIDTH = 820
_TITLE, _LEGEND, _FOOT, _RIGHT = 46, 24, 54, 28
_CHARACTER, _LINE = 6.6, 14  # about the size of a character
_TICKS = 6  # about so many on an axis of numbers
_LEAST_LEFT = 64
# Corners of a symbol: how many, and the angle of the first.
_SYMBOLS = {
    "square": (4, pi / 4),
    "diamond": (4, 0.0),
    "triangle-up": (3, -pi / 2),
    "triangle-down": (3, pi / 2),
    "pentagon": (5, -pi / 2),
}


@dataclass(frozen=True)
class _Axis:
    """Places of values on an axis, in pixels."""

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, Sequence[str]]]  # place and lines of text

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def svg(chart: Chart) -> str:
    """Return the figure as SVG, which fits a light and a dark page.

    Only scatter traces are drawn: markers, lines with gaps, and intervals.
    """
    legend = [trace for trace in chart.data if trace.get("name") and trace.get("showlegend", True)]
    legend = legend if chart.layout.get("showlegend") else []
    texts = chart.layout["yaxis"].get("ticktext", ())
    longest = max((len(line) for text in texts for line in _split(text)), default=0)
    left = max(_LEAST_LEFT, longest * _CHARACTER + 40)
    top = _TITLE + (_LEGEND if legend else 0)
    height = chart.layout["height"] + top
    x = _axis(chart, "x", left, _WIDTH - _RIGHT)
    y = _axis(chart, "y", height - _FOOT, top)
    return render(
        "report/html/still.svg.j2",
        chart=chart,
        light=_colours()[0],
        dark=_colours()[1],
        width=_WIDTH,
        height=height,
        left=left,
        right=_WIDTH - _RIGHT,
        top=top,
        foot=height - _FOOT,
        x=x,
        y=y,
        x_title=chart.layout["xaxis"].get("title", {}).get("text", ""),
        y_title=chart.layout["yaxis"].get("title", {}).get("text", ""),
        zero=x(0) if chart.layout.get("shapes") and x.low < 0 < x.high else None,
        legend=[*_legend(legend, left)],
        marks=[mark for trace in chart.data for mark in _marks(trace, x, y)],
    )


@cache
def _colours() -> tuple[str, str]:
    """Return the colours of page.css, light and dark."""
    css = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root[^{]*\{([^}]*)\}", css)[:2]
    return tuple(" ".join(re.findall(r"--c-\w+: [^;]+;", block)) for block in (light, dark))  # type: ignore[return-value] # two


def _split(text: str) -> list[str]:
    """Return the lines of a label, unescaped: the template escapes."""
    return [html.unescape(line) for line in text.split("<br>")]


def _axis(chart: Chart, name: str, start: float, end: float) -> _Axis:
    layout = chart.layout[f"{name}axis"]
    values = [value for trace in chart.data for value in _extent(trace, name)]
    named = dict(zip(layout.get("tickvals", ()), layout.get("ticktext", ()), strict=True))
    low, high = sorted(layout["range"]) if "range" in layout else _padded([*values, *named])
    inverted = "range" in layout and layout["range"][0] > layout["range"][1]
    start, end = (end, start) if inverted else (start, end)
    axis = _Axis(low, high, start, end, ())
    ticks = named or {value: f"{value:,.6g}" for value in _round_numbers(low, high)}
    return _Axis(low, high, start, end, [(axis(at), _split(text)) for at, text in ticks.items()])


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low or 1.0) / 20
    return low - room, high + room


def _extent(trace: Mapping[str, Any], name: str) -> Iterator[float]:
    """Yield the values of a trace on an axis, with the ends of their intervals."""
    errors = trace.get(f"error_{name}", {})
    for at, value in enumerate(trace[name]):
        if value is not None:
            yield value
            for key, sign in (("array", 1), ("arrayminus", -1)):
                if errors.get(key):
                    yield value + sign * errors[key][at]


def _round_numbers(low: float, high: float) -> list[float]:
    """Return round numbers within these ends, about `_TICKS` of them."""
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = floor(low / step) + 1
    return [number * step for number in range(first, floor(high / step) + 1)]


def _legend(traces: Sequence[Mapping[str, Any]], left: float) -> Iterator[Mapping[str, Any]]:
    for trace in traces:
        name = html.unescape(trace["name"])
        yield {**_symbol(trace, left, _TITLE + 4), "name": name, "x": left + 10, "y": _TITLE + 8}
        left += len(name) * _CHARACTER + 34


def _marks(trace: Mapping[str, Any], x: _Axis, y: _Axis) -> Iterator[Mapping[str, Any]]:
    """Yield lines, then intervals, then symbols of a trace."""
    places = [
        None if at is None or value is None else (x(at), y(value))
        for at, value in zip(trace["x"], trace["y"], strict=True)
    ]
    if "lines" in trace["mode"]:
        line = trace["line"]
        yield {"path": _path(places), "colour": line["color"], "width": line["width"]}
    for name, axis in (("x", x), ("y", y)):
        errors = trace.get(f"error_{name}")
        for at, _ in enumerate(places if errors else ()):
            if errors and (errors["array"][at] or errors["arrayminus"][at]):
                value = trace[name][at]
                ends = axis(value - errors["arrayminus"][at]), axis(value + errors["array"][at])
                yield {
                    "path": _bar(places[at], name, ends),
                    "colour": errors["color"],
                    "width": 1.5,
                }
    if "markers" in trace["mode"]:
        texts = trace["hovertext"] or [""] * len(places)
        for place, text in zip(places, texts, strict=True):
            if place:
                yield {**_symbol(trace, *place), "text": " ".join(_split(text))}


def _path(places: Sequence[tuple[float, float] | None]) -> str:
    """Return the path through all places, with gaps."""
    parts, is_new = [], True
    for place in places:
        if place:
            parts.append(f"{'M' if is_new else 'L'}{place[0]:.1f} {place[1]:.1f}")
        is_new = place is None
    return "".join(parts)


def _bar(place: tuple[float, float] | None, name: str, ends: tuple[float, float]) -> str:
    """Return the path of an interval with short lines across its ends."""
    at = place or (0.0, 0.0)
    if name == "x":
        across = "".join(f"M{end:.1f} {at[1] - 4:.1f}v8" for end in ends)
        return f"M{ends[0]:.1f} {at[1]:.1f}H{ends[1]:.1f}{across}"
    across = "".join(f"M{at[0] - 4:.1f} {end:.1f}h8" for end in ends)
    return f"M{at[0]:.1f} {ends[0]:.1f}V{ends[1]:.1f}{across}"


def _symbol(trace: Mapping[str, Any], x: float, y: float) -> dict[str, Any]:
    """Return a marker: a polygon, or a circle."""
    marker = trace["marker"]
    radius, colour = marker["size"] / 2, marker["color"]
    if marker.get("symbol", "circle") == "circle":
        return {"circle": (x, y, radius), "colour": colour}
    n, first = _SYMBOLS[marker["symbol"]]
    angles = [first + 2 * pi * number / n for number in range(n)]
    corners = [(x + 1.2 * radius * cos(at), y + 1.2 * radius * sin(at)) for at in angles]
    return {"points": " ".join(f"{x:.1f},{y:.1f}" for x, y in corners), "colour": colour}
