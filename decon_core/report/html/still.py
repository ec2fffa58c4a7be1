"""Draw figures of the page as SVG, for files and for Dagster: points, lines, intervals, bars."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, cos, floor, log10, pi, sin
from pathlib import Path
from typing import Any

from decon_core.report.html.charts import Chart
from decon_core.report.html.gather import Facts
from decon_core.report.html.labels import n_lines
from decon_core.report.html.sections import section
from decon_core.storage.checksums import sealed_page
from decon_core.storage.files import atomic_path
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
_DASHES = {"dash": "6 4", "dot": "2 3"}
_ANCHORS = {"left": "", "right": "end"}
_IN_FILES = {"rates": "leak_rates", "scores": "scores", "calibration": "calibration"}  # by section

Drawn = Mapping[str, Any]  # a trace, a line, or a mark in pixels


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


def figures(facts: Facts) -> Mapping[str, Sequence[Chart]]:
    """Return the figures of all benchmarks together, by what they show."""
    choices = {name: section(key, facts).choices[:1] for key, name in _IN_FILES.items()}
    return {name: choice.charts for name, chosen in choices.items() for choice in chosen}


def write_figures(drawn: Mapping[str, Sequence[Chart]], folder: Path) -> None:
    """Write each figure to a file named by its title; the folder is replaced."""
    with atomic_path(folder) as draft:
        draft.mkdir()
        for charts in drawn.values():
            for chart in charts:
                name = re.sub(r"\W+", "_", chart.title.lower())
                (draft / f"{name}.svg").write_bytes(sealed_page(svg(chart)))


def svg(chart: Chart) -> str:
    """Return the figure as SVG, which fits a light and a dark page.

    Scatter traces are drawn (markers, lines with gaps, intervals, bands, texts), vertical bars,
    which are stacked, and vertical lines with their names.
    """
    traces = [*_stacked(chart.data)]
    legend = [trace for trace in traces if trace.get("name") and trace.get("showlegend", True)]
    legend = legend if chart.layout.get("showlegend") else []
    top = _TITLE + (_LEGEND if legend else 0)
    height = chart.layout["height"] + top
    below = max(map(n_lines, chart.layout["xaxis"].get("ticktext", ())), default=1)
    foot = height - _FOOT - _LINE * (below - 1)
    y = _axis(chart.layout["yaxis"], traces, "y", foot, top)
    longest = max((len(line) for _, lines in y.ticks for line in lines), default=0)
    left = max(_LEAST_LEFT, longest * _CHARACTER + 40)
    x = _axis(chart.layout["xaxis"], traces, "x", left, _WIDTH - _RIGHT)
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
        foot=foot,
        x=x,
        y=y,
        x_title=chart.layout["xaxis"].get("title", {}).get("text", ""),
        y_title=chart.layout["yaxis"].get("title", {}).get("text", ""),
        legend=[*_legend(legend, left)],
        marks=[*_marks(traces, x, y), *_lines_across(chart.layout, x, top, foot)],
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


def _stacked(traces: Sequence[Drawn]) -> Iterator[Drawn]:
    """Yield the traces, bars with their feet and their tops: each stands on those before it."""
    tops: Counter[float] = Counter()
    for trace in traces:
        if trace["type"] == "bar":
            feet = [tops[at] for at in trace["x"]]
            tops.update(dict(zip(trace["x"], trace["y"], strict=True)))
            marker = {"size": 11, "symbol": "square", **trace["marker"]}
            heights = [tops[at] for at in trace["x"]]
            yield {**trace, "mode": "bars", "feet": feet, "y": heights, "marker": marker}
        else:
            yield trace


def _axis(layout: Drawn, traces: Sequence[Drawn], name: str, start: float, end: float) -> _Axis:
    values = [value for trace in traces for value in _extent(trace, name)]
    named = dict(zip(layout.get("tickvals", ()), layout.get("ticktext", ()), strict=True))
    low, high = sorted(layout["range"]) if "range" in layout else _padded([*values, *named])
    low = 0 if layout.get("rangemode") == "tozero" else low
    inverted = "range" in layout and layout["range"][0] > layout["range"][1]
    start, end = (end, start) if inverted else (start, end)
    axis = _Axis(low, high, start, end, ())
    numbers = _round_numbers(low, high, least=layout.get("dtick", 0))
    ticks = named or {value: f"{value:,.6g}" for value in numbers}
    return _Axis(low, high, start, end, [(axis(at), _split(text)) for at, text in ticks.items()])


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low or 1.0) / 20
    return low - room, high + room


def _extent(trace: Drawn, name: str) -> Iterator[float]:
    """Yield the values of a trace on an axis, with the ends of their intervals."""
    errors = trace.get(f"error_{name}", {})
    for at, value in enumerate(trace[name]):
        if value is not None:
            yield value
            for key, sign in (("array", 1), ("arrayminus", -1)):
                if errors.get(key):
                    yield value + sign * errors[key][at]


def _round_numbers(low: float, high: float, *, least: float) -> list[float]:
    """Return round numbers within these ends, about `_TICKS` of them, `least` apart or more."""
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = max(least, next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough))
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def _legend(traces: Sequence[Drawn], left: float) -> Iterator[Drawn]:
    for trace in traces:
        name, symbol = html.unescape(trace["name"]), _symbol(trace, left, _TITLE + 4, -1)
        yield {**symbol, "name": name, "x": left + 10, "y": _TITLE + 8}
        left += len(name) * _CHARACTER + 34


def _marks(traces: Iterable[Drawn], x: _Axis, y: _Axis) -> Iterator[Drawn]:
    """Yield bars, the band to the trace before, lines, intervals, symbols and texts by trace."""
    places: list[tuple[float, float] | None] = []
    for trace in traces:
        if trace["mode"] == "bars":
            yield from _bars(trace, x, y)
            continue
        before, places = places, _places(trace, x, y)
        if trace.get("fill") == "tonexty":
            around = f"{_path([*places, *before[::-1]])}Z"
            yield _shape(around, {**trace["line"], "width": 0}, trace["fillcolor"])
        if "lines" in trace["mode"]:
            yield _shape(_path(places), trace["line"])
        for name, axis in (("x", x), ("y", y)):
            errors = trace.get(f"error_{name}")
            for at, value in enumerate(trace[name] if errors else ()):
                if errors and (errors["array"][at] or errors["arrayminus"][at]):
                    ends = axis(value - errors["arrayminus"][at]), axis(value + errors["array"][at])
                    line = {"color": errors["color"], "width": errors["thickness"]}
                    yield _shape(_bar(places[at], name, ends), line)
        texts = trace.get("hovertext") or [""] * len(places)
        for at, (place, text) in enumerate(zip(places, texts, strict=True)):
            if place and "markers" in trace["mode"]:
                yield {**_symbol(trace, *place, at), "text": " ".join(_split(text))}
            if place and "text" in trace["mode"]:
                foot = place[1] + (-7 if trace["textposition"][at] == "top center" else 16)
                words = _split(trace["text"][at])
                yield {"words": words, "x": place[0], "y": foot, "anchor": "middle"}


def _places(trace: Drawn, x: _Axis, y: _Axis) -> list[tuple[float, float] | None]:
    return [
        None if at is None or value is None else (x(at), y(value))
        for at, value in zip(trace["x"], trace["y"], strict=True)
    ]


def _bars(trace: Drawn, x: _Axis, y: _Axis) -> Iterator[Drawn]:
    marker = trace["marker"]
    for at, foot, top in zip(trace["x"], trace["feet"], trace["y"], strict=True):
        if top > foot:
            left, right = x(at - trace["width"] / 2), x(at + trace["width"] / 2)
            box = f"M{left:.1f} {y(foot):.1f}V{y(top):.1f}H{right:.1f}V{y(foot):.1f}Z"
            yield _shape(box, marker["line"], marker["color"])


def _lines_across(layout: Drawn, x: _Axis, top: float, foot: float) -> Iterator[Drawn]:
    """Yield the vertical lines of a layout, and their names at the top."""
    for shape in layout.get("shapes", ()):
        if x.low <= shape["x0"] <= x.high:
            yield _shape(f"M{x(shape['x0']):.1f} {top}V{foot}", shape["line"])
    for note in layout.get("annotations", ()):
        at, anchor = x(note["x"]) + note["xshift"], _ANCHORS[note["xanchor"]]
        yield {"words": _split(note["text"]), "x": at, "y": top + 12, "anchor": anchor}


def _shape(path: str, line: Drawn, fill: str = "") -> dict[str, Any]:
    dashes = _DASHES.get(line.get("dash", ""), "none")
    return {"path": path, "fill": fill, "line": line, "dashes": dashes}


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


def _symbol(trace: Drawn, x: float, y: float, at: int) -> dict[str, Any]:
    """Return the marker of a point: a polygon or a circle, open or filled."""
    marker = trace["marker"]
    radius, symbol = marker["size"] / 2, marker.get("symbol", "circle")
    shape, is_open, _ = (symbol if isinstance(symbol, str) else symbol[at]).partition("-open")
    drawn = {"colour": marker["color"], "is_open": bool(is_open)}
    if shape == "circle":
        return {"circle": (x, y, radius), **drawn}
    n, first = _SYMBOLS[shape]
    angles = [first + 2 * pi * number / n for number in range(n)]
    corners = [(x + 1.2 * radius * cos(at), y + 1.2 * radius * sin(at)) for at in angles]
    return {"points": " ".join(f"{x:.1f},{y:.1f}" for x, y in corners), **drawn}
