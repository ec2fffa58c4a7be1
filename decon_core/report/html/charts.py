"""Plotly figures as plain data.

Colours are names of CSS variables in page.css, so a figure fits the light and the dark theme.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, label, n_lines, share, shown, whole_label, wrapped

# With more lines, the table below is easier to read than a figure.
MOST_LINES = 60
_LINE_PIXELS = 26
_NEXT_LINE_PIXELS = 15  # for each further line of a label
_FRAME_PIXELS = 96
_LEGEND_PIXELS = 34
_BINS = 50  # of the view score_histogram

_SHARES = [
    ("n_with_answer", "leaked with its answer", "--c-both", ""),
    ("n_with_part_of_answer", "with part of its answer", "--c-part", "."),
    ("n_without_answer", "without its answer", "--c-alone", "x"),
    ("n_leaked_without_having_one", "the item has no answer", "--c-soft", "+"),
    ("n_question_only", "question-only, not leaked", "--c-question", "/"),
]
_REASONS = {
    "leak": ("--c-both", ""),
    "question only": ("--c-part", "."),
    "license": ("--c-question", "/"),
    "control": ("--c-alone", "x"),
    "no leak": ("--c-clean", "."),
    "unreadable": ("--c-blind", "-"),
}


@dataclass(frozen=True)
class Chart:
    """A figure and its title.

    `opens`: filters of the pairs that a click sets to the custom data of the point;
    `least_width`: the smallest readable width in pixels.
    """

    title: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    opens: tuple[str, ...] = ()
    least_width: int = 0


def rates(benchmarks: Rows) -> Chart:
    """Draw the leak rate of every benchmark and split with its interval."""
    rows = benchmarks[:MOST_LINES]
    leaked = {
        **_dots([*enumerate(rows)], "leak_rate", _rate_text),
        "name": "leaked",
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [100 * max(0.0, row["high"] - row["leak_rate"]) for row in rows],
            "arrayminus": [100 * max(0.0, row["leak_rate"] - row["low"]) for row in rows],
            "color": "--c-soft",
            "thickness": 1.5,
            "width": 4,
        },
        "marker": {"color": "--c-both", "size": 9},
    }
    chosen = [(at, row) for at, row in enumerate(rows) if row["n_question_only"]]
    questions = {
        **_dots(chosen, "question_only_rate", _question_only_text),
        "name": "question-only, not leaked",
        "marker": {"color": "--c-question", "size": 10, "symbol": "diamond-open"},
    }
    tops = [100 * max(row["high"], row["question_only_rate"]) for row in rows]
    top = max(tops, default=1.0)
    layout = _lines(_split_labels(rows))
    layout["xaxis"] |= {"title": {"text": "items, %"}, "range": [-top / 50, top * 1.04]}
    if chosen:
        layout |= _legend()
        layout["height"] += _LEGEND_PIXELS
    data = [leaked, questions] if chosen else [leaked]
    return Chart("Share of items that leaked", data, layout, ("benchmark", "split"))


def _dots(
    rows: Sequence[tuple[int, Row]], share_of: str, text: Callable[[Row], str]
) -> dict[str, Any]:
    """Return a trace of one dot per numbered row."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [100 * row[share_of] for _, row in rows],
        "y": [at for at, _ in rows],
        "customdata": [[row["benchmark"], row["split"]] for _, row in rows],
        "hovertext": [
            f"{whole_label(row['benchmark'])} · {whole_label(row['split'])}<br>{text(row)}"
            for _, row in rows
        ],
        "hoverinfo": "text",
    }


def _rate_text(row: Row) -> str:
    rate, low, high = (share(row[name], 1) for name in ("leak_rate", "low", "high"))
    return f"{count(row['n_leaked'])} of {count(row['n_items'])}: {rate} ({low} to {high})"


def _question_only_text(row: Row) -> str:
    return f"{count(row['n_question_only'])} of {count(row['n_items'])} question-only"


def _split_labels(rows: Rows) -> list[str]:
    return [wrapped(f"{shown(row['benchmark'])} · {shown(row['split'])}") for row in rows]


def parts(benchmarks: Rows) -> Chart:
    """Draw leaked items by what leaked, and question-only items, per benchmark."""
    rows = [row for row in benchmarks if row["n_leaked"] or row["n_question_only"]][:MOST_LINES]
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
        for key, name, colour, pattern in _SHARES
        if any(row[key] for row in rows)
    ]
    title = "What was found of the items"
    return _stacked(title, bars, _split_labels(rows), "items", opens=("benchmark", "split"))


# Name, colour and count of the nodes of the diagram.
_NODES = [
    ("items", "--c-soft", "n_items"),
    ("leaked", "--c-both", "n_leaked"),
    ("question-only", "--c-question", "n_question_only"),
    ("clean", "--c-clean", "n_clean"),
    ("not indexable", "--c-blind", "n_not_indexable"),
    ("with answer", "--c-both", "n_with_answer"),
    ("part of answer", "--c-part", "n_with_part_of_answer"),
    ("without answer", "--c-alone", "n_without_answer"),
    ("has no answer", "--c-soft", "n_leaked_without_having_one"),
    ("not fully scanned", "--c-blind", "n_not_fully_scanned"),
]
_LINKS = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (1, 8), (0, 9)]


def flow(rows: Rows) -> Chart:
    """Draw a Sankey diagram from all items to what was found of them.

    Empty nodes are left out because Plotly piles them up in a corner.
    """
    sizes = [sum(row[key] for row in rows) for _, _, key in _NODES]
    nodes = [number for number, size in enumerate(sizes) if size]
    links = [(a, b) for a, b in _LINKS if sizes[b]]
    sankey = {
        "type": "sankey",
        "arrangement": "snap",
        "node": {
            "label": [f"{_NODES[number][0]}: {count(sizes[number])}" for number in nodes],
            "color": [_NODES[number][1] for number in nodes],
            "pad": 26,
            "thickness": 14,
            "line": {"width": 0},
            "hoverinfo": "none",
        },
        "link": {
            "source": [nodes.index(a) for a, _ in links],
            "target": [nodes.index(b) for _, b in links],
            "value": [sizes[b] for _, b in links],
            "color": "--c-link",
            "hoverinfo": "none",
        },
    }
    return Chart("From all items to what was found of them", [sankey], _frame(320))


def heat(cells: Rows, benchmarks: Rows, sources: Sequence[str]) -> Chart:
    """Draw leaked items by benchmark and source; squares without a leak have no colour."""
    n_items: Counter[str] = Counter()
    for row in benchmarks:
        n_items[row["benchmark"]] += row["n_items"] or 0
    n_leaked = Counter({(row["benchmark"], row["source"]): row["n_leaked"] for row in cells})
    names = sorted(n_items, key=lambda name: (-sum(n_leaked[name, one] for one in sources), name))
    names = names[:MOST_LINES]

    def squares(value: Callable[[str, str, int], Any]) -> list[list[Any]]:
        return [[value(name, one, n_leaked[name, one]) for one in sources] for name in names]

    def percent(name: str, _source: str, n: int) -> float:
        return 100 * n / max(1, n_items[name])

    def text(name: str, _source: str, n: int) -> str:
        of_items = f"<br>{share(n, n_items[name])}" if n_items[name] else ""
        return f"{count(n)}{of_items}" if n else ""

    def hover_text(name: str, source: str, n: int) -> str:
        return (
            f"{whole_label(name)} in {whole_label(source)}<br>"
            f"{count(n)} items, {share(n, n_items[name])} of the benchmark"
        )

    trace = {
        "type": "heatmap",
        "x": [*range(len(sources))],
        "y": [*range(len(names))],
        "z": squares(lambda *square: percent(*square) or None),
        "text": squares(text),
        "hovertext": squares(hover_text),
        "customdata": squares(lambda name, source, _n: [name, source]),
        "texttemplate": "%{text}",
        "hoverinfo": "text",
        "hoverongaps": True,
        "colorscale": [[0, "--c-low"], [1, "--c-high"]],
        "showscale": False,
        "zmin": 0,
        "zmax": max((percent(*key, n) for key, n in n_leaked.items()), default=1),
        "xgap": 2,
        "ygap": 2,
    }
    layout = _lines([wrapped(name) for name in names], least_lines=2)
    layout["xaxis"] |= {
        "side": "top",
        "showgrid": False,
        "tickvals": [*range(len(sources))],
        "ticktext": [wrapped(source, _SOURCE_CHARACTERS) for source in sources],
        "range": [-0.5, len(sources) - 0.5],
    }
    layout["yaxis"] |= {"showgrid": False}
    width = _NAME_PIXELS + _SQUARE_PIXELS * len(sources)
    opens = ("benchmark", "source")
    return Chart("Leaked items by benchmark and source", [trace], layout, opens, width)


# Width of a count and a share; on narrow screens the figure scrolls.
_SQUARE_PIXELS = 56
_SOURCE_CHARACTERS = 14  # per line above a column
_NAME_PIXELS = 190


def scores(rows: Rows, threshold: float | None) -> Chart:
    """Draw a histogram of one detector's scores: leaks, question-only and near misses."""
    leaks, questions, others = ([0] * _BINS for _ in range(3))
    for row in rows:
        leaks[row["bin"]] += row["n_contaminated"]
        questions[row["bin"]] += row["n_question_only"]
        others[row["bin"]] += row["n_matches"] - row["n_contaminated"] - row["n_question_only"]
    x = [(number + 0.5) / _BINS for number in range(_BINS)]
    bars = [
        {**_bar(name, colour, pattern), "x": x, "y": heights, "width": 1 / _BINS}
        | {"hovertemplate": "%{y:,} at a score of about %{x:.2f}<extra>" + name + "</extra>"}
        for name, colour, pattern, heights in (
            ("leaks", "--c-both", "", leaks),
            ("question-only", "--c-question", "x", questions),
            ("near misses", "--c-clean", "/", others),
        )
        if any(heights)
    ]
    first = min(min(row["bin"] for row in rows) / _BINS, 1.0 if threshold is None else threshold)
    layout = _frame(240) | {"barmode": "stack", "bargap": 0.06} | _legend()
    layout["xaxis"] = {"title": {"text": "score"}, "range": [first - 0.02, 1.01]}
    layout["yaxis"] = _counts("matches", max(map(sum, zip(leaks, questions, others, strict=True))))
    return Chart("Matches by score", bars, layout | _threshold_line(threshold, (first, 1.0)))


def sweep(rows: Rows, threshold: float | None) -> Chart:
    """Draw how many items would count as leaked at each threshold, by score only.

    The number at a step applies to all thresholds above the previous step.
    """
    ending: Counter[float] = Counter()
    for row in rows:
        ending[row["holds_to"]] += row["n_items"]
    thresholds = sorted(ending)
    n_leaked = [*accumulate(ending[at] for at in reversed(thresholds))][::-1]
    line = {
        "type": "scatter",
        "mode": "lines+markers" if len(thresholds) < 30 else "lines",
        "x": thresholds,
        "y": n_leaked,
        "line": {"shape": "vh", "color": "--c-both", "width": 2},
        "marker": {"size": 4, "color": "--c-both"},
        "hovertemplate": "%{y:,} items at %{x}<extra></extra>",
    }
    layout = _frame(240)
    layout["xaxis"] = {"title": {"text": "threshold"}}
    layout["yaxis"] = _counts("items that leak", n_leaked[0])
    drawn = _threshold_line(threshold, (thresholds[0], thresholds[-1]))
    return Chart("Items by threshold", [line], layout | drawn)


def agreement(rows: Rows) -> Chart:
    """Draw, for every two detectors, the items that both or only one of them call leaked."""
    kinds = [
        ("n_detector_only", "only the first", "--c-question", "/"),
        ("n_both", "both", "--c-both", ""),
        ("n_other_only", "only the second", "--c-alone", "x"),
    ]
    bars = [
        {
            **_bar(name, colour, pattern),
            "x": [row[key] for row in rows],
            "hovertemplate": "%{x:,} items<extra>" + name + "</extra>",
        }
        for key, name, colour, pattern in kinds
        if any(row[key] for row in rows)
    ]
    labels = [wrapped(f"{shown(row['detector'])} – {shown(row['other'])}") for row in rows]
    return _stacked("Agreement between detectors", bars, labels, "items that leaked")


def removed(rows: Rows, mixtures: Sequence[str]) -> Chart:
    """Draw the documents that each mixture left out or cut, by reason."""
    numbers: Counter[tuple[str, str]] = Counter()
    for row in rows:
        numbers[row["mixture"], row["why"]] += row["n_documents"]
    bars = [
        {
            **_bar(label(why), *_REASONS.get(why, ("--c-soft", "+"))),
            "x": [numbers[mixture, why] for mixture in mixtures],
            "hovertemplate": "%{x:,} documents<extra>" + label(why) + "</extra>",
        }
        for why in sorted({row["why"] for row in rows})
    ]
    title = "Documents that mixtures left out or cut"
    return _stacked(title, bars, [wrapped(name) for name in mixtures], "documents left out or cut")


def _stacked(
    title: str,
    bars: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    axis: str,
    opens: tuple[str, ...] = (),
) -> Chart:
    """Draw horizontal bars, stacked in one row per label."""
    layout = _lines(labels) | {"barmode": "stack", "bargap": 0.45} | _legend()
    longest = max(map(sum, zip(*(bar["x"] for bar in bars), strict=True)), default=0)
    layout["xaxis"] |= _counts(axis, longest)
    layout["height"] += _LEGEND_PIXELS
    rows = [*range(len(labels))]
    return Chart(title, [{**bar, "orientation": "h", "y": rows} for bar in bars], layout, opens)


def by_detector(rows: Rows) -> Iterable[tuple[str, Rows]]:
    """Group rows by detector."""
    ordered = sorted(rows, key=lambda row: row["detector"])
    for detector, group in groupby(ordered, key=lambda row: row["detector"]):
        yield detector, list(group)


def _bar(name: str, colour: str, pattern: str) -> dict[str, Any]:
    """Return a bar trace; the pattern distinguishes it without colour."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": "--c-paper", "fillmode": "overlay"}
        marker["pattern"] |= {"size": 6, "solidity": 0.25}
    return {"type": "bar", "name": name, "marker": marker}


def _frame(height: int) -> dict[str, Any]:
    return {"height": height, "showlegend": False}


def _lines(labels: Sequence[str], *, least_lines: int = 1) -> dict[str, Any]:
    """Return a layout with one row per label, the first on top. Labels may be equal.

    `least_lines`: lines of text for which every row has room.
    """
    n = len(labels)
    most = max([least_lines, *map(n_lines, labels)])
    pixels = _LINE_PIXELS + _NEXT_LINE_PIXELS * (most - 1)
    return {
        **_frame(_FRAME_PIXELS + pixels * max(1, n)),
        "xaxis": {"zeroline": False},
        "yaxis": {
            "tickvals": [*range(n)],
            "ticktext": [*labels],
            "range": [n - 0.5, -0.5],
            "zeroline": False,
        },
    }


def _counts(title: str, highest: int) -> dict[str, Any]:
    """Return an axis of integers that starts at 0."""
    axis = {"title": {"text": title}, "rangemode": "tozero"}
    return axis | ({"dtick": 1} if highest < _FEW else {})


_FEW = 10  # with a tick at every integer, more would overlap


def _legend() -> dict[str, Any]:
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"}
    return {"showlegend": True, "legend": legend}


def _threshold_line(threshold: float | None, ends: tuple[float, float]) -> dict[str, Any]:
    """Return a vertical line, labelled on the side with more room."""
    if threshold is None:
        return {}
    is_late = threshold > sum(ends) / 2
    line = {"color": "--c-ink", "width": 1.5, "dash": "dash"}
    return {
        "shapes": [
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": threshold, "x1": threshold}
            | {"line": line}
        ],
        "annotations": [
            {"text": f"threshold {threshold:g}", "x": threshold, "y": 1, "yref": "paper"}
            | {"xanchor": "right" if is_late else "left", "xshift": -4 if is_late else 4}
            | {"showarrow": False, "yanchor": "top", "bgcolor": "--c-paper"}
        ],
    }
