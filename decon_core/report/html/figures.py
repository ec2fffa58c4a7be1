"""Figures of any numbers, for features: curves, rows with intervals, boxes, pairs of dots.

Each is a `Chart`, which the page draws and `still` writes as a file. Names may be of untrusted
text: they are escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decon_core.report.html.charts import LAYOUTS, MOST_LINES, TRACES, Chart, frame, lines
from decon_core.report.html.labels import label, shown, whole_label, wrapped

_MOST_DOTS = 60  # values in a box
MOST_CURVES = 6  # more cannot be distinguished
STYLES = (
    ("--c-both", "circle"),
    ("--c-alone", "square"),
    ("--c-question", "diamond"),
    ("--c-ink", "triangle-up"),
    ("--c-part", "triangle-down"),
    ("--c-soft", "pentagon"),
)


@dataclass(frozen=True)
class Point:
    """A value at a place, with its interval if it has one."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Named:
    """A named value, with its interval if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def curves(
    title: str,
    by_name: Mapping[str, Sequence[Point]],
    axes: tuple[str, str],
    *,
    ticks: Mapping[float, str] | None = None,
) -> Chart:
    """Draw the first few curves. `axes`: titles of both; `ticks`: words at places of x.

    A curve without points keeps its colour for other figures.
    """
    drawn = [*by_name.items()][:MOST_CURVES]
    data = []
    for (name, points), (colour, symbol) in zip(drawn, STYLES, strict=False):
        if not points:
            continue
        texts = [f"{whole_label(name)}: {_numbers(p.value, p.low, p.high)}" for p in points]
        data.append(
            TRACES["dots"]
            | {"mode": "lines+markers", "name": label(name), "hovertext": texts}
            | {"x": [point.x for point in points], "y": [point.value for point in points]}
            | {"line": {"color": colour, "width": 2}}
            | {"marker": {"color": colour, "size": 9, "symbol": symbol}}
            | {"error_y": _errors(points) | {"color": colour}}
        )
    layout = frame(320) | LAYOUTS["legend"]
    layout["xaxis"] = {"title": {"text": axes[0]}, "zeroline": False, "tickformat": ","}
    if ticks:
        layout["xaxis"] |= {"tickvals": [*ticks], "ticktext": [*map(label, ticks.values())]}
    layout["yaxis"] = {"title": {"text": axes[1]}, "zeroline": False}
    ends = (
        f"{shown(name)} from {points[0].value:.3g} to {points[-1].value:.3g}, "
        f"highest {max(point.value for point in points):.3g}"
        for name, points in drawn
        if points
    )
    description = f"{axes[1]} by {axes[0]}. {'; '.join(ends)}."
    return Chart(_title(title, len(drawn), len(by_name)), data, layout, description)


def intervals(title: str, rows: Sequence[Named], axis: str) -> Chart:
    """Draw a row for each value, with its interval and a line at 0; only the first rows if many."""
    drawn = rows[:MOST_LINES]
    said = [(row.name, _numbers(row.value, row.low, row.high)) for row in drawn]
    dots = TRACES["dots"] | {
        "x": [row.value for row in drawn],
        "y": [*range(len(drawn))],
        "hovertext": _hover(said),
        "marker": {"color": "--c-both", "size": 9},
        "error_x": _errors(drawn),
    }
    return _rows(title, [dots], said, axis, n=len(rows))


def boxes(title: str, groups: Mapping[str, Sequence[float]], axis: str) -> Chart:
    """Draw a row for each group of values: its ends, quartiles, median, and the values if few."""
    names, values = [*groups][:MOST_LINES], [*groups.values()][:MOST_LINES]
    fives = [np.quantile(group, (0, 0.25, 0.5, 0.75, 1)).tolist() for group in values]
    said = [*zip(names, map(_five, fives), strict=True)]
    rows = range(len(names))
    dots = [
        (row, name, value)
        for row, name, group in zip(rows, names, values, strict=True)
        for value in (group if len(group) <= _MOST_DOTS else ())
    ]

    def spans(ends: tuple[int, int], width: float, colour: str) -> Mapping[str, Any]:
        x = [cell for five in fives for cell in (five[ends[0]], five[ends[1]], None)]
        y = [cell for row in rows for cell in (row, row, None)]
        line = {"color": colour, "width": width}
        drawn = {"mode": "lines", "hoverinfo": "skip", "x": x, "y": y, "line": line}
        return {**TRACES["dots"], **drawn}

    data = [
        spans((0, 4), 1.5, "--c-soft"),
        spans((1, 3), 14, "--c-clean"),
        TRACES["dots"]
        | {"x": [value for _, _, value in dots], "y": [row for row, _, _ in dots]}
        | {"hovertext": _hover([(name, f"{value:.3f}") for _, name, value in dots])}
        | {"marker": {"color": "--c-alone", "size": 4}},
        TRACES["dots"]
        | {"x": [five[2] for five in fives], "y": [*rows], "hovertext": _hover(said)}
        | {"marker": {"color": "--c-both", "size": 10, "symbol": "diamond"}},
    ]
    return _rows(title, data, said, axis, n=len(groups))


def pairs(
    title: str, rows: Mapping[str, Sequence[float]], sides: Sequence[str], axis: str
) -> Chart:
    """Draw a dot for each name and side, those of a name joined by a line. Most sides: 6."""
    names, values = [*rows][:MOST_LINES], [*rows.values()][:MOST_LINES]
    numbers = range(len(names))
    joined: Mapping[str, Any] = TRACES["dots"] | {
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "x": [cell for pair in values for cell in (*pair, None)],
        "y": [cell for row in numbers for cell in (*[row] * len(sides), None)],
        "line": {"color": "--c-edge", "width": 2},
    }
    texts = [
        [f"{side} {value:.3f}" for side, value in zip(sides, pair, strict=True)] for pair in values
    ]
    dots = [
        TRACES["dots"]
        | {"name": side, "x": [pair[at] for pair in values], "y": [*numbers]}
        | {"hovertext": _hover([*zip(names, (text[at] for text in texts), strict=True)])}
        | {"marker": {"color": colour, "size": 10, "symbol": symbol}}
        for at, (side, (colour, symbol)) in enumerate(
            zip(sides, STYLES[: len(sides)][::-1], strict=True)
        )
    ]
    said = [*zip(names, map(", ".join, texts), strict=True)]
    chart = _rows(title, [joined, *dots], said, axis, n=len(rows))
    return replace(chart, layout={**chart.layout, **LAYOUTS["legend"], "shapes": []})


_Said = Sequence[tuple[str, str]]  # names of rows with the text of each


def _hover(said: _Said) -> list[str]:
    return [f"{whole_label(name)}: {text}" for name, text in said]


def _rows(
    title: str, data: Sequence[Mapping[str, Any]], said: _Said, axis: str, *, n: int
) -> Chart:
    """Return a chart with a row for each name, of `n` in all, and a vertical line at 0."""
    layout = lines([wrapped(name) for name, _ in said])
    layout["xaxis"] |= {"title": {"text": axis}}
    zero = LAYOUTS["threshold"]["line"] | {"color": "--c-soft", "dash": "dot"}
    layout["shapes"] = [LAYOUTS["threshold"] | {"line": zero}]
    texts = "; ".join(f"{shown(name)}: {text}" for name, text in said)
    return Chart(_title(title, len(said), n), data, layout, f"{axis}. {texts}.")


def _errors(rows: Sequence[Point] | Sequence[Named]) -> dict[str, Any]:
    above = [0.0 if row.high is None else row.high - row.value for row in rows]
    below = [0.0 if row.low is None else row.value - row.low for row in rows]
    return {**TRACES["interval"], "array": above, "arrayminus": below}


def _numbers(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return f"{value:.3f}{ends}"


def _five(five: Sequence[float]) -> str:
    low, first, median, third, high = (f"{value:.3f}" for value in five)
    return f"median {median}, quartiles {first} and {third}, ends {low} and {high}"


def _title(title: str, n_drawn: int, n: int) -> str:
    return title if n_drawn == n else f"{title} ({n_drawn} of {n} drawn)"
