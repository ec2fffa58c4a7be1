"""Plotly figures as plain data: charts.toml has what is the same in every report."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log10
from pathlib import Path
from typing import Any

from decon_core.report.html import descriptions
from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, label, n_lines, share, shown, whole_label, wrapped
from decon_core.wording import counted

# If there are more lines, the table below is easier to read than a figure.
MOST_LINES = 60
_LINE_PIXELS = 26
_NEXT_LINE_PIXELS = 15  # Each further line of a label has so many.
_FRAME_PIXELS = 96
_LEGEND_PIXELS = 34
_BINS = 50  # The view score_histogram has so many.
_FEW = 10  # Ticks at every integer overlap if there are more.

# The heat map: width of a count and a share; on narrow screens the figure scrolls. With many
# sources there is room for a count.
_SQUARE_PIXELS, _SMALL_SQUARE_PIXELS = 56, 30
_MANY_SOURCES = 12
_SOURCE_CHARACTERS = 14  # per line above a column
_NAME_PIXELS, _SCALE_PIXELS = 190, 60

_MOST_STEPS_WITH_COUNTS = 12  # counts of more steps overlap
_LABEL_HEIGHT = 9.0  # height of a label at a step, on an axis of percent

_FIXED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TRACES, LAYOUTS = _FIXED["traces"], _FIXED["layouts"]


@dataclass(frozen=True)
class Chart:
    """A figure, its title, and what it shows in sentences.

    `opens`: filters of the matched texts that a click sets to the custom data of the point;
    `least_width`: the smallest readable width in pixels.
    """

    title: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    description: str
    opens: tuple[str, ...] = ()
    least_width: int = 0


def rates(benchmarks: Rows) -> Chart:
    """Draw the leak rate of every benchmark and split with its interval."""
    rows = benchmarks[:MOST_LINES]
    above = [100 * max(0.0, row["high"] - row["leak_rate"]) for row in rows]
    below = [100 * max(0.0, row["leak_rate"] - row["low"]) for row in rows]
    leaked = {
        **_dots([*enumerate(rows)], "leak_rate", _rate_text),
        "name": "leaked",
        "error_x": TRACES["interval"] | {"array": above, "arrayminus": below},
        "marker": {"color": "--c-both", "size": 9},
    }
    chosen = [(at, row) for at, row in enumerate(rows) if row["n_no_answer"]]
    questions = {
        **_dots(chosen, "no_answer_rate", _no_answer_text),
        "name": "question found, no answer (of all items)",
        "marker": {"color": "--c-question", "size": 10, "symbol": "diamond-open"},
    }
    tops = [100 * max(row["high"], row["no_answer_rate"]) for row in rows]
    top = max(tops, default=1.0)
    layout = lines([*map(wrapped, _split_names(rows))])
    layout["xaxis"] |= {
        "title": {"text": "leaked, in % of checkable items"},
        "range": [-top / 50, top * 1.04],
    }
    if chosen:
        layout |= LAYOUTS["legend"]
        layout["height"] += _LEGEND_PIXELS
    data = [leaked, questions] if chosen else [leaked]
    title, opens = "Share of checkable items that leaked", ("benchmark", "split")
    return Chart(title, data, layout, descriptions.rates(rows), opens)


def _dots(
    rows: Sequence[tuple[int, Row]], share_of: str, text: Callable[[Row], str]
) -> dict[str, Any]:
    """Return a trace of one dot per numbered row."""
    return {
        **TRACES["dots"],
        "x": [100 * row[share_of] for _, row in rows],
        "y": [at for at, _ in rows],
        "customdata": [[row["benchmark"], row["split"]] for _, row in rows],
        "hovertext": [
            f"{whole_label(row['benchmark'])} · {whole_label(row['split'])}<br>{text(row)}"
            for _, row in rows
        ],
    }


def _rate_text(row: Row) -> str:
    rate, low, high = (share(row[name], 1) for name in ("leak_rate", "low", "high"))
    n_leaked, n_checkable = count(row["n_leaked_checkable"]), count(row["n_checkable"])
    return f"{n_leaked} of {n_checkable} checkable items leaked: {rate} ({low} to {high})"


def _no_answer_text(row: Row) -> str:
    return f"{count(row['n_no_answer'])} of {count(row['n_items'])} found without the answer"


def _split_names(rows: Rows) -> list[str]:
    return [f"{shown(row['benchmark'])} · {shown(row['split'])}" for row in rows]


def parts(benchmarks: Rows) -> Chart:
    """Draw leaked items by what leaked, no-answer items and those to review, per benchmark."""
    rows = [*filter(is_found, benchmarks)][:MOST_LINES]
    bars = [
        {
            **_bar(name, colour, pattern),
            "x": [row[key] for row in rows],
            "customdata": [[row["benchmark"], row["split"]] for row in rows],
            "hovertext": [
                f"{whole_label(row['benchmark'])}: {count(row[key])} {name}" for row in rows
            ],
            "hoverinfo": "text",
        }
        for key, name, colour, pattern in _FIXED["parts"]
        if any(row[key] for row in rows)
    ]
    title = "Items found, by benchmark and split"
    return _stacked(title, bars, _split_names(rows), "items", opens=("benchmark", "split"))


def is_found(row: Row) -> bool:
    """Return whether an item of this benchmark and split was found in any way."""
    return bool(row["n_leaked"] or row["n_no_answer"] or row["n_review"])


def flow(rows: Rows) -> Chart:
    """Draw a Sankey diagram from all items to what was found of them.

    Empty nodes are left out because Plotly piles them up in a corner.
    """
    names, colours, keys = zip(*_FIXED["nodes"], strict=True)
    sizes = [sum(row[key] for row in rows) for key in keys]
    nodes = [number for number, size in enumerate(sizes) if size]
    links = [(a, b) for a, b in _FIXED["links"] if sizes[b]]
    sankey = {
        "type": "sankey",
        "arrangement": "snap",
        "node": {
            **TRACES["nodes"],
            "label": [f"{names[number]}: {count(sizes[number])}" for number in nodes],
            "color": [colours[number] for number in nodes],
        },
        "link": {
            **TRACES["links"],
            "source": [nodes.index(a) for a, _ in links],
            "target": [nodes.index(b) for _, b in links],
            "value": [sizes[b] for _, b in links],
        },
    }
    description = descriptions.flow(
        dict(zip(names, sizes, strict=True)), [(names[a], names[b]) for a, b in links]
    )
    return Chart("All items by outcome", [sankey], frame(320), description)


def heat(cells: Rows, benchmarks: Rows, of_sources: Rows) -> Chart:
    """Draw leaked items by benchmark and source; squares without a leak have no colour."""
    sources = [row["source"] for row in of_sources]
    n_items: Counter[str] = Counter()
    for row in benchmarks:
        n_items[row["benchmark"]] += row["n_items"] or 0
    n_leaked = Counter({(row["benchmark"], row["source"]): row["n_leaked"] for row in cells})
    names = sorted(
        n_items, key=lambda name: (-sum(n_leaked[name, source] for source in sources), name)
    )
    names, is_dense = names[:MOST_LINES], len(sources) > _MANY_SOURCES

    def squares(value: Callable[[str, str, int], Any]) -> list[list[Any]]:
        return [
            [value(name, source, n_leaked[name, source]) for source in sources] for name in names
        ]

    def percent(name: str, _source: str, n: int) -> float:
        return 100 * n / max(1, n_items[name])

    def text(name: str, _source: str, n: int) -> str:
        of_items = f"<br>{share(n, n_items[name])}" if n_items[name] and not is_dense else ""
        return f"{count(n)}{of_items}" if n else ""

    def hover_text(name: str, source: str, n: int) -> str:
        return (
            f"{whole_label(name)} in {whole_label(source)}<br>"
            f"{counted(n, 'item')}, at least {share(n, n_items[name])} of the benchmark"
        )

    trace = TRACES["heat"] | {
        "x": [*range(len(sources))],
        "y": [*range(len(names))],
        "z": squares(lambda *square: percent(*square) or None),
        "text": squares(text),
        "hovertext": squares(hover_text),
        "customdata": squares(lambda name, source, _n: [name, source]),
        "zmax": max((percent(*key, n) for key, n in n_leaked.items()), default=1),
    }
    layout = lines([wrapped(name) for name in names], least_lines=1 if is_dense else 2)
    layout["xaxis"] |= {
        "side": "top",
        "showgrid": False,
        "tickvals": [*range(len(sources))],
        "ticktext": [
            label(source) if is_dense else wrapped(source, _SOURCE_CHARACTERS) for source in sources
        ],
        **({"tickangle": -90} if is_dense else {}),
        "range": [-0.5, len(sources) - 0.5],
    }
    layout["yaxis"] |= {"showgrid": False}
    square = _SMALL_SQUARE_PIXELS if is_dense else _SQUARE_PIXELS
    width = _NAME_PIXELS + square * len(sources) + _SCALE_PIXELS
    opens = ("benchmark", "source")
    description = descriptions.heat(names, sources, n_leaked)
    return Chart("Leaked items by benchmark and source", [trace], layout, description, opens, width)


def scores(rows: Rows, threshold: float | None) -> Chart:
    """Draw a histogram of one detector's scores, by the class of the matches."""
    heights: dict[str, list[int]] = {key: [0] * _BINS for key, *_ in _FIXED["scores"]}
    for row in rows:
        classes = ("n_contaminated", "n_no_answer", "n_review")
        numbers = {**row, "n_others": row["n_matches"] - sum(row[name] for name in classes)}
        for key, column in heights.items():
            column[row["bin"]] += numbers[key]
    x = [(number + 0.5) / _BINS for number in range(_BINS)]
    bars = [
        {**_bar(name, colour, pattern), "x": x, "y": heights[key], "width": 1 / _BINS}
        | {"hovertemplate": "%{y:,} at a score of about %{x:.2f}<extra>" + name + "</extra>"}
        for key, name, colour, pattern in _FIXED["scores"]
        if any(heights[key])
    ]
    first = min(min(row["bin"] for row in rows) / _BINS, 1.0 if threshold is None else threshold)
    layout = frame(240) | {"barmode": "stack", "bargap": 0.06} | LAYOUTS["legend"]
    layout["xaxis"] = {"title": {"text": "score"}, "range": [first - 0.02, 1.01]}
    layout["yaxis"] = counts("matches", max(map(sum, zip(*heights.values(), strict=True))))
    drawn = layout | _threshold_line(threshold, (first, 1.0))
    description = descriptions.scores([(bar["name"], bar["y"]) for bar in bars], threshold)
    return Chart("Matches by score", bars, drawn, description)


def sweep(rows: Rows, threshold: float | None) -> Chart:
    """Draw how many items would count as leaked at each threshold, by score only.

    The number at a step applies to all thresholds above the previous step.
    """
    ending: Counter[float] = Counter()
    for row in rows:
        ending[row["holds_to"]] += row["n_items"]
    thresholds = sorted(ending)
    n_leaked = [*accumulate(ending[at] for at in reversed(thresholds))][::-1]
    if threshold is not None and threshold < thresholds[0]:  # the number at the one in use
        thresholds, n_leaked = [threshold, *thresholds], [n_leaked[0], *n_leaked]
    mode = "lines+markers" if len(thresholds) < 30 else "lines"
    line = TRACES["steps"] | {"mode": mode, "x": thresholds, "y": n_leaked}
    layout = frame(240)
    layout["xaxis"] = {"title": {"text": "threshold"}}
    layout["yaxis"] = counts("items that leak", n_leaked[0])
    drawn = _threshold_line(threshold, (thresholds[0], thresholds[-1]))
    description = descriptions.sweep(thresholds, n_leaked, threshold)
    return Chart("Items by threshold", [line], layout | drawn, description)


def calibration(rows: Rows) -> Chart:
    """Draw the probability of a duplicate by score as steps, with the interval of each step."""
    ends = [row["score_from"] for row in rows[1:]] + [max(1.0, rows[-1]["score_to"])]
    edges = [x for row, end in zip(rows, ends, strict=True) for x in (row["score_from"], end)]

    def twice(key: str) -> list[float]:
        return [100 * row[key] for row in rows for _ in range(2)]

    texts = [
        f"{100 * row['probability']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f} %): "
        f"{count(row['n_sd'])} of {count(row['n_judged'])} judged pairs with a score of "
        f"{row['score_from']:.3f} to {row['score_to']:.3f}"
        for row in rows
        for _ in range(2)
    ]
    bound = TRACES["bound"] | {"x": edges}
    traces = [
        bound | {"y": twice("low")},
        bound | {"y": twice("high"), "fill": "tonexty", "fillcolor": "--c-link"},
        TRACES["probability"] | {"x": edges, "y": twice("probability"), "hovertext": texts},
    ]
    if len(rows) <= _MOST_STEPS_WITH_COUNTS:
        middles = [sum(ends) / 2 for ends in zip(edges[::2], edges[1::2], strict=True)]
        labels = [
            (at, 100 * row["probability"], f"{count(row['n_sd'])} of {count(row['n_judged'])}")
            for at, row in zip(middles, rows, strict=True)
        ]
        x, y, text, sides = zip(*_apart(labels, (edges[-1] - edges[0]) / 100), strict=True)
        traces.append(TRACES["counts"] | {"x": x, "y": y, "text": text, "textposition": sides})
    layout = frame(260)
    layout["xaxis"] = {"title": {"text": "score"}}
    layout["yaxis"] = {"title": {"text": "probability, in %"}, "range": [-8, 112]}
    return Chart("Probability of a duplicate", traces, layout, descriptions.calibration(rows))


def _apart(
    labels: Sequence[tuple[float, float, str]], character: float
) -> Iterator[tuple[float, float, str, str]]:
    """Yield labels above the line, below it where they would overlap, or else empty ones."""
    boxes: list[tuple[float, float, float, float]] = []  # left, right, bottom, top
    for x, y, text in reversed(labels):
        half = character * len(text) / 2
        for side, foot in (("top center", y), ("bottom center", y - _LABEL_HEIGHT)):
            own = (x - half, x + half, foot, foot + _LABEL_HEIGHT)
            if not any(
                own[0] < box[1] and box[0] < own[1] and own[2] < box[3] and box[2] < own[3]
                for box in boxes
            ):
                boxes.append(own)
                yield x, y, text, side
                break
        else:
            yield x, y, "", "top center"


def agreement(rows: Rows) -> Chart:
    """Draw, for every two detectors, the items that both or only one of them call leaked."""
    bars = [
        {
            **_bar(name, colour, pattern),
            "x": [row[key] for row in rows],
            "hovertemplate": "%{x:,} items<extra>" + name + "</extra>",
        }
        for key, name, colour, pattern in _FIXED["agreement"]
        if any(row[key] for row in rows)
    ]
    names = [f"{shown(row['detector'])} – {shown(row['other'])}" for row in rows]
    return _stacked("Agreement between detectors", bars, names, "items that leaked")


def removed(rows: Rows, mixtures: Rows) -> Chart:
    """Draw the share of documents that each mixture left out or cut, by reason.

    The axis is logarithmic: a few leaks stand beside many documents without a licence.
    """
    n_in = {row["mixture"]: row["n_documents_in"] for row in mixtures}
    names = [*n_in]
    numbers: Counter[tuple[str, str]] = Counter()
    for row in rows:
        numbers[row["why"], row["mixture"]] += row["n_documents"]
    dots = []
    for why in sorted({row["why"] for row in rows}):
        by_mixture = {name: numbers[why, name] for name in names if numbers[why, name]}
        colour, symbol = _FIXED["reasons"].get(why, ("--c-soft", "star"))
        dots.append(
            TRACES["dots"]
            | {
                "name": label(why),
                "x": [100 * n / n_in[name] for name, n in by_mixture.items()],
                "y": [names.index(name) for name in by_mixture],
                "marker": {"color": colour, "size": 11, "symbol": symbol},
                "hovertext": [
                    f"{whole_label(name)}: {count(n)} of {counted(n_in[name], 'document')} "
                    f"({share(n, n_in[name])}): {label(why)}"
                    for name, n in by_mixture.items()
                ],
            }
        )
    layout = lines([*map(wrapped, names)]) | LAYOUTS["legend"]
    layout["height"] += _LEGEND_PIXELS
    title = "documents left out or cut, in % (log)"
    lowest = min(x for dot in dots for x in dot["x"])
    layout["xaxis"] |= {"title": {"text": title}, "type": "log", "exponentformat": "none"}
    layout["xaxis"] |= {"range": [log10(lowest) - 0.2, 2.1], "dtick": 1}
    description = descriptions.removed(numbers, n_in)
    return Chart("Documents that mixtures left out or cut", dots, layout, description)


def _stacked(
    title: str,
    bars: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    axis: str,
    opens: tuple[str, ...] = (),
) -> Chart:
    """Draw horizontal bars, stacked in one row per name."""
    layout = (
        lines([*map(wrapped, names)]) | {"barmode": "stack", "bargap": 0.45} | LAYOUTS["legend"]
    )
    lengths = [bar["x"] for bar in bars]
    longest = max(map(sum, zip(*lengths, strict=True)), default=0)
    layout["xaxis"] |= counts(axis, longest)
    layout["height"] += _LEGEND_PIXELS
    rows = [*range(len(names))]
    data = [{**bar, "orientation": "h", "y": rows} for bar in bars]
    description = descriptions.stacked(names, [(bar["name"], bar["x"]) for bar in bars], axis)
    return Chart(title, data, layout, description, opens)


def _bar(name: str, colour: str, pattern: str) -> dict[str, Any]:
    """Return a bar trace; the pattern distinguishes it without colour, its edge from the page."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 1, "color": "--c-edge"}}
    if pattern:
        marker["pattern"] = TRACES["pattern"] | {"shape": pattern}
    return {"type": "bar", "name": name, "marker": marker}


def frame(height: int) -> dict[str, Any]:
    return {"height": height, "showlegend": False}


def lines(labels: Sequence[str], *, least_lines: int = 1) -> dict[str, Any]:
    """Return a layout with one row per label, the first on top. Labels may be equal.

    `least_lines`: lines of text for which every row has room.
    """
    n = len(labels)
    most = max([least_lines, *map(n_lines, labels)])
    pixels = _LINE_PIXELS + _NEXT_LINE_PIXELS * (most - 1)
    rows = {"tickvals": [*range(n)], "ticktext": [*labels], "range": [n - 0.5, -0.5]}
    return {
        **frame(_FRAME_PIXELS + pixels * max(1, n)),
        "xaxis": {"zeroline": False},
        "yaxis": {**rows, "zeroline": False},
    }


def counts(title: str, highest: int) -> dict[str, Any]:
    """Return an axis of integers that starts at 0."""
    axis = {"title": {"text": title}, "rangemode": "tozero"}
    return axis | ({"dtick": 1} if highest < _FEW else {})


def _threshold_line(threshold: float | None, ends: tuple[float, float]) -> dict[str, Any]:
    """Return a vertical line, labelled on the side with more room."""
    if threshold is None:
        return {}
    side, shift = ("right", -4) if threshold > sum(ends) / 2 else ("left", 4)
    name = {"text": f"threshold {threshold:g}", "x": threshold, "xanchor": side, "xshift": shift}
    return {
        "shapes": [LAYOUTS["threshold"] | {"x0": threshold, "x1": threshold}],
        "annotations": [LAYOUTS["threshold_name"] | name],
    }
